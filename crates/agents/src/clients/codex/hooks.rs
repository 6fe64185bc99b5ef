//! The hooks of Codex: Claude Code's form, in a file of their own.

use crate::{
    clients::hooks::{ClientHooks, HOOK_TIMEOUT_SECONDS, HookFile, ToolKind, build_command_group},
    hook::{event::HookEvent, transcript::line::TranscriptFormat},
    jsonc::JsoncValue,
};

use super::transcript;

/// The client limits the last hook of a session to this many seconds, and prints a warning each time if more is
/// configured.
const SESSION_END_TIMEOUT_SECONDS: u32 = 3;

#[derive(Debug)]
pub(super) struct CodexHooks;

impl ClientHooks for CodexHooks {
    fn hook_file(&self, _for_all: bool) -> HookFile {
        HookFile::Shared(".codex/hooks.json")
    }

    fn user_files(&self) -> &'static [&'static str] {
        &[".codex/hooks.json"]
    }

    fn hook_entry(&self, hook_event: HookEvent, hook_command: String) -> JsoncValue {
        let is_session_end = hook_event == HookEvent::SessionEnd;
        build_command_group(
            hook_command,
            if is_session_end { SESSION_END_TIMEOUT_SECONDS } else { HOOK_TIMEOUT_SECONDS },
        )
    }

    fn trust_hint(&self) -> Option<&'static str> {
        Some(
            "hooks run only after you trust this directory and each hook (Codex does not warn you); start `codex` here, then type `/hooks`",
        )
    }

    fn tool_kind(&self, tool_name: &str) -> Option<ToolKind> {
        match tool_name {
            "Bash" | "shell" | "exec_command" | "local_shell" | "unified_exec" => Some(ToolKind::Shell),
            "Edit" | "Write" => Some(ToolKind::Patch),
            _ => None,
        }
    }

    fn transcript_format(&self) -> Option<&'static TranscriptFormat> {
        Some(&transcript::FORMAT)
    }
}
