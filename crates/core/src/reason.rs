//! Why a run ended, was parked, or took a step: one table for triggers, halts, parks, outcomes and exit codes.

use alloc::string::{String, ToString};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{level::words, limits::Left};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Resolved,
    Waiting,
    Halted,
    Failed,
    Cancelled,
}

words!(Outcome {
    Resolved = "resolved",
    Waiting = "waiting",
    Halted = "halted",
    Failed = "failed",
    Cancelled = "cancelled",
});

/// Why a run ended, was parked or took a step. Every reason has a row in [`REASON_TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
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
    PanelDegraded,
    ConfidenceLow,
    InSession,
    Initial,
    IssuesRemain,
    Unreviewed,
    Recovery,
    LoopDetected,
}

/// What a reason means everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub reason: Reason,
    pub code: &'static str,
    /// `None` if the run did not end: it was stopped and can continue, or this is the trigger of a step.
    pub outcome: Option<Outcome>,
    pub exit: u8,
    pub says: &'static str,
}

const fn row(
    reason: Reason,
    code: &'static str,
    outcome: Option<Outcome>,
    exit: u8,
    says: &'static str,
) -> Row {
    Row { reason, code, outcome, exit, says }
}

use Outcome::{Cancelled, Failed, Halted, Resolved, Waiting};

/// One row for each reason, in the order of [`RunReason`].
pub const TABLE: [Row; 22] = [
    row(Reason::GoalMet, "goal_met", Some(Resolved), 0, "the goal is met"),
    row(Reason::ReviewOnly, "review_only", Some(Waiting), 3, "findings are open and fixing was switched off"),
    row(Reason::Accepted, "accepted", Some(Resolved), 0, "a person accepted what was left"),
    row(Reason::Blocked, "blocked", Some(Waiting), 3, "findings wait for a person to decide"),
    // Limits: the run halts and the user may grant more.
    row(Reason::Rounds, "rounds", Some(Halted), 4, "the rounds are used up"),
    row(
        Reason::FixIterations,
        "fix_iterations",
        Some(Halted),
        4,
        "the fix iterations of the round are used up",
    ),
    row(Reason::Failures, "failures", Some(Halted), 4, "too many agent tasks failed in a row"),
    row(Reason::Runtime, "runtime", Some(Halted), 4, "the time is used up"),
    row(Reason::Findings, "findings", Some(Halted), 4, "there are more findings than the limit allows"),
    row(Reason::Cost, "cost", Some(Halted), 4, "the cost budget is used up"),
    row(Reason::Tokens, "tokens", Some(Halted), 4, "the token budget is used up"),
    row(Reason::Environment, "environment", Some(Failed), 5, "an agent or the environment failed"),
    // 130 is what shells report for a process that Ctrl-C ended.
    row(Reason::Stopped, "stopped", None, 130, "it was interrupted; its state is kept"),
    row(Reason::Abandoned, "abandoned", Some(Cancelled), 0, "a person ended it for good"),
    row(
        Reason::PanelDegraded,
        "panel_degraded",
        Some(Halted),
        4,
        "what the panel raises is no longer worth fixing",
    ),
    row(
        Reason::ConfidenceLow,
        "confidence_low",
        Some(Waiting),
        3,
        "nothing is left to do, but the confidence is below what was asked for",
    ),
    row(Reason::InSession, "in_session", Some(Waiting), 3, "its findings are in the hands of a session"),
    // The remaining rows are triggers: they explain a step and never end a run.
    trigger(Reason::Initial, "initial", "it is the first"),
    trigger(Reason::IssuesRemain, "issues_remain", "findings are open"),
    trigger(Reason::Unreviewed, "unreviewed", "the text has not been reviewed as it stands now"),
    trigger(Reason::Recovery, "recovery", "what came before it failed or showed nothing"),
    trigger(Reason::LoopDetected, "loop_detected", "agents went in circles; this is one changed try"),
];

/// Makes the row of a reason that triggers a step; no run ends with it.
const fn trigger(reason: Reason, code: &'static str, says: &'static str) -> Row {
    row(reason, code, None, 0, says)
}

impl Reason {
    pub fn row(self) -> &'static Row {
        // A test checks that the rows are in the order of the variants.
        &TABLE[self as usize]
    }

    pub fn code(self) -> &'static str {
        self.row().code
    }

    pub fn outcome(self) -> Option<Outcome> {
        self.row().outcome
    }

    pub fn exit(self) -> u8 {
        self.row().exit
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A reason with the details of this case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    pub reason: Reason,
    pub detail: String,
    /// What the other limits would still have allowed, if one limit halted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

impl Ending {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Ending {
        Ending { reason, detail: detail.into(), left: None }
    }

    pub fn plain(reason: Reason) -> Ending {
        Ending::new(reason, reason.row().says.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_its_own_row() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.reason as usize, at, "{}", row.code);
            assert_eq!(serde_json::to_value(row.reason).unwrap(), row.code);
        }
    }

    #[test]
    fn exit_codes_follow_the_outcome() {
        for row in TABLE {
            let expected = match row.outcome {
                Some(Resolved | Cancelled) => 0,
                Some(Waiting) => 3,
                Some(Halted) => 4,
                Some(Failed) => 5,
                None if row.reason >= Reason::Initial => 0,
                None => 130,
            };
            assert_eq!(row.exit, expected, "{}", row.code);
        }
    }
}
