//! The typed task an agent gets, and its typed answer.
//!
//! A template in `agents` turns a brief into a prompt, the parser there turns text into an answer; here is only what
//! both sides mean.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    finding::{Evidence, Severity},
    ids::{AgentName, FindingId, Hash, Key},
    level::Role,
    limits::Usage,
    subject::Subject,
};

/// What an agent is asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub role: Role,
    pub subject: Subject,
    pub round: u32,
    /// A reviewer should find at least so many (0: may find nothing).
    pub required: u32,
    /// What is already known, in a line each; a reviewer need not raise it again.
    pub known: Vec<String>,
    /// What a fixer has to repair.
    pub assigned: Vec<Assigned>,
    /// What a person told the run.
    pub said: Vec<String>,
    /// What was wrong with the last answer to the same brief.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub correction: String,
}

/// One finding as a fixer sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assigned {
    pub id: FindingId,
    pub severity: Severity,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    pub place: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
    /// Why the last try did not count.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_try: String,
}

/// Where the agent works and what may come of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "copy", rename_all = "snake_case")]
pub enum Workplace {
    /// Reads in the frozen copy that this key made.
    Frozen { by: Key },
    /// Writes in a private copy of the project as it is now; the difference becomes a patch.
    Private,
}

/// A brief for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub agent: AgentName,
    pub brief: Brief,
    pub place: Workplace,
    pub timeout_ms: u64,
}

/// A finding as a reviewer raised it: a claim, not yet grounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raised {
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// The line the reviewer named, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggested_fix: String,
}

/// What a fixer says of one finding: a claim, not yet a fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub id: FindingId,
    #[serde(flatten)]
    pub said: Said,
    pub note: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verification: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    Fixed,
    Blocked,
}

/// What a parser made of an agent's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Content {
    Findings {
        raised: Vec<Raised>,
    },
    Fixes {
        claims: Vec<Claim>,
    },
    /// No parser could read it; the message says where it stopped.
    Unreadable {
        message: String,
    },
}

/// An agent's whole reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReply {
    #[serde(flatten)]
    pub content: Content,
    /// What the parser had to overlook.
    pub remarks: Vec<String>,
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// The prompt and the output, masked, as blobs.
    pub prompt: Hash,
    pub output: Hash,
}

/// What a fixer changed in its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// Hash of the changed files' names and new contents: what is landed must be this.
    pub hash: Hash,
    /// Relative paths.
    pub files: Vec<String>,
    /// The difference as people read it, masked, as a blob.
    pub diff: Hash,
}
