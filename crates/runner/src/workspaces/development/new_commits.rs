//! Finds the commits that appeared while something worked in a checkout, and whose they are.

use tribunal_engine::ids::CommitId;

use super::{
    WorkspaceError,
    checkout_refs::{CheckoutRefs, is_object_id},
    during_work::CommitDuringWork,
    user_repository::UserRepository,
};
use crate::git::{git_command, run_checked};

/// Finds commits that no ref had before.
pub(super) struct NewCommits<'a> {
    repository: &'a UserRepository,
    before: &'a CheckoutRefs,
    /// The address by which commits of agents are known.
    committer: String,
}

impl<'a> NewCommits<'a> {
    pub fn new(repository: &'a UserRepository, before: &'a CheckoutRefs, committer: String) -> NewCommits<'a> {
        NewCommits { repository, before, committer }
    }

    /// Lists the commits, the newest first. What is no commit has none.
    pub fn list_commits(&self, tip: &str) -> Result<Vec<CommitDuringWork>, WorkspaceError> {
        let known = self.before.refs.values().chain(self.before.stashes.iter().map(|entry| &entry.commit));
        let mut stdin_text = format!("{tip}\n--not\n");
        known.chain([&self.before.head]).filter(|value| is_object_id(value)).for_each(|value| {
            stdin_text.push_str(value);
            stdin_text.push('\n');
        });
        let mut command = git_command(self.repository.project_root());
        // Objects that are gone since are no reason to look at nothing.
        command.args(["rev-list", "--ignore-missing", "--topo-order", "--no-commit-header"]);
        command.args(["--format=tformat:%H%x09%P%x09%ce%x09%s", "--stdin"]);
        let listed = match run_checked(command, Some(stdin_text.into_bytes())) {
            Ok(listed) => listed,
            Err(_) if !self.has_object(tip) => return Ok(Vec::new()),
            // Without the commits it is not known whose they are, and then nothing may be moved.
            Err(cause) => return Err(cause.into()),
        };
        let parse_line = |line: &str| {
            let &[commit, parents, committer, subject] = line.splitn(4, '\t').collect::<Vec<_>>().as_slice() else {
                return None;
            };
            Some(CommitDuringWork {
                commit: CommitId::new(commit),
                subject: subject.to_string(),
                is_agents: committer == self.committer,
                is_merge: parents.contains(' '),
                before: None,
            })
        };
        Ok(String::from_utf8_lossy(&listed).lines().filter_map(parse_line).collect())
    }

    /// Whether git has an object.
    pub fn has_object(&self, object_id: &str) -> bool {
        self.repository.is_true(["cat-file", "-e", object_id]).unwrap_or(false)
    }

    /// Whether an agent of this run made a commit.
    pub fn is_agents(&self, commit: &str) -> bool {
        let shown = self.repository.query_text(["show", "-s", "--format=%ce", commit]);
        shown.is_ok_and(|address| address == self.committer)
    }

    /// Whether a ref has only moved on from where it was.
    pub fn has_moved_on(&self, seen: Option<&String>, wanted: Option<&String>) -> Result<bool, WorkspaceError> {
        match (seen, wanted) {
            (Some(seen), Some(wanted)) if is_object_id(seen) && is_object_id(wanted) => {
                self.repository.is_true(["merge-base", "--is-ancestor", wanted, seen])
            }
            _ => Ok(false),
        }
    }
}
