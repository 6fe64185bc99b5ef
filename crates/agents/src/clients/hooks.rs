//! How sessions of a client call our hooks: what each client may say and be told, and where it is told to call us.
//!
//! The forms that are given here are Claude Code's, which others took over; a client says what is different with it. Reading,
//! answering and installing for whichever client is `crate::hook`'s business.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    hook::{event::HookEvent, transcript::line::TranscriptFormat},
    jsonc::Tree,
};

/// Seconds after which a client gives up on us. We answer in milliseconds.
pub(crate) const PATIENCE: u32 = 10;
/// Nobody counted how often most clients put up with a refusal. Who answers so often without using a tool does not get further
/// by being asked again.
pub(crate) const UNKNOWN_CAP: u32 = 8;

/// Where a client has its hooks, as a path from the project's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A file that others write as well.
    Shared(&'static str),
    /// A file of our own.
    Own(&'static str),
    /// A file of the person's, outside the project: it is not ours to change.
    Person(&'static str),
}

/// What a tool does with files, as far as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    Reads,
    Writes,
    Shell,
    Patch,
}

/// A client whose sessions can call our hooks.
pub trait ClientHooks: fmt::Debug + Sync {
    /// `for_all`: for everybody who has the project, where the client makes a difference.
    fn home(&self, for_all: bool) -> Home;

    /// Files below the person's own home in which its hooks can be set, too.
    fn person_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Its own word for a moment; none: it has no such moment.
    fn event_name(&self, event: HookEvent) -> Option<&'static str> {
        Some(event_name(event))
    }

    /// What has to stand in its list of hooks for a moment.
    fn entry(&self, _event: HookEvent, command: String) -> Tree {
        command_group(command, PATIENCE)
    }

    /// The whole file around the lists by moment.
    fn document(&self, hooks: Tree) -> Tree {
        Tree::map([("hooks", hooks)])
    }

    /// A flag in its file by which no hook runs at all.
    fn off_switch(&self) -> Option<&'static str> {
        None
    }

    /// What it wants before it runs hooks that a project has, for people.
    fn before_they_run(&self) -> Option<&'static str> {
        None
    }

    /// How many stops in a row may be refused before the client ends the turn by itself; none: it never does.
    fn refusal_cap(&self, _variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
        Some(UNKNOWN_CAP)
    }

    /// Fields in which it gives the last answer when it stops, beside those that everybody uses.
    fn answer_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// A tool's arguments as it gave them.
    fn tool_input(&self, given: Value) -> Value {
        given
    }

    /// What a tool of its own does; none: it is no tool that has to do with files or commands.
    fn tool_kind(&self, name: &str) -> Option<ToolKind>;

    /// How it writes its sessions down; none: that is not understood.
    fn transcript(&self) -> Option<&'static TranscriptFormat> {
        None
    }

    /// Says that it must not stop; none: it cannot be told so at this moment.
    fn refuse(&self, event: HookEvent, reason: &str) -> Option<Value> {
        event.is_stop().then(|| json!({"decision": "block", "reason": reason}))
    }

    /// Says that it must not use the tool it is about to use.
    fn deny(&self, reason: &str) -> Value {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }})
    }

    /// Tells the model something; none: the model would not come to know of it.
    fn tell(&self, event: HookEvent, context: &str) -> Option<Value> {
        let name = self
            .event_name(event)
            .filter(|_| matches!(event, HookEvent::SessionStart | HookEvent::UserPromptSubmit))?;
        Some(json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}))
    }

    /// Whether it shows the person what we say to them.
    fn shows_messages(&self) -> bool {
        true
    }
}

/// Claude Code's word for a moment.
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

/// A group with one command, as Claude Code has it.
pub(crate) fn command_group(command: String, seconds: u32) -> Tree {
    let hook = Tree::map([
        ("type", Tree::text("command")),
        ("command", Tree::text(command)),
        ("timeout", Tree::number(seconds)),
    ]);
    Tree::map([("hooks", Tree::List(vec![hook]))])
}
