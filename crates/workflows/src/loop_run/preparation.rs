//! What happens before the first agent is asked: the workspace is opened, and the checks run on it as it is.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckResult, ChecksReport, FailureAction},
        workspace::{CloseOutcome, CloseWorkspace, OpenOutcome, OpenWorkspace},
    },
    loop_run::{
        breaker::CircuitBreaker,
        breaker_gate::pass_breaker,
        event::LoopEvent,
        loop_host::{LoopHost, StageEnd, WORKSPACE_NAME, environment_ending, run_checks},
        state::{LoopStage, LoopState, LoopWork},
    },
    runs::{
        records::{ProjectRecord, RecordKind},
        types::{ReadRecords, RunEvent},
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::Key,
    reason::{RunEnding, RunReason},
};

/// Opens the workspace and reads the breaker that earlier loops left behind.
pub(super) async fn open_workspace(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
) -> Result<StageEnd, ParkedRun> {
    state.breaker = read_breaker(host, stage_key).await?;
    if let Some(ending) = pass_breaker(host, state, stage_key).await? {
        return Ok(StageEnd::Halted(ending));
    }
    if state.work.is_some() {
        // Only the breaker had to be read again; the work goes on where it was.
        state.stage = LoopStage::Iterate;
        return Ok(StageEnd::Continue);
    }
    if state.is_workspace_outdated {
        let close = CloseWorkspace { workspace: String::from(WORKSPACE_NAME) };
        if let CloseOutcome::Failed { fault } = host.host.perform(stage_key.child_key("outdated"), close).await? {
            return Ok(StageEnd::Halted(environment_ending(&fault)));
        }
    }
    let open = OpenWorkspace {
        workspace: String::from(WORKSPACE_NAME),
        place: host.order.place,
        branch: host.order.branch.clone(),
        scratchpad: host.order.scratchpad.clone(),
    };
    match host.host.perform(stage_key.child_key("workspace"), open).await? {
        OpenOutcome::Opened(opened) => {
            host.host.note_event(RunEvent::from_workflow(LoopEvent::LoopPrepared {
                path: opened.path.clone(),
                base: opened.base.clone(),
                remarks: opened.remarks.clone(),
            }));
            state.is_workspace_outdated = false;
            state.work = Some(LoopWork::from_opened(&opened, host.order.completion.plan_file.as_deref()));
            state.stage = LoopStage::Baseline;
            Ok(StageEnd::Continue)
        }
        OpenOutcome::SetupFailed(result) => {
            let detail = format!("a set-up command failed: {}", result.describe_with_output());
            Ok(StageEnd::Halted(RunEnding::new(RunReason::Environment, detail)))
        }
        OpenOutcome::Failed { fault } => Ok(StageEnd::Halted(environment_ending(&fault))),
    }
}

async fn read_breaker(host: LoopHost<'_>, stage_key: &Key) -> Result<CircuitBreaker, ParkedRun> {
    let read = ReadRecords {
        kind: RecordKind::CircuitBreaker,
        key_prefix: String::from(CircuitBreaker::record_key().as_str()),
    };
    let list = host.host.perform(stage_key.child_key("breaker"), read).await?;
    let breaker = list.records.into_iter().find_map(|stored| match stored.record {
        ProjectRecord::CircuitBreaker(breaker) => Some(*breaker),
        ProjectRecord::DismissedFinding(_) | ProjectRecord::LastReview(_) => None,
    });
    Ok(breaker.unwrap_or_default())
}

/// Runs all checks on the untouched workspace: a check that fails already would let no iteration succeed.
pub(super) async fn check_baseline(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
) -> Result<StageEnd, ParkedRun> {
    state.stage = LoopStage::Iterate;
    let checks = host.host.settings().checks.clone();
    if checks.is_empty() || host.order.skip_baseline {
        return Ok(StageEnd::Continue);
    }
    let report = match run_checks(host, stage_key.child_key("checks"), checks).await? {
        Ok(report) => report,
        Err(ending) => {
            begin_again(state);
            return Ok(StageEnd::Halted(ending));
        }
    };
    let ChecksReport { results, differences, .. } = &report;
    host.host.note_event(RunEvent::from_workflow(LoopEvent::LoopBaseline {
        results: results.clone(),
        differences: differences.clone(),
    }));
    let blocking: Vec<&CheckResult> =
        report.list_failures().filter(|result| result.on_failure == FailureAction::Block).collect();
    let Some(first_failure) = blocking.first() else {
        // A check that agents have to repair is what the first iteration begins with.
        state.feedback.failed_checks =
            report.list_failures().filter(|result| result.on_failure == FailureAction::Fix).cloned().collect();
        for result in report.list_warnings() {
            host.host.note_event(RunEvent::Warned { text: result.describe() });
        }
        if report.counting_failures().next().is_none()
            && let Some(work) = &mut state.work
        {
            work.checked_content.clone_from(&work.content);
        }
        return Ok(StageEnd::Continue);
    };
    let mut detail = first_failure.describe();
    if !differences.is_empty() {
        detail.push_str("; your checkout has what the workspace lacks: ");
        detail.push_str(&differences.join(", "));
    }
    detail.push_str("; repair it and resume, or start a new run with --skip-baseline");
    begin_again(state);
    Ok(StageEnd::Halted(RunEnding::new(RunReason::Baseline, detail)))
}

/// Has a resumed run open a new workspace. The user repairs the cause in the checkout and commits that; the old workspace would
/// not have it, and no agent has worked in it.
fn begin_again(state: &mut LoopState) {
    state.stage = LoopStage::Open;
    state.work = None;
    state.is_workspace_outdated = true;
}
