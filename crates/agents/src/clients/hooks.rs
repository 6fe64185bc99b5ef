//! How sessions of a client call our hooks: which events each client has, how it is answered, and where its hooks are
//! configured.
//!
//! The defaults are those of Claude Code, which others adopted; a client overrides what is different. Reading,
//! answering and installing for any client is done in `crate::hook`.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    hook::{event::HookEvent, transcript::line::TranscriptFormat},
    jsonc::JsoncValue,
};

/// The seconds after which a client gives up on a hook. We answer in milliseconds.
pub(crate) const HOOK_TIMEOUT_SECONDS: u32 = 10;
/// The refusal cap of clients for which it was not measured. A session that answers so often without using a tool
/// makes no progress by being asked again.
pub(crate) const DEFAULT_REFUSAL_CAP: u32 = 8;

/// The file in which a client has its hooks: a path from the project's root, or one that begins with `~/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookFile {
    /// A file that others write, too.
    Shared(&'static str),
    /// A file of our own.
    Own(&'static str),
    /// A file of the user outside of the project, which is not ours to change.
    User(&'static str),
}

/// What a tool does with files, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    Reads,
    Writes,
    Shell,
    Patch,
}

/// A client whose sessions can call our hooks.
pub trait ClientHooks: fmt::Debug + Sync {
    /// The file for its hooks. `is_shared` asks for the one that all users of the project share, if the client makes
    /// that difference.
    fn hook_file(&self, is_shared: bool) -> HookFile;

    /// Files below the user's home in which its hooks can be configured as well.
    fn user_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// The client's own name of an event; `None` if it has no such event.
    fn event_name(&self, hook_event: HookEvent) -> Option<&'static str> {
        Some(claude_event_name(hook_event))
    }

    /// The entry for an event in its list of hooks.
    fn hook_entry(&self, _event: HookEvent, hook_command: String) -> JsoncValue {
        build_command_group(hook_command, HOOK_TIMEOUT_SECONDS)
    }

    /// The whole file around the lists of hooks.
    fn hook_document(&self, hook_lists: JsoncValue) -> JsoncValue {
        JsoncValue::from_members([("hooks", hook_lists)])
    }

    /// A key in its file that switches off all hooks.
    fn off_switch(&self) -> Option<&'static str> {
        None
    }

    /// What the client requires before it runs the hooks of a project, for the user.
    fn trust_hint(&self) -> Option<&'static str> {
        None
    }

    /// How many stops in a row may be refused before the client ends the turn by itself; `None` if it never does.
    fn refusal_cap(&self, _variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
        Some(DEFAULT_REFUSAL_CAP)
    }

    /// Fields in which it gives the last answer when it stops, besides the ones that all clients use.
    fn answer_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Decodes the arguments of a tool from the form in which the client gave them.
    fn parse_tool_input(&self, raw_input: Value) -> Value {
        raw_input
    }

    /// What one of its own tools does; `None` if the tool has nothing to do with files or commands.
    fn tool_kind(&self, tool_name: &str) -> Option<ToolKind>;

    /// The format of its transcripts; `None` if it is not understood.
    fn transcript_format(&self) -> Option<&'static TranscriptFormat> {
        None
    }

    /// Renders the answer that it must not stop; `None` if that cannot be said at this event.
    fn render_refusal(&self, hook_event: HookEvent, reason: &str) -> Option<Value> {
        hook_event.is_stop().then(|| json!({"decision": "block", "reason": reason}))
    }

    /// Renders the answer that it must not use the tool it is about to use.
    fn render_denial(&self, reason: &str) -> Value {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }})
    }

    /// Renders additional context for the model; `None` if the model would not get it.
    fn render_context(&self, hook_event: HookEvent, context: &str) -> Option<Value> {
        let event_name_text = self
            .event_name(hook_event)
            .filter(|_| matches!(hook_event, HookEvent::SessionStart | HookEvent::UserPromptSubmit))?;
        Some(json!({"hookSpecificOutput": {"hookEventName": event_name_text, "additionalContext": context}}))
    }

    /// Whether it shows our messages to the user.
    fn shows_messages(&self) -> bool {
        true
    }
}

/// Claude Code's name of an event.
pub(crate) fn claude_event_name(hook_event: HookEvent) -> &'static str {
    match hook_event {
        HookEvent::Stop => "Stop",
        HookEvent::SubagentStop => "SubagentStop",
        HookEvent::SessionStart => "SessionStart",
        HookEvent::SessionEnd => "SessionEnd",
        HookEvent::PreToolUse => "PreToolUse",
        HookEvent::PostToolUse => "PostToolUse",
        HookEvent::PreCompact => "PreCompact",
        HookEvent::UserPromptSubmit => "UserPromptSubmit",
    }
}

/// A group with one command, in Claude Code's form.
pub(crate) fn build_command_group(hook_command: String, timeout_seconds: u32) -> JsoncValue {
    let hook_value = JsoncValue::from_members([
        ("type", JsoncValue::from_text("command")),
        ("command", JsoncValue::from_text(hook_command)),
        ("timeout", JsoncValue::from_number(timeout_seconds)),
    ]);
    JsoncValue::from_members([("hooks", JsoncValue::List(vec![hook_value]))])
}
