//! Why a run ended, was parked, or took a step: one table for triggers, halts, parks, outcomes and exit codes.

use alloc::string::{String, ToString};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{remaining::RemainingLimits, text::word_table::words};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Resolved,
    Waiting,
    Halted,
    Failed,
    Cancelled,
}

words!(RunOutcome {
    Resolved = "resolved",
    Waiting = "waiting",
    Halted = "halted",
    Failed = "failed",
    Cancelled = "cancelled",
});

/// Why a run ended, was parked or took a step. Every reason has a row in [`REASON_TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunReason {
    GoalMet,
    ReviewOnly,
    Accepted,
    Blocked,
    Rounds,
    FixIterations,
    Failures,
    Runtime,
    Findings,
    Cost,
    Tokens,
    Environment,
    Stopped,
    Abandoned,
    Skipped,
    PanelDegraded,
    ConfidenceLow,
    InSession,
    Baseline,
    Iterations,
    BreakerOpen,
    /// A sprint has ended, and not all of its stories are done.
    StoriesLeft,
    OnOwnBranch,
    /// Something of the user's in the checkout is in the way of work that is done there.
    CheckoutNotReady,
    Initial,
    IssuesRemain,
    Unreviewed,
    Recovery,
    LoopDetected,
}

/// What a reason means everywhere.
#[derive(Clone, Copy, Debug)]
pub struct ReasonRow {
    pub reason: RunReason,
    pub code: &'static str,
    /// `None` if the run did not end: it was stopped and can continue, or this is the trigger of a step.
    pub outcome: Option<RunOutcome>,
    pub exit_code: u8,
    pub description: &'static str,
}

const fn reason_row(
    reason: RunReason,
    code: &'static str,
    outcome: Option<RunOutcome>,
    exit_code: u8,
    description: &'static str,
) -> ReasonRow {
    ReasonRow { reason, code, outcome, exit_code, description }
}

use RunOutcome::{Cancelled, Failed, Halted, Resolved, Waiting};

/// One row for each reason, in the order of [`RunReason`].
pub const REASON_TABLE: [ReasonRow; 29] = [
    reason_row(RunReason::GoalMet, "goal_met", Some(Resolved), 0, "goal met"),
    reason_row(RunReason::ReviewOnly, "review_only", Some(Waiting), 3, "findings are open, and fixing is off"),
    reason_row(RunReason::Accepted, "accepted", Some(Resolved), 0, "you accepted the remaining findings"),
    reason_row(RunReason::Blocked, "blocked", Some(Waiting), 3, "your decision is needed"),
    // Limits: the run halts and the user may grant more.
    reason_row(RunReason::Rounds, "rounds", Some(Halted), 4, "round limit reached"),
    reason_row(RunReason::FixIterations, "fix_iterations", Some(Halted), 4, "fix iteration limit of the round reached"),
    reason_row(RunReason::Failures, "failures", Some(Halted), 4, "too many agent tasks failed in a row"),
    reason_row(RunReason::Runtime, "runtime", Some(Halted), 4, "time limit reached"),
    reason_row(RunReason::Findings, "findings", Some(Halted), 4, "too many findings"),
    reason_row(RunReason::Cost, "cost", Some(Halted), 4, "cost limit reached"),
    reason_row(RunReason::Tokens, "tokens", Some(Halted), 4, "token limit reached"),
    reason_row(RunReason::Environment, "environment", Some(Failed), 5, "an agent or the environment failed"),
    // 130 is what shells report for a process that Ctrl-C ended.
    reason_row(RunReason::Stopped, "stopped", None, 130, "interrupted; its state is saved"),
    reason_row(RunReason::Abandoned, "abandoned", Some(Cancelled), 0, "you ended it for good"),
    reason_row(RunReason::Skipped, "skipped", Some(Cancelled), 0, "you continued without a review"),
    reason_row(
        RunReason::PanelDegraded,
        "panel_degraded",
        Some(Halted),
        4,
        "the findings of the panel are no longer reliable",
    ),
    reason_row(
        RunReason::ConfidenceLow,
        "confidence_low",
        Some(Waiting),
        3,
        "no open findings, but the confidence is below the target",
    ),
    reason_row(RunReason::InSession, "in_session", Some(Waiting), 3, "a session is working on its findings"),
    reason_row(RunReason::Baseline, "baseline", Some(Waiting), 3, "a check fails on the untouched project"),
    reason_row(RunReason::Iterations, "iterations", Some(Halted), 4, "iteration limit reached"),
    reason_row(RunReason::BreakerOpen, "breaker_open", Some(Halted), 4, "the circuit breaker is open"),
    reason_row(RunReason::StoriesLeft, "stories_left", Some(Waiting), 3, "stories are left that could not be done"),
    reason_row(RunReason::OnOwnBranch, "on_own_branch", Some(Waiting), 3, "the work waits on a branch of its own"),
    reason_row(
        RunReason::CheckoutNotReady,
        "checkout_not_ready",
        Some(Waiting),
        3,
        "your checkout is not ready for the work",
    ),
    // The remaining rows are triggers: they explain a step and never end a run.
    trigger_row(RunReason::Initial, "initial", "first round"),
    trigger_row(RunReason::IssuesRemain, "issues_remain", "findings are open"),
    trigger_row(RunReason::Unreviewed, "unreviewed", "the current text has not been reviewed yet"),
    trigger_row(RunReason::Recovery, "recovery", "the previous attempt failed or was inconclusive"),
    trigger_row(RunReason::LoopDetected, "loop_detected", "the last fixes made no progress; trying another way"),
];

/// Makes the row of a reason that triggers a step; no run ends with it.
const fn trigger_row(reason: RunReason, code: &'static str, description: &'static str) -> ReasonRow {
    reason_row(reason, code, None, 0, description)
}

impl RunReason {
    pub fn table_row(self) -> &'static ReasonRow {
        // A test checks that the rows are in the order of the variants.
        &REASON_TABLE[self as usize]
    }

    pub fn code(self) -> &'static str {
        self.table_row().code
    }

    pub fn outcome(self) -> Option<RunOutcome> {
        self.table_row().outcome
    }

    pub fn exit_code(self) -> u8 {
        self.table_row().exit_code
    }
}

impl fmt::Display for RunReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

/// A reason with the details of this case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunEnding {
    pub reason: RunReason,
    pub detail: String,
    /// What the other limits would still have allowed, if one limit halted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<RemainingLimits>,
}

impl RunEnding {
    pub fn new(reason: RunReason, detail_text: impl Into<String>) -> RunEnding {
        RunEnding { reason, detail: detail_text.into(), left: None }
    }

    pub fn from_reason(reason: RunReason) -> RunEnding {
        RunEnding::new(reason, reason.table_row().description.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_its_own_row() {
        for (row_index, table_row) in REASON_TABLE.iter().enumerate() {
            assert_eq!(table_row.reason as usize, row_index, "{}", table_row.code);
            assert_eq!(serde_json::to_value(table_row.reason).unwrap(), table_row.code);
        }
    }

    #[test]
    fn exit_codes_follow_the_outcome() {
        for table_row in REASON_TABLE {
            let expected = match table_row.outcome {
                Some(Resolved | Cancelled) => 0,
                Some(Waiting) => 3,
                Some(Halted) => 4,
                Some(Failed) => 5,
                None if table_row.reason >= RunReason::Initial => 0,
                None => 130,
            };
            assert_eq!(table_row.exit_code, expected, "{}", table_row.code);
        }
    }
}
