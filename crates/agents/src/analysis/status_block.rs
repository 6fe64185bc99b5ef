//! Reads the status block: `---RALPH_STATUS---`, lines of `NAME: value`, and an end mark that is often forgotten.

use tribunal_workflows::tasks::status_report::{StatusReport, TestsStatus, WorkStatus};

pub(crate) const BEGIN_MARK: &str = "---RALPH_STATUS---";
const END_MARK: &str = "---END_RALPH_STATUS---";

/// Finds the first status block of a text.
pub(crate) fn find_status_block(response_text: &str) -> Option<StatusReport> {
    let after_begin = &response_text[response_text.find(BEGIN_MARK)? + BEGIN_MARK.len()..];
    let end_position = after_begin.find(END_MARK);
    let block_text = &after_begin[..end_position.unwrap_or(after_begin.len())];
    // Inside a JSON string that could not be parsed, line ends are still escaped.
    let unpacked = block_text.replace("\\r", "").replace("\\n", "\n");
    let mut status_report = StatusReport::default();
    let mut has_started = false;
    for block_line in unpacked.lines() {
        let is_block_line = block_line
            .split_once(':')
            .is_some_and(|(field_name, field_value)| read_field(&mut status_report, field_name, field_value));
        // Without an end mark, the block ends at the first line that is none of its own.
        if end_position.is_none() && has_started && !is_block_line {
            break;
        }
        has_started |= is_block_line;
    }
    Some(status_report)
}

/// Finds the last status block of a text that says how far the work has come, else the first block.
pub(crate) fn find_last_block(response_text: &str) -> Option<StatusReport> {
    let mut last_first = response_text.rmatch_indices(BEGIN_MARK).filter_map(|(begin, _)| {
        // The block is read from its own mark on, so a later one does not belong to it.
        find_status_block(&response_text[begin..])
    });
    last_first.find(StatusReport::is_conclusive).or_else(|| find_status_block(response_text))
}

pub(super) fn parse_work_status(status_text: &str) -> Option<WorkStatus> {
    // Spaces and hyphens are common variations of the underscore.
    Some(match status_text.trim().to_ascii_uppercase().replace([' ', '-'], "_").as_str() {
        "IN_PROGRESS" => WorkStatus::InProgress,
        "COMPLETE" | "COMPLETED" => WorkStatus::Complete,
        "BLOCKED" => WorkStatus::Blocked,
        _ => return None,
    })
}

/// Reads one line of the block and returns whether it is one. The first value of a field wins.
fn read_field(status_report: &mut StatusReport, field_name: &str, field_value: &str) -> bool {
    fn set_if_empty<T>(field_slot: &mut Option<T>, parsed_value: Option<T>) {
        if field_slot.is_none() {
            *field_slot = parsed_value;
        }
    }
    // Agents decorate the names with Markdown: `**STATUS**:`, "- `EXIT_SIGNAL`:".
    let field_name =
        field_name.trim_matches(|character: char| character.is_whitespace() || matches!(character, '*' | '-' | '`'));
    let field_value =
        field_value.trim_matches(|character: char| character.is_whitespace() || matches!(character, '*' | '`' | '"'));
    match field_name {
        "STATUS" => set_if_empty(&mut status_report.status, parse_work_status(field_value)),
        "EXIT_SIGNAL" => set_if_empty(&mut status_report.exit_signal, parse_yes_no(field_value)),
        "TASKS_COMPLETED_THIS_LOOP" => set_if_empty(&mut status_report.tasks_completed, field_value.parse().ok()),
        "FILES_MODIFIED" => set_if_empty(&mut status_report.files_modified, field_value.parse().ok()),
        "TESTS_STATUS" => set_if_empty(&mut status_report.tests, parse_tests_status(field_value)),
        "WORK_TYPE" if status_report.work_type.is_empty() => status_report.work_type = field_value.to_string(),
        "RECOMMENDATION" if status_report.recommendation.is_empty() => {
            status_report.recommendation = field_value.to_string()
        }
        // A repeated text field is still a line of the block, although its value is ignored.
        "WORK_TYPE" | "RECOMMENDATION" => {}
        _ => return false,
    }
    true
}

fn parse_yes_no(answer_text: &str) -> Option<bool> {
    match answer_text.to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

fn parse_tests_status(status_text: &str) -> Option<TestsStatus> {
    Some(match status_text.to_ascii_uppercase().replace([' ', '-'], "_").as_str() {
        "PASSING" => TestsStatus::Passing,
        "FAILING" => TestsStatus::Failing,
        "NOT_RUN" => TestsStatus::NotRun,
        _ => return None,
    })
}
