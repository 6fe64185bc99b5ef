//! Reads the status block: `---RALPH_STATUS---`, lines of `NAME: value`, and an end mark that is often forgotten.

use std::fmt;

use serde::Serialize;

const BEGIN: &str = "---RALPH_STATUS---";
const END: &str = "---END_RALPH_STATUS---";

/// The fields of a status block. A value that is not one of the allowed ones counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Block {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_completed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_modified: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tests>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub work_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recommendation: String,
}

/// How far the work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    InProgress,
    Complete,
    Blocked,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::InProgress => "IN_PROGRESS",
            Status::Complete => "COMPLETE",
            Status::Blocked => "BLOCKED",
        })
    }
}

/// How the tests went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Tests {
    Passing,
    Failing,
    NotRun,
}

/// Finds the first status block of a text.
pub(super) fn find(text: &str) -> Option<Block> {
    let rest = &text[text.find(BEGIN)? + BEGIN.len()..];
    let end = rest.find(END);
    let inside = &rest[..end.unwrap_or(rest.len())];
    // Inside a JSON string that could not be parsed, line ends are still escaped.
    let unpacked = inside.replace("\\r", "").replace("\\n", "\n");
    let mut block = Block::default();
    let mut begun = false;
    for line in unpacked.lines() {
        let said = line.split_once(':').is_some_and(|(name, value)| block.take(name, value));
        // Without an end mark, the block ends at the first line that is none of its own.
        if end.is_none() && begun && !said {
            break;
        }
        begun |= said;
    }
    Some(block)
}

pub(super) fn status(word: &str) -> Option<Status> {
    // Spaces and hyphens are common variations of the underscore.
    Some(match word.trim().to_ascii_uppercase().replace([' ', '-'], "_").as_str() {
        "IN_PROGRESS" => Status::InProgress,
        "COMPLETE" | "COMPLETED" => Status::Complete,
        "BLOCKED" => Status::Blocked,
        _ => return None,
    })
}

impl Block {
    /// Reads one line of the block and returns whether it is one. The first value of a field wins.
    fn take(&mut self, name: &str, value: &str) -> bool {
        fn first<T>(place: &mut Option<T>, value: Option<T>) {
            if place.is_none() {
                *place = value;
            }
        }
        // Agents decorate the names with Markdown: `**STATUS**:`, "- `EXIT_SIGNAL`:".
        let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '-' | '`'));
        let value = value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"'));
        match name {
            "STATUS" => first(&mut self.status, status(value)),
            "EXIT_SIGNAL" => first(&mut self.exit_signal, yes(value)),
            "TASKS_COMPLETED_THIS_LOOP" => first(&mut self.tasks_completed, value.parse().ok()),
            "FILES_MODIFIED" => first(&mut self.files_modified, value.parse().ok()),
            "TESTS_STATUS" => first(&mut self.tests, tests(value)),
            "WORK_TYPE" if self.work_type.is_empty() => self.work_type = value.to_string(),
            "RECOMMENDATION" if self.recommendation.is_empty() => self.recommendation = value.to_string(),
            // A repeated text field is still a line of the block, although its value is ignored.
            "WORK_TYPE" | "RECOMMENDATION" => {}
            _ => return false,
        }
        true
    }
}

fn yes(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

fn tests(word: &str) -> Option<Tests> {
    Some(match word.to_ascii_uppercase().replace([' ', '-'], "_").as_str() {
        "PASSING" => Tests::Passing,
        "FAILING" => Tests::Failing,
        "NOT_RUN" => Tests::NotRun,
        _ => return None,
    })
}
