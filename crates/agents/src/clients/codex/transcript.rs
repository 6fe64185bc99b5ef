//! How it writes a session down: one line for each item; a message is whole, and a call of a tool stands for itself.

use std::borrow::Cow;

use crate::hook::transcript::line::{Line, Message, Said, TranscriptFormat};

pub(super) const FORMAT: TranscriptFormat =
    TranscriptFormat { model: &["\"assistant\"", "_call\""], tools: "_call_output\"", read };

/// What it puts before the reason of a refusal.
const HOOK_PROMPT: &str = "<hook_prompt";

fn read(line: Line<'_>) -> Said {
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
                // What the client tells about the surroundings.
                told if told.starts_with('<') => Said::Nothing,
                _ => Said::Told,
            }
        }
        (Some(call), _) if call.ends_with("_call") => {
            Said::Message { id: None, texts: Vec::new(), tool: true }
        }
        _ => Said::Nothing,
    }
}
