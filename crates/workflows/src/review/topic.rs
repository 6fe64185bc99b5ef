//! What the questions of a review are about.

use alloc::vec::Vec;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::runs::user_request::UserRequest;
use tribunal_engine::ids::{DecisionId, FindingId, Hash, Key};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ReviewTopic {
    /// A fixer could not repair this finding.
    Blocked { finding: FindingId },
    /// Challengers could not agree on this critical finding.
    Disputed { finding: FindingId },
    /// A patch waits for the user's approval.
    Patch {
        by: Key,
        patch: Hash,
        /// The masked difference for users, as a blob.
        diff: Hash,
        findings: Vec<FindingId>,
        /// The decision in which the user rejected exactly this patch before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejected_in: Option<DecisionId>,
    },
    /// The user's session was to repair these.
    Session { findings: Vec<FindingId> },
    /// The tracker was edited while agents without a sandbox were at work.
    Tracker { requests: Vec<UserRequest> },
    /// All findings are settled, but the confidence is below the target.
    Confidence,
}
