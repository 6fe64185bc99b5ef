//! A finding that the user dismissed, as the project remembers it. The rules are in [`super::dismissals`].

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::{
        finding::{DismissalReason, Evidence, Finding, FindingStatus, Severity},
        subject::{Subject, digest_parts},
    },
    review::ground::fold_quote,
};
use tribunal_engine::{
    ids::{FindingId, RecordKey, RunId},
    text::fold_case_and_spaces,
};

/// A finding that the user dismissed. The record around it names the run that wrote it, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DismissedFinding {
    pub subject: Subject,
    /// The file of the subject that the evidence is in.
    pub file: String,
    pub severity: Severity,
    pub description: String,
    pub evidence: Evidence,
    /// Why the user dismissed it, in the user's words.
    pub reason: String,
    /// The id that the finding had in the run in which it was dismissed.
    pub finding: FindingId,
    /// The run in whose tracker the user dismissed it, if that run had ended and a later one wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_in: Option<RunId>,
}

impl DismissedFinding {
    /// Returns what to remember of a finding; `None` if the user has not dismissed it, or its evidence was never found: nothing
    /// that is found later can be the same.
    pub fn from_finding(subject: &Subject, finding: &Finding) -> Option<DismissedFinding> {
        let dismissed_status = FindingStatus::Dismissed { why: DismissalReason::Person };
        let place = finding.place.as_ref().filter(|_| finding.status == dismissed_status)?;
        // A later step may have changed the severity only.
        let is_dismissal = |status: &FindingStatus| *status == dismissed_status;
        let reason = finding
            .history
            .iter()
            .rev()
            .take_while(|step| is_dismissal(&step.status))
            .last()
            .map_or_else(String::new, |step| step.note.clone());
        Some(DismissedFinding {
            subject: subject.clone(),
            file: place.file.clone(),
            severity: finding.severity,
            description: finding.description.clone(),
            evidence: finding.evidence.clone(),
            reason,
            finding: finding.id,
            decided_in: None,
        })
    }

    /// Returns the prefix that the keys of all records about a subject have.
    pub fn key_prefix(subject: &Subject) -> String {
        format!("{}/", subject.identity_digest())
    }

    /// Returns the key of the record. The same claim about the same text of the same subject always has the same key, so it is
    /// recorded once.
    pub fn record_key(&self) -> RecordKey {
        let mut claim_parts = alloc::vec![self.file.clone(), fold_case_and_spaces(&self.description)];
        match fold_evidence(&self.evidence) {
            FoldedEvidence::Quote(quote) => claim_parts.push(quote),
            FoldedEvidence::Absence { heading, terms } => {
                claim_parts.push(heading);
                claim_parts.extend(terms);
            }
            FoldedEvidence::Check(command) => claim_parts.push(command),
        }
        let claim_parts: Vec<&str> = claim_parts.iter().map(String::as_str).collect();
        RecordKey::new(format!("{}{}", DismissedFinding::key_prefix(&self.subject), digest_parts(&claim_parts)))
    }

    /// Whether a finding shows the same text of the same file, or misses the same terms under the same heading.
    pub fn has_evidence_of(&self, finding: &Finding) -> bool {
        let is_same_file = finding.place.as_ref().is_some_and(|place| place.file == self.file);
        is_same_file && fold_evidence(&self.evidence) == fold_evidence(&finding.evidence)
    }
}

/// Evidence without what agents change when they repeat it.
#[derive(PartialEq, Eq)]
enum FoldedEvidence {
    Quote(String),
    Absence {
        heading: String,
        terms: Vec<String>,
    },
    /// What a check prints differs from time to time; its command does not.
    Check(String),
}

fn fold_evidence(evidence: &Evidence) -> FoldedEvidence {
    match evidence {
        Evidence::Quote { text } => FoldedEvidence::Quote(fold_quote(text)),
        Evidence::Absence { heading, terms } => {
            // The order of the terms means nothing.
            let mut folded_terms: Vec<String> = terms.iter().map(|term| fold_case_and_spaces(term)).collect();
            folded_terms.sort();
            folded_terms.dedup();
            FoldedEvidence::Absence { heading: fold_case_and_spaces(heading), terms: folded_terms }
        }
        Evidence::Check { command, .. } => FoldedEvidence::Check(command.clone()),
    }
}
