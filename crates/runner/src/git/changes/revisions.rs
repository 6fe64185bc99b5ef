//! Resolves what the user typed to the two states that a change lies between.

use std::{collections::BTreeSet, fs, process::Command};

use super::{ChangeError, ChangeScope, listing::ChangedEntry};
use crate::git::{GitRepository, to_trimmed_text};

/// The two states, by their ids.
#[derive(Clone, Debug)]
pub(super) struct ChangeEndpoints {
    /// The base; empty if there is nothing before the change.
    pub base_id: String,
    /// What git compares with; never empty.
    pub compare_from: String,
    /// The end; `None` for the work tree.
    pub end_id: Option<String>,
}

impl ChangeEndpoints {
    pub fn resolve_endpoints(
        repository: &GitRepository,
        selector: &ChangeScope,
    ) -> Result<ChangeEndpoints, ChangeError> {
        let (base_id, end_id) = match selector {
            ChangeScope::Range(revision_text) => resolve_range(repository, revision_text)?,
            ChangeScope::Commit(revision_text) => resolve_commit(repository, revision_text)?,
            // With unresolved conflicts the work tree has no definite content.
            ChangeScope::WorkTree => {
                refuse_unmerged(repository, repository.new_command())?;
                (head_commit(repository)?, None)
            }
            ChangeScope::WorkTreeSince(revision_text) => {
                refuse_unmerged(repository, repository.new_command())?;
                (require_commit(repository, revision_text)?, None)
            }
            ChangeScope::Staged => (head_commit(repository)?, Some(write_index_tree(repository)?)),
        };
        let compare_from = if base_id.is_empty() {
            // The id of the empty tree depends on the repository's hash algorithm.
            to_trimmed_text(&repository.query(["hash-object", "-t", "tree", "--stdin"])?)
        } else {
            base_id.clone()
        };
        Ok(ChangeEndpoints { base_id, compare_from, end_id })
    }
}

/// Returns the commit of HEAD; empty before the first commit.
fn head_commit(repository: &GitRepository) -> Result<String, ChangeError> {
    Ok(find_commit(repository, "HEAD")?.unwrap_or_default())
}

fn find_commit(repository: &GitRepository, revision_text: &str) -> Result<Option<String>, ChangeError> {
    let mut command = repository.new_command();
    // `--end-of-options` keeps a name that starts with a dash from being taken for an option.
    command.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision_text}^{{commit}}")]);
    let git_output = repository.run_unchecked(command, None)?;
    Ok(Some(to_trimmed_text(&git_output.stdout)).filter(|commit_id| git_output.succeeded && !commit_id.is_empty()))
}

fn require_commit(repository: &GitRepository, revision_text: &str) -> Result<String, ChangeError> {
    find_commit(repository, revision_text)?
        .ok_or_else(|| ChangeError::UnknownRevision { said: revision_text.to_string() })
}

fn resolve_range(repository: &GitRepository, revision_text: &str) -> Result<(String, Option<String>), ChangeError> {
    // Three dots are tried first: two dots are a part of them.
    let (left_name, right_name, is_three_dot) = match (revision_text.split_once("..."), revision_text.split_once(".."))
    {
        (Some((left_name, right_name)), _) => (left_name, right_name, true),
        (None, Some((left_name, right_name))) => (left_name, right_name, false),
        (None, None) => return Err(ChangeError::NotARange { said: revision_text.to_string() }),
    };
    let default_to_head = |revision_name: &str| {
        if revision_name.is_empty() { "HEAD".to_string() } else { revision_name.to_string() }
    };
    let (left_name, right_name) = (default_to_head(left_name), default_to_head(right_name));
    let (left_id, right_id) = (require_commit(repository, &left_name)?, require_commit(repository, &right_name)?);
    if !is_three_dot {
        return Ok((left_id, Some(right_id)));
    }
    let mut command = repository.new_command();
    command.args(["merge-base", &left_id, &right_id]);
    let git_output = repository.run_unchecked(command, None)?;
    let merge_base = to_trimmed_text(&git_output.stdout);
    if !git_output.succeeded || merge_base.is_empty() {
        return Err(ChangeError::NoCommonHistory {
            one: left_name,
            other: right_name,
            shallow: is_shallow(repository)?,
        });
    }
    Ok((merge_base, Some(right_id)))
}

fn is_shallow(repository: &GitRepository) -> Result<bool, ChangeError> {
    Ok(to_trimmed_text(&repository.query(["rev-parse", "--is-shallow-repository"])?) == "true")
}

fn resolve_commit(repository: &GitRepository, revision_text: &str) -> Result<(String, Option<String>), ChangeError> {
    let commit_id = require_commit(repository, revision_text)?;
    // A shallow clone hides the parent that it does not have; the commit object still names it.
    let commit_bytes = repository.query(["cat-file", "commit", &commit_id])?;
    let commit_headers = String::from_utf8_lossy(&commit_bytes);
    let parent_id =
        commit_headers.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("parent "));
    // A commit without a parent is compared with nothing.
    let Some(parent_id) = parent_id else { return Ok((String::new(), Some(commit_id))) };
    let mut command = repository.new_command();
    command.args(["cat-file", "-e", parent_id]);
    if !repository.run_unchecked(command, None)?.succeeded {
        return Err(ChangeError::ShallowHistory { said: revision_text.to_string() });
    }
    Ok((parent_id.to_string(), Some(commit_id)))
}

/// Refuses a change with unresolved conflicts: such a file is in neither of the two states.
fn refuse_unmerged(repository: &GitRepository, mut command: Command) -> Result<(), ChangeError> {
    command.args(["ls-files", "--unmerged", "-z"]);
    let git_output = repository.run_checked(command, None)?;
    let first_record =
        git_output.split(|byte| *byte == 0).find(|record| !record.is_empty()).map(String::from_utf8_lossy);
    match first_record {
        None => Ok(()),
        Some(record) => {
            let conflicted_path =
                record.split_once('\t').map_or(&*record, |(_, conflicted_path)| conflicted_path).to_string();
            Err(ChangeError::UnresolvedConflicts { path: conflicted_path })
        }
    }
}

/// Writes the index as a tree, from a copy: the user's own index is not touched.
fn write_index_tree(repository: &GitRepository) -> Result<String, ChangeError> {
    let index_path = to_trimmed_text(&repository.query(["rev-parse", "--git-path", "index"])?);
    let index_file = repository.work_tree_root().join(&index_path);
    let unreadable_error = |cause| ChangeError::Unreadable { path: index_path.clone(), cause };
    let temp_dir = tempfile::tempdir().map_err(unreadable_error)?;
    let index_copy = temp_dir.path().join("index");
    // There is no index yet if nothing was ever added.
    if index_file.exists() {
        fs::copy(&index_file, &index_copy).map_err(unreadable_error)?;
    }
    let git_with_copy = |arguments: &[&str]| -> Command {
        let mut command = repository.new_command();
        command.args(arguments).env("GIT_INDEX_FILE", &index_copy);
        command
    };
    refuse_unmerged(repository, git_with_copy(&[]))?;
    Ok(to_trimmed_text(&repository.run_checked(git_with_copy(&["write-tree"]), None)?))
}

/// Returns the files that differ between the work tree and `end_id`. Git compares, so converted line ends are no difference.
pub(super) fn find_differing_files(
    repository: &GitRepository,
    end_id: &str,
    path_filters: &[String],
    reviewable: &[ChangedEntry],
) -> Result<Vec<String>, ChangeError> {
    let mut command = repository.new_command();
    command
        .args(["diff", "--name-only", "-z", "--relative", "--no-renames", "--no-ext-diff", end_id, "--"])
        .args(path_filters);
    let git_output = repository.run_checked(command, None)?;
    let differing_paths: BTreeSet<&[u8]> = git_output.split(|byte| *byte == 0).collect();
    // Git's diff does not list untracked files, so a deleted file that exists again has to be looked for.
    let is_present_again = |entry: &ChangedEntry| {
        entry.is_deleted() && fs::symlink_metadata(repository.work_tree_root().join(&entry.relative_path)).is_ok()
    };
    let is_missing = |entry: &ChangedEntry| {
        !entry.is_deleted()
            && !fs::symlink_metadata(repository.work_tree_root().join(&entry.relative_path))
                .is_ok_and(|metadata| metadata.is_file())
    };
    let unwatched_paths = find_unwatched_files(repository, path_filters)?;
    let differing_entries = reviewable.iter().filter(|entry| {
        let path_bytes = entry.relative_path.as_bytes();
        differing_paths.contains(path_bytes)
            || unwatched_paths.contains(path_bytes)
            || is_present_again(entry)
            || is_missing(entry)
    });
    Ok(differing_entries.map(|entry| entry.relative_path.clone()).collect())
}

/// Returns the files that git was told not to check: left out of a sparse checkout, or assumed unchanged. It is unknown whether
/// they differ.
fn find_unwatched_files(repository: &GitRepository, path_filters: &[String]) -> Result<BTreeSet<Vec<u8>>, ChangeError> {
    let mut command = repository.new_command();
    command.args(["ls-files", "-v", "-z", "--"]).args(path_filters);
    let git_output = repository.run_checked(command, None)?;
    let status_lines = git_output.split(|byte| *byte == 0).filter(|line| line.len() > 2);
    // A lower-case status means "assume unchanged", an S means "skip worktree".
    let hidden_lines = status_lines.filter(|line| line[0] == b'S' || line[0].is_ascii_lowercase());
    Ok(hidden_lines.map(|line| line[2..].to_vec()).collect())
}
