//! Resolves what the user typed to the two states that a change lies between.

use std::{collections::BTreeSet, fs, process::Command};

use super::{Asked, ChangeError, listing::Entry};
use crate::git::{Repository, text};

/// The two states, by their ids.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// The base; empty if there is nothing before the change.
    pub base: String,
    /// What git compares with; never empty.
    pub from: String,
    /// The end; `None` for the work tree.
    pub end: Option<String>,
}

impl Ends {
    pub fn resolve(repository: &Repository, asked: &Asked) -> Result<Ends, ChangeError> {
        let (base, end) = match asked {
            Asked::Range(said) => range(repository, said)?,
            Asked::Commit(said) => commit(repository, said)?,
            // With unresolved conflicts the work tree has no definite content.
            Asked::WorkTree => {
                unmerged(repository, repository.command())?;
                (head(repository)?, None)
            }
            Asked::Since(said) => {
                unmerged(repository, repository.command())?;
                (known(repository, said)?, None)
            }
            Asked::Staged => (head(repository)?, Some(staged(repository)?)),
        };
        let from = if base.is_empty() {
            // The id of the empty tree depends on the repository's hash algorithm.
            text(&repository.ask(["hash-object", "-t", "tree", "--stdin"])?)
        } else {
            base.clone()
        };
        Ok(Ends { base, from, end })
    }
}

/// Returns the commit of HEAD; empty before the first commit.
fn head(repository: &Repository) -> Result<String, ChangeError> {
    Ok(revision(repository, "HEAD")?.unwrap_or_default())
}

fn revision(repository: &Repository, said: &str) -> Result<Option<String>, ChangeError> {
    let mut git = repository.command();
    // `--end-of-options` keeps a name that starts with a dash from being taken for an option.
    git.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{said}^{{commit}}")]);
    let answer = repository.raw(git, None)?;
    Ok(Some(text(&answer.out)).filter(|id| answer.good && !id.is_empty()))
}

fn known(repository: &Repository, said: &str) -> Result<String, ChangeError> {
    revision(repository, said)?.ok_or_else(|| ChangeError::Unknown { said: said.to_string() })
}

fn range(repository: &Repository, said: &str) -> Result<(String, Option<String>), ChangeError> {
    // Three dots are tried first: two dots are a part of them.
    let (one, other, parted) = match (said.split_once("..."), said.split_once("..")) {
        (Some((one, other)), _) => (one, other, true),
        (None, Some((one, other))) => (one, other, false),
        (None, None) => return Err(ChangeError::NoRange { said: said.to_string() }),
    };
    let or_head = |name: &str| if name.is_empty() { "HEAD".to_string() } else { name.to_string() };
    let (one, other) = (or_head(one), or_head(other));
    let (from, to) = (known(repository, &one)?, known(repository, &other)?);
    if !parted {
        return Ok((from, Some(to)));
    }
    let mut git = repository.command();
    git.args(["merge-base", &from, &to]);
    let answer = repository.raw(git, None)?;
    let base = text(&answer.out);
    if !answer.good || base.is_empty() {
        return Err(ChangeError::Unrelated { one, other, shallow: is_shallow(repository)? });
    }
    Ok((base, Some(to)))
}

fn is_shallow(repository: &Repository) -> Result<bool, ChangeError> {
    Ok(text(&repository.ask(["rev-parse", "--is-shallow-repository"])?) == "true")
}

fn commit(repository: &Repository, said: &str) -> Result<(String, Option<String>), ChangeError> {
    let id = known(repository, said)?;
    // A shallow clone hides the parent that it does not have; the commit object still names it.
    let content = repository.ask(["cat-file", "commit", &id])?;
    let headers = String::from_utf8_lossy(&content);
    let parent =
        headers.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("parent "));
    // A commit without a parent is compared with nothing.
    let Some(parent) = parent else { return Ok((String::new(), Some(id))) };
    let mut git = repository.command();
    git.args(["cat-file", "-e", parent]);
    if !repository.raw(git, None)?.good {
        return Err(ChangeError::Shallow { said: said.to_string() });
    }
    Ok((parent.to_string(), Some(id)))
}

/// Refuses a change with unresolved conflicts: such a file is in neither of the two states.
fn unmerged(repository: &Repository, mut git: Command) -> Result<(), ChangeError> {
    git.args(["ls-files", "--unmerged", "-z"]);
    let answer = repository.answer(git, None)?;
    let first =
        answer.split(|byte| *byte == 0).find(|record| !record.is_empty()).map(String::from_utf8_lossy);
    match first {
        None => Ok(()),
        Some(record) => {
            let path = record.split_once('\t').map_or(&*record, |(_, path)| path).to_string();
            Err(ChangeError::Conflicts { path })
        }
    }
}

/// Writes the index as a tree, from a copy: the user's own index is not touched.
fn staged(repository: &Repository) -> Result<String, ChangeError> {
    let path = text(&repository.ask(["rev-parse", "--git-path", "index"])?);
    let index = repository.root().join(&path);
    let unreadable = |cause| ChangeError::Unreadable { path: path.clone(), cause };
    let folder = tempfile::tempdir().map_err(unreadable)?;
    let copy = folder.path().join("index");
    // There is no index yet if nothing was ever added.
    if index.exists() {
        fs::copy(&index, &copy).map_err(unreadable)?;
    }
    let asked = |args: &[&str]| -> Command {
        let mut git = repository.command();
        git.args(args).env("GIT_INDEX_FILE", &copy);
        git
    };
    unmerged(repository, asked(&[]))?;
    Ok(text(&repository.answer(asked(&["write-tree"]), None)?))
}

/// Returns the files that differ between the work tree and `end_id`. Git compares, so converted line ends are no difference.
pub(super) fn differing(
    repository: &Repository,
    end: &str,
    paths: &[String],
    kept: &[Entry],
) -> Result<Vec<String>, ChangeError> {
    let mut git = repository.command();
    git.args(["diff", "--name-only", "-z", "--relative", "--no-renames", "--no-ext-diff", end, "--"])
        .args(paths);
    let answer = repository.answer(git, None)?;
    let differ: BTreeSet<&[u8]> = answer.split(|byte| *byte == 0).collect();
    // Git's diff does not list untracked files, so a deleted file that exists again has to be looked for.
    let gone_but_there = |entry: &Entry| {
        entry.is_deleted() && fs::symlink_metadata(repository.root().join(&entry.path)).is_ok()
    };
    let gone = |entry: &Entry| {
        !entry.is_deleted()
            && !fs::symlink_metadata(repository.root().join(&entry.path)).is_ok_and(|it| it.is_file())
    };
    let unwatched = unwatched(repository, paths)?;
    let other = kept.iter().filter(|entry| {
        let path = entry.path.as_bytes();
        differ.contains(path) || unwatched.contains(path) || gone_but_there(entry) || gone(entry)
    });
    Ok(other.map(|entry| entry.path.clone()).collect())
}

/// Returns the files that git was told not to check: left out of a sparse checkout, or assumed unchanged. It is unknown whether
/// they differ.
fn unwatched(repository: &Repository, paths: &[String]) -> Result<BTreeSet<Vec<u8>>, ChangeError> {
    let mut git = repository.command();
    git.args(["ls-files", "-v", "-z", "--"]).args(paths);
    let answer = repository.answer(git, None)?;
    let lines = answer.split(|byte| *byte == 0).filter(|line| line.len() > 2);
    // A lower-case status means "assume unchanged", an S means "skip worktree".
    let hidden = lines.filter(|line| line[0] == b'S' || line[0].is_ascii_lowercase());
    Ok(hidden.map(|line| line[2..].to_vec()).collect())
}
