//! How a child run comes back to its parent.

use alloc::string::String;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    fault::Fault,
    ids::RunId,
    limits::UsageTotals,
    reason::{RunOutcome, RunReason},
    run_types::RunTypes,
};

/// A child that has come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "ReturnedChild")]
pub struct ReturnedChild<T: RunTypes> {
    pub name: String,
    pub outcome: ChildOutcome<T>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "child", rename_all = "snake_case")]
#[schemars(bound = "", rename = "ChildOutcome")]
pub enum ChildOutcome<T: RunTypes> {
    /// The child has finished.
    Ended(ChildReport<T>),
    /// The child is parked: it waits for the user, a limit or the environment, or it was stopped. It can be continued.
    Waiting(ChildReport<T>),
    /// The child could not be started or continued.
    Failed(FailedChild),
}

/// A child run that could not be started, or broke off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailedChild {
    /// `None` if the child has no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(flatten)]
    pub fault: Fault,
    /// What it had used in its whole life: it counts, although nothing came of it.
    #[serde(default)]
    pub used: UsageTotals,
}

impl<T: RunTypes> From<Fault> for ChildOutcome<T> {
    fn from(fault: Fault) -> ChildOutcome<T> {
        ChildOutcome::Failed(FailedChild { run: None, fault, used: UsageTotals::default() })
    }
}

impl<T: RunTypes> ChildOutcome<T> {
    /// The run; `None` if the child never got an id.
    pub fn child_run(&self) -> Option<&RunId> {
        match self {
            ChildOutcome::Ended(report) | ChildOutcome::Waiting(report) => Some(&report.run),
            ChildOutcome::Failed(failed) => failed.run.as_ref(),
        }
    }

    /// What the child has used in its whole life.
    pub fn used_totals(&self) -> UsageTotals {
        match self {
            ChildOutcome::Ended(report) | ChildOutcome::Waiting(report) => report.used,
            ChildOutcome::Failed(failed) => failed.used,
        }
    }
}

/// How a child run ended or was parked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "ChildReport")]
pub struct ChildReport<T: RunTypes> {
    pub run: RunId,
    /// `None` if the child was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    pub reason: RunReason,
    pub detail: String,
    /// What the child and its own children have used in their whole lives.
    pub used: UsageTotals,
    /// How long the child has worked in its whole life, without the waits until an agent could be asked again.
    pub worked_ms: u64,
    /// What only workflows understand.
    #[serde(flatten)]
    pub result: T::ChildResult,
}
