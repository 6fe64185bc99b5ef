//! The status block: `---RALPH_STATUS---`, lines of `NAME: value`, and an end that is often forgotten.

use std::fmt;

use serde::Serialize;

const BEGIN: &str = "---RALPH_STATUS---";
const END: &str = "---END_RALPH_STATUS---";

/// What the block says; what it says otherwise than it was asked to is as good as not said.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Tests {
    Passing,
    Failing,
    NotRun,
}

/// The first block there is.
pub(super) fn find(text: &str) -> Option<Block> {
    let rest = &text[text.find(BEGIN)? + BEGIN.len()..];
    let end = rest.find(END);
    let inside = &rest[..end.unwrap_or(rest.len())];
    // Inside of a string that nobody could unpack, line ends are written out.
    let unpacked = inside.replace("\\r", "").replace("\\n", "\n");
    let mut block = Block::default();
    let mut begun = false;
    for line in unpacked.lines() {
        let said = line.split_once(':').is_some_and(|(name, value)| block.take(name, value));
        // Without an end, it ends where its lines end.
        if end.is_none() && begun && !said {
            break;
        }
        begun |= said;
    }
    Some(block)
}

pub(super) fn status(word: &str) -> Option<Status> {
    Some(match word.trim().to_ascii_uppercase().replace([' ', '-'], "_").as_str() {
        "IN_PROGRESS" => Status::InProgress,
        "COMPLETE" | "COMPLETED" => Status::Complete,
        "BLOCKED" => Status::Blocked,
        _ => return None,
    })
}

impl Block {
    /// Whether this is one of the block's lines. What was said first stays.
    fn take(&mut self, name: &str, value: &str) -> bool {
        fn first<T>(place: &mut Option<T>, value: Option<T>) {
            if place.is_none() {
                *place = value;
            }
        }
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
