//! Building blocks for tests: hosts that perform no real effects, worlds that answer by script or at random, a simulated court,
//! a scripted agent that is a real process (`scripted-agent`), and a scripted model server for real agents ([`model`]).
//!
//! [`trial`] drives any workflow over `core`'s own replayer with a journal in memory, and can kill it at every single write.
//! The product does not depend on this crate.

mod append;
mod challenged;
pub mod court;
mod dice;
mod landed;
pub mod model;
mod random;
pub mod samples;
mod scripted;
pub mod trial;

pub use append::append_line;
pub use challenged::{COUNTER, challenged};
pub use dice::Dice;
pub use landed::{landed_change, lander};
pub use random::{RandomWorld, Temper};
pub use scripted::ScriptedWorld;

/// The journal of a review from its start to its end, one entry per line: a sample for code that reads or draws journals.
pub const SAMPLE_JOURNAL: &str = include_str!("../fixtures/review.jsonl");

/// Parses the entries of a recorded journal. It panics on an unreadable entry, because a test must notice that.
pub fn entries(journal: &str) -> Vec<tribunal_core::event::Entry> {
    let read = |line| match serde_json::from_str(line) {
        Ok(entry) => entry,
        Err(cause) => panic!("{cause}: {line}"),
    };
    journal.lines().map(read).collect()
}
