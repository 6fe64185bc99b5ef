//! The journal's vocabulary: facts, owned and versioned. Everything that users see is derived from these.
//!
//! The version of a [`JournalEntry`] (`v`) begins at 1; until the first release the format changes without a new number.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use tribunal_json::{Deserialize, FromJson, JsonError, Serialize, schemars};

use crate::{
    answer::DecisionAnswer,
    child_outcome::ReturnedChild,
    decision::Decision,
    failure_cause::FailureCause,
    ids::{BatchId, DecisionId, Hash, Key, RunId},
    limits::{Cost, RemainingLimits, UsageTotals},
    reason::{RunOutcome, RunReason},
    run_types::{AnyEvent, AnyOrder, RunTypes},
    timestamp::Timestamp,
};

/// The version this build writes.
pub const EVENT_VERSION: u16 = 1;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "JournalEntry")]
pub struct JournalEntry<T: RunTypes> {
    pub v: u16,
    pub run: RunId,
    /// The position in the run: 1, 2, 3, …
    pub seq: u64,
    /// Unique within the run: an entry written twice is one entry.
    pub id: String,
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: RunEvent<T>,
}

/// An entry that is not yet recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDraft<T: RunTypes> {
    pub id: String,
    pub event: RunEvent<T>,
}

/// Makes the enum of events, and the part of it that a derive reads.
macro_rules! run_events {
    ($($common_events:tt)*) => {
        /// Something that happened in a run.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[schemars(bound = "", rename = "RunEvent")]
        pub enum RunEvent<T: RunTypes> {
            $($common_events)*
            /// What the workflow of this kind of run records as it proceeds.
            #[serde(untagged)]
            Workflow(T::Event),
            /// An event of a newer build. A run that has one can be read, but not resumed.
            #[serde(untagged)]
            Unknown(UnknownEvent),
        }

        /// Reads the events that every run has.
        #[expect(dead_code, reason = "only what its derive makes is used")]
        #[derive(Deserialize)]
        #[serde(remote = "RunEvent::<T>", tag = "kind", rename_all = "snake_case")]
        enum CommonEvent<T: RunTypes> {
            $($common_events)*
        }
    };
}

run_events! {
        // The run itself.
        RunStarted {
            version: u32,
            build: String,
            settings: T::Settings,
            #[serde(flatten)]
            order: T::Order,
            /// The run that started this one, if it is a child.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            parent: Option<ParentRun>,
            /// The command that started this run, if it started several.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            batch: Option<BatchId>,
        },
        RunResumed {
            life: u32,
        },
        /// The user's changed settings were read; they hold from here on.
        SettingsChanged {
            settings: T::Settings,
            #[serde(flatten)]
            order: T::Order,
        },
        EffectStarted {
            key: Key,
            segment: u32,
            fingerprint: Hash,
            effect: T::Effect,
        },
        EffectFinished {
            key: Key,
            segment: u32,
            reply: T::Reply,
        },
        Boundary {
            key: Key,
            segment: u32,
            state: serde_json::Value,
        },
        Patched {
            change: String,
        },
        RunParked(RunSummary<T>),
        RunFinished(RunSummary<T>),

        /// A child run was given its id. The host records it before the child starts, so that a later process finds the child.
        ChildStarted {
            key: Key,
            name: String,
            child: RunId,
        },
        /// A child that was started, and that the run did not wait for, has come back. The host records it at any time.
        ChildReturned(ReturnedChild<T>),
        /// What a child has used that still works. The host records it at a boundary, and when the run stops.
        ChildUsage {
            name: String,
            used: UsageTotals,
        },
        DecisionPosted {
            decision: Decision<T>,
        },
        DecisionAnswered {
            decision: DecisionId,
            answer: DecisionAnswer,
        },
        Warned {
            text: String,
        },
        /// Something that looked like the user's word did not count: it came while agents without a sandbox were at work. The host
        /// records it at any time.
        WordIgnored {
            text: String,
        },
}

impl<T: RunTypes> FromJson for RunEvent<T> {
    fn from_value(value: serde_json::Value) -> Result<RunEvent<T>, JsonError> {
        let text_of = |name: &str| value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_string();
        let (kind, workflow) = (text_of("kind"), text_of("workflow"));
        let is_unknown_workflow = !workflow.is_empty() && !T::Order::kind_names().contains(&workflow.as_str());
        if T::Event::has_kind_name(&kind) {
            return T::Event::read_event(&kind, value).map(RunEvent::Workflow);
        }
        if kind.is_empty() {
            return Err(JsonError::missing_field("kind"));
        }
        if !COMMON_KIND_NAMES.contains(&kind.as_str()) || is_unknown_workflow {
            return Ok(RunEvent::Unknown(UnknownEvent { kind, workflow }));
        }
        CommonEvent::<T>::from_value(value)
    }
}

impl<'de, T: RunTypes> Deserialize<'de> for RunEvent<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RunEvent<T>, D::Error> {
        tribunal_json::read_json(deserializer)
    }
}

/// The run that started another one, and the name it gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ParentRun {
    pub run: RunId,
    /// The run that the user started, which is the parent itself or one above it.
    pub root: RunId,
    /// Unique among the children of the parent.
    pub name: String,
    /// 1 for a child of the root.
    pub depth: u32,
}

/// An event that this build does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnknownEvent {
    pub kind: String,
    /// The kind of run, if the event is the start of a run that this build does not have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workflow: String,
}

/// The `kind` of every event that does not depend on the kind of run.
const COMMON_KIND_NAMES: [&str; 16] = [
    "run_started",
    "run_resumed",
    "settings_changed",
    "effect_started",
    "effect_finished",
    "boundary",
    "patched",
    "run_parked",
    "run_finished",
    "child_started",
    "child_returned",
    "child_usage",
    "decision_posted",
    "decision_answered",
    "warned",
    "word_ignored",
];

impl<T: RunTypes> RunEvent<T> {
    /// Lists the `kind` of every event that this build has.
    pub fn all_kind_names() -> Vec<&'static str> {
        COMMON_KIND_NAMES.into_iter().chain(T::Event::all_kind_names()).collect()
    }

    /// Makes the event of a workflow.
    pub fn from_workflow(event: impl Into<T::Event>) -> RunEvent<T> {
        RunEvent::Workflow(event.into())
    }

    /// Names what the event is about. Together with the kind it forms a name that does not depend on other events.
    pub fn subject_name(&self) -> String {
        match self {
            RunEvent::EffectStarted { key, .. }
            | RunEvent::EffectFinished { key, .. }
            | RunEvent::Boundary { key, .. }
            | RunEvent::ChildStarted { key, .. } => key.to_string(),
            RunEvent::ChildReturned(ReturnedChild { name, .. }) | RunEvent::ChildUsage { name, .. } => name.clone(),
            // A build may mark several changes at one point.
            RunEvent::Patched { change } => change.clone(),
            RunEvent::DecisionPosted { decision } => decision.id.to_string(),
            RunEvent::DecisionAnswered { decision: decision_id, .. } => decision_id.to_string(),
            RunEvent::Workflow(event) => event.subject_name(),
            // The remaining kinds occur once in a run, or their order alone tells them apart.
            _ => String::new(),
        }
    }

    /// Returns the `kind` as it is written in JSON.
    pub fn kind_name(&self) -> &str {
        match self {
            // These must be the names that serde writes for the variants.
            RunEvent::RunStarted { .. } => "run_started",
            RunEvent::RunResumed { .. } => "run_resumed",
            RunEvent::SettingsChanged { .. } => "settings_changed",
            RunEvent::EffectStarted { .. } => "effect_started",
            RunEvent::EffectFinished { .. } => "effect_finished",
            RunEvent::Boundary { .. } => "boundary",
            RunEvent::Patched { .. } => "patched",
            RunEvent::RunParked(_) => "run_parked",
            RunEvent::RunFinished(_) => "run_finished",
            RunEvent::ChildStarted { .. } => "child_started",
            RunEvent::ChildReturned(_) => "child_returned",
            RunEvent::ChildUsage { .. } => "child_usage",
            RunEvent::DecisionPosted { .. } => "decision_posted",
            RunEvent::DecisionAnswered { .. } => "decision_answered",
            RunEvent::Warned { .. } => "warned",
            RunEvent::WordIgnored { .. } => "word_ignored",
            RunEvent::Workflow(event) => event.kind_name(),
            RunEvent::Unknown(event) => &event.kind,
        }
    }
}

/// How a run ended or was parked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "RunSummary")]
pub struct RunSummary<T: RunTypes> {
    /// `None` if the run was interrupted and has not ended.
    pub outcome: Option<RunOutcome>,
    pub reason: RunReason,
    pub detail: String,
    /// What only this kind of run has to say.
    #[serde(flatten)]
    pub result: T::Summary,
    pub cost: Cost,
    /// The part of the cost that a subscription paid.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub notional: Cost,
    pub tokens: u64,
    pub elapsed_ms: u64,
    /// What the other limits would still have allowed, if one limit halted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<RemainingLimits>,
    /// Why tasks came to nothing, if the run has not reached its goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<FailureCause>,
}
