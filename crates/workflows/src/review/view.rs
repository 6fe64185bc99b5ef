//! A review as users see it.

use alloc::{collections::BTreeMap, string::String};

use crate::{
    findings::{counts::FindingCounts, finding::Finding},
    review::{
        confidence::Confidence,
        event::ReviewEvent,
        order::{ReviewOrder, ReviewSummary},
        own_file::OwnFile,
    },
    runs::{
        effect::{LandOutcome, Reply},
        kind_view::{KindView, ViewedKind},
    },
};
use tribunal_engine::{ids::FindingId, timestamp::Timestamp};

#[derive(Clone, Debug, Default)]
pub struct ReviewView {
    /// The order; `None` only before the run has started.
    order: Option<ReviewOrder>,
    /// The number of rounds that were held.
    pub rounds: u32,
    /// The confidence after the last round.
    pub confidence: Option<Confidence>,
    pub findings: BTreeMap<FindingId, Finding>,
    /// The path of the tracker, once it was written.
    pub tracker_path: Option<String>,
}

impl ReviewView {
    pub fn review_order(&self) -> Option<&ReviewOrder> {
        self.order.as_ref()
    }
}

impl ViewedKind for ReviewOrder {
    type View = ReviewView;
}

impl KindView<ReviewOrder> for ReviewView {
    fn apply_order(&mut self, order: &ReviewOrder) {
        self.order = Some(order.clone());
    }

    fn apply_event(&mut self, event: &ReviewEvent, at: Timestamp) {
        match event {
            // A round counts when it has ended; one that is under way may still be held again.
            ReviewEvent::RoundEnded { round, .. } => self.rounds = *round,
            ReviewEvent::ConfidenceCalculated { confidence, .. } => self.confidence = Some(confidence.clone()),
            ReviewEvent::FileWritten { file: OwnFile::Tracker, path } => self.tracker_path = Some(path.clone()),
            ReviewEvent::FindingRaised { finding } => {
                self.findings.insert(finding.id, finding.clone());
            }
            ReviewEvent::FindingJoined { finding: finding_id, severity, raiser } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.severity = *severity;
                    // An entry that is applied twice must not add the raiser twice.
                    if !known_finding.raisers.contains(raiser) {
                        known_finding.raisers.push(raiser.clone());
                    }
                }
            }
            ReviewEvent::FindingRuled { finding: finding_id, severity, .. } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.severity = *severity;
                }
            }
            ReviewEvent::FindingMoved { finding: finding_id, transition } => {
                if let Some(known_finding) = self.findings.get_mut(finding_id) {
                    known_finding.apply_transition(transition.clone(), at);
                }
            }
            _ => {}
        }
    }

    fn apply_reply(&mut self, reply: &Reply) {
        if let Reply::Land(LandOutcome::Landed(landed)) | Reply::TakeIn(LandOutcome::Landed(landed)) = reply {
            // Places in a single file move with the lines above them. The hunks of a change are with its files and are not
            // applied here.
            for place in self.findings.values_mut().filter_map(|finding| finding.place.as_mut()) {
                place.shift_lines(&landed.hunks);
            }
        }
    }

    fn apply_summary(&mut self, summary: &ReviewSummary) {
        self.rounds = summary.rounds;
    }

    fn build_summary(&self) -> ReviewSummary {
        ReviewSummary { rounds: self.rounds, findings: FindingCounts::from_findings(self.findings.values()) }
    }
}
