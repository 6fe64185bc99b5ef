//! What a review knows that speaks for its text, gathered after every round, and the confidence that comes of it.
//!
//! Memory and party stay unasked: there is no memory yet, and what a party voted is not listened to here yet. The open findings
//! are not taken for a validation "by errors", since they come from the same reviewers; `docs/confidence.md` says more.

use alloc::string::ToString;

use crate::{
    confidence::{Confidence, Reviewers, Signal, Signals, Validation, calculate},
    event::Event,
    finding::{Deferral, Dismissal, Finding, Raiser, Status},
    host::Host,
    review::Court,
};

impl Court {
    /// After a round in which these seats answered. Nothing depends on it but what people see.
    pub(super) fn calculate_confidence(&mut self, host: &dyn Host, seats: &[Raiser]) {
        if !host.patched("confidence") {
            return;
        }
        let tier = host.settings().tier;
        let confidence = calculate(&self.signals(seats), tier).unwrap_or_else(|impossible| {
            host.note(Event::Warned { text: impossible.to_string() });
            Confidence::miscalculated(tier, self.confidence.as_ref())
        });
        host.note(Event::ConfidenceCalculated { round: self.round, confidence: confidence.clone() });
        self.confidence = Some(confidence);
    }

    fn signals(&self, seats: &[Raiser]) -> Signals {
        // The checks speak for this text only if it is the one that passed them.
        let passed = self.checked.is_some() && self.checked == self.last_pass.text;
        let validation = if passed { Signal::Consulted(Validation::Pass) } else { Signal::NotConsulted };
        Signals { validation, reviewers: reviewers(&self.findings, seats), ..Signals::default() }
    }
}

fn reviewers(findings: &[Finding], seats: &[Raiser]) -> Signal<Reviewers> {
    let mut counted = Reviewers { content: 0, answered: 0 };
    for seat in seats {
        let raised = || findings.iter().filter(|finding| finding.raisers.contains(seat));
        // Whose claims are mostly wrong says neither good nor bad.
        if raised().filter(|finding| is_wrong(finding)).count() * 2 > raised().count() {
            continue;
        }
        counted.answered += 1;
        counted.content += u32::from(!raised().any(stands));
    }
    if counted.answered == 0 { Signal::Nothing } else { Signal::Consulted(counted) }
}

fn is_wrong(finding: &Finding) -> bool {
    matches!(finding.status, Status::Dismissed { why: Dismissal::Ungrounded | Dismissal::Invalid })
}

/// It is of medium or higher, and nobody has shown it to be wrong or settled it.
fn stands(finding: &Finding) -> bool {
    let settled = matches!(
        finding.status,
        Status::Dismissed { .. } | Status::Deferred { why: Deferral::Person | Deferral::PreExisting }
    );
    finding.severity.weighs() && !settled
}
