//! The format of scripts, as users write them.

use serde::Deserialize;
use serde_json::Value;
use tribunal_core::limits::Usage;

/// A script with its parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default)]
    pub name: String,
    pub tasks: Vec<TaskEntry>,
}

/// What is played for the tasks whose key matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// The key of the task; `*` stands for any text.
    pub task: String,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// For fixers: what is done about each assigned finding.
    #[serde(default)]
    pub fix: Vec<FixEntry>,
    /// For challengers: what is ruled on each disputed finding; all others are valid.
    #[serde(default)]
    pub rule: Vec<RuleEntry>,
}

/// One step of a task.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Prints a line of progress.
    Say(String),
    /// Waits, but only if the script is paced.
    WaitMs(u64),
    /// Prints text of the answer as it is.
    Text(String),
    /// Answers with these findings.
    Findings(Vec<Value>),
    /// Edits a file of the workspace. The old text must occur in it exactly once.
    Edit {
        file: String,
        replace: String,
        with: String,
    },
    Write {
        file: String,
        text: String,
    },
    Delete(String),
    /// Prints to standard error.
    Complain(String),
    Exit(i32),
    /// Never ends by itself.
    Hang(bool),
}

/// What a scripted fixer does about a finding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixEntry {
    /// Matches a finding whose description, quote or heading contains this.
    #[serde(rename = "match")]
    pub fits: String,
    /// The file to edit; by default the one that the finding names.
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub replace: Option<String>,
    #[serde(default)]
    pub with: String,
    /// Answers BLOCKED with this reason instead of editing.
    #[serde(default)]
    pub blocked: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub verification: String,
}

/// What a scripted challenger rules on a finding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleEntry {
    /// Matches a finding whose description, quote or heading contains this.
    #[serde(rename = "match")]
    pub fits: String,
    /// VALID, INVALID or AMBIGUOUS.
    pub verdict: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub counter_evidence: String,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the script cannot be read: {0}")]
    Form(String),
    #[error("the script has no part for task `{0}`")]
    NoPart(String),
}

impl Script {
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        serde_saphyr::from_str(text).map_err(|cause| ScriptError::Form(cause.to_string()))
    }

    /// The first entry that matches a task.
    pub fn part(&self, task: &str) -> Result<&TaskEntry, ScriptError> {
        let mut fitting = self.tasks.iter().filter(|entry| glob(&entry.task, task));
        fitting.next().ok_or_else(|| ScriptError::NoPart(task.to_string()))
    }
}

/// Whether a text matches a pattern. `*` stands for any text, including none.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    // Before the first star the text must match literally, and behind the last one as well.
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    // Each part is taken at its first occurrence. That is sufficient, because only `*` comes between the parts.
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("round-1/*/fix/*", "round-1/fix-2/fix/3", true),
            ("*/adversarial", "round-2/review/adversarial", true),
            ("*/adversarial", "round-2/review/adversarial/again", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} over {text}");
        }
    }

    #[test]
    fn a_misspelt_step_is_an_error_with_its_line() {
        let error = Script::parse("tasks:\n  - task: x\n    setps: []\n").unwrap_err().to_string();
        assert!(error.contains("setps") && error.contains("line 3"), "{error}");
    }
}
