//! A sprint that cannot go on by itself, and what the user sends to it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::performing,
    runs::{
        kinds::WorkflowTopic,
        run_kind::RunKind,
        types::{Decision, DecisionTopic},
        user_request::UserRequest,
    },
    sprint::{
        event::SprintEvent, order::SprintTopic, requests::SprintCommand, sprint_host::SprintHost,
        standing::StoryStanding, state::SprintState,
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

/// Prepares the wait for the user: asks about a limit, and tells the user.
pub(super) async fn halt_sprint(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    mut ending: RunEnding,
) -> Result<(), ParkedRun> {
    let halt_key = stage_key.child_key("halt");
    if ending.reason.outcome() == Some(RunOutcome::Halted) {
        let limits = &host.host.settings().limits;
        ending.left = Some(RemainingLimits::calculate(limits, &state.spent, host.host.last_timestamp().awake_ms));
        if state.dialog.open_decisions().next().is_none() {
            let decision = Decision {
                id: state.dialog.next_decision_id(),
                about: DecisionTopic::Workflow(WorkflowTopic::Sprint(SprintTopic::SprintHalted)),
                owner: String::from("the user who sets the budget"),
                question: format!("sprint: {} ({})", ending.reason.table_row().description, ending.detail),
                choices: build_choices(&[
                    (ChoiceKey::More, "continue; the sprint may use each of its limits once more"),
                    (ChoiceKey::Skip, "end the sprint; what is done stays done"),
                ]),
                answer: None,
            };
            state.dialog.post_decision(host.host, &halt_key.child_key("ask"), decision).await?;
        }
    }
    let notice = format!("{}: {}", host.order.title(), ending.detail);
    performing::notify_user(host.host, halt_key.child_key("notify"), notice).await?;
    state.waiting = Some(ending);
    Ok(())
}

/// Withdraws the question about a limit: the sprint goes on, so more was granted without an answer to it.
pub(super) fn withdraw_limit_question(host: SprintHost<'_>, state: &mut SprintState) {
    state.dialog.withdraw_decisions(host.host, "the limit was raised by other means", |topic| {
        matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Sprint(SprintTopic::SprintHalted)))
    });
}

/// Has stories continue that wait at the limit of a story, if the user has raised this limit since. They withdraw their own questions.
pub(super) fn continue_extended(host: SprintHost<'_>, state: &mut SprintState) {
    let waiting: Vec<String> = state
        .standings
        .iter()
        .filter(|(_, standing)| **standing == StoryStanding::Waiting)
        .map(|(key, _)| key.clone())
        .collect();
    for key in waiting {
        let child_name = state.child_name(&key);
        if state.ledger.raise_limit(&child_name, host.order.story_share) {
            state.standings.insert(key, StoryStanding::Answered);
        }
    }
}

/// Parks the sprint until the user sends something. Returns the ending if the user ended it.
pub(super) async fn wait_for_user(
    host: SprintHost<'_>,
    state: &mut SprintState,
    ending: RunEnding,
) -> Result<Option<RunEnding>, ParkedRun> {
    let requests = user_dialog::wait_for_user(host.host, ending.clone()).await?;
    let is_resumed = requests.contains(&UserRequest::Resume);
    let is_child_answered = requests.iter().any(|request| matches!(request, UserRequest::ContinueChild { .. }));
    let open_count = state.dialog.open_decisions().count();
    let was_told_to_stop = state.wishes.stop_after_story;
    if let Some(ending) = apply_requests(host, state, requests) {
        return Ok(Some(ending));
    }
    let is_answered = state.dialog.open_decisions().count() < open_count || is_child_answered;
    if !is_answered && !is_resumed {
        // A remark alone does not lift a limit.
        state.waiting = Some(ending);
        return Ok(None);
    }
    if is_resumed {
        // Who resumes a sprint wants it to go on; what was said meanwhile holds.
        state.wishes.stop_after_story &= !was_told_to_stop;
        // What kept them from being started may be gone.
        state.standings.retain(|_, standing| !matches!(standing, StoryStanding::Refused | StoryStanding::Claimed));
        let stopped = state.standings.values_mut().filter(|standing| **standing == StoryStanding::Stopped);
        stopped.for_each(|standing| *standing = StoryStanding::Answered);
    }
    if ending.reason == RunReason::Environment {
        // The user has repaired something, so every agent may be tried again.
        state.spent.failing.clear();
    }
    Ok(None)
}

/// Applies what the user sent. Returns the ending if the user ended the sprint.
pub(super) fn apply_requests(
    host: SprintHost<'_>,
    state: &mut SprintState,
    requests: Vec<UserRequest>,
) -> Option<RunEnding> {
    for request in requests {
        match request {
            UserRequest::Say(remark) => match SprintCommand::read_remark(&remark.text) {
                Some(command) => apply_command(host, state, command),
                None => state.dialog.remember_remark(host.host, remark),
            },
            UserRequest::ContinueChild { child } => {
                // A story that the user skips has no run any more that could go on.
                let open = state.standings.iter().filter(|(_, standing)| **standing != StoryStanding::Skipped);
                let keys: Vec<String> = open.map(|(key, _)| key.clone()).collect();
                if let Some(key) = keys.into_iter().find(|key| state.child_name(key) == child) {
                    // The answer may grant more than a raised limit.
                    state.ledger.take_extension(&child);
                    state.standings.insert(key, StoryStanding::Answered);
                }
            }
            request => match state.dialog.take_request(host.host, request).map(|answered| answered.choice) {
                Some(ChoiceKey::More) => {
                    state.spent.grants += 1;
                    state.spent.failures_in_a_row = 0;
                }
                Some(ChoiceKey::Skip) => {
                    let detail = format!("{} done before you ended the sprint", state.done);
                    return Some(RunEnding::new(RunReason::Abandoned, detail));
                }
                _ => {}
            },
        }
    }
    None
}

fn apply_command(host: SprintHost<'_>, state: &mut SprintState, command: SprintCommand) {
    match &command {
        SprintCommand::Skip { story } => {
            if !state.wishes.skipped.contains(story) {
                state.wishes.skipped.push(story.clone());
            }
        }
        SprintCommand::StopAfterStory => state.wishes.stop_after_story = true,
        SprintCommand::ChangeTier { tier } => state.wishes.tier = Some(*tier),
    }
    host.note_event(SprintEvent::SprintRequested { command });
}
