//! The hooks of GitHub Copilot CLI: a form of its own, in a file that is ours alone.

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
        Home::Own(".github/hooks/tribunal.json")
    }

    fn event_name(&self, event: HookEvent) -> Option<&'static str> {
        match event {
            HookEvent::Stop => Some("agentStop"),
            HookEvent::SessionStart => Some("sessionStart"),
            HookEvent::SessionEnd => Some("sessionEnd"),
            HookEvent::PreToolUse => Some("preToolUse"),
            HookEvent::PostToolUse => Some("postToolUse"),
            HookEvent::UserPromptSubmit => Some("userPromptSubmitted"),
            HookEvent::SubagentStop | HookEvent::PreCompact => None,
        }
    }

    fn entry(&self, _event: HookEvent, command: String) -> Tree {
        Tree::map([
            ("type", Tree::text("command")),
            ("bash", Tree::text(command)),
            ("timeoutSec", Tree::number(PATIENCE)),
        ])
    }

    fn document(&self, hooks: Tree) -> Tree {
        Tree::map([("version", Tree::number(1)), ("hooks", hooks)])
    }

    fn before_they_run(&self) -> Option<&'static str> {
        Some("it runs them in folders that you trust: copilot --trust-folder")
    }

    /// It passes the arguments of a tool as a JSON text.
    fn tool_input(&self, given: Value) -> Value {
        let parsed = given.as_str().and_then(|text| serde_json::from_str(text).ok());
        parsed.unwrap_or(given)
    }

    fn tool_kind(&self, name: &str) -> Option<ToolKind> {
        match name {
            "create" | "edit" | "str_replace" | "str_replace_editor" | "insert" => Some(ToolKind::Writes),
            "bash" | "shell" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn deny(&self, reason: &str) -> Value {
        json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
    }

    fn tell(&self, event: HookEvent, context: &str) -> Option<Value> {
        (event == HookEvent::SessionStart).then(|| json!({"additionalContext": context}))
    }

    fn shows_messages(&self) -> bool {
        false
    }
}
