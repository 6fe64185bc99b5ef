//! A story that cannot go on by itself: what it leaves behind, what it asks, and what the user's answers mean.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        concerns::{LandingConcern, describe_concerns},
        workspace::{CloseOutcome, CloseWorkspace, DevelopmentPlace},
    },
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
        user_request::UserRequest,
    },
    story::{
        event::StoryEvent,
        facts::StoryFollowUp,
        landing,
        order::StoryTopic,
        parking, sessions,
        state::{StoryState, StoryStep},
        story_host::{StoryHost, WORKSPACE_NAME},
        verification::StoryProblem,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    dialog::user_dialog,
    host::ParkedRun,
    ids::{CommitId, Key},
    limits::RemainingLimits,
    reason::{RunEnding, RunOutcome, RunReason},
};

/// Prepares the wait for the user: commits what there is, so that it can be looked at, and asks how to go on.
pub(super) async fn halt_story(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
    mut ending: RunEnding,
) -> Result<(), ParkedRun> {
    let halt_key = stage_key.child_key("halt");
    parking::put_work_aside(host, state, &halt_key).await?;
    if ending.reason.outcome() == Some(RunOutcome::Halted) {
        let limits = &host.host.settings().limits;
        ending.left = Some(RemainingLimits::calculate(limits, &state.spent, host.host.last_timestamp().awake_ms));
    }
    offer_choices(host, state, &halt_key, &ending).await?;
    host.notify_user(halt_key.child_key("notify"), &ending.detail).await?;
    state.waiting = Some(ending);
    Ok(())
}

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

async fn offer_choices(
    host: StoryHost<'_>,
    state: &mut StoryState,
    halt_key: &Key,
    ending: &RunEnding,
) -> Result<(), ParkedRun> {
    let Some(topic) = find_topic(state, ending) else { return Ok(()) };
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
    let decision = Decision {
        id: state.dialog.next_decision_id(),
        about: DecisionTopic::Workflow(WorkflowTopic::Story(topic)),
        owner: String::from(owner),
        // A limit may be that of the story or that of its sprint.
        question: format!(
            "story {}: {} ({})",
            host.order.story.key,
            ending.reason.table_row().description,
            ending.detail
        ),
        choices,
        answer: None,
    };
    state.dialog.post_decision(host.host, &halt_key.child_key("ask"), decision).await
}

/// Parks the run until the user sends something. Returns the ending if the user ended the story.
pub(super) async fn wait_for_user(
    host: StoryHost<'_>,
    state: &mut StoryState,
    ending: RunEnding,
) -> Result<Option<RunEnding>, ParkedRun> {
    let requests = user_dialog::wait_for_user(host.host, ending.clone()).await?;
    let is_resumed = requests.contains(&UserRequest::Resume);
    let is_child_answered = requests.iter().any(|request| matches!(request, UserRequest::ContinueChild { .. }));
    let open_count = state.dialog.open_decisions().count();
    if let Some(ending) = apply_requests(host, state, requests) {
        return Ok(Some(ending));
    }
    let is_answered = state.dialog.open_decisions().count() < open_count;
    // To resume is no answer: an agent would write over what the user edits where the question says.
    let needs_answer = state.step != StoryStep::Review && is_stuck_question_open(state);
    if needs_answer || !is_answered && !is_resumed && !is_child_answered {
        // A remark alone does not lift a limit.
        state.waiting = Some(ending);
        return Ok(None);
    }
    if ending.reason == RunReason::Environment {
        // The user has repaired something, so every agent may be tried again.
        state.spent.failing.clear();
    }
    Ok(None)
}

/// Applies what the user sent. Returns the ending if the user ended the story.
pub(super) fn apply_requests(
    host: StoryHost<'_>,
    state: &mut StoryState,
    requests: Vec<UserRequest>,
) -> Option<RunEnding> {
    requests.into_iter().find_map(|request| {
        let answered = state.dialog.take_request(host.host, request)?;
        apply_answer(host, state, &answered.topic, answered.choice)
    })
}

fn apply_answer(
    host: StoryHost<'_>,
    state: &mut StoryState,
    topic: &DecisionTopic,
    choice: ChoiceKey,
) -> Option<RunEnding> {
    if landing::is_about_scripts(topic) {
        match choice {
            ChoiceKey::Approve => {
                state.landing.accepted_content = state.work.as_ref().and_then(|work| work.content.clone());
            }
            ChoiceKey::Keep => return Some(end_without_landing(host, state)),
            _ => {
                state.attempts.begin_step();
                let detail = String::from("the user wants the change of what the checks run undone");
                state.attempts.problems = alloc::vec![StoryProblem::CheckFailed { detail }];
                state.step = StoryStep::Develop;
            }
        }
        return None;
    }
    if let DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryQuestionable { concerns })) = topic {
        return apply_concern_answer(host, state, concerns, choice);
    }
    if landing::is_about_owed(topic) {
        if choice == ChoiceKey::Done {
            state.landing.is_confirmed = true;
            return None;
        }
        let commit = state.landing.landed.as_ref().map(CommitId::short_hex).unwrap_or_default();
        let detail = format!("commit {commit} stays; it still owes: {}", state.landing.owed.join("; "));
        return Some(RunEnding::new(RunReason::Abandoned, detail));
    }
    if landing::is_conflict(topic) {
        match choice {
            ChoiceKey::Keep => return Some(end_without_landing(host, state)),
            // What the user has merged is verified like the work of a session: in the checkout now, and on the branch when it lands.
            ChoiceKey::Hand if state.has_parked_work() => {
                state.attempts.begin_step();
                state.attempts.by_hand = true;
                state.attempts.has_unkept_edits = true;
                state.landing.may_be_merged = false;
                state.step = state.step.min(StoryStep::Develop);
            }
            _ => state.attempts.by_hand = false,
        }
        return None;
    }
    match choice {
        ChoiceKey::Skip => return Some(end_without_landing(host, state)),
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
    None
}

/// Applies the answer about work that is questionable.
fn apply_concern_answer(
    host: StoryHost<'_>,
    state: &mut StoryState,
    concerns: &[LandingConcern],
    choice: ChoiceKey,
) -> Option<RunEnding> {
    match choice {
        ChoiceKey::Approve => state.landing.concerns.accepted.extend(concerns.iter().cloned()),
        ChoiceKey::Keep => return Some(end_without_landing(host, state)),
        _ => {
            state.attempts.begin_step();
            let detail = format!("the user wants this taken back: {}", describe_concerns(concerns));
            state.attempts.problems = alloc::vec![StoryProblem::Questionable { detail }];
            state.step = StoryStep::Develop;
        }
    }
    None
}

fn end_without_landing(host: StoryHost<'_>, state: &StoryState) -> RunEnding {
    let detail = format!("{} was left alone, {}", host.order.branch.name, describe_kept_work(state));
    RunEnding::new(RunReason::Abandoned, detail)
}

/// Removes the workspace of a story that the user ended. Its commits stay in the user's repository.
pub(super) async fn close_ended(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<(), ParkedRun> {
    // The answer may have come while the story went on, with its work in the checkout.
    if host.order.place == DevelopmentPlace::InPlace {
        parking::put_work_aside(host, state, &stage_key.child_key("end")).await?;
    }
    let Some(work) = &state.work else { return Ok(()) };
    // What could not be committed is only in the workspace.
    if work.has_uncommitted_work() {
        return Ok(());
    }
    let close = CloseWorkspace { workspace: String::from(WORKSPACE_NAME) };
    if let CloseOutcome::Failed { fault } = host.host.perform(stage_key.child_key("close"), close).await? {
        host.note_warning(landing::describe_leftover(&fault));
        return Ok(());
    }
    let kept = (work.tip != work.base).then(|| work.tip.clone());
    host.note_event(StoryEvent::StoryClosed { sessions: state.attempts.total, kept });
    Ok(())
}

/// Whether the story waits for an answer about a step that its sessions, or the user, could not complete.
fn is_stuck_question_open(state: &StoryState) -> bool {
    state.dialog.open_decisions().any(|decision| {
        matches!(decision.about, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryStuck { .. })))
    })
}

/// Withdraws the question about a limit: the story goes on, so more was granted without an answer to it.
pub(super) fn withdraw_limit_question(host: StoryHost<'_>, state: &mut StoryState) {
    state.dialog.withdraw_decisions(host.host, "the limit was raised by other means", |topic| {
        matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryHalted)))
    });
}

fn describe_kept_work(state: &StoryState) -> String {
    match &state.work {
        Some(work) if work.tip != work.base => {
            let commit = work.tip.short_hex();
            format!("its work is kept as commit {commit}: take it with `git merge {commit}`")
        }
        _ => String::from("it had no work to keep"),
    }
}
