//! The confidence of a review outlives its run: it is recorded when the review ends or stops for the user, and the next review of
//! the same subject chooses its level by it.

use alloc::{string::String, vec, vec::Vec};

use crate::{
    engine::{
        effect::{ReadRecords, WriteRecords},
        host::ParkedRun,
        ids::Key,
        records::{ProjectRecord, RecordChange, RecordKind, StoredRecord},
    },
    review::{
        ReviewState,
        review_host::ReviewHost,
        review_record::{LastConfidence, ReviewRecord},
        subject::Subject,
    },
};

/// Returns the request for the record about a subject.
pub fn last_review_request(subject: &Subject) -> ReadRecords {
    let key_prefix = String::from(ReviewRecord::record_key(subject).as_str());
    ReadRecords { kind: RecordKind::LastReview, key_prefix }
}

/// Finds the confidence of the last review of a subject among its records.
pub fn find_last_confidence(subject: &Subject, records: Vec<StoredRecord>) -> Option<LastConfidence> {
    // The key is only a digest; what the record says counts.
    records.into_iter().find_map(|StoredRecord { run, record, .. }| match record {
        ProjectRecord::LastReview(last_review) if last_review.subject.is_same_as(subject) => {
            Some(LastConfidence { confidence: last_review.confidence, run })
        }
        _ => None,
    })
}

impl ReviewState {
    /// Records the confidence for the next review of the same subject.
    pub(super) async fn record_confidence(&self, host: &ReviewHost<'_>, parent_key: &Key) -> Result<(), ParkedRun> {
        // A review without any round has nothing to say.
        let Some(confidence) = self.confidence.clone() else { return Ok(()) };
        let subject = host.order.subject.clone();
        let key = ReviewRecord::record_key(&subject);
        let record = ProjectRecord::LastReview(ReviewRecord { subject, confidence });
        let changes = vec![RecordChange::Put { key, record }];
        host.perform(parent_key.child_key("confidence"), WriteRecords { changes }).await?;
        Ok(())
    }
}
