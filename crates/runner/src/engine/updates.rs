//! What a screen may draw while runs are going on, and the way there.

use std::{cell::RefCell, fmt};

use tribunal_engine::{ids::RunId, progress::AgentProgress};
use tribunal_workflows::runs::types::JournalEntry;

/// What a screen may draw while a run is going on.
#[derive(Debug)]
pub enum RunUpdate<'a> {
    /// An entry that was recorded before this process continued the run.
    ReplayedEntry(&'a JournalEntry),
    NewEntry(&'a JournalEntry),
    Progress(&'a AgentProgress),
    /// The user wants to stop; this many effects are still running.
    StoppingAfter(usize),
    /// The user wants to stop immediately: this many effects are being ended.
    EndingNow(usize),
    /// This many processes that an earlier process of the run had left were found and ended.
    StraysEnded(usize),
    /// The host waits until processes that an earlier process of the run left have ended.
    WaitingForKeepers,
    /// The host waits until the user's check of the run's work has ended.
    WaitingForInspection,
}

/// Takes the updates of a run and of its child runs, which all run on one thread.
pub trait UpdateSink {
    fn send_update(&self, run_id: &RunId, update: RunUpdate<'_>);
}

/// Calls a function with every update.
pub struct UpdateCallback<F>(RefCell<F>);

impl<F: FnMut(&RunId, RunUpdate<'_>)> UpdateCallback<F> {
    pub fn new(callback: F) -> UpdateCallback<F> {
        UpdateCallback(RefCell::new(callback))
    }
}

impl<F: FnMut(&RunId, RunUpdate<'_>)> UpdateSink for UpdateCallback<F> {
    fn send_update(&self, run_id: &RunId, update: RunUpdate<'_>) {
        // A function that causes an update while it handles one would not be told of it.
        if let Ok(mut callback) = self.0.try_borrow_mut() {
            callback(run_id, update);
        }
    }
}

impl<F> fmt::Debug for UpdateCallback<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpdateCallback").finish_non_exhaustive()
    }
}
