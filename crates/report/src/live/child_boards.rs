//! The child runs of a run in its live view: which of them is under way, and what they have used so far.
//!
//! All updates of child runs, and of theirs, go to the board of the run that the user started. A child is shown from its first
//! entry until its parent's journal says how it came back.

use tribunal_engine::{children::MAX_DEPTH, ids::RunId, limits::RunUsage, progress::AgentProgress};
use tribunal_workflows::runs::{
    child_events::find_child_outcome,
    types::{ChildOutcome, JournalEntry, RunEvent},
};

use super::board::LiveBoard;

impl LiveBoard {
    /// Updates the board of a child run, at any depth, with its next journal entry.
    pub fn track_child_entry(&mut self, journal_entry: &JournalEntry) {
        let child_board = self.child_boards.entry(journal_entry.run.clone()).or_default();
        if matches!(journal_entry.event, RunEvent::RunStarted { .. }) {
            // A child that is continued tells its whole past again.
            *child_board = LiveBoard::default();
        }
        child_board.track_entry(journal_entry);
        self.forget_returned_child(&journal_entry.event);
    }

    /// Updates the worker of a child run that reports progress.
    pub fn note_child_progress(&mut self, child_id: &RunId, progress: &AgentProgress) {
        if let Some(child_board) = self.child_boards.get_mut(child_id) {
            child_board.note_progress(progress);
        }
    }

    /// Removes the board of a child run that has come back to its parent.
    pub(super) fn forget_returned_child(&mut self, run_event: &RunEvent) {
        if let Some(child_id) = find_child_outcome(run_event).and_then(ChildOutcome::child_run) {
            self.child_boards.remove(child_id);
        }
    }

    /// Lists the run itself and the child runs that are under way, each behind the run that it is a child of.
    pub(super) fn list_running_boards(&self) -> Vec<&LiveBoard> {
        let mut running_boards = vec![self];
        let mut parent_board = self;
        // A journal that came from elsewhere could name a run as its own child.
        for _ in 0..MAX_DEPTH {
            let Some(child_board) = self.find_running_child(parent_board) else { break };
            running_boards.push(child_board);
            parent_board = child_board;
        }
        running_boards
    }

    fn find_running_child(&self, parent_board: &LiveBoard) -> Option<&LiveBoard> {
        let mut running_children = parent_board
            .run_view
            .children
            .values()
            .filter(|standing| parent_board.is_running() && standing.outcome.is_none());
        running_children
            .find_map(|standing| self.child_boards.get(&standing.run).filter(|child_board| child_board.has_started()))
    }
}

/// Adds up what the first of these runs has used, with the child runs behind it: a parent counts its child only when the child
/// has come back.
pub(super) fn sum_running_usage(running_boards: &[&LiveBoard]) -> RunUsage {
    let Some((parent_board, child_boards)) = running_boards.split_first() else { return RunUsage::default() };
    let running_child = child_boards.first().and_then(|child_board| child_board.run_view.run_id.as_ref());
    let mut usage = parent_board.run_view.usage.clone();
    for standing in parent_board.run_view.children.values() {
        let used = match running_child == Some(&standing.run) {
            // What it had used when it last came back is a part of what it has used by now.
            true => sum_running_usage(child_boards).usage_totals().max_of(&standing.usage),
            false => standing.usage,
        };
        usage.add_child(&used);
    }
    usage
}
