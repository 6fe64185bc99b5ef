//! A story that cannot go on by itself: what it leaves behind, what it asks, and what the user's answers mean.

use alloc::{format, string::String};

use crate::{
    development::{
        land_work::{LandingOrder, apply_landing_answer},
        performing::end_without_landing,
        workspace::DevelopmentPlace,
    },
    runs::{kinds::WorkflowTopic, types::DecisionTopic},
    stages::{
        exit::{StageExit, Staged},
        run::HaltQuestion,
    },
    story::{
        event::StoryEvent,
        facts::StoryFollowUp,
        landing,
        order::{StoryOrder, StoryTopic},
        parking, sessions,
        state::{StoryState, StoryStep},
        story_host::StoryHost,
        verification::StoryProblem,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    host::ParkedRun,
    ids::{CommitId, Key},
    reason::{RunEnding, RunOutcome, RunReason},
};

/// What is asked in which case; `None` if the ending says by itself what to do, or if it is asked already.
fn find_topic(state: &StoryState, ending: &RunEnding) -> Option<StoryTopic> {
    match ending.reason {
        _ if state.dialog.open_decisions().next().is_some() => None,
        // The review itself asks.
        RunReason::Blocked if state.review.waiting_child.is_some() => None,
        RunReason::Blocked => Some(StoryTopic::StoryStuck { step: state.step.step_name() }),
        reason if reason.outcome() == Some(RunOutcome::Halted) => Some(StoryTopic::StoryHalted),
        _ => None,
    }
}

pub(super) fn find_question(host: StoryHost<'_>, state: &StoryState, ending: &RunEnding) -> Option<HaltQuestion> {
    let topic = find_topic(state, ending)?;
    let by_hand = parking::describe_work_by_hand(state);
    let by_agents = match host.order.pacing.max_cycles {
        0 | 1 => String::from("have another agent try, in one more session"),
        max_cycles => format!("have agents try again, in up to {max_cycles} more sessions"),
    };
    let choices = match topic {
        StoryTopic::StoryStuck { .. } => build_choices(&[
            (ChoiceKey::Hand, by_hand.as_str()),
            (ChoiceKey::Agent, by_agents.as_str()),
            (
                ChoiceKey::Skip,
                "skip the story; its commits stay under refs/tribunal/work, and the board keeps its state",
            ),
        ]),
        _ => build_choices(&[
            (ChoiceKey::More, "continue; the story may use each of its limits once more"),
            (
                ChoiceKey::Skip,
                "skip the story; its commits stay under refs/tribunal/work, and the board keeps its state",
            ),
        ]),
    };
    let owner = match topic {
        StoryTopic::StoryHalted => "the user who sets the budget",
        _ => "the user of this repository",
    };
    let description = ending.reason.table_row().description;
    Some(HaltQuestion {
        topic: WorkflowTopic::Story(topic),
        owner,
        // A limit may be that of the story or that of its sprint.
        question: format!("story {}: {description} ({})", host.order.story.key, ending.detail),
        choices,
    })
}

pub(super) fn apply_answer(
    host: StoryHost<'_>,
    state: &mut StoryState,
    topic: &DecisionTopic,
    choice: ChoiceKey,
) -> Staged<()> {
    if let Some(topic) = StoryOrder::find_landing_topic(topic) {
        return apply_landing_answer(host, state, topic, choice);
    }
    if landing::is_about_owed(topic) {
        if choice == ChoiceKey::Done {
            state.landing.is_confirmed = true;
            return Ok(());
        }
        let commit = state.landing.landed.as_ref().map(CommitId::short_hex).unwrap_or_default();
        let detail = format!("commit {commit} stays; it still owes: {}", state.landing.owed.join("; "));
        return Err(StageExit::abandon_run(detail));
    }
    match choice {
        ChoiceKey::Skip => {
            return Err(end_without_landing(host.order.branch_name(), StoryOrder::find_kept(state)));
        }
        // No session is granted: if the work does not do, the user is asked again, and no agent writes over it.
        ChoiceKey::Hand => {
            state.attempts.by_hand = true;
            state.attempts.has_unkept_edits = true;
        }
        ChoiceKey::Agent => {
            // A step that has sessions left gets no more of them: the choice says how many there are.
            state.attempts.grants += u32::from(state.attempts.charged >= sessions::allowed_sessions(host, state));
            state.attempts.by_hand = false;
            state.attempts.has_unkept_edits = true;
        }
        ChoiceKey::More => {
            state.spent.grants += 1;
            state.spent.failures_in_a_row = 0;
            state.is_budget_warned = false;
        }
        _ => {}
    }
    // What a review left unresolved is a matter for a new session, or for the user's own hands.
    if matches!(choice, ChoiceKey::Hand | ChoiceKey::Agent) && state.step == StoryStep::Review {
        let by_hand = state.attempts.by_hand;
        state.attempts.begin_step();
        state.attempts.by_hand = by_hand;
        state.step = StoryStep::Develop;
        let findings = state.review.critical.iter().map(StoryFollowUp::describe);
        state.attempts.problems = findings.map(|detail| StoryProblem::ReviewFinding { detail }).collect();
    }
    Ok(())
}

/// Removes the workspace of a story that the user ended. Its commits stay in the user's repository.
pub(super) async fn close_abandoned(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
) -> Result<(), ParkedRun> {
    // The answer may have come while the story went on, with its work in the checkout.
    if host.order.place == DevelopmentPlace::InPlace {
        parking::put_work_aside(host, state, &stage_key.child_key("end")).await?;
    }
    // What could not be committed is only in the workspace.
    if state.work.as_ref().is_none_or(|work| work.has_uncommitted_work()) {
        return Ok(());
    }
    if host.close_workspace(stage_key.child_key("close")).await? {
        let kept = StoryOrder::find_kept(state).cloned();
        host.note_own_event(StoryEvent::StoryClosed { sessions: state.attempts.total, kept });
    }
    Ok(())
}

/// Whether the story waits for an answer about a step that its sessions, or the user, could not complete.
pub(super) fn is_stuck_question_open(state: &StoryState) -> bool {
    state.dialog.open_decisions().any(|decision| {
        matches!(decision.about, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryStuck { .. })))
    })
}

/// Withdraws the question about a limit: the story goes on, so more was granted without an answer to it.
pub(super) fn withdraw_limit_question(host: StoryHost<'_>, state: &mut StoryState) {
    state.dialog.withdraw_decisions(host.run_host(), "the limit was raised by other means", |topic| {
        matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryHalted)))
    });
}
