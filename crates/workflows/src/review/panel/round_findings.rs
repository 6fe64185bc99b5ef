//! The findings of one round: the answers of the seats, merged with the findings that are known.

use alloc::vec::Vec;

use crate::{
    findings::finding::{
        DeferralReason, DismissalReason, Finding, FindingRaiser, FindingStatus, Severity, StatusTransition,
        TransitionCause,
    },
    review::{
        ReviewState,
        dismissals::KeptDismissals,
        event::ReviewEvent,
        ground::EvidenceScope,
        level::ReviewGoal,
        merge::{MergeOutcome, merge_claims},
        review_host::ReviewHost,
    },
    runs::settings::Settings,
    tasks::brief::RaisedFinding,
};
use tribunal_engine::ids::FindingId;

/// The findings that one round raised or changed.
pub(super) struct RoundFindings {
    /// Findings that were not known before, believed or not.
    pub raised: Vec<FindingId>,
    /// Known findings that turned out to be critical.
    escalated: Vec<FindingId>,
    /// Refuted findings that an independent reviewer has raised again.
    pub raised_again: Vec<FindingId>,
    /// Findings that several reviewers support with the same words.
    pub overlapping: Vec<FindingId>,
}

impl RoundFindings {
    /// Returns the findings that are believed and not settled.
    pub fn unsettled_findings<'c>(&'c self, state: &'c ReviewState) -> impl Iterator<Item = &'c Finding> {
        let is_unsettled = |finding: &&Finding| {
            let outside_goal = FindingStatus::Deferred { why: DeferralReason::Goal };
            finding.status.is_open()
                || finding.status == outside_goal
                || matches!(finding.status, FindingStatus::Blocked { .. })
        };
        self.raised
            .iter()
            .chain(&self.escalated)
            .chain(&self.raised_again)
            .filter_map(|finding_id| state.find_finding(*finding_id))
            .filter(is_unsettled)
    }
}

/// Merges the answers of the seats into the findings and records what became of each.
pub(super) fn merge_answers(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    seat_answers: Vec<(FindingRaiser, Vec<RaisedFinding>)>,
    scope: &EvidenceScope<'_>,
) -> RoundFindings {
    let merge_outcomes = merge_claims(&mut state.findings, seat_answers, scope, host.last_timestamp());
    let mut round_findings =
        RoundFindings { raised: Vec::new(), escalated: Vec::new(), raised_again: Vec::new(), overlapping: Vec::new() };
    let mut kept_dismissals = KeptDismissals::default();
    for merge_outcome in merge_outcomes {
        match merge_outcome {
            MergeOutcome::Joined { finding: finding_id, severity, raiser, overlaps } => {
                if overlaps {
                    round_findings.overlapping.push(finding_id);
                }
                let is_new_dispute = needs_new_dispute(host.settings(), state, finding_id, &raiser);
                host.note_own_event(ReviewEvent::FindingJoined { finding: finding_id, severity, raiser });
                if is_new_dispute && !round_findings.raised_again.contains(&finding_id) {
                    let note_text = "refuted before, but raised again by another reviewer";
                    state.transition_finding(
                        host,
                        finding_id,
                        StatusTransition::new(FindingStatus::Open, TransitionCause::RaisedAgain, note_text),
                    );
                    round_findings.raised_again.push(finding_id);
                }
                let outside_goal = FindingStatus::Deferred { why: DeferralReason::Goal };
                // With the goal `critical-only` a deferred finding comes back once it is critical.
                if severity == Severity::Critical
                    && state.find_finding(finding_id).is_some_and(|known_finding| known_finding.status == outside_goal)
                {
                    let note_text = "raised again, now as critical";
                    state.transition_finding(
                        host,
                        finding_id,
                        StatusTransition::new(FindingStatus::Open, TransitionCause::RaisedAgain, note_text),
                    );
                    round_findings.escalated.push(finding_id);
                }
            }
            MergeOutcome::NewFinding(new_id) => {
                if let Some(earlier_run) = state.dismiss_as_before(host, new_id) {
                    kept_dismissals.add_finding(new_id, earlier_run);
                }
                let Some(finding) = state.find_finding(new_id).cloned() else { continue };
                host.note_own_event(ReviewEvent::FindingRaised { finding });
                round_findings.raised.push(new_id);
            }
        }
    }
    kept_dismissals.note_event(host);
    round_findings
}

/// Whether a refuted finding needs a new challenge: a reviewer of another provider or method raised it again, and it was
/// refuted only once so far.
fn needs_new_dispute(
    settings: &Settings,
    state: &ReviewState,
    finding_id: FindingId,
    new_raiser: &FindingRaiser,
) -> bool {
    let Some(finding) = state.find_finding(finding_id) else { return false };
    let refuted_status = FindingStatus::Dismissed { why: DismissalReason::Invalid };
    let refuted_count = finding.history.iter().filter(|step| step.status == refuted_status).count();
    let is_independent = |raiser: &FindingRaiser| {
        raiser == new_raiser
            || raiser.role != new_raiser.role
            || settings.agent_provider(&raiser.agent) != settings.agent_provider(&new_raiser.agent)
    };
    finding.status == refuted_status && refuted_count == 1 && finding.raisers.iter().all(is_independent)
}

/// Defers the new findings that the goal does not ask for.
pub(super) fn defer_outside_goal(host: &ReviewHost<'_>, state: &mut ReviewState, raised_ids: &[FindingId]) {
    if host.order.goal != ReviewGoal::CriticalOnly {
        return;
    }
    for finding_id in raised_ids {
        if state
            .find_finding(*finding_id)
            .is_some_and(|finding| finding.status == FindingStatus::Open && finding.severity != Severity::Critical)
        {
            let deferred_status = FindingStatus::Deferred { why: DeferralReason::Goal };
            let note_text = "not critical, and the goal is `critical-only`";
            state.transition_finding(
                host,
                *finding_id,
                StatusTransition::new(deferred_status, TransitionCause::OutsideGoal, note_text),
            );
        }
    }
}
