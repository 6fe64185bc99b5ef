//! What the project remembers of the last review of a subject. [`super::confidence_records`] reads and writes it.

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{findings::subject::Subject, review::confidence::Confidence};
use tribunal_engine::ids::{Hash, RecordKey, RunId};

/// The last review of a subject. The record around it names the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewRecord {
    pub subject: Subject,
    pub confidence: Confidence,
    /// The text for which the confidence was calculated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Hash>,
}

/// What is known of the last review of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastReview {
    /// There was none.
    Never,
    /// The subject has another text now, so the confidence of that review says nothing about it.
    OtherText {
        run: RunId,
    },
    SameText(LastConfidence),
}

/// The confidence of the last review of a subject, which holds for its present text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastConfidence {
    pub confidence: Confidence,
    pub run: RunId,
}

impl LastReview {
    /// Returns the confidence, if it holds.
    pub fn valid_confidence(&self) -> Option<&LastConfidence> {
        match self {
            LastReview::SameText(last) => Some(last),
            LastReview::Never | LastReview::OtherText { .. } => None,
        }
    }
}

impl ReviewRecord {
    /// Returns the key of the record about a subject; there is one for each.
    pub fn record_key(subject: &Subject) -> RecordKey {
        RecordKey::new(subject.identity_digest())
    }

    /// Whether the review was of the text that the subject has now. `text` is `None` where it was not read.
    pub fn is_of_text(&self, subject: &Subject, text: Option<&Hash>) -> bool {
        if text.is_some() {
            return self.text.as_ref() == text;
        }
        // Commits and trees do not change.
        let ends = [&self.subject, subject].map(|subject| subject.code_change().and_then(|change| change.end.as_ref()));
        ends[0].is_some() && ends[0] == ends[1]
    }
}
