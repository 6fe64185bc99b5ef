//! What checks of the user mean for a review: a check that fails can warn, block a patch, or become a finding.
//!
//! A patch is checked by all checks, because each landing completes a repair. Checks that block were passed by everything that
//! has landed, so only the others are looked at here. A finding about a check is repaired when the check passes, and never
//! because a fixer says so.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    development::checks::{CheckResult, CheckSpec, FailureAction, list_commands},
    findings::finding::{Evidence, Finding, FindingStatus, Severity, StatusTransition, TransitionCause},
    review::{ReviewState, amendments, event::ReviewEvent, review_host::ReviewHost},
    runs::{settings::Settings, types::RunEvent},
    tasks::claims::FixClaim,
};
use tribunal_engine::{ids::FindingId, text::keep_last_chars};

/// The category of findings about checks.
const CHECK_CATEGORY: &str = "check";
/// The most characters of a check's output that the next fixer gets besides the evidence.
const MAX_NOTE_CHARS: usize = 600;

/// Whether checks ran and all of them passed. `other_results` are those of the checks that do not block.
pub(super) fn is_checked(settings: &Settings, other_results: &[CheckResult]) -> bool {
    !settings.checks.is_empty() && other_results.iter().all(|result| result.status.is_passed())
}

/// Describes for fixers which checks their changes have to pass.
pub(super) fn describe_checks(checks: &[CheckSpec]) -> String {
    let checks_with = |action: FailureAction| -> Vec<CheckSpec> {
        checks.iter().filter(|check| check.on_failure == action).cloned().collect()
    };
    let (blocking, repairable) = (checks_with(FailureAction::Block), checks_with(FailureAction::Fix));
    let mut description = String::new();
    if !blocking.is_empty() {
        description
            .push_str(&format!(" These commands must pass before a change is applied: {}.", list_commands(&blocking)));
    }
    if !repairable.is_empty() {
        description.push_str(&format!(" These commands should pass, too: {}.", list_commands(&repairable)));
    }
    description
}

/// A change that has landed, with what checks and its fixer say about it.
pub(super) struct CheckedChange<'c> {
    /// The results of the checks that do not block.
    pub results: &'c [CheckResult],
    pub fixed_claims: &'c [FixClaim],
}

/// Applies the results of checks after a change has landed: warnings, new findings, and findings that are repaired now.
pub(super) fn apply_check_results(host: &ReviewHost<'_>, state: &mut ReviewState, checked_change: &CheckedChange<'_>) {
    for result in checked_change.results {
        match (result.on_failure, result.status.is_passed()) {
            (FailureAction::Fix, true) => resolve_check_findings(host, state, result),
            (FailureAction::Fix, false) => report_failed_check(host, state, result, checked_change.fixed_claims),
            (FailureAction::Warn, false) => warn_of_check(host, result),
            // A patch that a blocking check refuses does not land.
            (FailureAction::Warn, true) | (FailureAction::Block, _) => {}
        }
    }
}

pub(super) fn warn_of_check(host: &ReviewHost<'_>, result: &CheckResult) {
    host.note_event(RunEvent::Warned { text: format!("check {}", result.describe()) });
}

/// Makes a finding of a check that fails, or reopens the finding that there is.
pub(super) fn report_failed_check(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    result: &CheckResult,
    fixed_claims: &[FixClaim],
) {
    let command = format!("{}", result.command);
    let Some(finding) = state.findings.iter().find(|finding| finding.check_command() == Some(&command)) else {
        raise_check_finding(host, state, result, command);
        return;
    };
    let is_claimed = fixed_claims.iter().any(|claim| claim.id == finding.id);
    match finding.status {
        // Another fixer may still work on it.
        FindingStatus::Assigned if !is_claimed => {}
        FindingStatus::Fixed | FindingStatus::Assigned => {
            let note_text = describe_failure(result);
            let finding_id = finding.id;
            state.fix_history.context.add_error(&format!("{finding_id}: {note_text}"));
            let transition = StatusTransition::new(FindingStatus::Open, TransitionCause::CheckFailed, note_text);
            state.transition_finding(host, finding_id, transition);
        }
        // What the user has decided, or is asked about, stays as it is.
        FindingStatus::Open
        | FindingStatus::Blocked { .. }
        | FindingStatus::Dismissed { .. }
        | FindingStatus::Deferred { .. } => {}
    }
}

fn raise_check_finding(host: &ReviewHost<'_>, state: &mut ReviewState, result: &CheckResult, command: String) {
    let mut finding = Finding {
        id: FindingId(state.findings.len() as u32 + 1),
        severity: Severity::High,
        category: CHECK_CATEGORY.into(),
        description: format!("check `{command}` {}", result.status),
        evidence: Evidence::Check { command, output: result.output.clone() },
        // A check says that something is wrong, but not where.
        place: None,
        found: None,
        suggested_fix: String::new(),
        raisers: Vec::new(),
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: vec![],
    };
    let transition = StatusTransition::new(FindingStatus::Open, TransitionCause::CheckFailed, describe_failure(result));
    finding.apply_transition(transition, host.last_timestamp());
    state.accepted = false;
    state.findings.push(finding.clone());
    host.note_own_event(ReviewEvent::FindingRaised { finding });
}

/// Marks the findings about a check as fixed that passes now.
fn resolve_check_findings(host: &ReviewHost<'_>, state: &mut ReviewState, result: &CheckResult) {
    let command = format!("{}", result.command);
    let is_unresolved = |finding: &&Finding| {
        finding.check_command() == Some(&command)
            && (finding.status.is_open() || matches!(finding.status, FindingStatus::Blocked { .. }))
    };
    let finding_ids: Vec<FindingId> = state.findings.iter().filter(is_unresolved).map(|finding| finding.id).collect();
    for finding_id in finding_ids {
        let note_text = format!("`{command}` passes now");
        amendments::withdraw_questions_about(host, state, finding_id);
        let transition = StatusTransition::new(FindingStatus::Fixed, TransitionCause::CheckPassed, note_text.as_str());
        state.transition_finding(host, finding_id, transition);
        state.fix_history.context.add_success(&format!("{finding_id}: {note_text}"));
    }
}

fn describe_failure(result: &CheckResult) -> String {
    let ending = format!("`{}` {}", result.command, result.status);
    match result.output.trim() {
        "" => ending,
        output => format!("{ending}: {}", keep_last_chars(output, MAX_NOTE_CHARS)),
    }
}
