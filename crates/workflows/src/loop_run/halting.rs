//! A loop that cannot go on by itself: what it leaves behind, what it asks, and what the user's answers mean.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        check_scripts::{ChangedScript, describe_changed_scripts},
        concerns::{LandingConcern, describe_concerns},
        workspace::{CloseOutcome, CloseWorkspace},
    },
    loop_run::{
        breaker::BreakerPhase,
        event::LoopEvent,
        landing,
        loop_host::{LoopHost, WORKSPACE_NAME, notify_user},
        order::LoopTopic,
        state::{LoopStage, LoopState},
    },
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic, RunEvent},
        user_request::UserRequest,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    dialog::user_dialog,
    host::ParkedRun,
    ids::Key,
    limits::RemainingLimits,
    reason::{RunEnding, RunOutcome, RunReason},
};

/// Prepares the wait for the user: commits what there is, so that it can be looked at, and asks how to go on.
pub(super) async fn halt_loop(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
    mut ending: RunEnding,
) -> Result<(), ParkedRun> {
    let halt_key = stage_key.child_key("halt");
    if ending.reason.outcome() == Some(RunOutcome::Halted) {
        if state.work.as_ref().is_some_and(|work| work.has_uncommitted_work()) {
            let message = landing::checkpoint_message(host.order, state.iteration);
            let commit_key = halt_key.child_key("commit");
            // A commit that fails must not hide why the loop halted; the work is still in the workspace.
            if let Some(failure) = landing::commit_checkpoint(host, state, &commit_key, message).await? {
                host.host
                    .note_event(RunEvent::Warned { text: format!("could not commit the work: {}", failure.detail) });
            }
        }
        let limits = &host.host.settings().limits;
        let allowed_iterations = state.allowed_iterations(host.order);
        let remaining = RemainingLimits::calculate(limits, &state.spent, host.host.last_timestamp().awake_ms);
        ending.left = Some(remaining.with_count("iterations", allowed_iterations.saturating_sub(state.iteration)));
        offer_choices(host, state, &halt_key, &ending).await?;
    }
    notify_user(host, halt_key.child_key("notify"), &ending.detail).await?;
    state.waiting = Some(ending);
    Ok(())
}

pub(super) fn is_about_halt(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopHalted)))
}

/// Asks how to go on, unless that is asked already.
async fn offer_choices(
    host: LoopHost<'_>,
    state: &mut LoopState,
    halt_key: &Key,
    ending: &RunEnding,
) -> Result<(), ParkedRun> {
    if state.dialog.open_decisions().any(|decision| is_about_halt(&decision.about)) {
        return Ok(());
    }
    let has_work = state.work.as_ref().is_some_and(|work| work.has_work());
    let more = (ChoiceKey::More, "continue, with every limit granted once more");
    let accept = (ChoiceKey::Accept, "take the work as it is, if the checks pass");
    let end = (ChoiceKey::End, "end the loop; its commits stay under refs/tribunal/work");
    let choices = if has_work { build_choices(&[more, accept, end]) } else { build_choices(&[more, end]) };
    let decision = Decision {
        id: state.dialog.next_decision_id(),
        about: DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopHalted)),
        owner: String::from("the user who sets the budget"),
        question: format!("{} ({})", ending.reason.table_row().description, ending.detail),
        choices,
        answer: None,
    };
    state.dialog.post_decision(host.host, &halt_key.child_key("ask"), decision).await
}

/// Parks the run until the user sends something. Returns the ending if the user ended the loop.
pub(super) async fn wait_for_user(
    host: LoopHost<'_>,
    state: &mut LoopState,
    ending: RunEnding,
) -> Result<Option<RunEnding>, ParkedRun> {
    let requests = user_dialog::wait_for_user(host.host, ending.clone()).await?;
    let is_resumed = requests.contains(&UserRequest::Resume);
    let open_count = state.dialog.open_decisions().count();
    if let Some(ending) = apply_requests(host, state, requests) {
        return Ok(Some(ending));
    }
    let is_answered = state.dialog.open_decisions().count() < open_count;
    if !is_answered && !is_resumed {
        // A remark alone does not lift a limit.
        state.waiting = Some(ending);
        return Ok(None);
    }
    if ending.reason == RunReason::Environment {
        // The user has repaired something, so every agent may be tried again.
        state.spent.failing.clear();
    }
    if is_answered {
        return Ok(None);
    }
    // Without an answer only what the user changed meanwhile counts: settings, the breaker, the environment.
    if ending.reason == RunReason::BreakerOpen {
        state.stage = LoopStage::Open;
    }
    Ok(None)
}

/// Applies what the user sent. Returns the ending if the user ended the loop.
pub(super) fn apply_requests(
    host: LoopHost<'_>,
    state: &mut LoopState,
    requests: Vec<UserRequest>,
) -> Option<RunEnding> {
    requests.into_iter().find_map(|request| {
        let answered = state.dialog.take_request(host.host, request)?;
        apply_answer(host, state, &answered.topic, answered.choice)
    })
}

fn apply_answer(
    host: LoopHost<'_>,
    state: &mut LoopState,
    topic: &DecisionTopic,
    choice: ChoiceKey,
) -> Option<RunEnding> {
    if let DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopChecksChanged { scripts })) = topic {
        return apply_script_answer(host, state, scripts, choice);
    }
    if let DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopQuestionable { concerns })) = topic {
        return apply_concern_answer(host, state, concerns, choice);
    }
    match (choice, is_about_halt(topic), landing::is_conflict(topic)) {
        (ChoiceKey::More, true, _) => {
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            if state.breaker.phase == BreakerPhase::Open {
                state.breaker.allow_one_try();
            }
            None
        }
        (ChoiceKey::Accept, true, _) => {
            state.stage = LoopStage::Land;
            state.landing.accepted = true;
            None
        }
        (ChoiceKey::End, true, _) => Some(RunEnding::new(RunReason::Abandoned, describe_kept_work(state))),
        (ChoiceKey::Keep, _, true) => Some(end_without_landing(host, state)),
        // A new landing rebases once more.
        _ => None,
    }
}

/// Applies the answer about work that changes what a check runs.
fn apply_script_answer(
    host: LoopHost<'_>,
    state: &mut LoopState,
    scripts: &[ChangedScript],
    choice: ChoiceKey,
) -> Option<RunEnding> {
    match choice {
        ChoiceKey::Approve => state.landing.accepted_scripts = state.work.as_ref().map(|work| work.tip.clone()),
        ChoiceKey::Keep => return Some(end_without_landing(host, state)),
        _ => {
            state.feedback.refused =
                format!("the user wants this change undone: {}", describe_changed_scripts(scripts));
            state.stage = LoopStage::Iterate;
            state.landing.accepted = false;
        }
    }
    None
}

/// Applies the answer about work that is questionable.
fn apply_concern_answer(
    host: LoopHost<'_>,
    state: &mut LoopState,
    concerns: &[LandingConcern],
    choice: ChoiceKey,
) -> Option<RunEnding> {
    match choice {
        ChoiceKey::Approve => state.landing.concerns.accepted.extend(concerns.iter().cloned()),
        ChoiceKey::Keep => return Some(end_without_landing(host, state)),
        _ => {
            state.feedback.refused = format!("the user wants this taken back: {}", describe_concerns(concerns));
            state.stage = LoopStage::Iterate;
            state.landing.accepted = false;
        }
    }
    None
}

fn end_without_landing(host: LoopHost<'_>, state: &LoopState) -> RunEnding {
    let detail = format!("{} was left alone, {}", host.order.branch.name, describe_kept_work(state));
    RunEnding::new(RunReason::Abandoned, detail)
}

/// Removes the workspace of a loop that the user ended. Its commits stay in the user's repository.
pub(super) async fn close_ended(host: LoopHost<'_>, state: &LoopState, stage_key: &Key) -> Result<(), ParkedRun> {
    let Some(work) = &state.work else { return Ok(()) };
    // What could not be committed is only in the workspace.
    if work.has_uncommitted_work() {
        return Ok(());
    }
    let close = CloseWorkspace { workspace: String::from(WORKSPACE_NAME) };
    if let CloseOutcome::Failed { fault } = host.host.perform(stage_key.child_key("close"), close).await? {
        host.host.note_event(RunEvent::Warned { text: landing::describe_leftover(&fault) });
        return Ok(());
    }
    let kept = (work.tip != work.base).then(|| work.tip.clone());
    host.host.note_event(RunEvent::from_workflow(LoopEvent::LoopClosed { iteration: state.iteration, kept }));
    Ok(())
}

fn describe_kept_work(state: &LoopState) -> String {
    match &state.work {
        Some(work) if work.tip != work.base => {
            let commit = work.tip.short_hex();
            format!("its work is kept as commit {commit}: take it with `git merge {commit}`")
        }
        _ => String::from("it had no work to keep"),
    }
}
