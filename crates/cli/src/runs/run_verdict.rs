//! What is said after a run has ended or stopped: the exit code, which findings may decide, and messages that reached no agent.

use std::io::{Write, stderr};

use clap::ValueEnum;
use tribunal_engine::{ids::RunId, text::format_count, user_remark::UserRemark};
use tribunal_report::{describe_undelivered, escape_line, find_messages, tables::RunStanding};
use tribunal_runner::Project;
use tribunal_store::{Store, StoreError};
use tribunal_workflows::{
    findings::finding::Severity,
    review::fail_threshold::{ThresholdVerdict, judge_by_threshold},
    runs::user_request::UserRequest,
};

use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    runs::{engine::RunEnd, run_reports::write_report_file},
};

/// A severity as the user types it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SeverityName {
    Critical,
    High,
    Medium,
    Low,
}

impl SeverityName {
    pub fn to_severity(self) -> Severity {
        match self {
            SeverityName::Critical => Severity::Critical,
            SeverityName::High => Severity::High,
            SeverityName::Medium => Severity::Medium,
            SeverityName::Low => Severity::Low,
        }
    }
}

/// The exit code of a run, and the lines that go with it.
struct RunVerdict {
    pub exit_code: u8,
    /// Notes and warnings for standard error.
    pub notices: Vec<String>,
    /// The reason for the exit code, if findings decided it.
    pub error_line: Option<String>,
}

/// Judges a run, prints what there is to say, writes its report if it has one, and returns the exit code.
pub(crate) fn judge_and_print(
    project: &Project,
    run_end: &RunEnd,
    fail_on: Option<Severity>,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let verdict = judge_run(project, run_end, fail_on)?;
    let screen = &context.progress_screen;
    for notice in verdict.notices.iter().filter(|_| !context.is_silent()) {
        writeln!(stderr(), "{}", screen.wrap_block(notice))?;
    }
    // Errors are printed even if the user wants to see nothing else.
    if let Some(error_line) = &verdict.error_line {
        writeln!(stderr(), "{}", screen.wrap_block(error_line))?;
    }
    write_report_file(project, &run_end.run_id, context)?;
    Ok(verdict.exit_code)
}

/// Decides the exit code of a run, by its findings if the user asked for that.
fn judge_run(project: &Project, run_end: &RunEnd, fail_on: Option<Severity>) -> Result<RunVerdict, UserError> {
    let run_id = &run_end.run_id;
    // A journal that cannot be read any more matters only if the findings decide.
    let unread_messages = read_unread_messages(project, run_id).unwrap_or_default();
    // Almost always there is nothing to judge and nothing to say, and then the journal is not read again.
    if fail_on.is_none() && unread_messages.is_empty() {
        return Ok(RunVerdict { exit_code: run_end.exit_code(), notices: Vec::new(), error_line: None });
    }
    let store = Store::open_read_only(&project.home_dir())?;
    let run_view = store.read_view(run_id)?;
    let run_standing = RunStanding { run_view: &run_view, is_live: false };
    let mut notices: Vec<String> = unread_messages
        .iter()
        .map(|message| format!("warning: {}", escape_line(&describe_undelivered(message, &run_standing))))
        .collect();
    let Some(threshold) = fail_on else {
        return Ok(RunVerdict { exit_code: run_end.exit_code(), notices, error_line: None });
    };
    let verdict = judge_by_threshold(run_end.reason, threshold, run_view.all_findings());
    let verdict_line = describe_verdict(run_id, threshold, verdict);
    if verdict.failing_count == 0 {
        notices.extend(verdict_line);
        return Ok(RunVerdict { exit_code: verdict.exit_code, notices, error_line: None });
    }
    Ok(RunVerdict { exit_code: verdict.exit_code, notices, error_line: verdict_line })
}

/// Reads the messages that the run has left in its inbox.
fn read_unread_messages(project: &Project, run_id: &RunId) -> Result<Vec<UserRemark>, StoreError> {
    let unread_requests = Store::open_read_only(&project.home_dir())?.pending_requests(run_id)?;
    let unread_requests: Vec<UserRequest> = unread_requests.into_iter().map(|stored| stored.request).collect();
    Ok(find_messages(&unread_requests).collect())
}

/// Says how the findings decided; `None` if they did not.
fn describe_verdict(run_id: &RunId, threshold: Severity, verdict: ThresholdVerdict) -> Option<String> {
    let severity_text = match threshold {
        Severity::Critical => "critical".to_string(),
        Severity::High | Severity::Medium | Severity::Low => format!("{threshold} or higher"),
    };
    let run_name = escape_line(run_id.as_str());
    match verdict {
        ThresholdVerdict { is_by_findings: false, .. } => None,
        ThresholdVerdict { failing_count: 0, .. } => {
            Some(format!("note: run {run_name} leaves no finding of severity {severity_text} (--fail-on {threshold})"))
        }
        ThresholdVerdict { failing_count, .. } => {
            let count_text = format_count(failing_count, "finding");
            Some(format!(
                "error: run {run_name} leaves {count_text} of severity {severity_text} (--fail-on {threshold})"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_say_how_many_findings_of_which_severity_are_left() {
        let describe = |threshold, is_by_findings, failing_count| {
            describe_verdict(
                &RunId::new("plan-1"),
                threshold,
                ThresholdVerdict { exit_code: 0, is_by_findings, failing_count },
            )
        };
        assert_eq!(
            describe(Severity::High, true, 2).as_deref(),
            Some("error: run plan-1 leaves 2 findings of severity high or higher (--fail-on high)")
        );
        assert_eq!(
            describe(Severity::Critical, true, 0).as_deref(),
            Some("note: run plan-1 leaves no finding of severity critical (--fail-on critical)")
        );
        assert_eq!(describe(Severity::Low, false, 3), None, "a halted run has its own exit code");
    }
}
