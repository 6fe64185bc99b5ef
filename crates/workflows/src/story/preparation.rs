//! What happens before the first agent is asked: the workspace is opened, and the checks run on it as it is.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckResult, FailureAction},
        workspace::{CloseOutcome, CloseWorkspace, OpenOutcome, OpenWorkspace, OpenedWorkspace},
    },
    story::{
        event::StoryEvent,
        order::StoryStepName,
        sessions,
        state::{StoryState, StoryStep, StoryWork},
        story_host::{StageEnd, StoryHost, WORKSPACE_NAME, environment_ending},
        verification::{StoryMilestone, verify_story},
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::Key,
    reason::{RunEnding, RunReason},
};

/// Opens the workspace, and reads what the story is like before any work on it.
pub(super) async fn open_workspace(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
) -> Result<StageEnd, ParkedRun> {
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
        scratchpad: None,
    };
    let opened = match host.host.perform(stage_key.child_key("workspace"), open).await? {
        OpenOutcome::Opened(opened) => opened,
        OpenOutcome::SetupFailed(result) => {
            let detail = format!("a set-up command failed: {}", result.describe_with_output());
            return Ok(StageEnd::Halted(RunEnding::new(RunReason::Environment, detail)));
        }
        OpenOutcome::Failed { fault } => return Ok(StageEnd::Halted(environment_ending(&fault))),
    };
    host.note_event(StoryEvent::StoryPrepared {
        path: opened.path.clone(),
        base: opened.base.clone(),
        remarks: opened.remarks.clone(),
    });
    state.is_workspace_outdated = false;
    state.work = Some(begin_work(&opened));
    let facts = match host.read_story(state, stage_key.child_key("story")).await? {
        Ok(facts) => facts,
        Err(ending) => return Ok(StageEnd::Halted(ending)),
    };
    if let Some(work) = &mut state.work {
        work.board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
    }
    state.step = StoryStep::Baseline;
    Ok(StageEnd::Continue)
}

fn begin_work(opened: &OpenedWorkspace) -> StoryWork {
    StoryWork {
        path: opened.path.clone(),
        base: opened.base.clone(),
        tip: opened.base.clone(),
        scratchpad: opened.scratchpad.clone(),
        content: opened.state.fingerprint.clone(),
        checked_content: None,
        committed_content: opened.state.fingerprint.clone(),
        changed_files: 0,
        story_file: None,
        board_stage: None,
        changed_controls: Vec::new(),
        is_parked: false,
    }
}

/// Runs all checks on the untouched workspace: a check that fails already would let no session succeed.
pub(super) async fn check_baseline(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
) -> Result<StageEnd, ParkedRun> {
    let checks = host.host.settings().checks.clone();
    if checks.is_empty() || host.order.skip_baseline {
        return begin_first_step(host, state, stage_key).await;
    }
    let report = match host.run_checks(stage_key.child_key("checks"), checks).await? {
        Ok(report) => report,
        Err(ending) => {
            begin_again(state);
            return Ok(StageEnd::Halted(ending));
        }
    };
    host.note_event(StoryEvent::StoryBaseline { results: report.results.clone() });
    let blocking: Vec<&CheckResult> =
        report.list_failures().filter(|result| result.on_failure == FailureAction::Block).collect();
    let Some(first_failure) = blocking.first() else {
        for result in report.list_warnings() {
            host.note_warning(result.describe());
        }
        return begin_first_step(host, state, stage_key).await;
    };
    let mut detail = first_failure.describe();
    if !report.differences.is_empty() {
        detail.push_str("; your checkout has what the workspace lacks: ");
        detail.push_str(&report.differences.join(", "));
    }
    detail.push_str("; repair it and resume, or start a new run with --skip-baseline");
    begin_again(state);
    Ok(StageEnd::Halted(RunEnding::new(RunReason::Baseline, detail)))
}

async fn begin_first_step(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<StageEnd, ParkedRun> {
    host.note_event(StoryEvent::StoryStepDone { step: StoryStepName::Prepare });
    // Work that waits for its review is not done again, if files and git show that it was done.
    if host.order.files.begun_at.is_some() {
        let facts = match host.read_story(state, stage_key.child_key("earlier-work")).await? {
            Ok(facts) => facts,
            Err(ending) => return Ok(StageEnd::Halted(ending)),
        };
        let board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
        let rules = host.order.rules;
        let verdict = verify_story(&host.order.story, &facts, StoryMilestone::Developed, board_stage, rules);
        state.step = StoryStep::Develop;
        if verdict.problems.is_empty() {
            sessions::finish_step(host, state, StoryStepName::Develop);
        }
        state.attempts.problems = verdict.problems;
        return Ok(StageEnd::Continue);
    }
    let has_file = state.work.as_ref().is_some_and(|work| work.story_file.is_some());
    // The file of a story is never written twice.
    state.step = if host.order.steps.create.is_some() && !has_file { StoryStep::Create } else { StoryStep::Develop };
    Ok(StageEnd::Continue)
}

/// Has a resumed run open a new workspace. The user repairs the cause in the checkout and commits that; the old workspace would
/// not have it, and no agent has worked in it.
fn begin_again(state: &mut StoryState) {
    state.step = StoryStep::Open;
    state.work = None;
    state.is_workspace_outdated = true;
}
