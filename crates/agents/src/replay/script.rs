//! The format of scripts, as users write them. Serde reads it, because only its errors name a line of the YAML.

use serde::Deserialize;
use serde_json::Value;
use tribunal_engine::limits::AgentUsage;

/// A script with its parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
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
    pub usage: AgentUsage,
    #[serde(default)]
    pub steps: Vec<ScriptStep>,
    /// For fixers: what is done about each assigned finding.
    #[serde(default)]
    pub fix: Vec<FixEntry>,
    /// For challengers and judges: what is ruled on each finding; all others are valid. A judge also rules on the parts of the
    /// change, by their texts.
    #[serde(default)]
    pub rule: Vec<RuleEntry>,
}

/// One step of a task.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStep {
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
    /// Never ends by itself, if true.
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
    #[error("invalid script: {0}")]
    Form(String),
    #[error("the script has no entry for task `{0}`")]
    NoPart(String),
}

impl AgentScript {
    pub fn parse(script_yaml: &str) -> Result<AgentScript, ScriptError> {
        serde_saphyr::from_str(script_yaml).map_err(|yaml_error| ScriptError::Form(yaml_error.to_string()))
    }

    /// The first entry that matches a task.
    pub fn find_task(&self, task_key: &str) -> Result<&TaskEntry, ScriptError> {
        let mut matching_entries = self.tasks.iter().filter(|task_entry| matches_pattern(&task_entry.task, task_key));
        matching_entries.next().ok_or_else(|| ScriptError::NoPart(task_key.to_string()))
    }

    /// The first entry for judges that matches a task. An entry for a fixer would match the keys of its judges, too.
    pub fn find_judge(&self, task_key: &str) -> Option<&TaskEntry> {
        let is_for_judge = |task_entry: &&TaskEntry| task_entry.task.contains("judge");
        self.tasks.iter().filter(is_for_judge).find(|task_entry| matches_pattern(&task_entry.task, task_key))
    }
}

/// Whether a text matches a pattern. `*` stands for any text, including none.
fn matches_pattern(pattern: &str, matched_text: &str) -> bool {
    let mut pattern_parts = pattern.split('*');
    // Before the first star the text must match literally, and behind the last one as well.
    let Some(mut remaining_text) = pattern_parts.next().and_then(|first_part| matched_text.strip_prefix(first_part))
    else {
        return false;
    };
    let pattern_parts: Vec<&str> = pattern_parts.collect();
    let Some((last_part, middle_parts)) = pattern_parts.split_last() else {
        return remaining_text.is_empty();
    };
    // Each part is taken at its first occurrence. That is sufficient, because only `*` comes between the parts.
    for middle_part in middle_parts {
        let Some(part_offset) = remaining_text.find(middle_part) else { return false };
        remaining_text = &remaining_text[part_offset + middle_part.len()..];
    }
    remaining_text.ends_with(last_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, matched_text, is_match) in [
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("round-1/*/fix/*", "round-1/fix-2/fix/3", true),
            ("*/adversarial", "round-2/review/adversarial", true),
            ("*/adversarial", "round-2/review/adversarial/again", false),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches_pattern(pattern, matched_text), is_match, "{pattern} over {matched_text}");
        }
    }

    #[test]
    fn a_misspelt_step_is_an_error_with_its_line() {
        let script_error = AgentScript::parse("tasks:\n  - task: x\n    setps: []\n").unwrap_err().to_string();
        assert!(script_error.contains("setps") && script_error.contains("line 3"), "{script_error}");
    }
}
