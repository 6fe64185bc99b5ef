//! What is wrong with a project's files: each problem has its place, why it matters and what to do about it.
//!
//! Reading never fails as a whole: it gives a value and problems. Whether a problem keeps anything from starting is decided
//! by the caller; here it only has a weight.

use std::fmt;

use tribunal_json::{Serialize, schemars};

/// How much a problem matters, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProblemWeight {
    /// It is worth knowing, and nothing has to be done.
    Note,
    /// Work can go on, and may go wrong.
    Warning,
    /// The file cannot be used as it is, or what depends on it is not ready.
    Error,
}

/// The rules that code asks for, each spelt once. A rule that only users read is spelt where the problem is found.
pub mod rules {
    pub const EPIC_EMPTY: &str = "epic-empty";
    pub const EPIC_NUMBER_MISSING: &str = "epic-number-missing";
    pub const MANIFEST_MISSING: &str = "manifest-missing";
    pub const MANIFEST_NO_VERSION: &str = "manifest-no-version";
    pub const READINESS_NOT_READY: &str = "readiness-not-ready";
    pub const STORY_NO_CRITERIA: &str = "story-no-criteria";
    pub const STORY_NUMBER_MISSING: &str = "story-number-missing";
    pub const STORY_STATUS_DIFFERS: &str = "story-status-differs";
    pub const VERDICT_MISSING: &str = "verdict-missing";
}

/// One thing that is wrong with one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FileProblem {
    pub weight: ProblemWeight,
    /// Which rule the file breaks, in kebab case. It never changes, since users filter by it: `board-duplicate-key`.
    pub rule: &'static str,
    /// The file's path, relative to the project's root.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong: lower case, no period at the end.
    pub what: String,
    /// Why it matters; empty where the message already says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do about it; empty if there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub todo: String,
}

impl FileProblem {
    pub fn new(weight: ProblemWeight, rule: &'static str, file_path: &str, message: impl Into<String>) -> FileProblem {
        FileProblem {
            weight,
            rule,
            path: file_path.to_string(),
            line: None,
            column: None,
            what: message.into(),
            why: String::new(),
            todo: String::new(),
        }
    }

    pub fn error(rule: &'static str, file_path: &str, message: impl Into<String>) -> FileProblem {
        FileProblem::new(ProblemWeight::Error, rule, file_path, message)
    }

    pub fn warning(rule: &'static str, file_path: &str, message: impl Into<String>) -> FileProblem {
        FileProblem::new(ProblemWeight::Warning, rule, file_path, message)
    }

    pub fn note(rule: &'static str, file_path: &str, message: impl Into<String>) -> FileProblem {
        FileProblem::new(ProblemWeight::Note, rule, file_path, message)
    }

    #[must_use]
    pub fn at_line(mut self, line: usize) -> FileProblem {
        self.line = Some(line);
        self
    }

    #[must_use]
    pub fn at_column(mut self, column: usize) -> FileProblem {
        self.column = Some(column);
        self
    }

    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> FileProblem {
        self.why = reason.into();
        self
    }

    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<String>) -> FileProblem {
        self.todo = advice.into();
        self
    }
}

/// Renders as `path:line:column: what`, the form that editors and terminals turn into a link.
impl fmt::Display for FileProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.path)?;
        // A column means nothing without its line, so it is left out where the line is unknown.
        for position in [self.line, self.column.filter(|_| self.line.is_some())].into_iter().flatten() {
            write!(formatter, ":{position}")?;
        }
        write!(formatter, ": {}", self.what)
    }
}
