//! Session events as the journal records them.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::runs::run_kind::KindEvent;
use tribunal_engine::ids::Hash;

/// The assignment of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionAssignment {
    /// The client's id of the session. If it is empty, the next session in this project claims the assignment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    pub work: SessionWork,
    /// The prompt that it is sent back with.
    pub prompt: String,
    /// The text with which it declares completion; `None` if no answer ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    pub max_refusals: u32,
    /// A file of the project whose front matter has hooks for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionWork {
    /// The same prompt again and again, until it is done or the limit is reached.
    #[default]
    Loop,
    /// The findings of a review.
    Review,
}

impl SessionWork {
    /// The tag in which a session declares this work complete.
    pub const fn completion_tag(self) -> &'static str {
        match self {
            SessionWork::Review => "review-complete",
            SessionWork::Loop => "promise",
        }
    }

    /// Returns what a session has to say, tags included, to declare this work complete.
    pub fn tag_promise(self, promise: &str) -> String {
        let tag = self.completion_tag();
        format!("<{tag}>{promise}</{tag}>")
    }
}

/// What the hooks of a session record, in the journal of the run that it works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionRecord {
    Session(SessionEvent),
}

impl KindEvent for SessionRecord {
    const KIND_NAMES: &'static [&'static str] = &["session"];

    fn kind_name(&self) -> &'static str {
        "session"
    }

    fn subject_name(&self) -> String {
        String::new()
    }
}

/// What happened in a session, with the counters after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionEvent {
    #[serde(flatten)]
    pub what: SessionEventKind,
    #[serde(default)]
    pub tally: SessionTally,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SessionEventKind {
    Bound {
        bound: SessionAssignment,
    },
    /// A session claimed an assignment that had waited for one.
    Claimed {
        session: String,
    },
    /// It wanted to stop and was sent back.
    Refused {
        /// The open findings, most severe first; empty for a loop.
        open: Vec<String>,
        /// The session had declared completion.
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
    /// A hook of its current step has run.
    Hooked {
        command: String,
        /// How it failed; empty if it succeeded.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fault: String,
        /// What it printed, masked and truncated.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// The client compacts its memory of the session, or the session begins or ends.
    Noted {
        text: String,
    },
    /// The session is no longer held.
    LetGo {
        why: ReleaseReason,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
}

/// The counters after an event, so that readers need not count from the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionTally {
    #[serde(default)]
    pub work: SessionWork,
    /// The refusals that count against the limit.
    pub refusals: u32,
    /// The number last written to the state file: another number there was set by the user.
    #[serde(default)]
    pub shown: u32,
    /// All refusals ever, regardless of resets by the user.
    #[serde(default)]
    pub total: u32,
    /// Refusals since the session last used a tool or got a prompt: clients end a turn after a number of them.
    pub in_a_row: u32,
    /// The number of tools used.
    pub tools: u64,
    /// The step whose hooks run, and what has to be remembered about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<SessionStep>,
}

/// A file of the project with hooks for the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionStep {
    /// Relative to the project's root.
    pub file: String,
    /// The hooks for the beginning have run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub begun: bool,
    /// The hooks that have run and run only once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<Hash>,
    /// The bytes that they have printed so far.
    #[serde(default)]
    pub said: u64,
}

/// Why a session may stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// It is done, as far as can be seen.
    Complete,
    /// It says that only the user can continue.
    Blocked,
    /// It says that its time is up.
    TimedOut,
    /// It was sent back as often as allowed.
    Refusals,
    /// Too many attempts failed.
    Failures,
    /// The client would end the turn by itself, with nothing to show.
    ClientCap,
    /// The run has ended or waits for something else.
    Over,
    /// The user released it.
    Person,
    /// It was inactive for too long.
    Stale,
}

impl ReleaseReason {
    /// Returns the reason in a few words for users.
    pub fn as_phrase(self) -> &'static str {
        match self {
            ReleaseReason::Complete => "it is done",
            ReleaseReason::Blocked => "it says that only you can continue",
            ReleaseReason::TimedOut => "it says that it ran out of time",
            ReleaseReason::Refusals => "it was sent back the maximum number of times",
            ReleaseReason::Failures => "too many failures in a row",
            ReleaseReason::ClientCap => "the client was about to end the turn by itself, without a result",
            ReleaseReason::Over => "it has nothing left to do",
            ReleaseReason::Person => "you released it",
            ReleaseReason::Stale => "it was inactive for too long",
        }
    }
}
