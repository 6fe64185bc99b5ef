//! What all stages of a loop have in common.

use alloc::{format, vec::Vec};

use crate::{
    development::{
        checks::{CheckSpec, ChecksReport},
        performing,
    },
    loop_run::order::LoopOrder,
    runs::{run_kind::RunKind, types::RunHost},
};
use tribunal_engine::{host::ParkedRun, ids::Key, reason::RunEnding};

pub(super) use crate::development::performing::{StageEnd, environment_ending};

/// The name of the one workspace of a loop.
pub(super) const WORKSPACE_NAME: &str = "work";

/// The host of a loop, with what the loop was asked to do.
#[derive(Clone, Copy)]
pub(super) struct LoopHost<'a> {
    pub host: &'a RunHost<'a>,
    pub order: &'a LoopOrder,
}

/// Runs the user's notification command.
pub(super) async fn notify_user(host: LoopHost<'_>, notify_key: Key, detail: &str) -> Result<(), ParkedRun> {
    performing::notify_user(host.host, notify_key, format!("loop over {}: {detail}", host.order.title())).await
}

/// Runs checks in the workspace.
pub(super) async fn run_checks(
    host: LoopHost<'_>,
    checks_key: Key,
    checks: Vec<CheckSpec>,
) -> Result<Result<ChecksReport, RunEnding>, ParkedRun> {
    performing::run_checks(host.host, WORKSPACE_NAME, checks_key, checks).await
}
