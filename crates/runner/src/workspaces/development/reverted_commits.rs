//! Finds commits of the branch that work takes back: a clone whose history was reset, or an old version of a file that was put back.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::ids::CommitId;

use super::{
    WorkspaceError,
    git_listings::{TreeDifference, parse_raw_diff},
    user_repository::UserRepository,
};

/// How many commits of the branch are looked at.
const LAST_COMMITS: &str = "-200";
/// Files that tools write, which often become what they were.
const LOCK_FILES: [&str; 14] = [
    "Cargo.lock",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "poetry.lock",
    "uv.lock",
    "Pipfile.lock",
    "Gemfile.lock",
    "composer.lock",
    "go.sum",
    "flake.lock",
];

/// What work takes back.
#[derive(Debug, Default)]
pub(super) struct TakenBack {
    /// Commits of which nothing is left, with their paths; the last one first.
    pub commits: Vec<RevertedCommit>,
    /// Files that are as they were before a commit, of which other files are left.
    pub files: Vec<RevertedFile>,
}

#[derive(Debug)]
pub(super) struct RevertedCommit {
    pub commit: CommitId,
    pub subject: String,
    pub paths: Vec<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct RevertedFile {
    pub path: Vec<u8>,
    pub commit: CommitId,
}

/// Whether a file is one that tools write.
pub(super) fn is_lock_file(path: &[u8]) -> bool {
    let file_name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    LOCK_FILES.iter().any(|lock_file| lock_file.as_bytes() == file_name)
}

/// Compares what the work makes of files with what they were before each of the last commits of the branch. Files for which `is_aside`
/// holds do not count.
pub(super) fn find_taken_back(
    repository: &UserRepository,
    base: &CommitId,
    changes: &[TreeDifference],
    is_aside: impl Fn(&[u8]) -> bool,
) -> Result<TakenBack, WorkspaceError> {
    // A new file takes nothing back, unless a commit had deleted it.
    let results: BTreeMap<&[u8], &str> =
        changes.iter().map(|change| (change.path.as_slice(), change.object_id.as_str())).collect();
    if results.is_empty() {
        return Ok(TakenBack::default());
    }
    let arguments =
        ["log", LAST_COMMITS, "-z", "--raw", "--no-abbrev", "--no-renames", "--format=%H %s", base.as_str()];
    let log = repository.query(arguments)?;
    let mut taken_back = TakenBack::default();
    // What a later commit has already named is not named again for an earlier one.
    let mut named_paths = BTreeSet::new();
    for LoggedCommit { commit, subject, changes: commit_changes } in parse_log(&log) {
        let counted: Vec<&TreeDifference> =
            commit_changes.iter().filter(|change| !is_aside(&change.path) && !is_lock_file(&change.path)).collect();
        let is_back =
            |change: &&TreeDifference| results.get(change.path.as_slice()) == Some(&change.old_object_id.as_str());
        let back: Vec<Vec<u8>> = counted.iter().copied().filter(is_back).map(|change| change.path.clone()).collect();
        let is_modified =
            |path: &Vec<u8>| results.get(path.as_slice()).is_some_and(|object| object.bytes().any(|byte| byte != b'0'));
        // Files that are only gone are named as lost ones.
        if back.iter().any(is_modified) && back.len() == counted.len() {
            named_paths.extend(back.iter().cloned());
            taken_back.commits.push(RevertedCommit { commit, subject, paths: back });
            continue;
        }
        for path in back.into_iter().filter(is_modified) {
            if named_paths.insert(path.clone()) {
                taken_back.files.push(RevertedFile { path, commit: commit.clone() });
            }
        }
    }
    taken_back.files.retain(|file| !taken_back.commits.iter().any(|reverted| reverted.paths.contains(&file.path)));
    Ok(taken_back)
}

struct LoggedCommit {
    commit: CommitId,
    subject: String,
    changes: Vec<TreeDifference>,
}

/// Parses commits with their changes: `COMMIT SUBJECT<nul>`, and for each change `:…<nul>PATH<nul>`.
fn parse_log(output: &[u8]) -> Vec<LoggedCommit> {
    let mut commits: Vec<LoggedCommit> = Vec::new();
    let mut words = output.split(|byte| *byte == 0);
    while let Some(word) = words.next() {
        let word = word.strip_prefix(b"\n").unwrap_or(word);
        if word.starts_with(b":") {
            let Some(path) = words.next() else { break };
            if let Some(logged) = commits.last_mut() {
                logged.changes.extend(parse_raw_diff(&[word, b"\0", path].concat()));
            }
        } else if !word.is_empty() {
            let line = String::from_utf8_lossy(word).into_owned();
            let (commit, subject) = line.split_once(' ').unwrap_or((&line, ""));
            commits.push(LoggedCommit {
                commit: CommitId::new(commit),
                subject: subject.to_string(),
                changes: Vec::new(),
            });
        }
    }
    commits
}
