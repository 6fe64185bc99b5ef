//! The confidence of a review outlives its run: it is recorded when the review ends or stops for the user, and the next review of
//! the same subject chooses its level by it, if the text is still the same.

use alloc::{string::String, vec, vec::Vec};

use crate::{
    findings::subject::Subject,
    review::{
        ReviewState,
        review_host::ReviewHost,
        review_record::{LastConfidence, LastReview, ReviewRecord},
    },
    runs::{
        records::{ProjectRecord, RecordKind},
        types::{ReadRecords, RecordChange, StoredRecord, WriteRecords},
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{Hash, Key},
};

/// Returns the request for the record about a subject.
pub fn last_review_request(subject: &Subject) -> ReadRecords {
    let key_prefix = String::from(ReviewRecord::record_key(subject).as_str());
    ReadRecords { kind: RecordKind::LastReview, key_prefix }
}

/// Finds the last review of a subject among its records. `text` is the subject's present text, where it is known.
pub fn find_last_review(subject: &Subject, text: Option<&Hash>, records: Vec<StoredRecord>) -> LastReview {
    // The key is only a digest; what the record says counts.
    let found = records.into_iter().find_map(|StoredRecord { run, record, .. }| match record {
        ProjectRecord::LastReview(last_review) if last_review.subject.is_same_as(subject) => {
            Some(match last_review.is_of_text(subject, text) {
                true => LastReview::SameText(LastConfidence { confidence: last_review.confidence, run }),
                false => LastReview::OtherText { run },
            })
        }
        _ => None,
    });
    found.unwrap_or(LastReview::Never)
}

impl ReviewState {
    /// Records the confidence for the next review of the same subject.
    pub(super) async fn record_confidence(&self, host: &ReviewHost<'_>, parent_key: &Key) -> Result<(), ParkedRun> {
        // A review without any round has nothing to say.
        let Some(confidence) = self.confidence.clone() else { return Ok(()) };
        let subject = host.order.subject.clone();
        let key = ReviewRecord::record_key(&subject);
        let record =
            ProjectRecord::LastReview(ReviewRecord { subject, confidence, text: self.confidence_text.clone() });
        let changes = vec![RecordChange::Put { key, record }];
        host.perform(parent_key.child_key("confidence"), WriteRecords { changes }).await?;
        Ok(())
    }
}
