//! What a task is for, and which answer it expects.

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::tasks::client::JobKind;

/// What a task is for, and what kind of answer it expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPurpose {
    pub job: JobKind,
    pub expects: ExpectedAnswer,
}

/// What an agent may do in its workspace. Each kind includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentAccess {
    /// It may only read.
    Read,
    /// It may change files. What it changed becomes a patch, so it needs no commands.
    Write,
    /// It may also run commands, such as tests and git: the workspace is a clone for development.
    Develop,
}

/// The kind of answer that a task expects. The prompt asks for it, and the parser looks for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedAnswer {
    Findings,
    Fixes,
    Rulings,
    /// A status block.
    Status,
    /// A question or a menu, or plain text if there is nothing to ask.
    Question,
    /// Plain text.
    Text,
    /// The end of a turn of development: plain text, with a status block if the agent gives one.
    Turn,
}
