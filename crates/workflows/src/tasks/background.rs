//! What an agent should know besides its task: the project it works in, and earlier attempts.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::tasks::prompt_context::PromptContext;

/// What an agent should know about the project it works in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskBackground {
    /// Files that Tribunal keeps in this project, in addition to those that every template names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_files: Vec<String>,
    /// Lessons from earlier reviews, one line each, the most useful first; templates leave out what has no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// Names of MCP servers the agent may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The language in which the project writes its documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_language: Option<String>,
    /// The results of earlier attempts in this run.
    #[serde(default, skip_serializing_if = "PromptContext::is_empty")]
    pub context: PromptContext,
}

impl TaskBackground {
    pub fn is_empty(&self) -> bool {
        *self == TaskBackground::default()
    }
}
