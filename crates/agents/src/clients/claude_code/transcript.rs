//! The transcripts of Claude Code: one line for each part of a message, all with the message's id.

use std::borrow::Cow;

use crate::hook::transcript::line::{LineMeaning, TranscriptFormat, TranscriptLine};

pub(super) const FORMAT: TranscriptFormat =
    TranscriptFormat { model_marks: &["\"assistant\""], tool_result_mark: "\"type\":\"tool_result\"", classify_line };

/// What the client puts before the reason of a refusal.
const FEEDBACK_PREFIX: &str = "Stop hook feedback";

/// Classifies a line. Sub-agents, and messages that the client inserts when the model cannot be reached, are not the
/// session's own words.
fn classify_line(transcript_line: TranscriptLine<'_>) -> LineMeaning {
    // A message that the client made up is marked in either of two ways.
    let is_made_up =
        transcript_line.is_api_error || transcript_line.message.model_name.as_deref() == Some("<synthetic>");
    if transcript_line.is_sidechain {
        return LineMeaning::Irrelevant;
    }
    match transcript_line.line_type.or(transcript_line.role).as_deref() {
        Some("assistant") if !is_made_up => {
            let message_id = transcript_line.message.message_id.map(Cow::into_owned);
            LineMeaning::Message {
                message_id,
                texts: transcript_line.message.content.owned_texts(),
                uses_tool: transcript_line.message.content.uses_tool,
            }
        }
        // Feedback of hooks arrives as a user message that is marked as meta.
        Some("user") if !transcript_line.message.content.is_tool_result => {
            let first_text = transcript_line.message.content.texts.first().filter(|_| transcript_line.is_meta);
            match first_text.filter(|feedback_text| feedback_text.starts_with(FEEDBACK_PREFIX)) {
                Some(feedback_text) => LineMeaning::Refusal(feedback_text.to_string()),
                None if transcript_line.is_meta || transcript_line.is_summary => LineMeaning::Irrelevant,
                None => LineMeaning::UserInput,
            }
        }
        _ => LineMeaning::Irrelevant,
    }
}
