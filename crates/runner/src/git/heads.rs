//! Branches and HEAD of the user's repository.

use std::{collections::BTreeSet, path::Path};

use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    changes::ChangeSize,
    workspace::{PathChange, WorkspaceChange},
};

use super::{
    GitError, GitRepository, WORK_TIMEOUT, find_ignored, layout::HeadState, plain_files::PlainRepository, run_git,
    to_trimmed_text, user_command,
};

/// What HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CurrentHead {
    Branch {
        name: String,
        commit: CommitId,
    },
    /// A branch without any commit.
    Unborn {
        name: String,
    },
    /// A commit and no branch.
    Detached {
        commit: CommitId,
    },
}

impl CurrentHead {
    /// Returns `None` for a branch with a name that git alone can shorten.
    fn from_state(head_state: HeadState) -> Option<CurrentHead> {
        let short_name = |ref_name: String| ref_name.strip_prefix("refs/heads/").map(str::to_string);
        Some(match head_state {
            HeadState::Branch { ref_name, commit_id } => {
                CurrentHead::Branch { name: short_name(ref_name)?, commit: CommitId::new(commit_id) }
            }
            HeadState::Detached { commit_id } => CurrentHead::Detached { commit: CommitId::new(commit_id) },
            HeadState::Unborn { ref_name } => CurrentHead::Unborn { name: short_name(ref_name)? },
        })
    }
}

/// Reads HEAD.
pub fn read_head(project_root: &Path) -> Result<CurrentHead, GitError> {
    let from_files = PlainRepository::find_at(project_root).and_then(|files| files.read_head());
    if let Some(head) = from_files.and_then(CurrentHead::from_state) {
        return Ok(head);
    }
    let repository = GitRepository::open_at(project_root)?;
    let branch = query_text(&repository, &["symbolic-ref", "-q", "--short", "HEAD"])?;
    let commit = query_text(&repository, &["rev-parse", "-q", "--verify", "HEAD^{commit}"])?.map(CommitId::new);
    Ok(match (branch, commit) {
        (Some(name), Some(commit)) => CurrentHead::Branch { name, commit },
        (Some(name), None) => CurrentHead::Unborn { name },
        (None, Some(commit)) => CurrentHead::Detached { commit },
        (None, None) => CurrentHead::Unborn { name: "HEAD".to_string() },
    })
}

/// Returns the commit of a branch; `None` if there is no such branch.
pub fn find_branch(project_root: &Path, branch_name: &str) -> Result<Option<CommitId>, GitError> {
    let branch_ref = format!("refs/heads/{branch_name}");
    if let Some(commit) = PlainRepository::find_at(project_root).and_then(|files| files.read_ref(&branch_ref)) {
        return Ok(Some(CommitId::new(commit)));
    }
    let repository = GitRepository::for_history(project_root);
    let revision = format!("{branch_ref}^{{commit}}");
    Ok(query_text(&repository, &["rev-parse", "-q", "--verify", &revision])?.map(CommitId::new))
}

/// Whether git accepts the name for a branch.
pub fn is_branch_name(project_root: &Path, branch_name: &str) -> Result<bool, GitError> {
    let repository = GitRepository::open_at(project_root)?;
    // A name like `-x` would be an option, and `@{-1}` another branch.
    let is_plain = !branch_name.starts_with('-') && !branch_name.contains("@{");
    Ok(is_plain && query_text(&repository, &["check-ref-format", "--branch", branch_name])?.is_some())
}

/// Commits files of the checkout, and nothing else that is staged. This is the user's own commit: their hooks and their signing apply.
pub fn commit_files(project_root: &Path, relative_paths: &[String], message: &str) -> Result<(), GitError> {
    let run = |arguments: &[&str]| {
        let mut command = user_command(project_root);
        command.arg("--literal-pathspecs").args(arguments).arg("--").args(relative_paths);
        let what = arguments.first().copied().unwrap_or_default().to_string();
        let output = run_git(command, None, WORK_TIMEOUT)?;
        match output.succeeded {
            true => Ok(()),
            // The user's hooks may have said more than one line.
            false => Err(GitError::CommandFailed { what, said: output.stderr.trim().to_string() }),
        }
    };
    // Files that git does not know yet cannot be committed by their name alone.
    run(&["add"])?;
    run(&["commit", "-q", "-m", message])
}

/// Lists the files below some folders that git neither tracks nor ignores.
pub fn list_untracked(project_root: &Path, folders: &[String]) -> Result<Vec<String>, GitError> {
    list_other_files(project_root, &[], folders)
}

/// Files that git tracks, and files that it would track.
#[derive(Clone, Debug, Default)]
pub struct ListedFiles {
    pub tracked: BTreeSet<String>,
    pub untracked: BTreeSet<String>,
}

/// Lists the files among some paths, and below those that are folders, that git does not ignore.
pub fn list_files(project_root: &Path, paths: &[String]) -> Result<ListedFiles, GitError> {
    let mut listed_files = ListedFiles::default();
    // Without a path git would list everything.
    if paths.is_empty() {
        return Ok(listed_files);
    }
    let repository = GitRepository::open_at(project_root)?;
    let mut command = repository.new_command();
    command.args(["ls-files", "-t", "--cached", "--others", "--exclude-standard", "-z", "--"]).args(paths);
    let listed = repository.run_checked(command, None)?;
    for record in listed.split(|byte| *byte == 0).filter_map(|record| std::str::from_utf8(record).ok()) {
        match record.split_once(' ') {
            Some(("?", path)) => listed_files.untracked.insert(path.to_string()),
            Some((_, path)) => listed_files.tracked.insert(path.to_string()),
            None => false,
        };
    }
    Ok(listed_files)
}

/// Lists the files among some paths, and below those that are folders, that git ignores and does not track.
pub fn list_ignored(project_root: &Path, relative_paths: &[String]) -> Result<Vec<String>, GitError> {
    list_other_files(project_root, &["--ignored"], relative_paths)
}

fn list_other_files(project_root: &Path, flags: &[&str], paths: &[String]) -> Result<Vec<String>, GitError> {
    let repository = GitRepository::open_at(project_root)?;
    let mut command = repository.new_command();
    command.args(["ls-files", "--others", "--exclude-standard", "-z"]).args(flags).arg("--").args(paths);
    let listed = repository.run_checked(command, None)?;
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Lists the files of the checkout that git tracks and that differ from HEAD.
pub fn list_uncommitted(project_root: &Path) -> Result<Vec<String>, GitError> {
    let repository = GitRepository::open_at(project_root)?;
    // Unlike `diff-index`, `status` looks into files whose times alone have changed.
    let listed = repository.query(["status", "--porcelain", "-z", "--untracked-files=no", "--no-renames"])?;
    // Each record is two letters, a blank and the name.
    let names = listed.split(|byte| *byte == 0).filter_map(|record| record.get(3..)).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Lists the files that differ between a commit and another one, or the checkout with its new files.
pub fn list_changes(project_root: &Path, base: &str, end: Option<&str>) -> Result<Vec<WorkspaceChange>, GitError> {
    let repository = GitRepository::open_at(project_root)?;
    let range = end.map_or_else(|| base.to_string(), |end| format!("{base}..{end}"));
    let listed = repository.query([
        "diff",
        "--name-status",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--relative",
        &range,
        "--",
    ])?;
    let mut fields = listed.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut changes = Vec::new();
    while let (Some(status), Some(path)) = (fields.next().filter(|status| !status.is_empty()), fields.next()) {
        let change = match status.as_str() {
            "A" => PathChange::Added,
            "D" => PathChange::Deleted,
            _ => PathChange::Modified,
        };
        changes.push(WorkspaceChange { path, change });
    }
    if end.is_none() {
        let untracked = repository.query(["ls-files", "-z", "--others", "--exclude-standard"])?;
        let names = untracked.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        changes.extend(names.map(|name| WorkspaceChange {
            path: String::from_utf8_lossy(name).into_owned(),
            change: PathChange::Added,
        }));
    }
    Ok(changes)
}

/// Renders the difference between two commits as a unified diff.
pub fn diff_commits(project_root: &Path, base: &str, end: &str) -> Result<String, GitError> {
    let repository = GitRepository::for_history(project_root);
    let range = format!("{base}..{end}");
    let diff =
        repository.query(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", &range, "--"])?;
    Ok(String::from_utf8_lossy(&diff).into_owned())
}

/// Counts the added and removed lines of each file between two commits; binary files count none.
pub fn count_changed_lines(project_root: &Path, base: &str, end: &str) -> Result<Vec<ChangedLines>, GitError> {
    let repository = GitRepository::for_history(project_root);
    let range = format!("{base}..{end}");
    let listed =
        repository.query(["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--relative", &range, "--"])?;
    Ok(parse_line_counts(&listed))
}

/// Reads how much a commit changes compared with its first parent, or all of it if it has none. `None` if there is no such commit.
pub fn read_change_size(project_root: &Path, commit: &CommitId) -> Option<ChangeSize> {
    let repository = GitRepository::for_history(project_root);
    // A name that starts with a dash would be an option.
    let revision = Some(commit.as_str()).filter(|name| !name.starts_with('-'))?;
    let mut command = repository.new_command();
    // The user's settings could hide the first commit, or compare a merge with another parent.
    command.args(["-c", "log.showRoot=true", "-c", "log.diffMerges=separate", "log", "-1", "--first-parent", "-m"]);
    command.args([
        "--format=",
        "--no-show-signature",
        "--numstat",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--relative",
    ]);
    command.args([revision, "--"]);
    let changed_lines = parse_line_counts(&repository.run_checked(command, None).ok()?);
    let mut change_size = ChangeSize::default();
    for lines in changed_lines {
        change_size.files += 1;
        change_size.added = change_size.added.saturating_add(lines.added);
        change_size.removed = change_size.removed.saturating_add(lines.removed);
    }
    Some(change_size)
}

/// Parses the output of `--numstat -z`. Binary files count no lines.
fn parse_line_counts(listed: &[u8]) -> Vec<ChangedLines> {
    let records = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let parse_record = |record: std::borrow::Cow<'_, str>| {
        let mut fields = record.splitn(3, '\t');
        let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
        let count = |field: &str| field.parse().unwrap_or(0);
        Some(ChangedLines { path: path.to_string(), added: count(added), removed: count(removed) })
    };
    records.filter_map(parse_record).collect()
}

/// How many lines of a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLines {
    pub path: String,
    pub added: u32,
    pub removed: u32,
}

/// Reads a file of the project as it is in a commit; `None` if that has none.
pub fn read_file_at(project_root: &Path, commit: &str, relative_path: &str) -> Option<Vec<u8>> {
    let repository = GitRepository::for_history(project_root);
    let object_name = format!("{commit}:./{relative_path}");
    repository.query(["cat-file", "blob", object_name.as_str()]).ok()
}

/// Whether a commit has a file or a directory of the project.
pub fn has_entry_at(project_root: &Path, commit: &CommitId, relative_path: &str) -> bool {
    let repository = GitRepository::for_history(project_root);
    let object_name = format!("{commit}:./{relative_path}");
    repository.query(["cat-file", "-e", object_name.as_str()]).is_ok()
}

/// Returns the commit that a name means; `None` if there is none.
pub fn find_commit(project_root: &Path, commit_name: &str) -> Result<Option<CommitId>, GitError> {
    let repository = GitRepository::for_history(project_root);
    let revision = format!("{commit_name}^{{commit}}");
    Ok(query_text(&repository, &["rev-parse", "-q", "--verify", "--end-of-options", &revision])?.map(CommitId::new))
}

/// Whether a commit is a part of the history of the checkout, and not its last commit.
pub fn is_ancestor(project_root: &Path, commit: &CommitId) -> bool {
    let repository = GitRepository::for_history(project_root);
    let head = query_text(&repository, &["rev-parse", "-q", "--verify", "HEAD"]).ok().flatten();
    head.as_deref() != Some(commit.as_str()) && is_in_history(project_root, commit)
}

/// Whether a commit is a part of the history of the checkout, or its last commit.
pub fn is_in_history(project_root: &Path, commit: &CommitId) -> bool {
    let repository = GitRepository::for_history(project_root);
    let merge_base = query_text(&repository, &["merge-base", commit.as_str(), "HEAD"]).ok().flatten();
    merge_base.as_deref() == Some(commit.as_str())
}

/// Whether a branch has a commit. A commit or a branch that does not exist has nothing to do with the other.
pub fn is_on_branch(project_root: &Path, commit: &CommitId, branch_name: &str) -> bool {
    let repository = GitRepository::for_history(project_root);
    let branch_ref = format!("refs/heads/{branch_name}");
    let merge_base = query_text(&repository, &["merge-base", commit.as_str(), &branch_ref]).ok().flatten();
    merge_base.as_deref() == Some(commit.as_str())
}

/// How git treats a file of the checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTracking {
    Tracked,
    Ignored,
    Untracked,
}

pub fn find_tracking(project_root: &Path, relative_path: &str) -> Result<FileTracking, GitError> {
    let repository = GitRepository::for_history(project_root);
    if query_text(&repository, &["ls-files", "--error-unmatch", "--", relative_path])?.is_some() {
        return Ok(FileTracking::Tracked);
    }
    let is_ignored = !find_ignored(project_root, [relative_path.to_string()].iter()).is_empty();
    Ok(if is_ignored { FileTracking::Ignored } else { FileTracking::Untracked })
}

/// Returns the answer of a query; `None` if git says no.
fn query_text(repository: &GitRepository, arguments: &[&str]) -> Result<Option<String>, GitError> {
    let mut command = repository.new_command();
    command.args(arguments);
    let output = repository.run_unchecked(command, None)?;
    match output.succeeded {
        true => Ok(Some(to_trimmed_text(&output.stdout)).filter(|text| !text.is_empty())),
        // A repository that git cannot work with is no answer.
        false => repository.find_repository_problem(output.first_message()).map_or(Ok(None), Err),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn the_size_of_a_commit_counts_binary_files_without_lines_and_knows_the_first_commit() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let run_git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"];
            let output = Command::new("git").args(identity).args(arguments).current_dir(root).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let commit_all = || {
            run_git(&["add", "-A"]);
            run_git(&["commit", "-q", "-m", "x"]);
            find_commit(root, "HEAD").unwrap().unwrap()
        };
        run_git(&["init", "-q"]);
        fs::write(root.join("a.txt"), "1\n2\n").unwrap();
        let first = commit_all();
        fs::write(root.join("a.txt"), "1\n3\n4\n").unwrap();
        fs::write(root.join("b.png"), b"\x89PNG\0\0").unwrap();
        let second = commit_all();
        let size = |files, added, removed| Some(ChangeSize { files, added, removed });
        assert_eq!(read_change_size(root, &first), size(1, 2, 0));
        assert_eq!(read_change_size(root, &second), size(2, 2, 1));
        assert_eq!(read_change_size(root, &CommitId::new("--output=x")), None);
    }

    #[test]
    fn ignored_files_are_told_from_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (name, text) in [(".gitignore", "out/\n"), ("tracked.txt", "a\n"), ("new.txt", "b\n")] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::create_dir(root.join("out")).unwrap();
        fs::write(root.join("out/a.md"), "c\n").unwrap();
        for arguments in [&["init", "-q"][..], &["add", "tracked.txt", ".gitignore"]] {
            assert!(Command::new("git").args(arguments).current_dir(root).status().unwrap().success());
        }
        for (name, expected) in [
            ("tracked.txt", FileTracking::Tracked),
            ("new.txt", FileTracking::Untracked),
            ("out/a.md", FileTracking::Ignored),
        ] {
            assert_eq!(find_tracking(root, name).unwrap(), expected, "{name}");
        }
        let paths = ["tracked.txt", "new.txt", "out", "missing"].map(String::from);
        assert_eq!(list_ignored(root, &paths).unwrap(), ["out/a.md"]);
        assert_eq!(list_untracked(root, &paths).unwrap(), ["new.txt"]);
        let listed_files = list_files(root, &paths).unwrap();
        assert_eq!(listed_files.tracked.into_iter().collect::<Vec<_>>(), ["tracked.txt"]);
        assert_eq!(listed_files.untracked.into_iter().collect::<Vec<_>>(), ["new.txt"]);
    }
}
