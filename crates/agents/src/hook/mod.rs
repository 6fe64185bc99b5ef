//! Hooks: what a client tells a program that it starts at certain events of a session, and what may be answered.
//!
//! [`HookInput`] is what came on standard input, from any client; [`HookAnswer`] is what is answered, in the form of
//! that client. `workflows` decides what the answer is, and the caller reads the files.

use serde_json::Value;

mod client;
pub(crate) mod event;
mod input;
pub mod install;
mod json_sink;
mod render;
pub mod tools;
pub mod transcript;

pub use client::HookClient;
pub use event::HookEvent;

/// What a client passed to the hook. Fields that it did not pass are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookInput {
    pub session_id: String,
    /// The path of the session's transcript.
    pub transcript_path: String,
    pub working_dir: String,
    /// Whether the session only continues because an earlier stop was refused.
    pub is_stop_active: bool,
    /// The last answer, if the client passes it. An empty text is an answer without words.
    pub last_answer: Option<String>,
    pub tool_call: Option<HookToolCall>,
    /// What the user typed.
    pub user_prompt: String,
    /// Why a session starts, stops or ends, or what triggered a compaction.
    pub source: String,
    /// The id of a sub-agent, or its type if it has no id.
    pub agent_id: String,
}

/// A tool call that a session is about to make or has made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookToolCall {
    pub tool_name: String,
    pub tool_input: Value,
    /// The result, after the tool was used.
    pub tool_response: Option<Value>,
}

/// What a hook answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// Continue as if there were no hook. `user_message` is shown to the user.
    Allow { user_message: Option<String> },
    /// Do not stop. The model reads `reason` next, and `user_message` is shown to the user.
    Refuse { reason: String, user_message: Option<String> },
    /// Do not use this tool. The model reads the reason.
    Deny { reason: String },
    /// Additional context for the model.
    AddContext { context: String },
}
