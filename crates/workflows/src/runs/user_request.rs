//! What the user requests from a run: answers, remarks, and changes of findings.
//!
//! Requests reach a workflow as the outcome of the effects `ReadInbox` and `WaitForUser`, and through edits of the tracker
//! (`WriteOutcome::Edited`), all in [`crate::runs::effect`]. Workflows apply them.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::finding::{Finding, Severity};
use tribunal_engine::{
    answer::DecisionAnswer,
    ids::{DecisionId, FindingId, RunId},
    run_types::AnyRequest,
    user_remark::{DialogRequest, UserRemark},
};

/// What the user requests from a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum UserRequest {
    /// Answer a decision.
    Answer { decision: DecisionId, answer: DecisionAnswer },
    /// Continue after the run was parked.
    Resume,
    /// Continue a child run that waited: the user has answered it.
    ContinueChild { child: String },
    /// Stop a child run alone. The host takes it; no workflow sees it.
    Stop {
        /// End its agents as well.
        now: bool,
    },
    /// Pass a remark on to the next briefs.
    Say(UserRemark),
    /// Change the status or the severity of a finding.
    Amend {
        finding: FindingId,
        /// The finding as the user saw it; `None` applies the change in any state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<FindingSnapshot>,
        #[serde(flatten)]
        change: FindingChange,
    },
    /// Change a finding of an earlier run on the same subject, which has ended: the user edited its tracker afterwards.
    AmendEarlier {
        run: RunId,
        /// The finding as that run left it.
        finding: Box<Finding>,
        #[serde(flatten)]
        change: FindingChange,
    },
    /// Add a finding of the user. The quote may be empty.
    Add { severity: Severity, description: String, quote: String },
    /// Requests that a file had while agents without a sandbox were at work. They may be an agent's, so the user is asked.
    Unconfirmed {
        /// The file, as the user knows it.
        file: String,
        requests: Vec<UserRequest>,
        /// Where the file is kept as it was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<String>,
    },
}

/// A finding as the user saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingSnapshot {
    /// The status as the tracker writes it.
    pub status: String,
    pub severity: Severity,
}

/// How the user changes a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FindingChange {
    Fixed,
    Open,
    Dismissed { reason: String },
    Deferred { reason: String },
    Severity { to: Severity },
}

/// Returns the reason that the user gave for a change as a note for the history of a finding.
pub fn reason_note(given_reason: &str) -> String {
    if given_reason.is_empty() { String::from("no reason given") } else { format!("the user said: {given_reason}") }
}

impl AnyRequest for UserRequest {
    fn into_dialog(self) -> Result<DialogRequest, UserRequest> {
        match self {
            UserRequest::Say(remark) => Ok(DialogRequest::Say(remark)),
            UserRequest::Answer { decision, answer } => Ok(DialogRequest::Answer { decision, answer }),
            other => Err(other),
        }
    }
}
