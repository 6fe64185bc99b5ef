//! What all stages of a loop have in common.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckPlace, CheckSpec, ChecksOutcome, ChecksReport, RunChecks},
        notices::{NotifyOutcome, NotifyUser},
    },
    engine::{
        event::RunEvent,
        host::{Host, ParkedRun},
        ids::Key,
        reason::{RunEnding, RunReason},
        run_kind::RunKind,
    },
    loop_run::order::LoopOrder,
    tasks::fault::Fault,
};

/// The name of the one workspace of a loop.
pub(super) const WORKSPACE_NAME: &str = "work";

/// The host of a loop, with what the loop was asked to do.
#[derive(Clone, Copy)]
pub(super) struct LoopHost<'a> {
    pub host: &'a dyn Host,
    pub order: &'a LoopOrder,
}

/// What one stage led to.
pub(super) enum StageEnd {
    /// The loop goes on behind a boundary.
    Continue,
    /// The run is over.
    Ended(RunEnding),
    /// The run has to wait for the user.
    Halted(RunEnding),
}

/// Runs the user's notification command. One that fails is a warning: the loop does not depend on it.
pub(super) async fn notify_user(host: LoopHost<'_>, notify_key: Key, detail: &str) -> Result<(), ParkedRun> {
    let notify = NotifyUser { text: format!("loop over {}: {detail}", host.order.title()) };
    if let NotifyOutcome::Failed { fault } = host.host.perform(notify_key, notify).await? {
        host.host.note_event(RunEvent::Warned { text: format!("could not notify you: {}", fault.detail) });
    }
    Ok(())
}

pub(super) fn environment_ending(fault: &Fault) -> RunEnding {
    RunEnding::new(RunReason::Environment, fault.detail.clone())
}

/// Runs checks in the workspace. A check whose program is missing says nothing about the work: it is a failure of the
/// environment.
pub(super) async fn run_checks(
    host: LoopHost<'_>,
    checks_key: Key,
    checks: Vec<CheckSpec>,
) -> Result<Result<ChecksReport, RunEnding>, ParkedRun> {
    let run_checks = RunChecks { place: CheckPlace::Workspace { workspace: String::from(WORKSPACE_NAME) }, checks };
    Ok(match host.host.perform(checks_key, run_checks).await? {
        ChecksOutcome::Ran(report) => {
            for remark in &report.remarks {
                host.host.note_event(RunEvent::Warned { text: remark.clone() });
            }
            match report.find_unrunnable() {
                Some(result) => Err(RunEnding::new(RunReason::Environment, result.describe_with_output())),
                None => Ok(report),
            }
        }
        ChecksOutcome::Failed { fault } => Err(environment_ending(&fault)),
    })
}
