//! The hooks of GitHub Copilot CLI: a form of its own, in a file that is ours alone.

use serde_json::{Value, json};

use crate::{
    clients::hooks::{ClientHooks, HOOK_TIMEOUT_SECONDS, HookFile, ToolKind},
    hook::event::HookEvent,
    jsonc::JsoncValue,
};

#[derive(Debug)]
pub(super) struct CopilotHooks;

impl ClientHooks for CopilotHooks {
    fn hook_file(&self, _for_all: bool) -> HookFile {
        HookFile::Own(".github/hooks/tribunal.json")
    }

    fn event_name(&self, hook_event: HookEvent) -> Option<&'static str> {
        match hook_event {
            HookEvent::Stop => Some("agentStop"),
            HookEvent::SessionStart => Some("sessionStart"),
            HookEvent::SessionEnd => Some("sessionEnd"),
            HookEvent::PreToolUse => Some("preToolUse"),
            HookEvent::PostToolUse => Some("postToolUse"),
            HookEvent::UserPromptSubmit => Some("userPromptSubmitted"),
            HookEvent::SubagentStop | HookEvent::PreCompact => None,
        }
    }

    fn hook_entry(&self, _event: HookEvent, hook_command: String) -> JsoncValue {
        JsoncValue::from_members([
            ("type", JsoncValue::from_text("command")),
            ("bash", JsoncValue::from_text(hook_command)),
            ("timeoutSec", JsoncValue::from_number(HOOK_TIMEOUT_SECONDS)),
        ])
    }

    fn hook_document(&self, hook_lists: JsoncValue) -> JsoncValue {
        JsoncValue::from_members([("version", JsoncValue::from_number(1)), ("hooks", hook_lists)])
    }

    fn trust_hint(&self) -> Option<&'static str> {
        Some("hooks run only in directories that you trust: `copilot --trust-folder`")
    }

    /// It passes the arguments of a tool as a JSON text.
    fn parse_tool_input(&self, raw_input: Value) -> Value {
        let parsed_input = raw_input.as_str().and_then(|input_text| serde_json::from_str(input_text).ok());
        parsed_input.unwrap_or(raw_input)
    }

    fn tool_kind(&self, tool_name: &str) -> Option<ToolKind> {
        match tool_name {
            "create" | "edit" | "str_replace" | "str_replace_editor" | "insert" => Some(ToolKind::Writes),
            "bash" | "shell" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn render_denial(&self, reason: &str) -> Value {
        json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
    }

    fn render_context(&self, hook_event: HookEvent, context: &str) -> Option<Value> {
        (hook_event == HookEvent::SessionStart).then(|| json!({"additionalContext": context}))
    }

    fn shows_messages(&self) -> bool {
        false
    }
}
