//! The transcripts of Claude Code: one line for each part of a message, all with the message's id.

use std::borrow::Cow;

use crate::hook::transcript::line::{Line, Said, TranscriptFormat};

pub(super) const FORMAT: TranscriptFormat =
    TranscriptFormat { model: &["\"assistant\""], tools: "\"type\":\"tool_result\"", read };

/// What the client puts before the reason of a refusal.
const FEEDBACK: &str = "Stop hook feedback";

/// Classifies a line. Sub-agents, and messages that the client inserts when the model cannot be reached, are not the
/// session's own words.
fn read(line: Line<'_>) -> Said {
    // A message that the client made up is marked in either of two ways.
    let is_made_up = line.is_error || line.message.model.as_deref() == Some("<synthetic>");
    if line.is_sidechain {
        return Said::Nothing;
    }
    match line.kind.or(line.role).as_deref() {
        Some("assistant") if !is_made_up => {
            let id = line.message.id.map(Cow::into_owned);
            Said::Message { id, texts: line.message.content.owned(), tool: line.message.content.uses_tool }
        }
        // Feedback of hooks arrives as a user message that is marked as meta.
        Some("user") if !line.message.content.is_result => {
            let first = line.message.content.texts.first().filter(|_| line.is_meta);
            match first.filter(|text| text.starts_with(FEEDBACK)) {
                Some(text) => Said::Refusal(text.to_string()),
                None if line.is_meta || line.is_summary => Said::Nothing,
                None => Said::Told,
            }
        }
        _ => Said::Nothing,
    }
}
