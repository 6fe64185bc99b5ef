//! Changes of findings by the user, mostly in the tracker. A change holds only against what the user saw: if the finding has
//! changed since, it is left aside with a warning. Repeating a change has no effect.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    findings::finding::{
        DeferralReason, DismissalReason, Evidence, Finding, FindingStatus, Severity, StatusTransition, TransitionCause,
    },
    review::{
        ReviewState, challenge_rules::ChallengeResult, event::ReviewEvent, level::ReviewGoal, review_host::ReviewHost,
        topic::ReviewTopic, tracker::format_status,
    },
    runs::{
        types::{RunEvent, find_topic},
        user_request::{FindingChange, FindingSnapshot, reason_note},
    },
};
use tribunal_engine::{ids::FindingId, text::fold_case_and_spaces};

pub(super) fn amend_finding(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    finding_id: FindingId,
    snapshot: Option<FindingSnapshot>,
    finding_change: FindingChange,
) {
    let Some(finding) = state.find_finding(finding_id) else {
        host.note_event(RunEvent::Warned { text: format!("ignored an edit of {finding_id}: no such finding") });
        return;
    };
    let (new_status, note_text) = match finding_change {
        FindingChange::Severity { to: new_severity } => {
            return change_severity(host, state, finding_id, snapshot, new_severity);
        }
        FindingChange::Fixed => (FindingStatus::Fixed, String::from("marked as fixed by the user")),
        FindingChange::Open => (FindingStatus::Open, String::from("reopened by the user")),
        FindingChange::Dismissed { reason } => {
            (FindingStatus::Dismissed { why: DismissalReason::Person }, reason_note(&reason))
        }
        FindingChange::Deferred { reason } => {
            (FindingStatus::Deferred { why: DeferralReason::Person }, reason_note(&reason))
        }
    };
    // For the user an assigned finding is simply open.
    let current_status =
        if finding.status == FindingStatus::Assigned { FindingStatus::Open } else { finding.status.clone() };
    if current_status == new_status {
        return;
    }
    let current_text = format_status(&current_status);
    // The user decided on an outdated status, so the change may not be what they want now.
    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.status != current_text) {
        let warning = format!(
            "{finding_id} was not changed to {}: it was {} when you edited it, but is {current_text} now",
            new_status.as_str(),
            snapshot.status
        );
        host.note_event(RunEvent::Warned { text: warning });
        return;
    }
    match new_status {
        FindingStatus::Open => {
            state.accepted = false;
            state.iteration = 0;
        }
        // A repair by hand was not reviewed, so the run needs another pass.
        FindingStatus::Fixed => {
            state.last_pass.dry = false;
            state.last_pass.changed = true;
        }
        _ => {}
    }
    state.transition_finding(host, finding_id, StatusTransition::new(new_status, TransitionCause::User, note_text));
    withdraw_questions_about(host, state, finding_id);
    state.reconsider_last_pass();
}

/// Changes the severity of a finding, which may move it in or out of the goal.
fn change_severity(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    finding_id: FindingId,
    snapshot: Option<FindingSnapshot>,
    new_severity: Severity,
) {
    // Setting the same severity again is not a change.
    let Some(finding) = state.find_finding_mut(finding_id).filter(|finding| finding.severity != new_severity) else {
        return;
    };
    if snapshot.is_some_and(|snapshot| snapshot.severity != finding.severity) {
        let warning =
            format!("{finding_id} was not changed to {new_severity}: it became {} in the meantime", finding.severity);
        host.note_event(RunEvent::Warned { text: warning });
        return;
    }
    // The status stays; the step in the history records the cause and the note.
    finding.severity = new_severity;
    let current_status = finding.status.clone();
    let severity_transition = StatusTransition::new(
        current_status.clone(),
        TransitionCause::UserSeverity,
        format!("severity set to {new_severity} by the user"),
    );
    finding.apply_transition(severity_transition, host.last_timestamp());
    host.note_own_event(ReviewEvent::FindingRuled {
        finding: finding_id,
        ruled: ChallengeResult::Person,
        severity: new_severity,
        voices: vec![],
    });
    let outside_goal = FindingStatus::Deferred { why: DeferralReason::Goal };
    match (host.order.goal, new_severity) {
        (ReviewGoal::CriticalOnly, Severity::Critical) if current_status == outside_goal => {
            state.iteration = 0;
            let note_text = "severity set to critical by the user";
            state.transition_finding(
                host,
                finding_id,
                StatusTransition::new(FindingStatus::Open, TransitionCause::UserSeverity, note_text),
            );
        }
        // With this goal only critical findings stay open.
        (ReviewGoal::CriticalOnly, Severity::High | Severity::Medium | Severity::Low) if current_status.is_open() => {
            let note_text = "not critical, and the goal is `critical-only`";
            state.transition_finding(
                host,
                finding_id,
                StatusTransition::new(outside_goal, TransitionCause::OutsideGoal, note_text),
            );
        }
        _ => {}
    }
}

/// Withdraws questions about a finding that the user has settled by other means.
pub(super) fn withdraw_questions_about(host: &ReviewHost<'_>, state: &mut ReviewState, finding_id: FindingId) {
    let note = format!("{finding_id} was settled by the user");
    state.dialog.withdraw_decisions(host.run_host(), &note, |topic| {
        matches!(
            find_topic::<ReviewTopic>(topic),
            Some(ReviewTopic::Blocked { finding } | ReviewTopic::Disputed { finding }) if *finding == finding_id
        )
    });
}

pub(super) fn add_user_finding(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    severity: Severity,
    description: String,
    quoted_text: String,
) {
    // The same edit of the tracker may be read more than once.
    let is_same_finding = |finding: &Finding| {
        finding.raisers.is_empty() && fold_case_and_spaces(&finding.description) == fold_case_and_spaces(&description)
    };
    if state.findings.iter().any(is_same_finding) {
        return;
    }
    let mut finding = Finding {
        id: FindingId(state.findings.len() as u32 + 1),
        severity,
        category: "by the user".into(),
        description,
        evidence: Evidence::Quote { text: quoted_text },
        // The quote is not grounded: the user is believed.
        place: None,
        found: None,
        suggested_fix: String::new(),
        raisers: Vec::new(),
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: vec![],
    };
    finding.apply_transition(
        StatusTransition::new(FindingStatus::Open, TransitionCause::User, "added by the user"),
        host.last_timestamp(),
    );
    state.accepted = false;
    state.iteration = 0;
    state.findings.push(finding.clone());
    host.note_own_event(ReviewEvent::FindingRaised { finding });
}
