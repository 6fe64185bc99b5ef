//! What a story run records, besides what every run records.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{checks::CheckResult, concerns::LandingConcern, frozen_work::VerifiedWork},
    runs::run_kind::KindEvent,
    story::{
        facts::{StoryFollowUp, StoryStage},
        order::StoryStepName,
        verification::StoryProblem,
    },
};
use tribunal_engine::{
    ids::{AgentName, CommitId, RunId},
    text::word_table::words,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StoryEvent {
    /// The workspace is ready.
    StoryPrepared {
        path: String,
        base: CommitId,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remarks: Vec<String>,
    },
    /// The checks were run on the untouched workspace.
    StoryBaseline { results: Vec<CheckResult> },
    /// A session has ended, and its work was looked at.
    StorySession {
        session: u32,
        step: StoryStepName,
        #[serde(flatten)]
        report: SessionReport,
    },
    /// A step is done.
    StoryStepDone { step: StoryStepName },
    /// The work was reviewed. The field is not called `run`: every entry of a journal has one.
    StoryReviewed {
        review: RunId,
        critical: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        follow_ups: Vec<StoryFollowUp>,
        /// How the review ended, in its own words.
        detail: String,
    },
    /// The content of the workspace was committed, to be kept.
    StoryKept { commit: CommitId },
    /// The work is on a branch of the user.
    StoryLanded {
        commit: CommitId,
        branch: String,
        checkout_moved: bool,
        /// The files of the checkout that kept the intended branch from moving.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_the_way: Vec<String>,
        /// Changed files that decide what checks, hooks and pipelines run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_controls: Vec<String>,
        /// What was questionable about the work, and the user has accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        concerns: Vec<LandingConcern>,
        /// What has passed the checks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified: Option<VerifiedWork>,
    },
    /// The board has moved.
    StoryMoved { stage: StoryStage },
    /// The user ended the story, and its workspace is gone.
    StoryClosed {
        /// How many sessions there were.
        sessions: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<CommitId>,
    },
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionOutcome {
    /// The step is done, verified from files and git.
    Completed,
    /// The session ended, and the step is not done.
    Incomplete,
    /// The agent broke off.
    Crashed,
    /// The agent went silent.
    Stuck,
    TimedOut,
    /// The agent never did anything.
    NeverActive,
}

words!(SessionOutcome {
    Completed = "completed",
    Incomplete = "incomplete",
    Crashed = "crashed",
    Stuck = "stuck",
    TimedOut = "timed out",
    NeverActive = "never active",
});

impl SessionOutcome {
    /// Whether the session counts against the limit of its step.
    pub fn is_charged(self) -> bool {
        !matches!(self, SessionOutcome::Completed | SessionOutcome::NeverActive)
    }
}

/// What came of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionReport {
    pub outcome: SessionOutcome,
    /// `None` if the user worked by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Why the step is not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<StoryProblem>,
    /// What does not speak against the work, but the user should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// How the agent failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    pub changed_files: u32,
    /// What the agent says about it, in one line: a claim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub claim: String,
}

impl KindEvent for StoryEvent {
    const KIND_NAMES: &'static [&'static str] = &[
        "story_prepared",
        "story_baseline",
        "story_session",
        "story_step_done",
        "story_reviewed",
        "story_kept",
        "story_landed",
        "story_moved",
        "story_closed",
    ];

    fn list_remarks(&self) -> &[String] {
        match self {
            StoryEvent::StoryPrepared { remarks, .. } => remarks,
            StoryEvent::StorySession { report, .. } => &report.remarks,
            _ => &[],
        }
    }

    fn kind_name(&self) -> &'static str {
        match self {
            StoryEvent::StoryPrepared { .. } => "story_prepared",
            StoryEvent::StoryBaseline { .. } => "story_baseline",
            StoryEvent::StorySession { .. } => "story_session",
            StoryEvent::StoryStepDone { .. } => "story_step_done",
            StoryEvent::StoryReviewed { .. } => "story_reviewed",
            StoryEvent::StoryKept { .. } => "story_kept",
            StoryEvent::StoryLanded { .. } => "story_landed",
            StoryEvent::StoryMoved { .. } => "story_moved",
            StoryEvent::StoryClosed { .. } => "story_closed",
        }
    }

    fn subject_name(&self) -> String {
        match self {
            // Names that contain a commit or a run would differ each time.
            StoryEvent::StoryPrepared { .. }
            | StoryEvent::StoryBaseline { .. }
            | StoryEvent::StoryReviewed { .. }
            | StoryEvent::StoryKept { .. }
            | StoryEvent::StoryClosed { .. } => String::new(),
            StoryEvent::StorySession { session, step, .. } => format!("{step} {session}"),
            StoryEvent::StoryStepDone { step } => format!("{step}"),
            StoryEvent::StoryLanded { branch, .. } => branch.clone(),
            StoryEvent::StoryMoved { stage } => format!("{stage}"),
        }
    }
}
