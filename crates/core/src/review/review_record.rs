//! What the project remembers of the last review of a subject. [`super::confidence_records`] reads and writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    engine::ids::{RecordKey, RunId},
    review::{confidence::Confidence, subject::Subject},
};

/// The last review of a subject. The record around it names the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewRecord {
    pub subject: Subject,
    pub confidence: Confidence,
}

/// The confidence of the last review of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastConfidence {
    pub confidence: Confidence,
    pub run: RunId,
}

impl ReviewRecord {
    /// Returns the key of the record about a subject; there is one for each.
    pub fn record_key(subject: &Subject) -> RecordKey {
        RecordKey::new(subject.identity_digest())
    }
}
