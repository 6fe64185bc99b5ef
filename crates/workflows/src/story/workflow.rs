//! The stages of a story. A boundary follows every stage, so that a resumed run repeats at most one of them.

use alloc::{boxed::Box, format, string::String};

use crate::{
    development::land_work,
    runs::types::{DecisionTopic, RunHost},
    stages::{
        exit::{StageExit, Staged},
        run::{HaltQuestion, StageParts, StageState, StagedOrder, UserNews, hear_user, run_stages, stop_for_strays},
    },
    story::{
        halting, landing,
        order::StoryOrder,
        parking::{self, ReturnedWork},
        preparation, review_cycle, sessions,
        state::{StoryState, StoryStep},
        story_host::StoryHost,
    },
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    answer::ChoiceKey,
    host::ParkedRun,
    ids::Key,
    limits::{RunUsage, check_limits, remaining_share},
    reason::RunEnding,
};

/// The user is told when so much of the budget is used.
const WARN_PERCENT: u64 = 80;

impl Workflow for StoryOrder {
    type State = StoryState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a StoryOrder, state: StoryState) -> WorkflowFuture<'a> {
        Box::pin(run_stages(StoryHost::new(host, order), state))
    }
}

impl StageState for StoryState {
    fn parts(&mut self) -> StageParts<'_> {
        StageParts { waiting: &mut self.waiting, dialog: &mut self.dialog, spent: &mut self.spent }
    }
}

impl StagedOrder for StoryOrder {
    fn stage_key(&self, state: &mut StoryState) -> Key {
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

    async fn run_stage(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
        match state.step {
            StoryStep::Open => preparation::open_workspace(host, state, stage_key).await,
            StoryStep::Baseline => preparation::check_baseline(host, state, stage_key).await,
            step => {
                hear_user(host, state, stage_key).await?;
                match step {
                    // An answer may have changed the step.
                    _ if state.step != step => Ok(()),
                    StoryStep::Land => land_work(host, state, stage_key).await,
                    _ => work_on(host, state, stage_key).await,
                }
            }
        }
    }

    /// The user's version is verified like what the user does by hand, and reviewed like that.
    fn verify_again(host: StoryHost<'_>, state: &mut StoryState, paths: &[String]) -> Staged<()> {
        land_work::note_edits(host, &mut state.landing.edits, paths)?;
        state.attempts.begin_step();
        state.attempts.by_hand = true;
        state.attempts.has_unkept_edits = true;
        state.step = state.step.min(StoryStep::Develop);
        Ok(())
    }

    async fn keep_work(
        host: StoryHost<'_>,
        state: &mut StoryState,
        halt_key: &Key,
        _ending: &RunEnding,
    ) -> Result<(), ParkedRun> {
        parking::put_work_aside(host, state, halt_key).await
    }

    fn find_question(host: StoryHost<'_>, state: &StoryState, ending: &RunEnding) -> Option<HaltQuestion> {
        halting::find_question(host, state, ending)
    }

    fn apply_answer(
        host: StoryHost<'_>,
        state: &mut StoryState,
        topic: &DecisionTopic,
        choice: ChoiceKey,
    ) -> Staged<()> {
        halting::apply_answer(host, state, topic, choice)
    }

    fn can_continue(state: &StoryState, news: &UserNews) -> bool {
        // To resume is no answer: an agent would write over what the user edits where the question says.
        let needs_answer = state.step != StoryStep::Review && halting::is_stuck_question_open(state);
        !needs_answer && (news.is_answered || news.is_resumed() || news.is_child_answered())
    }

    async fn close_abandoned(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<(), ParkedRun> {
        halting::close_abandoned(host, state, stage_key).await
    }
}

/// Says once that most of the money, the tokens or the time is used.
fn warn_of_budget(host: StoryHost<'_>, state: &mut StoryState, awake_ms: u64) {
    if state.is_budget_warned {
        return;
    }
    let limits = &host.settings().limits;
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

/// Lets an agent, or the panel, work on the story.
async fn work_on(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    let awake_ms = host.last_timestamp().awake_ms;
    warn_of_budget(host, state, awake_ms);
    if let Some(ending) = check_limits(&host.settings().limits, &state.spent, awake_ms) {
        return Err(StageExit::Halted(ending));
    }
    // The sprint may have been granted more, or the settings may have been read again: then the question needs no answer any more.
    halting::withdraw_limit_question(host, state);
    parking::take_work_back(host, state, stage_key).await?;
    if state.step == StoryStep::Review {
        return review_cycle::review_work(host, state, stage_key).await;
    }
    // An agent may write over what the user has edited.
    if state.attempts.has_unkept_edits && !state.attempts.by_hand {
        review_cycle::keep_work(host, state, stage_key.child_key("keep"), None).await?;
    }
    sessions::run_session(host, state, stage_key).await
}

/// Lands the work, after it was put back if it was parked. Work that is verified and reviewed lands even if a limit was reached
/// meanwhile: nothing more is spent on it.
async fn land_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    // An agent that wrote to the user's checkout may have prepared it for what is about to land.
    stop_for_strays(&state.dialog)?;
    match parking::take_work_back(host, state, stage_key).await? {
        // What the user confirms after a story has landed changes no code.
        ReturnedWork::Rebased if state.landing.landed.is_none() => {
            land_work::check_again(host, state, &stage_key.child_key("returned")).await?;
        }
        ReturnedWork::Rebased | ReturnedWork::Unchanged => {}
    }
    landing::land_work(host, state, stage_key).await
}
