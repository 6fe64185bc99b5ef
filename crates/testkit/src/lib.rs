//! What tests are made of: hosts without a world, worlds that answer by script or at random, a simulated court, and a scripted
//! agent that is a real process (`scripted-agent`), and a scripted model server for real agents ([`model`]).
//!
//! [`trial`] drives any workflow over `core`'s own desk with a journal in memory, and can kill it at every single write.
//! Nothing in the product depends on this crate.

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

/// The journal of a review from its start to its end, one entry a line: a sample for whoever reads or draws journals.
pub const SAMPLE_JOURNAL: &str = include_str!("../fixtures/review.jsonl");

/// The entries of a recorded journal. Panics on one that cannot be read: that is what its test is for.
pub fn entries(journal: &str) -> Vec<tribunal_core::event::Entry> {
    let read = |line| match serde_json::from_str(line) {
        Ok(entry) => entry,
        Err(cause) => panic!("{cause}: {line}"),
    };
    journal.lines().map(read).collect()
}
