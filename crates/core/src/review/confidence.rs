//! Collects the signals of a review after every round and calculates the confidence from them.
//!
//! Memory is never consulted, since there is none yet. A party speaks for the text if it agreed and none of its findings
//! stands. Open findings do not count as validation errors, since they come from the same reviewers; `docs/confidence.md`
//! says more.

use alloc::string::ToString;

use crate::{
    confidence::{Confidence, Party, Reviewers, Signal, Signals, Validation, calculate},
    event::Event,
    finding::{Deferral, Finding, Raiser, Status},
    host::Host,
    level::Role,
    review::Court,
};

impl Court {
    /// Calculates the confidence after a round in which these seats answered. It only decides where the settings set a target.
    pub(super) fn calculate_confidence(
        &mut self,
        host: &dyn Host,
        seats: &[Raiser],
        agreement: Option<Party>,
    ) {
        let tier = host.settings().tier;
        let confidence = calculate(&self.signals(seats, agreement), tier).unwrap_or_else(|impossible| {
            // Impossible signals are a bug of this module; the run continues with a low score.
            host.note(Event::Warned { text: impossible.to_string() });
            Confidence::miscalculated(tier, self.confidence.as_ref())
        });
        host.note(Event::ConfidenceCalculated { round: self.round, confidence: confidence.clone() });
        self.confidence = Some(confidence);
    }

    fn signals(&self, seats: &[Raiser], agreement: Option<Party>) -> Signals {
        // The checks speak for this text only if exactly this text passed them.
        let passed = self.checked.is_some() && self.checked == self.last_pass.text;
        let validation = if passed { Signal::Consulted(Validation::Pass) } else { Signal::NotConsulted };
        Signals {
            validation,
            reviewers: reviewers(&self.findings, seats),
            party: party(&self.findings, seats, agreement),
            ..Signals::default()
        }
    }
}

fn reviewers(findings: &[Finding], seats: &[Raiser]) -> Signal<Reviewers> {
    let mut counted = Reviewers { content: 0, answered: 0 };
    for seat in seats {
        let raised = || findings.iter().filter(|finding| finding.raisers.contains(seat));
        // A reviewer whose claims are mostly wrong is neither for nor against the text.
        if raised().filter(|finding| finding.status.is_refuted()).count() * 2 > raised().count() {
            continue;
        }
        counted.answered += 1;
        counted.content += u32::from(!raised().any(stands));
    }
    if counted.answered == 0 { Signal::Nothing } else { Signal::Consulted(counted) }
}

/// Returns the party's signal. An agreement counts only if no finding of the party stands.
fn party(findings: &[Finding], seats: &[Raiser], agreement: Option<Party>) -> Signal<Party> {
    let held = seats.iter().find(|seat| seat.role == Role::Party);
    let content = held.is_some_and(|seat| !findings.iter().any(|f| f.raisers.contains(seat) && stands(f)));
    match agreement {
        None => Signal::NotConsulted,
        // A party without consensus counts against the text even if it raised nothing.
        Some(said) if content || said == Party::NoConsensus => Signal::Consulted(said),
        Some(_) => Signal::Nothing,
    }
}

/// Whether a finding of medium or higher severity is neither refuted nor settled.
fn stands(finding: &Finding) -> bool {
    let settled = matches!(
        finding.status,
        Status::Dismissed { .. } | Status::Deferred { why: Deferral::Person | Deferral::PreExisting }
    );
    finding.severity.weighs() && !settled
}
