//! Runs the checks once on the untouched project, before the first agent is asked.
//!
//! A check that fails already would refuse every fix, and a program that is missing in the workspace would end the run after
//! the panel has been paid for. The result is in the state, so a run that is resumed does not run the checks again, unless
//! they kept it from starting.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::checks::{CheckPlace, CheckSpec, ChecksOutcome, ChecksReport, FailureAction, RunChecks},
    review::{
        ReviewState,
        checks::{report_failed_check, warn_of_check},
        event::ReviewEvent,
        review_host::ReviewHost,
        review_keys::ReviewKeys,
        run_stage::ReviewExit,
    },
};
use tribunal_engine::{
    ids::Key,
    reason::{RunEnding, RunReason},
};

/// Whether the checks still have to run on the untouched project. Checks that only warn are not worth the time.
pub(super) fn is_baseline_due(host: &ReviewHost<'_>, state: &ReviewState) -> bool {
    let decides_something = |check: &CheckSpec| check.on_failure != FailureAction::Warn;
    host.order.fix
        && host.order.baseline
        && !state.baseline_done
        && state.round == 0
        && host.settings().checks.iter().any(decides_something)
}

/// Runs the checks on the untouched project.
pub(super) async fn check_untouched_project(host: &ReviewHost<'_>, state: &mut ReviewState) -> Result<(), ReviewExit> {
    let request = RunChecks {
        place: CheckPlace::Copy { subject: host.order.subject.clone() },
        checks: host.settings().checks.clone(),
    };
    let report = match host.perform(Key::for_baseline(), request).await? {
        ChecksOutcome::Ran(report) => report,
        // No user edits a private copy.
        ChecksOutcome::Edited { .. } => Default::default(),
        ChecksOutcome::Failed { fault } => return Err(RunEnding::new(RunReason::Environment, fault.detail).into()),
    };
    host.note_own_event(ReviewEvent::BaselineChecked { report: report.clone() });
    if let Some(ending) = find_obstacle(&report) {
        return Err(ending.into());
    }
    for result in report.list_failures() {
        match result.on_failure {
            FailureAction::Fix => report_failed_check(host, state, result, &[]),
            FailureAction::Warn => warn_of_check(host, result),
            FailureAction::Block => {}
        }
    }
    state.baseline_done = true;
    Ok(())
}

/// Finds the reason why no agent may be asked: a program is missing, or a check that blocks fails.
fn find_obstacle(report: &ChecksReport) -> Option<RunEnding> {
    let failures = || report.list_failures().filter(|result| result.on_failure != FailureAction::Warn);
    if let Some(unrunnable) = failures().find(|result| result.status.is_environment()) {
        let detail = format!("check {}; its program is missing in the workspace", unrunnable.describe());
        return Some(RunEnding::new(RunReason::Environment, add_differences(detail, report)));
    }
    let blocking: Vec<String> =
        failures().filter(|result| result.on_failure == FailureAction::Block).map(|result| result.describe()).collect();
    (!blocking.is_empty()).then(|| RunEnding::new(RunReason::Baseline, add_differences(blocking.join("; "), report)))
}

/// Adds what the workspace lacks, because that may be the cause.
fn add_differences(detail: String, report: &ChecksReport) -> String {
    match report.differences.is_empty() {
        true => detail,
        false => format!("{detail}; not in the workspace: {}", report.differences.join(", ")),
    }
}
