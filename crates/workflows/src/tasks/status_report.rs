//! What an agent reports about its own work in a status block.
//!
//! A report is a claim: what is really done can be seen in the tree. `agents` reads the block; this module only says what it
//! means.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::text::word_table::words;

/// The fields of a status block. A value that is not one of the allowed ones counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatusReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_completed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_modified: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsStatus>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recommendation: String,
}

impl StatusReport {
    /// Whether the report says how far the work has come. One that does not is of no use to a workflow.
    pub fn is_conclusive(&self) -> bool {
        self.status.is_some() || self.exit_signal.is_some()
    }

    /// Whether nothing is left to do, as far as the agent says.
    pub fn is_done(&self) -> bool {
        // The exit signal overrules the status: an agent may report COMPLETE for one of several tasks and still have more to
        // do.
        self.exit_signal.unwrap_or(self.status == Some(WorkStatus::Complete))
    }
}

/// What an agent says at the end of a turn of development. All of it is a claim: the workspace shows what was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnReport {
    /// The final answer, at most [`crate::tasks::instructions::MAX_TEXT_CHARS`]; its end is kept. Empty if the turn ended without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The status block, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusReport>,
    /// The length of the whole answer in bytes.
    pub length: u64,
    /// Tools whose use the client denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// How far the work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkStatus {
    InProgress,
    Complete,
    Blocked,
}

words!(WorkStatus { InProgress = "IN_PROGRESS", Complete = "COMPLETE", Blocked = "BLOCKED" });

/// How the tests went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TestsStatus {
    Passing,
    Failing,
    NotRun,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_signal_overrules_the_status() {
        let report = |status, exit_signal| StatusReport { status, exit_signal, ..StatusReport::default() };
        assert!(report(Some(WorkStatus::Complete), None).is_done());
        assert!(!report(Some(WorkStatus::Complete), Some(false)).is_done());
        assert!(report(Some(WorkStatus::InProgress), Some(true)).is_done());
        assert!(!report(None, None).is_done() && !report(None, None).is_conclusive());
    }
}
