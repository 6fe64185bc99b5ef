//! What every workflow can request from the outside world, and the outcomes.
//!
//! An effect is data: it is fingerprinted, journaled and performed by a host. Each effect is a struct, and
//! [`AnswerTo`](crate::answer_to::AnswerTo) says which outcome belongs to it; a failure is part of the outcome. The effects
//! of single workflows are defined beside them.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    decision::Decision,
    fault::Fault,
    files::StrayEdit,
    ids::AgentName,
    reason::RunEnding,
    records::{RecordChange, StoredRecord},
    run_types::{AnyRecord, RunTypes},
};

/// Restores a file that was edited outside the agents' workspaces; its current content is parked first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Restore {
    pub stray: StrayEdit,
}

/// Posts a question to the user without waiting for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct PostDecision<T: RunTypes> {
    pub decision: Decision<T>,
}

/// Reads what the user sent since the last read; does not wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadInbox {}

/// Waits for the user: parks the run with this ending unless a request has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitForUser {
    pub ending: RunEnding,
}

/// Sleeps for a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sleep {
    pub ms: u64,
}

/// Waits until an agent may be asked again, by the wall clock, however often the run is resumed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AwaitReset {
    pub agent: AgentName,
    pub until_ms: u64,
    pub why: String,
    pub cause: WaitCause,
}

/// What keeps a run from asking an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// The provider's limit for this agent.
    UsageLimit,
    /// The user's own limit on the calls of all agents.
    CallsPerHour,
    /// The circuit breaker of a loop.
    CircuitBreaker,
    /// The provider has a problem of its own.
    Overload,
}

/// Reads the project records of one kind whose keys begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct ReadRecords<T: RunTypes> {
    pub kind: <T::Record as AnyRecord>::Kind,
    pub key_prefix: String,
}

/// Changes project records: all of these changes, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct WriteRecords<T: RunTypes> {
    pub changes: Vec<RecordChange<T>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// The file is restored. `parked` is where its previous content was put, if there was any.
    Restored {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<String>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

impl From<Fault> for RestoreOutcome {
    fn from(fault: Fault) -> RestoreOutcome {
        RestoreOutcome::Failed { fault }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PostOutcome {
    Posted,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

impl From<Fault> for PostOutcome {
    fn from(fault: Fault) -> PostOutcome {
        PostOutcome::Failed { fault }
    }
}

/// What the user sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct Requests<T: RunTypes> {
    pub requests: Vec<T::Request>,
}

impl<T: RunTypes> Default for Requests<T> {
    fn default() -> Self {
        Requests { requests: Vec::new() }
    }
}

/// The project records that were asked for, by key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct RecordList<T: RunTypes> {
    pub records: Vec<StoredRecord<T>>,
}

impl<T: RunTypes> Default for RecordList<T> {
    fn default() -> Self {
        RecordList { records: Vec::new() }
    }
}

/// The outcome of changing project records: the changes are durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordsWritten {}

/// The outcome of a wait: the time has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Elapsed {}
