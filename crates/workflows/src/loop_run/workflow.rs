//! The stages of a loop. A boundary follows every stage, so that a resumed run repeats at most one of them.

use alloc::{boxed::Box, format, string::String};

use crate::{
    development::land_work::{self, LandingOrder},
    loop_run::{
        halting, iteration, landing,
        loop_host::LoopHost,
        order::LoopOrder,
        preparation,
        state::{LoopStage, LoopState},
    },
    runs::types::{DecisionTopic, RunHost},
    stages::{
        exit::{StageExit, Staged},
        run::{HaltQuestion, StageParts, StageState, StagedOrder, UserNews, hear_user, run_stages, stop_for_strays},
    },
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    answer::ChoiceKey,
    host::ParkedRun,
    ids::Key,
    limits::{RemainingLimits, check_limits},
    reason::{RunEnding, RunOutcome, RunReason},
    text::format_count,
};

impl Workflow for LoopOrder {
    type State = LoopState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a LoopOrder, state: LoopState) -> WorkflowFuture<'a> {
        Box::pin(run_stages(LoopHost::new(host, order), state))
    }
}

impl StageState for LoopState {
    fn parts(&mut self) -> StageParts<'_> {
        StageParts { waiting: &mut self.waiting, dialog: &mut self.dialog, spent: &mut self.spent }
    }
}

impl StagedOrder for LoopOrder {
    /// Landings are numbered, since a landing that fails is tried again after more iterations.
    fn stage_key(&self, state: &mut LoopState) -> Key {
        match state.stage {
            LoopStage::Open => Key::new("open"),
            LoopStage::Baseline => Key::new("baseline"),
            LoopStage::Iterate => Key::new(format!("iteration-{}", state.iteration + 1)),
            LoopStage::Land => Key::new(format!("landing-{}", state.landing.attempts + 1)),
        }
    }

    fn verify_again(host: LoopHost<'_>, state: &mut LoopState, paths: &[String]) -> Staged<()> {
        LoopOrder::set_verified(state, None);
        land_work::note_edits(host, &mut state.landing.edits, paths)
    }

    async fn run_stage(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
        match state.stage {
            LoopStage::Open => preparation::open_workspace(host, state, stage_key).await,
            LoopStage::Baseline => preparation::check_baseline(host, state, stage_key).await,
            LoopStage::Iterate => {
                hear_user(host, state, stage_key).await?;
                // An answer may have ended the iterations.
                if state.stage != LoopStage::Iterate {
                    return Ok(());
                }
                check_loop_limits(host, state)?;
                iteration::run_iteration(host, state, stage_key).await
            }
            LoopStage::Land => {
                // An agent that wrote to the user's checkout may have prepared it for what is about to land.
                stop_for_strays(&state.dialog)?;
                landing::land_work(host, state, stage_key).await
            }
        }
    }

    async fn keep_work(
        host: LoopHost<'_>,
        state: &mut LoopState,
        halt_key: &Key,
        ending: &RunEnding,
    ) -> Result<(), ParkedRun> {
        match ending.reason.outcome() {
            Some(RunOutcome::Halted) => halting::keep_work(host, state, halt_key).await,
            _ => Ok(()),
        }
    }

    fn count_remaining(host: LoopHost<'_>, state: &mut LoopState) -> RemainingLimits {
        let limits = &host.settings().limits;
        let remaining = RemainingLimits::calculate(limits, &state.spent, host.last_timestamp().awake_ms);
        let allowed_iterations = state.allowed_iterations(host.order);
        remaining.with_count("iterations", allowed_iterations.saturating_sub(state.iteration))
    }

    fn find_question(_host: LoopHost<'_>, state: &LoopState, ending: &RunEnding) -> Option<HaltQuestion> {
        halting::find_question(state, ending)
    }

    fn apply_answer(host: LoopHost<'_>, state: &mut LoopState, topic: &DecisionTopic, choice: ChoiceKey) -> Staged<()> {
        halting::apply_answer(host, state, topic, choice)
    }

    fn continue_run(state: &mut LoopState, ending: &RunEnding, news: &UserNews) {
        // Without an answer only what the user changed meanwhile counts: settings, the breaker, the environment.
        if !news.is_answered && ending.reason == RunReason::BreakerOpen {
            state.stage = LoopStage::Open;
        }
    }

    async fn close_abandoned(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Result<(), ParkedRun> {
        halting::close_abandoned(host, state, stage_key).await
    }
}

/// Halts the loop if a limit is used up.
fn check_loop_limits(host: LoopHost<'_>, state: &LoopState) -> Staged<()> {
    let allowed_iterations = state.allowed_iterations(host.order);
    if state.iteration >= allowed_iterations {
        let detail = format!("{} of at most {allowed_iterations}", format_count(state.iteration, "iteration"));
        return Err(StageExit::halt_run(RunReason::Iterations, detail));
    }
    match check_limits(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms) {
        Some(ending) => Err(StageExit::Halted(ending)),
        None => Ok(()),
    }
}
