//! Building blocks for tests: hosts that perform no real effects, worlds that answer by script or at random, a simulated court,
//! a scripted agent that is a real process (`scripted-agent`), and a scripted model server for real agents ([`model`]).
//!
//! [`trial`] drives any workflow over `engine`'s own replayer with a journal in memory, and can kill it at every single write.
//! The product does not depend on this crate.

mod append_line;
mod challenged_round;
pub mod court;
mod development_replies;
mod dice;
mod landed_run;
mod loop_world;
pub mod model;
mod parked_work;
mod random_checks;
mod random_tree;
mod random_world;
mod record_table;
pub mod samples;
mod scripted_world;
mod session_stamp;
mod simulated_tree;
mod simulated_user;
mod sprint_world;
mod story_world;
pub mod trial;

pub use append_line::append_line;
pub use challenged_round::{COUNTER_QUOTE, challenged_journal};
pub use dice::Dice;
pub use landed_run::{landed_change, landing_key};
pub use loop_world::{LoopScript, LoopWorld, ScriptedTurn};
pub use random_tree::{RandomTree, TreeChild, total_usage};
pub use random_world::{FaultRates, RandomWorld};
pub use record_table::RecordTable;
pub use scripted_world::ScriptedWorld;
pub use session_stamp::SessionStamp;
pub use sprint_world::{BoardStory, STORY_TOKENS, SprintWorld, StoryEnd};
pub use story_world::{ReviewEnd, SessionDeed, StoryScript, StoryWorld};

/// The journal of a review from its start to its end, one entry per line: a sample for code that reads or draws journals.
pub const SAMPLE_JOURNAL: &str = include_str!("../fixtures/review.jsonl");

/// Parses the entries of a recorded journal. It panics on an unreadable entry, because a test must notice that.
pub fn parse_entries(journal_text: &str) -> Vec<tribunal_workflows::runs::types::JournalEntry> {
    let parse_entry = |line| match serde_json::from_str(line) {
        Ok(entry) => entry,
        Err(cause) => panic!("{cause}: {line}"),
    };
    journal_text.lines().map(parse_entry).collect()
}
