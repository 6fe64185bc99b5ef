//! A user's session with a coding client that is held to its assignment: the findings of a review, or a loop.
//!
//! The assignment of a session, how often it was sent back and why it was released are journaled ([`SessionEvent`]);
//! [`stop`] decides from that and from the last answer ([`promise`]) whether the session may stop. Nothing here can block a
//! user: a hook that cannot find out lets the session stop, and the review itself verifies what a session claims.

use alloc::string::String;

use crate::{
    event::{Entry, Event},
    ids::RunId,
};

pub mod event;
pub mod promise;
pub mod stop;

pub use event::{Bound, LetGo, SessionEvent, Step, Tally, What, Work};

/// How often a session is sent back before it may stop, unless the user sets another number.
pub const MOST_REFUSALS: u32 = 50;
/// The highest limit that may be set: no loop runs for ever.
pub const UPPER_BOUND: u32 = 1_000;

/// The binding of a session, computed from a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub run: RunId,
    pub bound: Bound,
    pub tally: Tally,
    /// Why it was released, with details; `None` while it is held.
    pub let_go: Option<(LetGo, String)>,
    /// The wall time of the last event.
    pub last_ms: u64,
}

impl Binding {
    /// Returns the last session that was bound to a run or a loop, according to its journal.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Binding> {
        let mut known = None;
        for entry in entries {
            if let Event::Session(event) = &entry.event {
                Binding::see(&mut known, &entry.run, event, entry.at.wall_ms);
            }
        }
        known
    }

    /// Applies one more event. A new binding replaces everything before it.
    fn see(known: &mut Option<Binding>, run: &RunId, event: &SessionEvent, at_ms: u64) {
        if let What::Bound { bound } = &event.what {
            let (run, bound, tally) = (run.clone(), bound.clone(), event.tally.clone());
            *known = Some(Binding { run, bound, tally, let_go: None, last_ms: at_ms });
            return;
        }
        // An event before any binding belongs to nothing.
        let Some(binding) = known else { return };
        binding.tally = event.tally.clone();
        binding.last_ms = at_ms;
        match &event.what {
            What::Claimed { session } => binding.bound.session.clone_from(session),
            What::LetGo { why, detail } => binding.let_go = Some((*why, detail.clone())),
            _ => {}
        }
    }
}
