//! What a loop records, besides what every run records.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{checks::CheckResult, concerns::LandingConcern},
    loop_run::{
        breaker::{BreakerCause, BreakerPhase},
        order::PlanProgress,
    },
    runs::run_kind::KindEvent,
};
use tribunal_engine::ids::{CommitId, RunId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LoopEvent {
    /// The workspace is ready.
    LoopPrepared {
        path: String,
        base: CommitId,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remarks: Vec<String>,
    },
    /// The checks were run on the untouched workspace.
    LoopBaseline {
        results: Vec<CheckResult>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        differences: Vec<String>,
    },
    IterationEnded {
        iteration: u32,
        #[serde(flatten)]
        report: IterationReport,
    },
    /// The agent said that it was done, and it was not.
    PromiseRefused { iteration: u32, why: String },
    /// The content of the workspace was committed.
    LoopCommitted { iteration: u32, commit: CommitId },
    BreakerMoved {
        phase: BreakerPhase,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<BreakerCause>,
        detail: String,
    },
    /// The changes were reviewed. The field is not called `run`: every entry of a journal has one.
    LoopReviewed { iteration: u32, review: RunId, findings: u32 },
    /// The work is on a branch of the user.
    LoopLanded {
        commit: CommitId,
        branch: String,
        checkout_moved: bool,
        /// The files of the checkout that kept the intended branch from moving.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        in_the_way: Vec<String>,
        /// What was questionable about the work, and the user has accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        concerns: Vec<LandingConcern>,
    },
    /// The user ended the loop, and its workspace is gone.
    LoopClosed {
        iteration: u32,
        /// The last commit of the work, which stays in the repository; `None` if there was no work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<CommitId>,
    },
}

/// What came of one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IterationReport {
    /// Whether the content of the workspace changed.
    pub progress: bool,
    /// How many files differ from the commit that the work began with.
    pub changed_files: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanProgress>,
    /// The checks that failed after it, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// What the agent says about it, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Why the agent gave no answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// The output repeats an earlier one, and nothing changed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub repeated: bool,
}

impl KindEvent for LoopEvent {
    const KIND_NAMES: &'static [&'static str] = &[
        "loop_prepared",
        "loop_baseline",
        "iteration_ended",
        "promise_refused",
        "loop_committed",
        "breaker_moved",
        "loop_reviewed",
        "loop_landed",
        "loop_closed",
    ];

    fn list_remarks(&self) -> &[String] {
        match self {
            LoopEvent::LoopPrepared { remarks, .. } => remarks,
            _ => &[],
        }
    }

    fn kind_name(&self) -> &'static str {
        match self {
            LoopEvent::LoopPrepared { .. } => "loop_prepared",
            LoopEvent::LoopBaseline { .. } => "loop_baseline",
            LoopEvent::IterationEnded { .. } => "iteration_ended",
            LoopEvent::PromiseRefused { .. } => "promise_refused",
            LoopEvent::LoopCommitted { .. } => "loop_committed",
            LoopEvent::BreakerMoved { .. } => "breaker_moved",
            LoopEvent::LoopReviewed { .. } => "loop_reviewed",
            LoopEvent::LoopLanded { .. } => "loop_landed",
            LoopEvent::LoopClosed { .. } => "loop_closed",
        }
    }

    fn subject_name(&self) -> String {
        match self {
            LoopEvent::LoopPrepared { .. } | LoopEvent::LoopBaseline { .. } | LoopEvent::LoopClosed { .. } => {
                String::new()
            }
            LoopEvent::IterationEnded { iteration, .. }
            | LoopEvent::PromiseRefused { iteration, .. }
            | LoopEvent::LoopCommitted { iteration, .. }
            | LoopEvent::LoopReviewed { iteration, .. } => format!("{iteration}"),
            LoopEvent::LoopLanded { branch, .. } => branch.clone(),
            LoopEvent::BreakerMoved { phase, .. } => format!("{phase}"),
        }
    }
}
