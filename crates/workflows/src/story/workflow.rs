//! The stages of a story. A boundary follows every stage, so that a resumed run repeats at most one of them.

use alloc::{boxed::Box, format};

use crate::{
    runs::types::RunHost,
    story::{
        halting, landing,
        order::StoryOrder,
        parking::{self, ReturnAttempt},
        preparation, review_cycle, sessions,
        state::{StoryState, StoryStep},
        story_host::{StageEnd, StoryHost},
    },
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    dialog::user_dialog,
    host::{ParkedRun, cross_boundary},
    ids::Key,
    limits::{RunUsage, check_limits, remaining_share},
    reason::{RunEnding, RunReason},
};

/// The user is told when so much of the budget is used.
const WARN_PERCENT: u64 = 80;

impl Workflow for StoryOrder {
    type State = StoryState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a StoryOrder, state: StoryState) -> WorkflowFuture<'a> {
        Box::pin(run_story(StoryHost { host, order }, state))
    }
}

async fn run_story(host: StoryHost<'_>, mut state: StoryState) -> Result<RunEnding, ParkedRun> {
    loop {
        let stage_key = stage_key(&state);
        if let Some(ending) = state.waiting.take() {
            if let Some(ending) = halting::wait_for_user(host, &mut state, ending).await? {
                halting::close_ended(host, &mut state, &stage_key).await?;
                return Ok(ending);
            }
        } else {
            match run_stage(host, &mut state, &stage_key).await? {
                StageEnd::Continue => {}
                StageEnd::Ended(ending) => return Ok(ending),
                StageEnd::Halted(ending) => halting::halt_story(host, &mut state, &stage_key, ending).await?,
            }
        }
        cross_boundary(host.host, stage_key, &state).await?;
    }
}

/// Names a stage, with a number where a step may have several.
fn stage_key(state: &StoryState) -> Key {
    if state.waiting.is_some() {
        return Key::for_user_wait();
    }
    if state.dialog.has_edits_to_restore() {
        return Key::new("restore");
    }
    let session = state.attempts.total + 1;
    match state.step {
        StoryStep::Open => Key::new("open"),
        StoryStep::Baseline => Key::new("baseline"),
        StoryStep::Create => Key::new(format!("create-{session}")),
        StoryStep::Develop => Key::new(format!("develop-{session}")),
        StoryStep::CodeReview => Key::new(format!("code-review-{session}")),
        StoryStep::Review => Key::new(format!("review-{}", state.review.count + 1)),
        StoryStep::Land => Key::new(format!("landing-{}", state.landing.attempts + 1)),
    }
}

/// Says once that most of the money, the tokens or the time is used.
fn warn_of_budget(host: StoryHost<'_>, state: &mut StoryState, awake_ms: u64) {
    if state.is_budget_warned {
        return;
    }
    let limits = &host.host.settings().limits;
    let remaining = remaining_share(limits, &state.spent, awake_ms);
    let whole = remaining_share(limits, &RunUsage { grants: state.spent.grants, ..RunUsage::default() }, 0);
    let is_nearly_used = |left: u64, whole: u64| left.saturating_mul(100) <= whole.saturating_mul(100 - WARN_PERCENT);
    let used_up = [
        ("the money", is_nearly_used(remaining.cost.0, whole.cost.0)),
        ("the tokens", is_nearly_used(remaining.tokens, whole.tokens)),
        ("the time", is_nearly_used(remaining.runtime_ms, whole.runtime_ms)),
    ];
    if let Some((what, _)) = used_up.into_iter().find(|(_, is_used)| *is_used) {
        state.is_budget_warned = true;
        host.note_warning(format!("{WARN_PERCENT} % of {what} for this story is used"));
    }
}

async fn run_stage(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<StageEnd, ParkedRun> {
    // The user's files come first: a landing would otherwise find the stray edits in its way.
    if state.dialog.has_edits_to_restore() {
        state.dialog.restore_strays(host.host).await?;
        return Ok(StageEnd::Continue);
    }
    match state.step {
        StoryStep::Open => return preparation::open_workspace(host, state, stage_key).await,
        StoryStep::Baseline => return preparation::check_baseline(host, state, stage_key).await,
        _ => {}
    }
    let requests = user_dialog::read_inbox(host.host, stage_key).await?;
    let step_before = state.step;
    if let Some(ending) = halting::apply_requests(host, state, requests) {
        halting::close_ended(host, state, stage_key).await?;
        return Ok(StageEnd::Ended(ending));
    }
    // An answer may have changed the step.
    if state.step != step_before {
        return Ok(StageEnd::Continue);
    }
    // Work that is verified and reviewed lands even if a limit was reached meanwhile: nothing more is spent on it.
    if state.step == StoryStep::Land {
        return match state.dialog.describe_unanswered_strays() {
            // An agent that wrote to the user's checkout may have prepared it for what is about to land.
            Some(description) => Ok(StageEnd::Halted(RunEnding::new(RunReason::Blocked, description))),
            None => land_returned(host, state, stage_key).await,
        };
    }
    let awake_ms = host.host.last_timestamp().awake_ms;
    warn_of_budget(host, state, awake_ms);
    if let Some(ending) = check_limits(&host.host.settings().limits, &state.spent, awake_ms) {
        return Ok(StageEnd::Halted(ending));
    }
    // The sprint may have been granted more, or the settings may have been read again: then the question needs no answer any more.
    halting::withdraw_limit_question(host, state);
    if let ReturnAttempt::Halted(ending) = parking::take_work_back(host, state, stage_key).await? {
        return Ok(StageEnd::Halted(ending));
    }
    if state.step == StoryStep::Review {
        return review_cycle::review_work(host, state, stage_key).await;
    }
    // An agent may write over what the user has edited.
    if state.attempts.has_unkept_edits
        && !state.attempts.by_hand
        && let Some(ending) = review_cycle::keep_work(host, state, stage_key.child_key("keep")).await?
    {
        return Ok(StageEnd::Halted(ending));
    }
    sessions::run_session(host, state, stage_key).await
}

/// Lands the work, after it was put back if it was parked.
async fn land_returned(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<StageEnd, ParkedRun> {
    match parking::take_work_back(host, state, stage_key).await? {
        ReturnAttempt::Halted(ending) => return Ok(StageEnd::Halted(ending)),
        // What the user confirms after a story has landed changes no code.
        ReturnAttempt::Rebased if state.landing.landed.is_none() => {
            if let Some(stage_end) = landing::check_again(host, state, &stage_key.child_key("returned")).await? {
                return Ok(stage_end);
            }
        }
        ReturnAttempt::Rebased | ReturnAttempt::Unchanged => {}
    }
    landing::land_work(host, state, stage_key).await
}
