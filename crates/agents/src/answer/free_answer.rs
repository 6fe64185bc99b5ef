//! Reads answers that are no lists: a status block, or plain text.

use tribunal_core::{
    tasks::{brief::AnswerContent, instructions::MAX_TEXT_CHARS},
    text::truncate_chars,
};

use crate::analysis::status_block;

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
