//! What happens before the first agent is asked: the workspace is opened, and the checks run on it as it is.

use alloc::{string::String, vec::Vec};

use crate::{
    development::{
        performing::judge_baseline,
        workspace::{OpenWorkspace, OpenedWorkspace},
    },
    stages::exit::{StageExit, Staged},
    story::{
        event::StoryEvent,
        order::StoryStepName,
        sessions,
        state::{StoryState, StoryStep, StoryWork},
        story_host::{StoryHost, WORKSPACE_NAME},
        verification::{StoryMilestone, verify_story},
    },
};
use tribunal_engine::ids::Key;

/// Opens the workspace, and reads what the story is like before any work on it.
pub(super) async fn open_workspace(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    if state.is_workspace_outdated {
        host.discard_workspace(stage_key.child_key("outdated")).await?;
    }
    let open = OpenWorkspace {
        workspace: String::from(WORKSPACE_NAME),
        place: host.order.place,
        branch: host.order.branch.clone(),
        scratchpad: None,
    };
    let opened = host.open_workspace(stage_key.child_key("workspace"), open).await?;
    host.note_own_event(StoryEvent::StoryPrepared {
        path: opened.path.clone(),
        base: opened.base.clone(),
        remarks: opened.remarks.clone(),
    });
    state.is_workspace_outdated = false;
    state.work = Some(begin_work(&opened));
    let facts = host.read_story(state, stage_key.child_key("story"), None).await?;
    if let Some(work) = &mut state.work {
        work.board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
    }
    state.step = StoryStep::Baseline;
    Ok(())
}

fn begin_work(opened: &OpenedWorkspace) -> StoryWork {
    StoryWork {
        path: opened.path.clone(),
        base: opened.base.clone(),
        tip: opened.base.clone(),
        scratchpad: opened.scratchpad.clone(),
        content: opened.state.fingerprint.clone(),
        proof: Default::default(),
        committed_content: opened.state.fingerprint.clone(),
        changed_files: 0,
        story_file: None,
        board_stage: None,
        changed_controls: Vec::new(),
        is_parked: false,
    }
}

/// Runs all checks on the untouched workspace: a check that fails already would let no session succeed.
pub(super) async fn check_baseline(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    match run_baseline(host, stage_key).await {
        Ok(()) => begin_first_step(host, state, stage_key).await,
        Err(StageExit::Halted(ending)) => {
            begin_again(state);
            Err(StageExit::Halted(ending))
        }
        Err(exit) => Err(exit),
    }
}

async fn run_baseline(host: StoryHost<'_>, stage_key: &Key) -> Staged<()> {
    let checks = host.settings().checks.clone();
    if checks.is_empty() || host.order.skip_baseline {
        return Ok(());
    }
    let (_, report) = host.freeze_and_check(stage_key, checks).await?;
    host.note_own_event(StoryEvent::StoryBaseline { results: report.results.clone() });
    judge_baseline(&report)?;
    for result in report.list_warnings() {
        host.note_warning(result.describe());
    }
    Ok(())
}

async fn begin_first_step(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    host.note_own_event(StoryEvent::StoryStepDone { step: StoryStepName::Prepare });
    // Work that waits for its review is not done again, if files and git show that it was done.
    if host.order.files.begun_at.is_some() {
        let facts = host.read_story(state, stage_key.child_key("earlier-work"), None).await?;
        let board_stage = facts.board.as_ref().and_then(|fact| fact.stage);
        let rules = host.order.rules;
        let verdict = verify_story(&host.order.story, &facts, StoryMilestone::Developed, board_stage, rules);
        state.step = StoryStep::Develop;
        if verdict.problems.is_empty() {
            sessions::finish_step(host, state, StoryStepName::Develop);
        }
        state.attempts.problems = verdict.problems;
        return Ok(());
    }
    let has_file = state.work.as_ref().is_some_and(|work| work.story_file.is_some());
    // The file of a story is never written twice.
    state.step = if host.order.steps.create.is_some() && !has_file { StoryStep::Create } else { StoryStep::Develop };
    Ok(())
}

/// Has a resumed run open a new workspace. The user repairs the cause in the checkout and commits that; the old workspace would
/// not have it, and no agent has worked in it.
fn begin_again(state: &mut StoryState) {
    state.step = StoryStep::Open;
    state.work = None;
    state.is_workspace_outdated = true;
}
