//! The hooks of Gemini CLI: events and names of its own, in Claude Code's form.

use serde_json::{Value, json};

use crate::{
    clients::hooks::{ClientHooks, Home, PATIENCE, ToolKind},
    hook::event::HookEvent,
    jsonc::Tree,
};

#[derive(Debug)]
pub(super) struct Hooks;

impl ClientHooks for Hooks {
    fn home(&self, _for_all: bool) -> Home {
        // Measured: hooks in a project's own file did not run.
        Home::Person("~/.gemini/settings.json")
    }

    fn person_files(&self) -> &'static [&'static str] {
        &[".gemini/settings.json"]
    }

    /// It has no event at which a sub-agent stops.
    fn event_name(&self, event: HookEvent) -> Option<&'static str> {
        match event {
            HookEvent::Stop => Some("AfterAgent"),
            HookEvent::SessionStart => Some("SessionStart"),
            HookEvent::SessionEnd => Some("SessionEnd"),
            HookEvent::PreToolUse => Some("BeforeTool"),
            HookEvent::PostToolUse => Some("AfterTool"),
            HookEvent::UserPromptSubmit => Some("BeforeAgent"),
            HookEvent::SubagentStop | HookEvent::PreCompact => None,
        }
    }

    fn entry(&self, _event: HookEvent, command: String) -> Tree {
        let hook = Tree::map([
            ("name", Tree::text("tribunal")),
            ("type", Tree::text("command")),
            ("command", Tree::text(command)),
            // This client counts in milliseconds.
            ("timeout", Tree::number(PATIENCE * 1000)),
        ]);
        Tree::map([("matcher", Tree::text("*")), ("hooks", Tree::List(vec![hook]))])
    }

    fn document(&self, hooks: Tree) -> Tree {
        let enabled = Tree::map([("enabled", Tree::Flag(true))]);
        Tree::map([("hooksConfig", enabled), ("hooks", hooks)])
    }

    fn answer_fields(&self) -> &'static [&'static str] {
        &["prompt_response", "promptResponse"]
    }

    fn tool_kind(&self, name: &str) -> Option<ToolKind> {
        match name {
            "write_file" | "replace" | "edit" => Some(ToolKind::Writes),
            "run_shell_command" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn refuse(&self, event: HookEvent, reason: &str) -> Option<Value> {
        (event == HookEvent::Stop).then(|| self.deny(reason))
    }

    fn deny(&self, reason: &str) -> Value {
        json!({"decision": "deny", "reason": reason})
    }
}
