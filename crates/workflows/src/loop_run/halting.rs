//! A loop that cannot go on by itself: what it leaves behind, what it asks, and what the user's answers mean.

use alloc::format;

use crate::{
    development::{
        land_work::{LandingOrder, apply_landing_answer},
        performing::describe_kept_work,
    },
    loop_run::{
        breaker::BreakerPhase,
        event::LoopEvent,
        landing,
        loop_host::LoopHost,
        order::{LoopOrder, LoopTopic},
        state::{LoopStage, LoopState},
    },
    runs::{kinds::WorkflowTopic, types::DecisionTopic},
    stages::{
        exit::{StageExit, Staged},
        run::HaltQuestion,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    host::ParkedRun,
    ids::Key,
    reason::{RunEnding, RunOutcome},
};

/// Commits what there is, so that it can be looked at while the loop waits.
pub(super) async fn keep_work(host: LoopHost<'_>, state: &mut LoopState, halt_key: &Key) -> Result<(), ParkedRun> {
    if state.work.as_ref().is_some_and(|work| work.has_uncommitted_work()) {
        let message = landing::checkpoint_message(host.order, state.iteration);
        let commit_key = halt_key.child_key("commit");
        // A commit that fails must not hide why the loop halted; the work is still in the workspace.
        if let Some(fault) = landing::commit_checkpoint(host, state, &commit_key, message).await? {
            host.note_warning(format!("could not commit the work: {}", fault.detail));
        }
    }
    Ok(())
}

pub(super) fn is_about_halt(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopHalted)))
}

/// Asks how a loop goes on that has come to a limit, unless that is asked already.
pub(super) fn find_question(state: &LoopState, ending: &RunEnding) -> Option<HaltQuestion> {
    let is_asked = state.dialog.open_decisions().any(|decision| is_about_halt(&decision.about));
    if ending.reason.outcome() != Some(RunOutcome::Halted) || is_asked {
        return None;
    }
    let has_work = state.work.as_ref().is_some_and(|work| work.has_work());
    let more = (ChoiceKey::More, "continue, with every limit granted once more");
    let accept = (ChoiceKey::Accept, "take the work as it is, if the checks pass");
    let end = (ChoiceKey::End, "end the loop; its commits stay under refs/tribunal/work");
    let choices = if has_work { build_choices(&[more, accept, end]) } else { build_choices(&[more, end]) };
    Some(HaltQuestion {
        topic: WorkflowTopic::Loop(LoopTopic::LoopHalted),
        owner: "the user who sets the budget",
        question: format!("{} ({})", ending.reason.table_row().description, ending.detail),
        choices,
    })
}

pub(super) fn apply_answer(
    host: LoopHost<'_>,
    state: &mut LoopState,
    topic: &DecisionTopic,
    choice: ChoiceKey,
) -> Staged<()> {
    if let Some(topic) = LoopOrder::find_landing_topic(topic) {
        return apply_landing_answer(host, state, topic, choice);
    }
    match choice {
        ChoiceKey::More if is_about_halt(topic) => {
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            if state.breaker.phase == BreakerPhase::Open {
                state.breaker.allow_one_try();
            }
        }
        ChoiceKey::Accept if is_about_halt(topic) => {
            state.stage = LoopStage::Land;
            state.landing.accepted = true;
        }
        ChoiceKey::End if is_about_halt(topic) => {
            return Err(StageExit::abandon_run(describe_kept_work(LoopOrder::find_kept(state))));
        }
        _ => {}
    }
    Ok(())
}

/// Removes the workspace of a loop that the user ended. Its commits stay in the user's repository.
pub(super) async fn close_abandoned(host: LoopHost<'_>, state: &LoopState, stage_key: &Key) -> Result<(), ParkedRun> {
    // What could not be committed is only in the workspace.
    if state.work.as_ref().is_none_or(|work| work.has_uncommitted_work()) {
        return Ok(());
    }
    if host.close_workspace(stage_key.child_key("close")).await? {
        let kept = LoopOrder::find_kept(state).cloned();
        host.note_own_event(LoopEvent::LoopClosed { iteration: state.iteration, kept });
    }
    Ok(())
}
