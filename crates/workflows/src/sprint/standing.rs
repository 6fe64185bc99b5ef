//! What became of a story of a sprint.

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::text::word_table::words;

/// What became of a story of a sprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryStanding {
    Done,
    /// It has a question for the user, or has come to its limit.
    Waiting,
    /// The user has answered; it is continued next.
    Answered,
    /// The user skipped it.
    Skipped,
    /// It could not be started.
    Refused,
    /// It was stopped.
    Stopped,
    /// Another run works on it.
    Claimed,
}

words!(StoryStanding {
    Done = "done",
    Waiting = "waiting",
    Answered = "to be continued",
    Skipped = "skipped",
    Refused = "not started",
    Stopped = "stopped",
    Claimed = "worked on elsewhere",
});
