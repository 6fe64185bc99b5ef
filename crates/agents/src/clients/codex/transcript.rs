//! The transcripts of Codex: one line for each item. A message is complete, and a tool call is an item of its own.

use std::borrow::Cow;

use crate::hook::transcript::line::{LineMeaning, TranscriptFormat, TranscriptLine, TranscriptMessage};

pub(super) const FORMAT: TranscriptFormat =
    TranscriptFormat { model_marks: &["\"assistant\"", "_call\""], tool_result_mark: "_call_output\"", classify_line };

/// What the client puts before the reason of a refusal.
const HOOK_PROMPT_PREFIX: &str = "<hook_prompt";

/// Classifies a line by the type and role of its item.
fn classify_line(transcript_line: TranscriptLine<'_>) -> LineMeaning {
    // Other lines repeat items as events or hold bookkeeping.
    if transcript_line.line_type.as_deref() != Some("response_item") {
        return LineMeaning::Irrelevant;
    }
    let TranscriptMessage { message_type: kind, role, content, .. } = transcript_line.message;
    match (kind.as_deref(), role.as_deref()) {
        (Some("message"), Some("assistant")) => {
            LineMeaning::Message { message_id: None, texts: content.owned_texts(), uses_tool: false }
        }
        (Some("message"), Some("user")) => {
            let first_text = content.texts.first().map(Cow::as_ref).unwrap_or_default();
            match first_text {
                refusal_text if refusal_text.starts_with(HOOK_PROMPT_PREFIX) => {
                    LineMeaning::Refusal(refusal_text.to_owned())
                }
                // Notices of the client about the environment come as user messages in angle brackets.
                client_notice if client_notice.starts_with('<') => LineMeaning::Irrelevant,
                _ => LineMeaning::UserInput,
            }
        }
        // All kinds of calls end alike: `function_call`, `custom_tool_call`, `local_shell_call`.
        (Some(call_kind), _) if call_kind.ends_with("_call") => {
            LineMeaning::Message { message_id: None, texts: Vec::new(), uses_tool: true }
        }
        _ => LineMeaning::Irrelevant,
    }
}
