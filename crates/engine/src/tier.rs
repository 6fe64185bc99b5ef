//! How heavy the process is for a project. Every kind of run is pinned to a tier.

use core::fmt;

use tribunal_json::{Deserialize, FromJson, JsonError, Serialize, schemars};

/// 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ProcessTier(#[schemars(range(min = 0, max = 4))] u8);

impl ProcessTier {
    pub fn new(tier_number: u8) -> Option<ProcessTier> {
        // The field is private, so every tier has passed this check.
        (tier_number <= 4).then_some(ProcessTier(tier_number))
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for ProcessTier {
    fn default() -> Self {
        ProcessTier(2)
    }
}

impl FromJson for ProcessTier {
    fn from_value(value: serde_json::Value) -> Result<ProcessTier, JsonError> {
        let tier_number = u8::from_value(value)?;
        ProcessTier::new(tier_number)
            .ok_or_else(|| JsonError::new(alloc::format!("unknown tier {tier_number} (expected 0 to 4)")))
    }
}

impl<'de> Deserialize<'de> for ProcessTier {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tribunal_json::read_json(deserializer)
    }
}

impl fmt::Display for ProcessTier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
