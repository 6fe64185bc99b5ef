//! What changed between two commits.

use alloc::boxed::Box;
use alloc::string::String;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::subject::CodeChange;
use tribunal_engine::{fault::Fault, ids::CommitId};

/// How much a commit changes. Binary files have no lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangeSize {
    pub files: u32,
    /// Lines that were added.
    pub added: u32,
    /// Lines that were removed.
    pub removed: u32,
}

/// Lists what changed between two commits of the user's repository, as a subject for reviews.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadChange {
    /// The name of the change for users.
    pub title: String,
    pub base: CommitId,
    pub end: CommitId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ChangeOutcome {
    Listed {
        change: Box<CodeChange>,
    },
    /// Nothing that can be reviewed has changed.
    Empty,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}
