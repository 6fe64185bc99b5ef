//! Steps that every kind of run takes when it develops.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckPlace, CheckSpec, ChecksOutcome, ChecksReport, RunChecks},
        notices::{NotifyOutcome, NotifyUser},
    },
    runs::types::{RunEvent, RunHost},
};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    host::ParkedRun,
    ids::Key,
    reason::{RunEnding, RunReason},
};

/// What one stage of a run that develops led to.
#[derive(Debug)]
pub enum StageEnd {
    /// The run goes on behind a boundary.
    Continue,
    /// The run is over.
    Ended(RunEnding),
    /// The run has to wait for the user.
    Halted(RunEnding),
}

/// The ending of a run that cannot go on because of its environment, or because the user's checkout is not ready for it.
pub fn environment_ending(fault: &Fault) -> RunEnding {
    let reason = match fault.kind {
        FaultKind::CheckoutNotReady => RunReason::CheckoutNotReady,
        _ => RunReason::Environment,
    };
    RunEnding::new(reason, fault.detail.clone())
}

/// Runs the user's notification command. One that fails is a warning: no run depends on it.
pub async fn notify_user(host: &RunHost<'_>, notify_key: Key, text: String) -> Result<(), ParkedRun> {
    if let NotifyOutcome::Failed { fault } = host.perform(notify_key, NotifyUser { text }).await? {
        host.note_event(RunEvent::Warned { text: format!("could not notify you: {}", fault.detail) });
    }
    Ok(())
}

/// Runs checks in a workspace. A check whose program is missing says nothing about the work: it is a failure of the environment.
pub async fn run_checks(
    host: &RunHost<'_>,
    workspace_name: &str,
    checks_key: Key,
    checks: Vec<CheckSpec>,
) -> Result<Result<ChecksReport, RunEnding>, ParkedRun> {
    let run_checks = RunChecks { place: CheckPlace::Workspace { workspace: String::from(workspace_name) }, checks };
    Ok(match host.perform(checks_key, run_checks).await? {
        ChecksOutcome::Ran(report) => {
            for remark in &report.remarks {
                host.note_event(RunEvent::Warned { text: remark.clone() });
            }
            match report.find_unrunnable() {
                Some(result) => Err(RunEnding::new(RunReason::Environment, result.describe_with_output())),
                None => Ok(report),
            }
        }
        ChecksOutcome::Failed { fault } => Err(environment_ending(&fault)),
    })
}
