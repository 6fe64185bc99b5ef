//! What fixers and challengers say about single findings: claims and opinions, to be verified or combined.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{ids::FindingId, text::word_table::words};

/// What a fixer claims about one finding: a claim, not yet a fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FixClaim {
    pub id: FindingId,
    #[serde(flatten)]
    pub said: ClaimStatus,
    pub note: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verification: String,
    /// The files that the fixer says it changed; only the patch counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
    /// The fixer says that it saved the fix to its own memory.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub memory_saved: bool,
}

impl FixClaim {
    /// The claim that stands for a session that came back from repairing.
    pub fn new_fixed(id: FindingId, note: &str) -> FixClaim {
        FixClaim { said: ClaimStatus::Fixed, ..FixClaim::new_blocked(id, note.into()) }
    }

    /// The claim of a fixer that cannot repair the finding.
    pub fn new_blocked(id: FindingId, note: String) -> FixClaim {
        let (verification, files_modified) = Default::default();
        FixClaim { id, said: ClaimStatus::Blocked, note, verification, files_modified, memory_saved: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum ClaimStatus {
    Fixed,
    Blocked,
    /// Not repaired, or only in part. Fixers are not offered this answer, but some give it.
    Unfixed,
}

words!(ClaimStatus { Fixed = "fixed", Blocked = "blocked", Unfixed = "not fixed" });

/// A verdict or a status in an answer that is in no table, and the finding it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UnknownWord {
    pub id: FindingId,
    pub word: String,
}

/// What a challenger says about one finding: one opinion, to be combined with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChallengerRuling {
    pub id: FindingId,
    #[serde(flatten)]
    pub holds: ChallengeVerdict,
    /// The reason for the verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// A quote from the subject that speaks against the finding; empty if the challenger gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counter: String,
}

/// What a judge says about one part of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartRuling {
    /// The number of the part: 2 for `C2`.
    pub part: u32,
    /// Valid if the part is needed to repair one of the findings.
    #[serde(flatten)]
    pub holds: ChallengeVerdict,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Whether a challenger considers a finding valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "holds", rename_all = "snake_case")]
pub enum ChallengeVerdict {
    Valid,
    /// Counts only together with counter-evidence: a bare denial is treated as ambiguous.
    Invalid,
    Ambiguous,
}

words!(ChallengeVerdict { Valid = "valid", Invalid = "invalid", Ambiguous = "ambiguous" });
