//! Project records: what outlives a run, for instance a decision of the user that later runs respect.
//!
//! They are in a table of the journal's database. A run reads them with an effect, so a replay sees what the run saw, and
//! writes them with an effect: the store writes them together with the entry that ends it. To add a kind of record: its type,
//! a variant of [`RecordKind`] and one of [`ProjectRecord`].

use alloc::boxed::Box;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    loop_run::breaker::CircuitBreaker,
    review::{dismissed_finding::DismissedFinding, review_record::ReviewRecord},
};
use tribunal_engine::{run_types::AnyRecord, text::word_table::words};

/// The kinds of project records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    DismissedFinding,
    CircuitBreaker,
    LastReview,
}

words!(RecordKind {
    DismissedFinding = "dismissed_finding",
    CircuitBreaker = "circuit_breaker",
    LastReview = "last_review",
});

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum ProjectRecord {
    /// A finding that the user dismissed.
    DismissedFinding(DismissedFinding),
    /// Whether loops may run in this project.
    CircuitBreaker(Box<CircuitBreaker>),
    /// The last review of a subject.
    LastReview(ReviewRecord),
}

impl ProjectRecord {
    pub fn record_kind(&self) -> RecordKind {
        match self {
            ProjectRecord::DismissedFinding(_) => RecordKind::DismissedFinding,
            ProjectRecord::CircuitBreaker(_) => RecordKind::CircuitBreaker,
            ProjectRecord::LastReview(_) => RecordKind::LastReview,
        }
    }
}

impl AnyRecord for ProjectRecord {
    type Kind = RecordKind;
}
