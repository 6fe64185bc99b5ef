//! The hooks of Claude Code. Its forms are the defaults of [`ClientHooks`].

use crate::{
    clients::hooks::{ClientHooks, HookFile, ToolKind},
    hook::transcript::line::TranscriptFormat,
};

use super::transcript;

/// A variable that overrides [`REFUSAL_CAP`]; 0 means no cap.
const REFUSAL_CAP_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// Measured: this many stops in a row may be refused. At the next one the client ends the turn with an empty result.
const REFUSAL_CAP: u32 = 8;

#[derive(Debug)]
pub(super) struct ClaudeCodeHooks;

impl ClientHooks for ClaudeCodeHooks {
    fn hook_file(&self, is_shared: bool) -> HookFile {
        match is_shared {
            false => HookFile::Shared(".claude/settings.local.json"),
            true => HookFile::Shared(".claude/settings.json"),
        }
    }

    fn user_files(&self) -> &'static [&'static str] {
        &[".claude/settings.json"]
    }

    fn off_switch(&self) -> Option<&'static str> {
        Some("disableAllHooks")
    }

    fn refusal_cap(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
        match variable(REFUSAL_CAP_VARIABLE).and_then(|cap_text| cap_text.trim().parse().ok()) {
            Some(0) => None,
            Some(cap_value) => Some(cap_value),
            None => Some(REFUSAL_CAP),
        }
    }

    fn tool_kind(&self, tool_name: &str) -> Option<ToolKind> {
        match tool_name {
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Some(ToolKind::Writes),
            "Bash" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn transcript_format(&self) -> Option<&'static TranscriptFormat> {
        Some(&transcript::FORMAT)
    }
}
