//! What became of a story, in one word.

use tribunal_json::{Serialize, schemars};

/// What became of a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportVerdict {
    /// It is on the branch that it was developed for, or the user has merged it since.
    Merged,
    /// It waits on a branch of its own, because something was in the way.
    OnOwnBranch,
    /// The board says that it is done, and this run has not done it.
    DoneOutside,
    Waiting,
    Skipped,
    NotStarted,
    Stopped,
    Running,
    Failed,
}

impl ReportVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            ReportVerdict::Merged => "merged",
            ReportVerdict::OnOwnBranch => "on its own branch",
            ReportVerdict::DoneOutside => "done outside this run",
            ReportVerdict::Waiting => "waiting",
            ReportVerdict::Skipped => "skipped",
            ReportVerdict::NotStarted => "not started",
            ReportVerdict::Stopped => "stopped",
            ReportVerdict::Running => "running",
            ReportVerdict::Failed => "failed",
        }
    }

    /// Whether nothing is left to do for the story.
    pub fn is_done(self) -> bool {
        matches!(self, ReportVerdict::Merged | ReportVerdict::DoneOutside)
    }

    /// Whether its work is committed on a branch of the user.
    pub fn has_landed(self) -> bool {
        matches!(self, ReportVerdict::Merged | ReportVerdict::OnOwnBranch)
    }

    /// Whether the story needs the user. One that the user skipped does not.
    pub(crate) fn needs_user(self) -> bool {
        matches!(
            self,
            ReportVerdict::OnOwnBranch
                | ReportVerdict::Waiting
                | ReportVerdict::NotStarted
                | ReportVerdict::Stopped
                | ReportVerdict::Failed
        )
    }

    /// Whether its work waits to be looked at, although it has not landed.
    pub(crate) fn is_unfinished(self) -> bool {
        matches!(self, ReportVerdict::Waiting | ReportVerdict::Failed)
    }
}
