//! The transcripts of Codex: one line for each item. A message is complete, and a tool call is an item of its own.

use std::borrow::Cow;

use crate::hook::transcript::line::{Line, Message, Said, TranscriptFormat};

pub(super) const FORMAT: TranscriptFormat =
    TranscriptFormat { model: &["\"assistant\"", "_call\""], tools: "_call_output\"", read };

/// What the client puts before the reason of a refusal.
const HOOK_PROMPT: &str = "<hook_prompt";

/// Classifies a line by the type and role of its item.
fn read(line: Line<'_>) -> Said {
    // Other lines repeat items as events or hold bookkeeping.
    if line.kind.as_deref() != Some("response_item") {
        return Said::Nothing;
    }
    let Message { kind, role, content, .. } = line.message;
    match (kind.as_deref(), role.as_deref()) {
        (Some("message"), Some("assistant")) => {
            Said::Message { id: None, texts: content.owned(), tool: false }
        }
        (Some("message"), Some("user")) => {
            let first = content.texts.first().map(Cow::as_ref).unwrap_or_default();
            match first {
                refusal if refusal.starts_with(HOOK_PROMPT) => Said::Refusal(refusal.to_owned()),
                // Notices of the client about the environment come as user messages in angle brackets.
                told if told.starts_with('<') => Said::Nothing,
                _ => Said::Told,
            }
        }
        // All kinds of calls end alike: `function_call`, `custom_tool_call`, `local_shell_call`.
        (Some(call), _) if call.ends_with("_call") => {
            Said::Message { id: None, texts: Vec::new(), tool: true }
        }
        _ => Said::Nothing,
    }
}
