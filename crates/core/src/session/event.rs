//! What happens between a session and what it has taken on, as the journal has it.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Hash;

/// What a session has taken on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bound {
    /// The client's name for it. Empty: the next session here that says something takes it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    pub work: Work,
    /// What it is sent back with.
    pub prompt: String,
    /// What it has to say when it is done; none: nothing that it says ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    pub max_refusals: u32,
    /// A file of the project whose front matter has hooks for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The same prompt again and again, until it is done or the limit is reached.
    #[default]
    Loop,
    /// The findings of a review.
    Review,
}

/// What happened between a session and what it has taken on, with how it stands since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEvent {
    #[serde(flatten)]
    pub what: What,
    #[serde(default)]
    pub tally: Tally,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Bound {
        bound: Bound,
    },
    /// A session took what had been waiting for one.
    Claimed {
        session: String,
    },
    /// It wanted to stop and was sent back.
    Refused {
        /// Most severe first; empty for a loop.
        open: Vec<String>,
        /// It had said that it was done.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        claimed: bool,
    },
    /// It used a tool.
    Used {
        tool: String,
    },
    /// It was kept from using a tool.
    Denied {
        tool: String,
        reason: String,
    },
    /// A hook of the step it is at has run.
    Hooked {
        command: String,
        /// How it ended; empty: well.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fault: String,
        /// What it printed, masked and cut.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// The client makes its memory of the session shorter, or the session begins or ends.
    Noted {
        text: String,
    },
    /// Nobody holds it any more.
    LetGo {
        why: LetGo,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
}

/// How it stands after an event; so that nobody has to count from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    #[serde(default)]
    pub work: Work,
    /// As it counts against the limit.
    pub refusals: u32,
    /// What the state file was last made to say of that: another number there is a person's.
    #[serde(default)]
    pub shown: u32,
    /// Of all times, whatever a person set back.
    #[serde(default)]
    pub total: u32,
    /// Refusals since the session last used a tool or was spoken to: clients end a turn after so many.
    pub in_a_row: u32,
    /// Tools used.
    pub tools: u64,
    /// The step whose hooks run, and what has to be known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// A file of the project with hooks for the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Relative to the project's root.
    pub file: String,
    /// Those for the beginning have run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub begun: bool,
    /// Those that have run and run only once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<Hash>,
    /// Bytes that they have said so far.
    #[serde(default)]
    pub said: u64,
}

/// Why a session may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LetGo {
    /// It is done, as far as anybody can see.
    Complete,
    /// It says that only a person can go on.
    Blocked,
    /// It says that its time is up.
    TimedOut,
    /// It was sent back as often as allowed.
    Refusals,
    /// Too much failed.
    Failures,
    /// The client would end the turn by itself, with nothing to show.
    ClientCap,
    /// The run has come to an end or waits for somebody else.
    Over,
    /// A person said so.
    Person,
    /// Nobody has heard of it for too long.
    Stale,
}

impl LetGo {
    /// In a few words, for people.
    pub fn says(self) -> &'static str {
        match self {
            LetGo::Complete => "it is done",
            LetGo::Blocked => "it says that only a person can go on",
            LetGo::TimedOut => "it says that its time is up",
            LetGo::Refusals => "it was sent back as often as allowed",
            LetGo::Failures => "too much failed in a row",
            LetGo::ClientCap => "the client would soon have ended the turn by itself, with nothing to show",
            LetGo::Over => "there is nothing left for it to do",
            LetGo::Person => "a person let it go",
            LetGo::Stale => "nothing was heard of it for too long",
        }
    }
}
