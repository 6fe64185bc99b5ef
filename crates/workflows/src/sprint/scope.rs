//! Which stories a sprint is about.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

/// Which stories of the board are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SprintScope {
    /// Only the stories of this epic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epic: Option<String>,
    /// Only these stories, in this order; all if it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stories: Vec<String>,
    /// The most stories that are begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_stories: Option<u32>,
}

impl SprintScope {
    pub fn contains(&self, key: &str, epic: &str) -> bool {
        (self.stories.is_empty() || self.stories.iter().any(|named| named == key))
            && self.epic.as_ref().is_none_or(|wanted| wanted == epic)
    }
}
