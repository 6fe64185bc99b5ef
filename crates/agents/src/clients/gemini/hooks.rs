//! The hooks of Gemini CLI: events and names of its own, in Claude Code's form.

use serde_json::{Value, json};

use crate::{
    clients::hooks::{ClientHooks, HOOK_TIMEOUT_SECONDS, HookFile, ToolKind},
    hook::event::HookEvent,
    jsonc::JsoncValue,
};

#[derive(Debug)]
pub(super) struct GeminiHooks;

impl ClientHooks for GeminiHooks {
    fn hook_file(&self, _for_all: bool) -> HookFile {
        // Measured: hooks in a project's own file did not run.
        HookFile::User("~/.gemini/settings.json")
    }

    fn user_files(&self) -> &'static [&'static str] {
        &[".gemini/settings.json"]
    }

    /// No event of its own is known for the stop of a sub-agent, nor for a compaction.
    fn event_name(&self, hook_event: HookEvent) -> Option<&'static str> {
        match hook_event {
            HookEvent::Stop => Some("AfterAgent"),
            HookEvent::SessionStart => Some("SessionStart"),
            HookEvent::SessionEnd => Some("SessionEnd"),
            HookEvent::PreToolUse => Some("BeforeTool"),
            HookEvent::PostToolUse => Some("AfterTool"),
            HookEvent::UserPromptSubmit => Some("BeforeAgent"),
            HookEvent::SubagentStop | HookEvent::PreCompact => None,
        }
    }

    fn hook_entry(&self, _event: HookEvent, hook_command: String) -> JsoncValue {
        let hook_value = JsoncValue::from_members([
            ("name", JsoncValue::from_text("tribunal")),
            ("type", JsoncValue::from_text("command")),
            ("command", JsoncValue::from_text(hook_command)),
            // This client counts in milliseconds.
            ("timeout", JsoncValue::from_number(HOOK_TIMEOUT_SECONDS * 1000)),
        ]);
        JsoncValue::from_members([
            ("matcher", JsoncValue::from_text("*")),
            ("hooks", JsoncValue::List(vec![hook_value])),
        ])
    }

    fn hook_document(&self, hook_lists: JsoncValue) -> JsoncValue {
        let enabled_config = JsoncValue::from_members([("enabled", JsoncValue::Flag(true))]);
        JsoncValue::from_members([("hooksConfig", enabled_config), ("hooks", hook_lists)])
    }

    fn answer_fields(&self) -> &'static [&'static str] {
        &["prompt_response", "promptResponse"]
    }

    fn tool_kind(&self, tool_name: &str) -> Option<ToolKind> {
        match tool_name {
            "write_file" | "replace" | "edit" => Some(ToolKind::Writes),
            "run_shell_command" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn render_refusal(&self, hook_event: HookEvent, reason: &str) -> Option<Value> {
        (hook_event == HookEvent::Stop).then(|| self.render_denial(reason))
    }

    fn render_denial(&self, reason: &str) -> Value {
        json!({"decision": "deny", "reason": reason})
    }
}
