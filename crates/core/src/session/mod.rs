//! A session that a person has open with a coding client, held to what it has taken on: a review's findings, or a loop.
//!
//! What binds a session, how often it was sent back and how it was let go is journaled ([`SessionEvent`]); what a stop comes
//! to is decided in [`stop`] from that and from the words of the last answer ([`promise`]). Nothing here holds anybody: a
//! hook that cannot find out lets go, and what a session claims is proved by the review itself.

use alloc::string::String;

use crate::{
    event::{Entry, Event},
    ids::RunId,
};

pub mod event;
pub mod promise;
pub mod stop;

pub use event::{Bound, LetGo, SessionEvent, Step, Tally, What, Work};

/// How often a session is sent back before it is let go, unless somebody says otherwise.
pub const MOST_REFUSALS: u32 = 50;
/// More than this nobody may ask for: no loop is for ever.
pub const UPPER_BOUND: u32 = 1_000;

/// A binding as a journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub run: RunId,
    pub bound: Bound,
    pub tally: Tally,
    /// None: it is held.
    pub let_go: Option<(LetGo, String)>,
    /// When something last happened.
    pub last_ms: u64,
}

impl Binding {
    /// The session that has taken a run or a loop on, last, according to its journal.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Binding> {
        let mut known = None;
        for entry in entries {
            if let Event::Session(event) = &entry.event {
                Binding::see(&mut known, &entry.run, event, entry.at.wall_ms);
            }
        }
        known
    }

    /// Takes one more event into account. Whatever came before it was bound, and what came of that, is behind it.
    fn see(known: &mut Option<Binding>, run: &RunId, event: &SessionEvent, at_ms: u64) {
        if let What::Bound { bound } = &event.what {
            let (run, bound, tally) = (run.clone(), bound.clone(), event.tally.clone());
            *known = Some(Binding { run, bound, tally, let_go: None, last_ms: at_ms });
            return;
        }
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
