//! Notices to the user who is not at the screen.

use alloc::string::String;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::fault::Fault;

/// Runs the user's notification command, if one is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotifyUser {
    /// One line.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NotifyOutcome {
    Notified,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}
