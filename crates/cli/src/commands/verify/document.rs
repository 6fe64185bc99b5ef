//! What `tribunal verify` says, for users and as a document.

use std::io::Write;

use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;
use tribunal_runner::BaseCheck;
use tribunal_workflows::development::checks::{CheckResult, ChecksReport, FailureAction};

use crate::{messages::user_errors::UserError, terminal::wrapped_output::wrapped_stdout};

/// The document of `tribunal verify`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct VerifyDocument {
    pub(super) schema: &'static str,
    pub(super) story: String,
    /// Whether files and git show that the story was developed.
    pub(super) verified: bool,
    /// The state on the board, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sprint_status: Option<String>,
    /// The status in the story's file, as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) story_file_status: Option<String>,
    /// Whether it is verified, and the board says done; without a board, the story's file.
    pub(super) done: bool,
    /// What speaks against it, one line each.
    pub(super) reasons: Vec<String>,
    /// What does not, but should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) remarks: Vec<String>,
    /// The checks that ran on the work.
    pub(super) checks: Vec<VerifyCheck>,
    /// The commit with which the work began.
    pub(super) base: String,
    /// The commit of the story, if it has landed; otherwise the workspace of its run or the checkout was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// The workspace that was looked at, if a run waits with the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<String>,
}

/// A check that ran on the work.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct VerifyCheck {
    pub(super) command: String,
    pub(super) passed: bool,
    /// How it ended, with the last line that it printed if it failed.
    pub(super) detail: String,
    pub(super) elapsed_ms: u64,
    /// The scripts of the check that the work has changed, if it ran with those of the commit with which the work began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) with_base_scripts: Vec<String>,
}

impl VerifyCheck {
    /// Lists the checks that ran on the work, and after them those that ran with the scripts of the base.
    pub(super) fn list_checks(checks: &ChecksReport, base_checks: &[BaseCheck]) -> Vec<VerifyCheck> {
        let on_work = checks.results.iter().map(VerifyCheck::from);
        on_work.chain(base_checks.iter().filter_map(VerifyCheck::from_base_check)).collect()
    }

    fn from_base_check(base_check: &BaseCheck) -> Option<VerifyCheck> {
        let result = base_check.result.as_ref()?;
        Some(VerifyCheck {
            detail: describe_base_check(base_check, result),
            with_base_scripts: base_check.scripts.clone(),
            ..VerifyCheck::from(result)
        })
    }
}

/// Describes how a check ended with the scripts that the work began with.
fn describe_base_check(base_check: &BaseCheck, result: &CheckResult) -> String {
    format!("{} (with {} as before the work)", result.describe(), base_check.scripts.join(", "))
}

/// Says that a check fails with the scripts that the work began with; `None` if it does not, or if it only warns.
pub(super) fn describe_failed_base_check(base_check: &BaseCheck) -> Option<String> {
    let result = base_check.result.as_ref()?;
    let counts = !result.status.is_passed() && result.on_failure != FailureAction::Warn;
    counts.then(|| describe_base_check(base_check, result))
}

/// Says that there is nothing to compare a changed script with.
pub(super) fn describe_new_scripts(base_check: &BaseCheck) -> Option<String> {
    let scripts = base_check.scripts.join(", ");
    base_check
        .result
        .is_none()
        .then(|| format!("the work brings {scripts}, which a check runs, and nothing to compare it with"))
}

impl From<&CheckResult> for VerifyCheck {
    fn from(result: &CheckResult) -> VerifyCheck {
        VerifyCheck {
            command: result.command.to_string(),
            passed: result.status.is_passed(),
            detail: result.describe(),
            elapsed_ms: result.elapsed_ms,
            with_base_scripts: Vec::new(),
        }
    }
}

pub(super) fn print_document(document: &VerifyDocument) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let verdict_text = match (document.done, document.verified) {
        (true, _) => "verified, and done",
        (false, true) => "verified",
        (false, false) => "not verified",
    };
    writeln!(output, "{}: {verdict_text}", escape_line(&document.story))?;
    let board_text = document.sprint_status.as_deref().unwrap_or("not on it");
    writeln!(output, "  board       {}", escape_line(board_text))?;
    let status_text = document.story_file_status.as_deref().unwrap_or("no status");
    writeln!(output, "  story file  {}", escape_line(status_text))?;
    let short = |commit: &str| commit.chars().take(8).collect::<String>();
    match &document.commit {
        Some(commit) => writeln!(output, "  changes     {}..{}", short(&document.base), short(commit))?,
        None => {
            let place = document.workspace.as_deref().unwrap_or("your checkout");
            writeln!(output, "  changes     since {}, in {}", short(&document.base), escape_line(place))?;
        }
    }
    for check in document.checks.iter().filter(|check| check.passed) {
        writeln!(output, "  ✓ {}", escape_line(&check.detail))?;
    }
    for reason in &document.reasons {
        writeln!(output, "  ✗ {}", escape_line(reason))?;
    }
    for remark in &document.remarks {
        writeln!(output, "  ! {}", escape_line(remark))?;
    }
    Ok(())
}
