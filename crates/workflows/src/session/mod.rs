//! A user's session with a coding client that is held to its assignment: the findings of a review, or a loop.
//!
//! The assignment of a session, how often it was sent back and why it was released are journaled ([`SessionEvent`]);
//! [`stop`] decides from that and from the last answer ([`promise`]) whether the session may stop. Nothing here can block a
//! user: a hook that cannot decide lets the session stop, and the review itself verifies what a session claims.

use alloc::string::String;

use crate::runs::{
    kinds::WorkflowEvent,
    types::{JournalEntry, RunEvent},
};
use tribunal_engine::ids::RunId;

pub mod ending;
pub mod event;
pub mod order;
pub mod promise;
mod questions;
pub mod stop;
pub mod view;
mod workflow;

pub use event::{
    ReleaseReason, SessionAssignment, SessionEvent, SessionEventKind, SessionRecord, SessionStep, SessionTally,
    SessionWork,
};

/// Makes the event of a session one of the run that it works for.
pub fn wrap_session_event(event: SessionEvent) -> RunEvent {
    RunEvent::from_workflow(SessionRecord::Session(event))
}

/// How often a session is sent back before it may stop, unless the user sets another number.
pub const DEFAULT_MAX_REFUSALS: u32 = 50;
/// The highest limit that may be set: no loop runs for ever.
pub const MAX_REFUSALS_LIMIT: u32 = 1_000;

/// The binding of a session, computed from a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionBinding {
    pub run_id: RunId,
    pub assignment: SessionAssignment,
    pub tally: SessionTally,
    /// Why it was released, with details; `None` while it is held.
    pub release: Option<(ReleaseReason, String)>,
    /// The wall time of the last event.
    pub last_event_ms: u64,
}

impl SessionBinding {
    /// Returns the last session that was bound to a run or a loop, according to its journal.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a JournalEntry>) -> Option<SessionBinding> {
        let mut binding = None;
        for journal_entry in entries {
            if let RunEvent::Workflow(WorkflowEvent::Session(SessionRecord::Session(event))) = &journal_entry.event {
                SessionBinding::apply_event(&mut binding, &journal_entry.run, event, journal_entry.at.wall_ms);
            }
        }
        binding
    }

    /// Applies one more event. A new binding replaces everything before it.
    fn apply_event(current: &mut Option<SessionBinding>, run: &RunId, event: &SessionEvent, event_ms: u64) {
        if let SessionEventKind::Bound { bound } = &event.what {
            let (run, bound, tally) = (run.clone(), bound.clone(), event.tally.clone());
            *current =
                Some(SessionBinding { run_id: run, assignment: bound, tally, release: None, last_event_ms: event_ms });
            return;
        }
        // An event before any binding belongs to nothing.
        let Some(held_binding) = current else { return };
        held_binding.tally = event.tally.clone();
        held_binding.last_event_ms = event_ms;
        match &event.what {
            SessionEventKind::Claimed { session } => held_binding.assignment.session.clone_from(session),
            SessionEventKind::LetGo { why, detail } => held_binding.release = Some((*why, detail.clone())),
            _ => {}
        }
    }
}
