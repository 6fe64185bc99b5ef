//! How sessions of a client call our hooks: which events each client has, how it is answered, and where its hooks are
//! configured.
//!
//! The defaults are those of Claude Code, which others adopted; a client overrides what is different. Reading,
//! answering and installing for any client is done in `crate::hook`.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    hook::{event::HookEvent, transcript::line::TranscriptFormat},
    jsonc::Tree,
};

/// The seconds after which a client gives up on a hook. We answer in milliseconds.
pub(crate) const PATIENCE: u32 = 10;
/// The refusal cap of clients for which it was not measured. A session that answers so often without using a tool
/// makes no progress by being asked again.
pub(crate) const UNKNOWN_CAP: u32 = 8;

/// The file in which a client has its hooks, as a path from the project's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A file that others write, too.
    Shared(&'static str),
    /// A file of our own.
    Own(&'static str),
    /// A file of the user outside of the project, which is not ours to change.
    Person(&'static str),
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
    /// The file for its hooks. `is_shared` asks for the one that is shared with everyone who has the project, if the
    /// client makes that difference.
    fn home(&self, for_all: bool) -> Home;

    /// Files below the user's home in which its hooks can be configured as well.
    fn person_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// The client's own name of an event; `None` if it has no such event.
    fn event_name(&self, event: HookEvent) -> Option<&'static str> {
        Some(event_name(event))
    }

    /// The entry for an event in its list of hooks.
    fn entry(&self, _event: HookEvent, command: String) -> Tree {
        command_group(command, PATIENCE)
    }

    /// The whole file around the lists of hooks.
    fn document(&self, hooks: Tree) -> Tree {
        Tree::map([("hooks", hooks)])
    }

    /// A key in its file that switches off all hooks.
    fn off_switch(&self) -> Option<&'static str> {
        None
    }

    /// What the client requires before it runs the hooks of a project, for the user.
    fn before_they_run(&self) -> Option<&'static str> {
        None
    }

    /// How many stops in a row may be refused before the client ends the turn by itself; `None` if it never does.
    fn refusal_cap(&self, _variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
        Some(UNKNOWN_CAP)
    }

    /// Fields in which it gives the last answer when it stops, besides the ones that all clients use.
    fn answer_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Decodes the arguments of a tool from the form in which the client gave them.
    fn tool_input(&self, given: Value) -> Value {
        given
    }

    /// What one of its own tools does; `None` if the tool has nothing to do with files or commands.
    fn tool_kind(&self, name: &str) -> Option<ToolKind>;

    /// The format of its transcripts; `None` if it is not understood.
    fn transcript(&self) -> Option<&'static TranscriptFormat> {
        None
    }

    /// Renders the answer that it must not stop; `None` if that cannot be said at this event.
    fn refuse(&self, event: HookEvent, reason: &str) -> Option<Value> {
        event.is_stop().then(|| json!({"decision": "block", "reason": reason}))
    }

    /// Renders the answer that it must not use the tool it is about to use.
    fn deny(&self, reason: &str) -> Value {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }})
    }

    /// Renders additional context for the model; `None` if the model would not get it.
    fn tell(&self, event: HookEvent, context: &str) -> Option<Value> {
        // At the other events the model would not get to see the context.
        let name = self
            .event_name(event)
            .filter(|_| matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit))?;
        Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}))
    }

    /// Whether it shows our messages to the user.
    fn shows_messages(&self) -> bool {
        true
    }
}

/// Claude Code's name of an event.
pub(crate) fn event_name(event: HookEvent) -> &'static str {
    match event {
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
pub(crate) fn command_group(command: String, seconds: u32) -> Tree {
    let hook = Tree::map([
        ("type", Tree::text("command")),
        ("command", Tree::text(command)),
        ("timeout", Tree::number(seconds)),
    ]);
    Tree::map([("hooks", Tree::List(vec![hook]))])
}
