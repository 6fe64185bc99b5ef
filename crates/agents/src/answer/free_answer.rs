//! Reads answers that are no lists: a status block, the end of a turn, or plain text.

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::tasks::{
    brief::AnswerContent,
    instructions::MAX_TEXT_CHARS,
    status_report::{StatusReport, TurnReport},
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

/// Reads the end of a turn. Any answer is one, also an empty one: whether the turn was of use shows in the workspace.
pub(super) fn read_turn(answer_text: &str) -> AnswerContent {
    let trimmed_text = answer_text.trim();
    // The end has the status block and the promise, so it is the beginning that is left out.
    let skipped_chars = trimmed_text.chars().count().saturating_sub(MAX_TEXT_CHARS);
    AnswerContent::Turn(Box::new(TurnReport {
        text: trimmed_text.chars().skip(skipped_chars).collect(),
        status: status_block::find_last_block(trimmed_text).filter(StatusReport::is_conclusive),
        length: answer_text.len() as u64,
        // Denials are reported by the client and not by the answer.
        denied: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::{session::promise::AnswerTags, tasks::status_report::WorkStatus};

    use super::*;

    fn read_turn_report(answer_text: &str) -> TurnReport {
        let AnswerContent::Turn(report) = read_turn(answer_text) else { panic!("not a turn: {answer_text}") };
        *report
    }

    const BLOCK: &str = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";

    #[test]
    fn a_long_turn_keeps_its_end() {
        let answer_text = format!("first words {}\n<promise>DONE</promise>\n{BLOCK}\n", "é".repeat(MAX_TEXT_CHARS));
        let report = read_turn_report(&answer_text);
        assert_eq!(report.text.chars().count(), MAX_TEXT_CHARS);
        assert!(!report.text.contains("first words") && report.text.ends_with(BLOCK), "{}", report.text.len());
        assert!(AnswerTags::from_answer(&report.text).has_promised("DONE"));
        assert_eq!(report.length, answer_text.len() as u64);
    }

    #[test]
    fn the_last_status_block_of_a_turn_counts_and_none_is_needed() {
        let report = read_turn_report(&format!("{}\nmore\n{BLOCK}", BLOCK.replace("COMPLETE", "BLOCKED")));
        let status = report.status.unwrap();
        assert_eq!((status.status, status.exit_signal), (Some(WorkStatus::Complete), Some(true)));
        assert_eq!(read_turn_report("I fixed the parser.").status, None);
        let empty_form = BLOCK.replace("COMPLETE", "<x>").replace("true", "<y>");
        assert_eq!(read_turn_report(&empty_form).status, None);
    }

    #[test]
    fn an_empty_answer_is_a_turn() {
        for answer_text in ["", " \n\n"] {
            let report = read_turn_report(answer_text);
            assert_eq!(report, TurnReport { length: answer_text.len() as u64, ..TurnReport::default() });
        }
    }
}
