//! The hooks of Claude Code. Its forms are the defaults of [`ClientHooks`].

use crate::{
    clients::hooks::{ClientHooks, Home, ToolKind},
    hook::transcript::line::TranscriptFormat,
};

use super::transcript;

/// A variable that overrides [`REFUSAL_CAP`]; 0 means no cap.
const CAP_VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// Measured: this many stops in a row may be refused. At the next one the client ends the turn with an empty result.
const CAP: u32 = 8;

#[derive(Debug)]
pub(super) struct Hooks;

impl ClientHooks for Hooks {
    fn home(&self, for_all: bool) -> Home {
        match for_all {
            false => Home::Shared(".claude/settings.local.json"),
            true => Home::Shared(".claude/settings.json"),
        }
    }

    fn person_files(&self) -> &'static [&'static str] {
        &[".claude/settings.json"]
    }

    fn off_switch(&self) -> Option<&'static str> {
        Some("disableAllHooks")
    }

    fn refusal_cap(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
        match variable(CAP_VARIABLE).and_then(|cap| cap.trim().parse().ok()) {
            Some(0) => None,
            Some(cap) => Some(cap),
            None => Some(CAP),
        }
    }

    fn tool_kind(&self, name: &str) -> Option<ToolKind> {
        match name {
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Some(ToolKind::Writes),
            "Bash" => Some(ToolKind::Shell),
            _ => None,
        }
    }

    fn transcript(&self) -> Option<&'static TranscriptFormat> {
        Some(&transcript::FORMAT)
    }
}
