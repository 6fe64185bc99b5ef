//! The stages of a loop. A boundary follows every stage, so that a resumed run repeats at most one of them.

use alloc::{boxed::Box, format};

use crate::{
    loop_run::{
        halting, iteration, landing,
        loop_host::{LoopHost, StageEnd},
        order::LoopOrder,
        preparation,
        state::{LoopStage, LoopState},
    },
    runs::types::RunHost,
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    dialog::user_dialog,
    host::{ParkedRun, cross_boundary},
    ids::Key,
    limits::check_limits,
    reason::{RunEnding, RunReason},
    text::format_count,
};

impl Workflow for LoopOrder {
    type State = LoopState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a LoopOrder, state: LoopState) -> WorkflowFuture<'a> {
        Box::pin(run_loop(LoopHost { host, order }, state))
    }
}

async fn run_loop(host: LoopHost<'_>, mut state: LoopState) -> Result<RunEnding, ParkedRun> {
    loop {
        let stage_key = stage_key(&state);
        if let Some(ending) = state.waiting.take() {
            if let Some(ending) = halting::wait_for_user(host, &mut state, ending).await? {
                halting::close_ended(host, &state, &stage_key).await?;
                return Ok(ending);
            }
        } else {
            match run_stage(host, &mut state, &stage_key).await? {
                StageEnd::Continue => {}
                StageEnd::Ended(ending) => return Ok(ending),
                StageEnd::Halted(ending) => halting::halt_loop(host, &mut state, &stage_key, ending).await?,
            }
        }
        cross_boundary(host.host, stage_key, &state).await?;
    }
}

/// Names a stage. Landings are numbered, since a landing that fails is tried again after more iterations.
fn stage_key(state: &LoopState) -> Key {
    if state.waiting.is_some() {
        return Key::for_user_wait();
    }
    if state.dialog.has_edits_to_restore() {
        return Key::new("restore");
    }
    match state.stage {
        LoopStage::Open => Key::new("open"),
        LoopStage::Baseline => Key::new("baseline"),
        LoopStage::Iterate => Key::new(format!("iteration-{}", state.iteration + 1)),
        LoopStage::Land => Key::new(format!("landing-{}", state.landing.attempts + 1)),
    }
}

async fn run_stage(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Result<StageEnd, ParkedRun> {
    // The user's files come first: a landing would otherwise find the stray edits in its way.
    if state.dialog.has_edits_to_restore() {
        state.dialog.restore_strays(host.host).await?;
        return Ok(StageEnd::Continue);
    }
    match state.stage {
        LoopStage::Open => preparation::open_workspace(host, state, stage_key).await,
        LoopStage::Baseline => preparation::check_baseline(host, state, stage_key).await,
        LoopStage::Iterate => {
            let requests = user_dialog::read_inbox(host.host, stage_key).await?;
            if let Some(ending) = halting::apply_requests(host, state, requests) {
                halting::close_ended(host, state, stage_key).await?;
                return Ok(StageEnd::Ended(ending));
            }
            // An answer may have ended the iterations.
            if state.stage != LoopStage::Iterate {
                return Ok(StageEnd::Continue);
            }
            match check_loop_limits(host, state) {
                Some(ending) => Ok(StageEnd::Halted(ending)),
                None => iteration::run_iteration(host, state, stage_key).await,
            }
        }
        LoopStage::Land => match state.dialog.describe_unanswered_strays() {
            // An agent that wrote to the user's checkout may have prepared it for what is about to land.
            Some(description) => Ok(StageEnd::Halted(RunEnding::new(RunReason::Blocked, description))),
            None => landing::land_work(host, state, stage_key).await,
        },
    }
}

/// Returns the limit that is used up, if one is.
pub(super) fn check_loop_limits(host: LoopHost<'_>, state: &LoopState) -> Option<RunEnding> {
    let allowed_iterations = state.allowed_iterations(host.order);
    if state.iteration >= allowed_iterations {
        let detail = format!("{} of at most {allowed_iterations}", format_count(state.iteration, "iteration"));
        return Some(RunEnding::new(RunReason::Iterations, detail));
    }
    check_limits(&host.host.settings().limits, &state.spent, host.host.last_timestamp().awake_ms)
}
