//! What is wrong with a project's files: each problem has its place, why it matters and what to do about it.
//!
//! Reading never fails as a whole: it gives a value and problems. Whether a problem keeps anything from starting is decided
//! by the caller; here it only has a weight.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// How much a problem matters, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Worth knowing; nothing has to be done.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    pub weight: Weight,
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

impl Problem {
    pub fn new(weight: Weight, rule: &'static str, path: &str, what: impl Into<String>) -> Problem {
        Problem {
            weight,
            rule,
            path: path.to_string(),
            line: None,
            column: None,
            what: what.into(),
            why: String::new(),
            todo: String::new(),
        }
    }

    pub fn error(rule: &'static str, path: &str, what: impl Into<String>) -> Problem {
        Problem::new(Weight::Error, rule, path, what)
    }

    pub fn warning(rule: &'static str, path: &str, what: impl Into<String>) -> Problem {
        Problem::new(Weight::Warning, rule, path, what)
    }

    pub fn note(rule: &'static str, path: &str, what: impl Into<String>) -> Problem {
        Problem::new(Weight::Note, rule, path, what)
    }

    #[must_use]
    pub fn at(mut self, line: usize) -> Problem {
        self.line = Some(line);
        self
    }

    #[must_use]
    pub fn column(mut self, column: usize) -> Problem {
        self.column = Some(column);
        self
    }

    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Problem {
        self.why = why.into();
        self
    }

    #[must_use]
    pub fn todo(mut self, todo: impl Into<String>) -> Problem {
        self.todo = todo.into();
        self
    }
}

/// Renders as `path:line:column: what`, the form that editors and terminals turn into a link.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        // A column means nothing without its line, so it is left out where the line is unknown.
        for number in [self.line, self.column.filter(|_| self.line.is_some())].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        write!(f, ": {}", self.what)
    }
}
