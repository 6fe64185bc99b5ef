//! Collects the signals of a review after every round and calculates the confidence from them.
//!
//! Memory is never consulted, since there is none yet. A party speaks for the text if it agreed and none of its findings
//! stands. Open findings do not count as validation errors, since they come from the same reviewers; `docs/confidence.md`
//! says more.

use alloc::string::ToString;

use crate::{
    findings::{
        agent_role::AgentRole,
        finding::{DeferralReason, Finding, FindingRaiser, FindingStatus},
    },
    review::{
        ReviewState,
        confidence::{
            Confidence, ConfidenceSignals, PartyAgreement, ReviewerTally, SourceSignal, ValidationResult,
            calculate_confidence,
        },
        event::ReviewEvent,
        review_host::ReviewHost,
    },
    runs::types::RunEvent,
};

impl ReviewState {
    /// Calculates the confidence after a round in which these seats answered. It only decides where the settings set a target.
    pub(super) fn calculate_confidence(
        &mut self,
        host: &ReviewHost<'_>,
        answering_seats: &[FindingRaiser],
        party_agreement: Option<PartyAgreement>,
    ) {
        let tier = host.settings().tier;
        let confidence = calculate_confidence(&self.collect_signals(answering_seats, party_agreement), tier)
            .unwrap_or_else(|impossible| {
                // Impossible signals are a bug of this module; the run continues with a low score.
                host.note_event(RunEvent::Warned { text: impossible.to_string() });
                Confidence::for_failed_calculation(tier, self.confidence.as_ref())
            });
        host.note_own_event(ReviewEvent::ConfidenceCalculated { round: self.round, confidence: confidence.clone() });
        self.confidence = Some(confidence);
        self.confidence_text.clone_from(&self.last_pass.text);
    }

    fn collect_signals(
        &self,
        answering_seats: &[FindingRaiser],
        party_agreement: Option<PartyAgreement>,
    ) -> ConfidenceSignals {
        // The checks speak for this text only if exactly this text passed them.
        let checks_passed = self.checked.is_some() && self.checked == self.last_pass.text;
        let validation =
            if checks_passed { SourceSignal::Consulted(ValidationResult::Pass) } else { SourceSignal::NotConsulted };
        ConfidenceSignals {
            validation,
            reviewers: reviewer_signal(&self.findings, answering_seats),
            party: party_signal(&self.findings, answering_seats, party_agreement),
            ..ConfidenceSignals::default()
        }
    }
}

fn reviewer_signal(findings: &[Finding], answering_seats: &[FindingRaiser]) -> SourceSignal<ReviewerTally> {
    let mut tally = ReviewerTally { content: 0, answered: 0 };
    for seat in answering_seats {
        let raised_by_seat = || findings.iter().filter(|finding| finding.raisers.contains(seat));
        // A reviewer whose claims are mostly wrong is neither for nor against the text.
        if raised_by_seat().filter(|finding| finding.status.is_refuted()).count() * 2 > raised_by_seat().count() {
            continue;
        }
        tally.answered += 1;
        tally.content += u32::from(!raised_by_seat().any(is_standing));
    }
    if tally.answered == 0 { SourceSignal::Nothing } else { SourceSignal::Consulted(tally) }
}

/// Returns the party's signal. An agreement counts only if no finding of the party stands.
fn party_signal(
    findings: &[Finding],
    answering_seats: &[FindingRaiser],
    party_agreement: Option<PartyAgreement>,
) -> SourceSignal<PartyAgreement> {
    let party_seat = answering_seats.iter().find(|seat| seat.role == AgentRole::Party);
    let is_content = party_seat
        .is_some_and(|seat| !findings.iter().any(|finding| finding.raisers.contains(seat) && is_standing(finding)));
    match party_agreement {
        None => SourceSignal::NotConsulted,
        // A party without consensus counts against the text even if it raised nothing.
        Some(agreed) if is_content || agreed == PartyAgreement::NoConsensus => SourceSignal::Consulted(agreed),
        Some(_) => SourceSignal::Nothing,
    }
}

/// Whether a finding of medium or higher severity stands: it is neither dismissed, nor deferred by the user or as
/// pre-existing.
fn is_standing(finding: &Finding) -> bool {
    let is_settled = matches!(
        finding.status,
        FindingStatus::Dismissed { .. }
            | FindingStatus::Deferred { why: DeferralReason::Person | DeferralReason::PreExisting }
    );
    finding.severity.is_weighty() && !is_settled
}
