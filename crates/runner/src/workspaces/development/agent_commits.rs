//! Takes back what agents commit by themselves in the user's checkout.
//!
//! In a clone such a commit counts only as content. In the checkout it moves the user's branch, so it is taken back: the branch and the
//! index become what they were, the files stay, and the work lands as one commit of ours. Git processes of an agent run there with
//! a committer of their own, by which its commits are told from those of the user. All others stay, and so does a commit of
//! the agent's on which another one rests.

use std::collections::BTreeSet;

use tribunal_engine::ids::{CommitId, RunId};
use tribunal_workflows::development::workspace::PathChange;

use super::{
    DevelopmentWorkspace, WorkspaceError, file_component,
    git_listings::{TreeDifference, parse_raw_diff},
    integrate::list_changes,
    user_repository::UserRepository,
};
use crate::{
    git::{WORK_TIMEOUT, layout::HeadState, run_checked, run_git},
    kill_points,
};

/// The variable with which git processes of agents say who commits.
pub(crate) const COMMITTER_VARIABLE: &str = "GIT_COMMITTER_EMAIL";

/// Returns the committer's address of commits that agents of a run make in the checkout. It belongs to no mailbox.
pub(crate) fn agent_committer(run_id: &RunId) -> String {
    format!("agent@{}.tribunal.invalid", file_component(run_id.as_str()))
}

impl DevelopmentWorkspace {
    /// Takes the last commits of the user's branch back, as far as agents of this run made them. Returns how many these were. The
    /// index moves before the branch: a process that ends in between leaves an index that the next one finds as it should be.
    pub fn take_back_agent_commits(&self) -> Result<usize, WorkspaceError> {
        // While the work is parked, the checkout is the user's.
        if !self.is_in_place() || self.is_parked() {
            return Ok(0);
        }
        let repository = UserRepository::open_around(&self.record.project_root)?;
        let branch_ref = format!("refs/heads/{}", self.record.branch);
        let tip = match &repository.layout.head {
            HeadState::Branch { ref_name, commit_id } if *ref_name == branch_ref => CommitId::new(commit_id.as_str()),
            // Commits in the checkout did not move the branch last.
            _ => return Ok(0),
        };
        let parents = self.list_agent_parents(&repository, &tip)?;
        let Some(first_parent) = parents.last() else { return Ok(0) };
        move_index_back(&repository, &tip, first_parent)?;
        kill_points::kill_if_requested("agent-commits", "between");
        if !repository.move_ref(&branch_ref, first_parent, Some(&tip))? {
            let branch_name = &self.record.branch;
            return Err(WorkspaceError::new_not_ready(format!(
                "{branch_name} was moved while a commit of the agent was taken back from it; resume to try that again"
            )));
        }
        Ok(parents.len())
    }

    /// Lists the parents of the last commits, the newest first, as far as agents of this run made these commits since the work began.
    fn list_agent_parents(&self, repository: &UserRepository, tip: &CommitId) -> Result<Vec<CommitId>, WorkspaceError> {
        let base = &self.record.base;
        // A branch that does not follow the base was moved in another way than by commits.
        if tip == base || !repository.is_true(["merge-base", "--is-ancestor", base.as_str(), tip.as_str()])? {
            return Ok(Vec::new());
        }
        let range = format!("{base}..{tip}");
        let format_option = "--format=tformat:%P%x09%ce";
        let listed =
            repository.query_text(["rev-list", "--first-parent", "--no-commit-header", format_option, &range])?;
        let committer = agent_committer(&self.record.run);
        let agent_parents = listed.lines().map_while(|line| {
            let (parents, committed_by) = line.split_once('\t')?;
            // A merge has several parents, and brings commits of others.
            let is_taken_back = committed_by == committer && !parents.contains(' ');
            is_taken_back.then(|| CommitId::new(parents))
        });
        Ok(agent_parents.collect())
    }
}

/// Has the index say of every file that the commits changed what it said before them. What was staged since then stays staged.
fn move_index_back(repository: &UserRepository, tip: &CommitId, target: &CommitId) -> Result<(), WorkspaceError> {
    let checkout = &repository.layout.work_tree_top;
    let mut staged_command = repository.checkout_command(checkout);
    staged_command.args(["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", tip.as_str()]);
    let staged_files = parse_raw_diff(&run_checked(staged_command, None)?);
    let staged_paths: BTreeSet<&[u8]> = staged_files.iter().map(|staged_file| staged_file.path.as_slice()).collect();
    let mut changes = list_changes(repository, tip, target)?;
    changes.retain(|change| !staged_paths.contains(change.path.as_slice()));
    if changes.is_empty() {
        return Ok(());
    }
    let mut update_command = repository.checkout_command(checkout);
    update_command.args(["update-index", "-z", "--index-info"]);
    run_checked(update_command, Some(format_index_entries(&changes, tip)))?;
    // Only saves time: files that are what the index says count as unchanged without being read again.
    let mut refresh_command = repository.checkout_command(checkout);
    refresh_command.args(["update-index", "-q", "--refresh"]);
    let _ = run_git(refresh_command, None, WORK_TIMEOUT)?;
    Ok(())
}

/// Writes changes in the form of `update-index --index-info`. Removals come first: a file may be where a directory was.
fn format_index_entries(changes: &[TreeDifference], any_commit: &CommitId) -> Vec<u8> {
    let (removed, written): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.change == PathChange::Deleted);
    // Zeros stand for no object; they are as long as the name of one.
    let no_object = "0".repeat(any_commit.as_str().len());
    let mut entries = Vec::new();
    for change in removed.into_iter().chain(written) {
        let entry = match change.change {
            PathChange::Deleted => format!("0 {no_object}\t"),
            _ => format!("{} {}\t", change.file_mode, change.object_id),
        };
        entries.extend_from_slice(entry.as_bytes());
        entries.extend_from_slice(&change.path);
        entries.push(0);
    }
    entries
}
