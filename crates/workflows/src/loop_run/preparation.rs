//! What happens before the first agent is asked: the workspace is opened, and the checks run on it as it is.

use alloc::string::String;

use crate::{
    development::{
        checks::{ChecksReport, FailureAction},
        performing::judge_baseline,
        workspace::OpenWorkspace,
    },
    loop_run::{
        breaker::CircuitBreaker,
        breaker_gate::pass_breaker,
        event::LoopEvent,
        loop_host::{LoopHost, WORKSPACE_NAME},
        state::{LoopStage, LoopState, LoopWork},
    },
    runs::{
        records::{ProjectRecord, RecordKind},
        types::ReadRecords,
    },
    stages::exit::{StageExit, Staged},
};
use tribunal_engine::{host::ParkedRun, ids::Key};

/// Opens the workspace and reads the breaker that earlier loops left behind.
pub(super) async fn open_workspace(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    state.breaker = read_breaker(host, stage_key).await?;
    pass_breaker(host, state, stage_key).await?;
    if state.work.is_some() {
        // Only the breaker had to be read again; the work goes on where it was.
        state.stage = LoopStage::Iterate;
        return Ok(());
    }
    if state.is_workspace_outdated {
        host.discard_workspace(stage_key.child_key("outdated")).await?;
    }
    let open = OpenWorkspace {
        workspace: String::from(WORKSPACE_NAME),
        place: host.order.place,
        branch: host.order.branch.clone(),
        scratchpad: host.order.scratchpad.clone(),
    };
    let opened = host.open_workspace(stage_key.child_key("workspace"), open).await?;
    host.note_own_event(LoopEvent::LoopPrepared {
        path: opened.path.clone(),
        base: opened.base.clone(),
        remarks: opened.remarks.clone(),
    });
    state.is_workspace_outdated = false;
    state.work = Some(LoopWork::from_opened(&opened, host.order.completion.plan_file.as_deref()));
    state.stage = LoopStage::Baseline;
    Ok(())
}

async fn read_breaker(host: LoopHost<'_>, stage_key: &Key) -> Result<CircuitBreaker, ParkedRun> {
    let read = ReadRecords {
        kind: RecordKind::CircuitBreaker,
        key_prefix: String::from(CircuitBreaker::record_key().as_str()),
    };
    let list = host.perform(stage_key.child_key("breaker"), read).await?;
    let breaker = list.records.into_iter().find_map(|stored| match stored.record {
        ProjectRecord::CircuitBreaker(breaker) => Some(*breaker),
        ProjectRecord::DismissedFinding(_) | ProjectRecord::LastReview(_) => None,
    });
    Ok(breaker.unwrap_or_default())
}

/// Runs all checks on the untouched workspace: a check that fails already would let no iteration succeed.
pub(super) async fn check_baseline(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    let checked = run_baseline(host, state, stage_key).await;
    match checked {
        Ok(()) => state.stage = LoopStage::Iterate,
        Err(StageExit::Halted(_)) => begin_again(state),
        Err(_) => {}
    }
    checked
}

async fn run_baseline(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    let checks = host.settings().checks.clone();
    if checks.is_empty() || host.order.skip_baseline {
        return Ok(());
    }
    let (tree, report) = host.freeze_and_check(stage_key, checks).await?;
    let ChecksReport { results, differences, .. } = &report;
    host.note_own_event(LoopEvent::LoopBaseline { results: results.clone(), differences: differences.clone() });
    judge_baseline(&report)?;
    // A check that agents have to repair is what the first iteration begins with.
    state.feedback.failed_checks =
        report.list_failures().filter(|result| result.on_failure == FailureAction::Fix).cloned().collect();
    for result in report.list_warnings() {
        host.note_warning(result.describe());
    }
    if report.counting_failures().next().is_none()
        && let Some(work) = &mut state.work
    {
        work.note_passed(tree, &report);
    }
    Ok(())
}

/// Has a resumed run open a new workspace. The user repairs the cause in the checkout and commits that; the old workspace would
/// not have it, and no agent has worked in it.
fn begin_again(state: &mut LoopState) {
    state.stage = LoopStage::Open;
    state.work = None;
    state.is_workspace_outdated = true;
}
