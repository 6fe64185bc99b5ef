//! What tests are made of: hosts without a world, worlds that answer by script or at random, a simulated court, and a scripted
//! agent that is a real process (`scripted-agent`), and a scripted model server for real agents ([`model`]).
//!
//! [`trial`] drives any workflow over `core`'s own desk with a journal in memory, and can kill it at every single write.
//! Nothing in the product depends on this crate.

mod challenged;
pub mod court;
mod dice;
mod landed;
pub mod model;
mod random;
pub mod samples;
mod scripted;
pub mod trial;

pub use challenged::{COUNTER, challenged};
pub use dice::Dice;
pub use landed::{landed_change, lander};
pub use random::{RandomWorld, Temper};
pub use scripted::ScriptedWorld;

/// Journals of released builds, one entry a line: newer builds must go on from every line of them, and draw them.
pub const RECORDED: [(&str, &str); 1] = [("0.1.0", include_str!("../fixtures/review-0.1.0.jsonl"))];

/// More of the first build, for what its demo does not reach: several waves of fixers, and a halt between two of them.
pub const RECORDED_BESIDES: [(&str, &str); 2] = [
    ("0.1.0, waves", include_str!("../fixtures/waves-0.1.0.jsonl")),
    ("0.1.0, halted", include_str!("../fixtures/halted-0.1.0.jsonl")),
];

/// The entries of a recorded journal. Panics on one that cannot be read: that is what its test is for.
pub fn entries(journal: &str) -> Vec<tribunal_core::event::Entry> {
    let read = |line| match serde_json::from_str(line) {
        Ok(entry) => entry,
        Err(cause) => panic!("{cause}: {line}"),
    };
    journal.lines().map(read).collect()
}
