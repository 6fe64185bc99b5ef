//! Why tasks of a run came to nothing: the typed facts behind the advice on what to do next.
//!
//! The causes are collected from the journal's entries ([`crate::runs::failure_log`]) and become a part of the run's summary,
//! so that a list of runs has them without reading whole journals. Reports turn them into commands.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    fault::{FaultKind, FaultRemedy},
    ids::{AgentName, FindingId, Key},
};

/// Why a task came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum FailureCause {
    /// An agent failed, or answered with something that could not be used.
    Agent {
        /// The key of its last attempt.
        key: Key,
        agent: AgentName,
        #[serde(flatten)]
        kind: FaultKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<FaultRemedy>,
        /// What it printed was kept.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        printed: bool,
    },
    /// A check rejected a fix.
    Check {
        /// The key of the fixer.
        key: Key,
        command: String,
        findings: Vec<FindingId>,
    },
}
