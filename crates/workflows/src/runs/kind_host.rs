//! The host as one kind of run sees it: with its order, and with its own events.

use alloc::{format, string::String};
use core::{fmt, ops::Deref};

use crate::{
    development::notices::{NotifyOutcome, NotifyUser},
    runs::{
        kinds::WorkflowEvent,
        run_kind::RunKind,
        types::{RunEvent, RunHost},
    },
};
use tribunal_engine::{host::ParkedRun, ids::Key};

/// The host of a run, with what the run was asked to do.
pub struct KindHost<'a, O> {
    host: &'a RunHost<'a>,
    pub order: &'a O,
}

// A derive would demand that orders can be copied.
impl<O> Clone for KindHost<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for KindHost<'_, O> {}

impl<O> fmt::Debug for KindHost<'_, O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KindHost").finish_non_exhaustive()
    }
}

impl<'a, O> KindHost<'a, O> {
    pub fn new(host: &'a RunHost<'a>, order: &'a O) -> KindHost<'a, O> {
        KindHost { host, order }
    }

    /// The host for code that serves all kinds of runs.
    pub fn run_host(&self) -> &'a RunHost<'a> {
        self.host
    }

    pub fn note_warning(&self, text: String) {
        self.host.note_event(RunEvent::Warned { text });
    }
}

impl<O: RunKind<Event: Into<WorkflowEvent>>> KindHost<'_, O> {
    /// Writes an event that only runs of this kind have into the journal.
    pub fn note_own_event(&self, event: O::Event) {
        self.host.note_event(RunEvent::from_workflow(event));
    }
}

impl<O: RunKind> KindHost<'_, O> {
    /// Runs the user's notification command. One that fails is a warning: no run depends on it.
    pub async fn notify_user(&self, notify_key: Key, detail: &str) -> Result<(), ParkedRun> {
        let text = format!("{}: {detail}", self.order.notice_title());
        if let NotifyOutcome::Failed { fault } = self.host.perform(notify_key, NotifyUser { text }).await? {
            self.note_warning(format!("could not notify you: {}", fault.detail));
        }
        Ok(())
    }
}

impl<'a, O> Deref for KindHost<'a, O> {
    type Target = RunHost<'a>;

    fn deref(&self) -> &RunHost<'a> {
        self.host
    }
}
