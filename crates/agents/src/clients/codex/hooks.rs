//! The hooks of Codex: Claude Code's form, in a file of their own.

use crate::{
    clients::hooks::{ClientHooks, Home, PATIENCE, ToolKind, command_group},
    hook::{event::HookEvent, transcript::line::TranscriptFormat},
    jsonc::Tree,
};

use super::transcript;

/// The client limits the last hook of a session to this many seconds, and prints a warning each time if more is
/// configured.
const PATIENCE_AT_THE_END: u32 = 3;

#[derive(Debug)]
pub(super) struct Hooks;

impl ClientHooks for Hooks {
    fn home(&self, _for_all: bool) -> Home {
        Home::Shared(".codex/hooks.json")
    }

    fn person_files(&self) -> &'static [&'static str] {
        &[".codex/hooks.json"]
    }

    fn entry(&self, event: HookEvent, command: String) -> Tree {
        let is_cut = event == HookEvent::SessionEnd;
        command_group(command, if is_cut { PATIENCE_AT_THE_END } else { PATIENCE })
    }

    fn before_they_run(&self) -> Option<&'static str> {
        Some(
            "it runs them once you have trusted this folder and each hook, and does not say so before: start codex here, then /hooks",
        )
    }

    fn tool_kind(&self, name: &str) -> Option<ToolKind> {
        match name {
            "Bash" | "shell" | "exec_command" | "local_shell" | "unified_exec" => Some(ToolKind::Shell),
            "Edit" | "Write" => Some(ToolKind::Patch),
            _ => None,
        }
    }

    fn transcript(&self) -> Option<&'static TranscriptFormat> {
        Some(&transcript::FORMAT)
    }
}
