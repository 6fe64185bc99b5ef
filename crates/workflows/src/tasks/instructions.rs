//! A task without a subject: what a workflow tells an agent in its own words, and the free answers to it.
//!
//! A review's tasks have a subject and a role, and their answers are lists ([`crate::tasks::brief`]). All other tasks have
//! instructions, and their answers are a status report, a question or plain text.

use alloc::{boxed::Box, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::tasks::background::TaskBackground;

/// The most characters that are kept of an answer in plain text. The whole output is a blob.
pub const MAX_TEXT_CHARS: usize = 16_000;

/// The instructions of a workflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstructionBrief {
    /// What the task is about, in a few words for screens: `story 1.2`. The agent does not see it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the prompt begins with, before the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Box<TaskOpening>>,
    /// The instructions, in the workflow's own words. Text of others belongs into `material`.
    pub text: String,
    /// What to say instead of `text` in a session that has it already; `None` says it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up: Option<String>,
    /// Texts that the agent needs and that are not to be followed, each under a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub material: Vec<BriefMaterial>,
    /// What the user told the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// What was wrong with the last answer to the same brief.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub correction: String,
    #[serde(default, skip_serializing_if = "TaskBackground::is_empty")]
    pub surroundings: Box<TaskBackground>,
}

impl InstructionBrief {
    pub fn new(text: impl Into<String>) -> InstructionBrief {
        InstructionBrief { text: text.into(), ..InstructionBrief::default() }
    }
}

/// What a prompt begins with: a command of the client, or words that say the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskOpening {
    /// Commands, which only work at the very beginning of a prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ClientCommand>,
    /// For every client without a command.
    pub text: String,
}

impl TaskOpening {
    /// Returns the command of a client, by its id.
    pub fn command_for(&self, client: &str) -> Option<&str> {
        self.commands.iter().find(|command| command.client == client).map(|command| command.text.as_str())
    }
}

/// A command of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientCommand {
    pub client: String,
    pub text: String,
}

/// A text that is shown to an agent as material, not as instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BriefMaterial {
    pub name: String,
    pub text: String,
}

/// A question or a menu with which an agent ended its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentQuestion {
    /// The question, or the lines of the menu.
    pub question: String,
    /// The answers that are offered; empty if any answer will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// What the agent said, at most [`MAX_TEXT_CHARS`].
    pub text: String,
}

/// One answer that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QuestionOption {
    /// What to answer, exactly as the agent wrote it.
    pub key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}
