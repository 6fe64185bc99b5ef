//! What the user dismissed stays dismissed in later runs on the same subject.
//!
//! A review reads the project's records once, in its first round, and keeps them in its state. A new finding of the panel is
//! dismissed at once if its evidence was found, is the same text as that of a record, and the claim about it means the same.
//! Every decision of the user that dismisses a finding, or takes that back, is written to the records by
//! [`ReviewState::record_dismissals`]. Dismissals by challengers are not decisions of the user and are never recorded.

use alloc::{format, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    findings::{
        finding::{DismissalReason, Finding, FindingStatus, StatusTransition, TransitionCause},
        subject::Subject,
    },
    review::{
        ReviewState, dismissed_finding::DismissedFinding, event::ReviewEvent, merge::is_claim_about,
        review_host::ReviewHost,
    },
    runs::{
        records::{ProjectRecord, RecordKind},
        types::{ReadRecords, RecordChange, StoredRecord, WriteRecords},
        user_request::{FindingChange, reason_note},
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{FindingId, Key, RecordKey, RunId},
};

/// What a review knows about dismissals of the user, beyond its own findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct UserDismissals {
    /// The records about the subject; `None` until they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Vec<KnownDismissal>>,
    /// The findings of this run that have a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recorded: Vec<RecordedDismissal>,
}

/// A dismissal of an earlier run, with the key of its record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct KnownDismissal {
    key: RecordKey,
    run: RunId,
    dismissed: DismissedFinding,
}

impl KnownDismissal {
    /// Whether a finding makes the same claim about the same text.
    fn covers_finding(&self, finding: &Finding) -> bool {
        self.dismissed.has_evidence_of(finding) && is_claim_about(finding, &self.dismissed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
struct RecordedDismissal {
    finding: FindingId,
    key: RecordKey,
}

impl UserDismissals {
    pub(super) fn is_empty(&self) -> bool {
        *self == UserDismissals::default()
    }

    fn take_records(&mut self, subject: &Subject, records: Vec<StoredRecord>) {
        let known = records.into_iter().filter_map(|StoredRecord { key, run, record, .. }| {
            let ProjectRecord::DismissedFinding(dismissed) = record else { return None };
            Some(KnownDismissal { key, run: dismissed.decided_in.clone().unwrap_or(run), dismissed })
        });
        // The prefix of a key is only a digest; what the record says counts.
        self.known = Some(known.filter(|known| known.dismissed.subject.is_same_as(subject)).collect());
    }

    /// Adds a dismissal that was decided in the tracker of an earlier run; `None` if it is known.
    fn add_dismissal(&mut self, earlier_run: RunId, dismissed: DismissedFinding) -> Option<RecordChange> {
        let key = dismissed.record_key();
        let known = self.known.get_or_insert_default();
        // The same edit may be read again after a crash.
        if known.iter().any(|dismissal| dismissal.key == key) {
            return None;
        }
        let dismissed = DismissedFinding { decided_in: Some(earlier_run.clone()), ..dismissed };
        known.push(KnownDismissal { key: key.clone(), run: earlier_run, dismissed: dismissed.clone() });
        Some(RecordChange::Put { key, record: ProjectRecord::DismissedFinding(dismissed) })
    }

    /// Forgets all records that cover a finding. Its own record may be that of an even earlier run, in other words.
    fn forget_finding(&mut self, finding: &Finding) -> Vec<RecordChange> {
        let covering = self.known.iter().flatten().filter(|known| known.covers_finding(finding));
        let keys: Vec<RecordKey> = covering.map(|known| known.key.clone()).collect();
        keys.iter().for_each(|key| self.forget_record(key));
        keys.into_iter().map(|key| RecordChange::Remove { kind: RecordKind::DismissedFinding, key }).collect()
    }

    fn forget_record(&mut self, key: &RecordKey) {
        if let Some(known) = &mut self.known {
            known.retain(|dismissal| dismissal.key != *key);
        }
        self.recorded.retain(|dismissal| dismissal.key != *key);
    }
}

impl ReviewState {
    /// Reads what the user dismissed in earlier runs, unless this run has read it already.
    pub(super) async fn read_dismissals(&mut self, host: &ReviewHost<'_>, round_key: &Key) -> Result<(), ParkedRun> {
        if self.dismissals.known.is_some() {
            return Ok(());
        }
        let subject = &host.order.subject;
        let request =
            ReadRecords { kind: RecordKind::DismissedFinding, key_prefix: DismissedFinding::key_prefix(subject) };
        let record_list = host.perform(round_key.child_key("dismissed"), request).await?;
        self.dismissals.take_records(subject, record_list.records);
        Ok(())
    }

    /// Dismisses a new finding if the user dismissed the same one in an earlier run, and returns that run.
    pub(super) fn dismiss_as_before(&mut self, host: &ReviewHost<'_>, finding_id: FindingId) -> Option<RunId> {
        let known = self.dismissals.known.as_deref()?;
        let finding = self.findings.iter_mut().find(|finding| finding.id == finding_id)?;
        // What was not found in the text, or is not part of the change, has been set aside for another reason.
        if finding.status != FindingStatus::Open {
            return None;
        }
        let KnownDismissal { key, run, dismissed } = known.iter().find(|known| known.covers_finding(finding))?.clone();
        let transition = StatusTransition::new(
            FindingStatus::Dismissed { why: DismissalReason::Person },
            TransitionCause::DismissedBefore { run: run.clone() },
            format!("dismissed in {run}: {}", dismissed.reason),
        );
        finding.apply_transition(transition, host.last_timestamp());
        self.dismissals.recorded.push(RecordedDismissal { finding: finding_id, key });
        Some(run)
    }

    /// Applies what the user changed in the tracker of an earlier run after it had ended, and returns the changes of the
    /// records. Only dismissals matter to this run; it has findings of its own.
    pub(super) fn amend_earlier(
        &mut self,
        host: &ReviewHost<'_>,
        earlier_run: RunId,
        mut finding: Finding,
        finding_change: FindingChange,
    ) -> Vec<RecordChange> {
        match finding_change {
            FindingChange::Dismissed { reason } => {
                let new_status = FindingStatus::Dismissed { why: DismissalReason::Person };
                let transition = StatusTransition::new(new_status, TransitionCause::User, reason_note(&reason));
                finding.apply_transition(transition, host.last_timestamp());
                let dismissed = DismissedFinding::from_finding(&host.order.subject, &finding);
                dismissed
                    .and_then(|dismissed| self.dismissals.add_dismissal(earlier_run, dismissed))
                    .into_iter()
                    .collect()
            }
            FindingChange::Open => self.dismissals.forget_finding(&finding),
            FindingChange::Fixed | FindingChange::Deferred { .. } | FindingChange::Severity { .. } => Vec::new(),
        }
    }

    /// Writes the dismissals of the user that have no record yet, and removes the records of those that the user took back;
    /// both after `changes`.
    pub(super) async fn record_dismissals(
        &mut self,
        host: &ReviewHost<'_>,
        write_key: Key,
        mut changes: Vec<RecordChange>,
    ) -> Result<(), ParkedRun> {
        changes.extend(self.update_dismissals(&host.order.subject));
        if !changes.is_empty() {
            host.perform(write_key, WriteRecords { changes }).await?;
        }
        Ok(())
    }

    /// Compares the findings with the records and returns the changes that make the records agree.
    fn update_dismissals(&mut self, subject: &Subject) -> Vec<RecordChange> {
        let mut changes = Vec::new();
        for finding in &self.findings {
            let dismissed = DismissedFinding::from_finding(subject, finding);
            let recorded = self.dismissals.recorded.iter().find(|recorded| recorded.finding == finding.id).cloned();
            match (dismissed, recorded) {
                (Some(dismissed), None) => {
                    let key = dismissed.record_key();
                    self.dismissals.recorded.push(RecordedDismissal { finding: finding.id, key: key.clone() });
                    changes.push(RecordChange::Put { key, record: ProjectRecord::DismissedFinding(dismissed) });
                }
                (None, Some(RecordedDismissal { key, .. })) => {
                    // The same claim must not be dismissed again in a later round.
                    self.dismissals.forget_record(&key);
                    changes.push(RecordChange::Remove { kind: RecordKind::DismissedFinding, key });
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        changes
    }
}

/// Collects which findings of a round stay dismissed, so that one line tells it.
#[derive(Default)]
pub(super) struct KeptDismissals {
    findings: Vec<FindingId>,
    runs: Vec<RunId>,
}

impl KeptDismissals {
    pub fn add_finding(&mut self, finding_id: FindingId, earlier_run: RunId) {
        self.findings.push(finding_id);
        if !self.runs.contains(&earlier_run) {
            self.runs.push(earlier_run);
        }
    }

    pub fn note_event(self, host: &ReviewHost<'_>) {
        if !self.findings.is_empty() {
            host.note_own_event(ReviewEvent::DismissalsKept { findings: self.findings, runs: self.runs });
        }
    }
}
