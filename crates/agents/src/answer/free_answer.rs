//! Reads answers that are no lists: a status block, the end of a turn, or plain text.

use tribunal_core::{
    tasks::{
        brief::AnswerContent,
        instructions::MAX_TEXT_CHARS,
        status_report::{StatusReport, TurnReport},
    },
    text::truncate_chars,
};

use crate::analysis::{self, status_block};

/// Reads a status block. An agent may quote the form or the block of an earlier pass, so the last block that says something
/// counts.
pub(super) fn read_status(answer_text: &str) -> AnswerContent {
    match status_block::find_last_block(answer_text) {
        Some(report) if report.is_conclusive() => AnswerContent::Status(Box::new(report)),
        Some(_) => AnswerContent::Unreadable {
            message: "the status block has neither a valid STATUS nor a valid EXIT_SIGNAL".to_string(),
        },
        None => AnswerContent::Unreadable { message: describe_missing_block(answer_text) },
    }
}

fn describe_missing_block(answer_text: &str) -> String {
    match answer_text.trim().lines().next() {
        None => "the answer is empty".to_string(),
        Some(first_line) => format!(
            "the answer has no status block (`{}`); it begins: {}",
            status_block::BEGIN_MARK,
            truncate_chars(first_line.trim(), 80)
        ),
    }
}

/// Takes the answer as it is. An empty one says nothing.
pub(super) fn read_text(answer_text: &str) -> AnswerContent {
    match answer_text.trim() {
        "" => AnswerContent::Unreadable { message: "the answer is empty".to_string() },
        trimmed_text => AnswerContent::Text { text: truncate_chars(trimmed_text, MAX_TEXT_CHARS) },
    }
}

/// Reads the end of a turn. Any answer is one, also an empty one: whether the turn was of use shows in the workspace.
pub(super) fn read_turn(answer_text: &str) -> AnswerContent {
    let trimmed_text = answer_text.trim();
    // The end has the status block and the promise, so it is the beginning that is left out.
    let skipped_chars = trimmed_text.chars().count().saturating_sub(MAX_TEXT_CHARS);
    AnswerContent::Turn(Box::new(TurnReport {
        text: trimmed_text.chars().skip(skipped_chars).collect(),
        status: status_block::find_last_block(trimmed_text).filter(StatusReport::is_conclusive),
        length: answer_text.len() as u64,
        stuck: analysis::has_many_errors(trimmed_text),
        // Denials are reported by the client and not by the answer.
        denied: Vec::new(),
    }))
}
