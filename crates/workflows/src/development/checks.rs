//! Checks: commands of the user that must pass, such as tests and linters.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{development::check_scripts::ChangedScript, findings::subject::Subject};
use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, Hash, TreeId},
    text::word_table::words,
};

/// The most characters of a check's output that prompts and messages show. The whole output is a blob.
pub const MAX_SHOWN_OUTPUT_CHARS: usize = 2_000;

/// A command as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum CommandLine {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments, run without a shell.
    Argv(Vec<String>),
}

impl CommandLine {
    pub fn from_shell_line(line: impl Into<String>) -> CommandLine {
        CommandLine::Shell(line.into())
    }
}

/// Formats the command for people. An argument with spaces is shown in quotes; nothing is run from this text.
impl fmt::Display for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandLine::Shell(line) => formatter.write_str(line),
            CommandLine::Argv(words) => {
                let shown_words: Vec<String> = words
                    .iter()
                    .map(|word| {
                        let needs_quotes = word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '\'');
                        if needs_quotes { format!("'{}'", word.replace('\'', "'\\''")) } else { word.clone() }
                    })
                    .collect();
                formatter.write_str(&shown_words.join(" "))
            }
        }
    }
}

/// When a check runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckTime {
    /// After every step: each patch of a review, each iteration of a loop.
    #[default]
    Step,
    /// Only when the work is said to be complete.
    Completion,
}

words!(CheckTime { Step = "step", Completion = "completion" });

/// What follows from a check that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureAction {
    /// The user is warned; the work counts.
    Warn,
    /// The work does not count until the check passes.
    #[default]
    Block,
    /// The failure becomes a finding that agents have to repair.
    Fix,
}

words!(FailureAction { Warn = "warn", Block = "block", Fix = "fix" });

/// One check that the user configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckSpec {
    pub command: CommandLine,
    #[serde(default, skip_serializing_if = "is_default_time")]
    pub when: CheckTime,
    #[serde(default, skip_serializing_if = "is_default_action")]
    pub on_failure: FailureAction,
    /// The time limit of this check; `None` uses that of all checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl CheckSpec {
    /// Makes a check that blocks after every step.
    pub fn new(command: CommandLine) -> CheckSpec {
        CheckSpec { command, when: CheckTime::default(), on_failure: FailureAction::default(), timeout_ms: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_default_time(time: &CheckTime) -> bool {
    *time == CheckTime::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_default_action(action: &FailureAction) -> bool {
    *action == FailureAction::default()
}

/// Runs checks, all of them, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunChecks {
    pub place: CheckPlace,
    pub checks: Vec<CheckSpec>,
}

/// Where checks run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum CheckPlace {
    /// In a private copy of the project as it is, made for these checks and removed after them.
    Copy {
        /// Its files are part of the copy in any case.
        subject: Subject,
    },
    /// In a workspace that was opened under this name.
    Workspace {
        workspace: String,
        /// The frozen content that is checked; `None` freezes what is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeId>,
    },
    /// In a clone of a commit, set up like a new workspace, made for these checks and removed after them. What fails there also on the
    /// commit with which the work began is no failure.
    FreshClone {
        /// The workspace whose work the commit is.
        workspace: String,
        commit: CommitId,
    },
    /// In such a clone in which these scripts of the checks are as in another commit. Checks for which that has no script do not run.
    BaseScripts {
        /// The workspace whose work the commit is.
        workspace: String,
        commit: CommitId,
        base: CommitId,
        scripts: Vec<ChangedScript>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ChecksOutcome {
    Ran(ChecksReport),
    /// The user has edited these files of the checkout since the content was frozen, so nothing ran.
    Edited {
        paths: Vec<String>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What came of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChecksReport {
    /// In the order of the checks.
    pub results: Vec<CheckResult>,
    /// Ignored files of the project that are missing in the workspace and that may explain a failure, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Whether there was nothing but what a clone of the content has, so that the results are those of a fresh clone.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stands_alone: bool,
    /// Whether the checks have passed on the same content before, and were repeated in a fresh clone.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_repeated: bool,
    /// Whether something failed in the fresh clone that fails there without the work, too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub has_excused: bool,
    /// What the user should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl ChecksReport {
    pub fn list_failures(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| !result.status.is_passed())
    }

    /// Returns the failures that count: all but those that only warn.
    pub fn counting_failures(&self) -> impl Iterator<Item = &CheckResult> {
        self.list_failures().filter(|result| result.on_failure != FailureAction::Warn)
    }

    /// Returns the failures that only warn.
    pub fn list_warnings(&self) -> impl Iterator<Item = &CheckResult> {
        self.list_failures().filter(|result| result.on_failure == FailureAction::Warn)
    }

    /// Returns the first check that could not be run at all: an environment that lacks a program says nothing about the work.
    pub fn find_unrunnable(&self) -> Option<&CheckResult> {
        self.results.iter().find(|result| result.status.is_environment())
    }
}

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckResult {
    pub command: CommandLine,
    #[serde(flatten)]
    pub status: CheckStatus,
    pub on_failure: FailureAction,
    /// The end of what it printed, masked, at most [`MAX_SHOWN_OUTPUT_CHARS`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Everything that it printed, masked, as a blob; `None` if `output` has it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Hash>,
    pub elapsed_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CheckStatus {
    Passed,
    Failed {
        exit_code: i32,
    },
    Killed {
        signal: i32,
    },
    TimedOut {
        after_ms: u64,
    },
    /// It printed more than is allowed.
    Flooded,
    /// It changed files of the work, which no rule and no reviewer has seen like that. They were put back, and its output ends with
    /// their names.
    ChangedWork,
    /// Its program is missing or not executable (exit code 126 or 127).
    CannotRun {
        exit_code: i32,
    },
}

impl CheckStatus {
    pub fn is_passed(self) -> bool {
        self == CheckStatus::Passed
    }

    /// Whether the environment is at fault, and not the work.
    pub fn is_environment(self) -> bool {
        matches!(self, CheckStatus::CannotRun { .. })
    }
}

/// Formats the status as the end of a sentence: `failed with exit code 2`.
impl fmt::Display for CheckStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckStatus::Passed => formatter.write_str("passed"),
            CheckStatus::Failed { exit_code } => write!(formatter, "failed with exit code {exit_code}"),
            CheckStatus::Killed { signal } => write!(formatter, "was killed by signal {signal}"),
            CheckStatus::TimedOut { after_ms } => write!(formatter, "timed out after {} s", after_ms / 1000),
            CheckStatus::Flooded => formatter.write_str("printed too much output"),
            CheckStatus::ChangedWork => formatter.write_str("changed files of the work"),
            CheckStatus::CannotRun { exit_code } => {
                write!(formatter, "could not be run (exit code {exit_code}: not found or not executable)")
            }
        }
    }
}

impl CheckResult {
    /// Describes the result in one line, with the last line that it printed.
    pub fn describe(&self) -> String {
        self.describe_in("")
    }

    /// Describes the result of a check that ran in a special place.
    pub fn describe_in(&self, place: &str) -> String {
        let last_line = self.output.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let space = if place.is_empty() { "" } else { " " };
        let described = format!("`{}` {}{space}{place}", self.command, self.status);
        match last_line {
            Some(last_line) if !self.status.is_passed() => format!("{described}: {last_line}"),
            _ => described,
        }
    }

    /// Describes the result with everything that is shown of its output.
    pub fn describe_with_output(&self) -> String {
        match self.output.trim() {
            "" => format!("`{}` {}, without any output", self.command, self.status),
            output => format!("`{}` {}:\n{output}", self.command, self.status),
        }
    }
}

/// Returns the commands of checks for messages.
pub fn list_commands(checks: &[CheckSpec]) -> String {
    let commands: Vec<String> = checks.iter().map(|check| check.command.to_string()).collect();
    commands.join("; ")
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_check_with_defaults_is_only_its_command() {
        let check = CheckSpec::new(CommandLine::from_shell_line("make test"));
        assert_eq!(serde_json::to_string(&check).unwrap(), r#"{"command":"make test"}"#);
        let check: CheckSpec = serde_json::from_str(r#"{"command":["npm","test"],"on_failure":"fix"}"#).unwrap();
        assert_eq!(check.command, CommandLine::Argv(vec!["npm".into(), "test".into()]));
        assert_eq!((check.when, check.on_failure), (CheckTime::Step, FailureAction::Fix));
    }

    #[test]
    fn arguments_with_spaces_are_shown_in_quotes() {
        let command = CommandLine::Argv(vec!["echo".into(), "it's two".into(), String::new()]);
        assert_eq!(command.to_string(), r"echo 'it'\''s two' ''");
    }
}
