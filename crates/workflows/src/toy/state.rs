//! What a toy run knows between two steps.

use alloc::{collections::BTreeMap, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::runs::types::{ChildOutcome, UserDialog};
use tribunal_engine::{children::ChildLedger, limits::RunUsage, reason::RunEnding};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToyState {
    /// The number of steps that are done.
    pub step: u32,
    #[serde(flatten)]
    pub dialog: UserDialog,
    pub spent: RunUsage,
    pub ledger: ChildLedger,
    pub children: BTreeMap<String, ChildProgress>,
    pub pool: ToyPool,
    /// The ending that waits for an answer of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RunEnding>,
}

/// The children of a step that are started and awaited one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToyPool {
    /// How many of the step were started.
    pub started: u32,
    /// Those that have not come back, each with how often it was asked for.
    pub running: BTreeMap<String, u32>,
}

/// A child as its parent knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChildProgress {
    /// How often it was asked for.
    pub asked: u32,
    pub outcome: ChildOutcome,
}

impl ChildProgress {
    pub fn is_waiting(&self) -> bool {
        matches!(self.outcome, ChildOutcome::Waiting(_))
    }
}
