//! What is left of the limits of a run.

use alloc::{collections::BTreeMap, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::cost::Cost;

/// What is left of every limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RemainingLimits {
    pub failures: u32,
    pub seconds: u64,
    pub cost: Cost,
    /// Weighted tokens for calls whose cost is not reported or that a subscription pays.
    pub tokens: u64,
    /// What is left of the limits that only this kind of run has, by their names, for instance `rounds`.
    #[serde(flatten)]
    pub counts: BTreeMap<String, u32>,
}

impl RemainingLimits {
    /// Adds what is left of a limit that only this kind of run has.
    #[must_use]
    pub fn with_count(mut self, name: &str, remaining: u32) -> RemainingLimits {
        self.counts.insert(String::from(name), remaining);
        self
    }
}
