//! What the user says to a run of any kind.

use alloc::string::String;
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    answer::DecisionAnswer,
    ids::{DecisionId, FindingId},
};

/// What belongs to the dialog that every run has with its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogRequest {
    /// A remark for the next briefs.
    Say(UserRemark),
    /// The answer to a decision.
    Answer { decision: DecisionId, answer: DecisionAnswer },
}

/// A remark of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UserRemark {
    /// The finding that the remark is about, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<FindingId>,
    pub text: String,
}

impl UserRemark {
    pub fn new(remark_text: impl Into<String>) -> UserRemark {
        UserRemark { about: None, text: remark_text.into() }
    }
}

/// Formats the remark for agents: `about F3: …`.
impl fmt::Display for UserRemark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.about {
            Some(finding) => write!(formatter, "about {finding}: {}", self.text),
            None => formatter.write_str(&self.text),
        }
    }
}
