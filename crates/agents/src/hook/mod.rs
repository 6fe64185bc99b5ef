//! Hooks: what a client tells a program that it starts at certain moments of a session, and what may be answered.
//!
//! [`Input`] is what came on standard input, whichever client sent it; [`Answer`] is what is said back, in the words of that
//! client. What is decided is `core`'s business, and reading files is the caller's.

use serde_json::Value;

mod client;
pub(crate) mod event;
mod input;
pub mod install;
mod render;
mod soft;
pub mod tools;
pub mod transcript;

pub use client::HookClient;
pub use event::HookEvent;

/// What a client said. What it did not say is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    pub session: String,
    /// Where it writes down the session.
    pub transcript: String,
    pub cwd: String,
    /// The session goes on only because a stop was refused before.
    pub stop_active: bool,
    /// The last answer, where the client gives it. An empty one is an answer without words.
    pub last_answer: Option<String>,
    pub tool: Option<ToolCall>,
    /// What the person typed.
    pub prompt: String,
    /// Why a session starts or ends, or what a compaction was triggered by.
    pub source: String,
    /// Of a sub-agent.
    pub agent: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    pub name: String,
    pub input: Value,
    /// After it was used.
    pub response: Option<Value>,
}

/// What is said back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on as if nobody had been asked. `say` is shown to the person.
    Allow { say: Option<String> },
    /// Do not stop: `reason` is what the model reads next, `say` is shown to the person.
    Refuse { reason: String, say: Option<String> },
    /// Do not use this tool; the model reads why.
    Deny { reason: String },
    /// Something for the model to know.
    Tell { context: String },
}
