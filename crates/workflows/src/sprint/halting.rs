//! A sprint that cannot go on by itself, and what the user sends to it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    runs::{kinds::WorkflowTopic, types::DecisionTopic, user_request::UserRequest},
    sprint::{
        event::SprintEvent, order::SprintTopic, requests::SprintCommand, sprint_host::SprintHost,
        standing::StoryStanding, state::SprintState,
    },
    stages::{
        exit::{StageExit, Staged},
        run::{HaltQuestion, UserNews},
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    reason::{RunEnding, RunOutcome},
};

/// Asks for more of a limit that is used up, unless something is asked already.
pub(super) fn find_question(state: &SprintState, ending: &RunEnding) -> Option<HaltQuestion> {
    let is_asked = state.dialog.open_decisions().next().is_some();
    if ending.reason.outcome() != Some(RunOutcome::Halted) || is_asked {
        return None;
    }
    Some(HaltQuestion {
        topic: WorkflowTopic::Sprint(SprintTopic::SprintHalted),
        owner: "the user who sets the budget",
        question: format!("sprint: {} ({})", ending.reason.table_row().description, ending.detail),
        choices: build_choices(&[
            (ChoiceKey::More, "continue; the sprint may use each of its limits once more"),
            (ChoiceKey::Skip, "end the sprint; what is done stays done"),
        ]),
    })
}

/// Withdraws the question about a limit: the sprint goes on, so more was granted without an answer to it.
pub(super) fn withdraw_limit_question(host: SprintHost<'_>, state: &mut SprintState) {
    state.dialog.withdraw_decisions(host.run_host(), "the limit was raised by other means", |topic| {
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

/// Prepares a sprint to go on that the user has resumed.
pub(super) fn continue_resumed(state: &mut SprintState, news: &UserNews) {
    // Who resumes a sprint wants it to go on; what was said while it waited holds.
    let is_told_to_stop = news.requests.iter().any(|request| match request {
        UserRequest::Say(remark) => SprintCommand::read_remark(&remark.text) == Some(SprintCommand::StopAfterStory),
        _ => false,
    });
    state.wishes.stop_after_story &= is_told_to_stop;
    // What kept them from being started may be gone.
    state.standings.retain(|_, standing| !matches!(standing, StoryStanding::Refused | StoryStanding::Claimed));
    let stopped = state.standings.values_mut().filter(|standing| **standing == StoryStanding::Stopped);
    stopped.for_each(|standing| *standing = StoryStanding::Answered);
}

pub(super) fn apply_request(host: SprintHost<'_>, state: &mut SprintState, request: UserRequest) -> Staged<()> {
    match request {
        UserRequest::Say(remark) => {
            match SprintCommand::read_remark(&remark.text) {
                Some(command) => apply_command(host, state, command),
                None => state.dialog.remember_remark(host.run_host(), remark),
            }
            Ok(())
        }
        UserRequest::ContinueChild { child } => {
            // A story that the user skips has no run any more that could go on.
            let open = state.standings.iter().filter(|(_, standing)| **standing != StoryStanding::Skipped);
            let keys: Vec<String> = open.map(|(key, _)| key.clone()).collect();
            if let Some(key) = keys.into_iter().find(|key| state.child_name(key) == child) {
                // The answer may grant more than a raised limit.
                state.ledger.take_extension(&child);
                state.standings.insert(key, StoryStanding::Answered);
            }
            Ok(())
        }
        request => match state.dialog.take_request(host.run_host(), request) {
            Some(answered) => apply_answer(state, answered.choice),
            None => Ok(()),
        },
    }
}

pub(super) fn apply_answer(state: &mut SprintState, choice: ChoiceKey) -> Staged<()> {
    match choice {
        ChoiceKey::More => {
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            Ok(())
        }
        ChoiceKey::Skip => Err(StageExit::abandon_run(format!("{} done before you ended the sprint", state.done))),
        _ => Ok(()),
    }
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
    host.note_own_event(SprintEvent::SprintRequested { command });
}
