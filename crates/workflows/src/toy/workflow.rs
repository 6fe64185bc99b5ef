//! The workflow of a toy run.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use futures_util::future::join_all;

use crate::{
    runs::{
        kinds::{RunOrder, WorkflowTopic},
        types::{
            ChildNews, ChildOutcome, Decision, DecisionTopic, Requests, ReturnedChild, RunChild, RunEvent, RunHost,
            StartChild,
        },
        user_request::UserRequest,
    },
    tasks::{
        asking::{AgentConsultation, consult_agent, find_unreadable},
        brief::{AgentTask, AnswerContent, WorkspaceKind},
        client::JobKind,
        instructions::InstructionBrief,
        purpose::{ExpectedAnswer, TaskPurpose},
        selection,
    },
    toy::{
        event::ToyEvent,
        order::{ToyChild, ToyOrder, ToyStep, ToyTopic},
        state::{ChildProgress, ToyPool, ToyState},
    },
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    answer::ChoiceKey,
    children::AwaitChild,
    decision::build_choices,
    dialog::user_dialog,
    effect::Sleep,
    host::{ParkedRun, cross_boundary},
    ids::Key,
    limits::{check_limits, remaining_share},
    reason::{RunEnding, RunOutcome, RunReason},
    text::format_count,
};

const TASK_TIMEOUT_MS: u64 = 60_000;

impl Workflow for ToyOrder {
    type State = ToyState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a ToyOrder, state: ToyState) -> WorkflowFuture<'a> {
        Box::pin(run_toy(host, order, state))
    }
}

async fn run_toy(host: &RunHost<'_>, order: &ToyOrder, mut state: ToyState) -> Result<RunEnding, ParkedRun> {
    loop {
        if let Some(ending) = state.waiting.take() {
            let requests = user_dialog::wait_for_user(host, ending).await?;
            let has_question = state.dialog.open_decisions().next().is_some();
            apply_requests(host, &mut state, &requests);
            let is_answered = has_question && state.dialog.open_decisions().next().is_none();
            if is_answered {
                finish_step(host, &mut state, "answered");
            }
            continue_children(host, order, &mut state, &requests).await?;
            cross_boundary(host, Key::for_user_wait(), &state).await?;
            continue;
        }
        let step_key = Key::new(format!("step-{}", state.step + 1));
        let requests = user_dialog::read_inbox(host, &step_key).await?;
        apply_requests(host, &mut state, &requests);
        continue_children(host, order, &mut state, &requests).await?;
        let awake_ms = host.last_timestamp().awake_ms;
        let limit = check_limits(&host.settings().limits, &state.spent, awake_ms);
        match order.steps.get(state.step as usize) {
            None => match end_of(&state) {
                Some(ending) => return Ok(ending),
                None => state.waiting = Some(RunEnding::new(RunReason::Blocked, describe_waiting(&state))),
            },
            // Children that are at work have their share, and are awaited first.
            Some(_) if limit.is_some() && state.pool.running.is_empty() => state.waiting = limit,
            Some(ToyStep::Sleep { ms }) => {
                host.perform(step_key.child_key("sleep"), Sleep { ms: *ms }).await?;
                finish_step(host, &mut state, "slept");
            }
            Some(ToyStep::Ask { text, expects }) => match ask_agent(host, &mut state, &step_key, text, *expects).await?
            {
                Ok(answer) => finish_step(host, &mut state, &answer),
                Err(ending) => return Ok(ending),
            },
            Some(ToyStep::Question { text }) => ask_user(host, &mut state, &step_key, text).await?,
            Some(ToyStep::Children { children }) => {
                run_children(host, &mut state, children).await?;
                finish_step(host, &mut state, "children");
            }
            Some(ToyStep::Pool { children, at_once }) => {
                let step = ToyPoolStep { step_key: &step_key, children, at_once: *at_once };
                if !turn_pool(host, &mut state, step).await? {
                    state.pool = ToyPool::default();
                    finish_step(host, &mut state, "pool");
                }
            }
            Some(ToyStep::Fail { detail }) => return Ok(RunEnding::new(RunReason::Environment, detail.clone())),
        }
        cross_boundary(host, step_key, &state).await?;
    }
}

fn finish_step(host: &RunHost<'_>, state: &mut ToyState, text: &str) {
    state.step += 1;
    host.note_event(RunEvent::from_workflow(ToyEvent::ToyStepDone { step: state.step, text: String::from(text) }));
}

/// Asks an agent and returns its answer in a few words, or the ending of the run if no agent gave one.
async fn ask_agent(
    host: &RunHost<'_>,
    state: &mut ToyState,
    step_key: &Key,
    text: &str,
    expects: ExpectedAnswer,
) -> Result<Result<String, RunEnding>, ParkedRun> {
    let agent = selection::agent_for_seat(host.settings(), JobKind::Step, 0, 0);
    let brief = InstructionBrief { said: state.dialog.remark_lines(), ..InstructionBrief::new(text) };
    let purpose = TaskPurpose { job: JobKind::Step, expects };
    let task = AgentTask::new(agent, purpose, brief, WorkspaceKind::Private, TASK_TIMEOUT_MS);
    let task_key = step_key.child_key("agent");
    let consultation = AgentConsultation {
        task_key: &task_key,
        task,
        run_usage: &state.spent,
        parallel_tasks: 1,
        escalated_size: None,
        is_single_try: false,
    };
    let outcome = consult_agent(host, consultation, find_unreadable).await?;
    let answer = match outcome.last_content() {
        Some(AnswerContent::Text { text }) => Some(text.clone()),
        Some(AnswerContent::Status(report)) => Some(format!("{report:?}")),
        Some(AnswerContent::Question(question)) => Some(format!("{question:?}")),
        _ => None,
    };
    outcome.record_result(host, &mut state.spent, answer.is_some());
    let fault = outcome.fault.as_ref().map_or_else(|| String::from("no answer"), |fault| fault.detail.clone());
    Ok(answer.ok_or_else(|| RunEnding::new(RunReason::Environment, fault)))
}

/// Posts the question, unless it is asked already, and waits for its answer.
async fn ask_user(host: &RunHost<'_>, state: &mut ToyState, step_key: &Key, text: &str) -> Result<(), ParkedRun> {
    if state.dialog.open_decisions().next().is_none() {
        let decision = Decision {
            id: state.dialog.next_decision_id(),
            about: DecisionTopic::Workflow(WorkflowTopic::Toy(ToyTopic::ToyStep { step: state.step + 1 })),
            owner: String::from("the user"),
            question: String::from(text),
            choices: build_choices(&[(ChoiceKey::Accept, "go on"), (ChoiceKey::End, "go on, too")]),
            answer: None,
        };
        state.dialog.post_decision(host, &step_key.child_key("ask"), decision).await?;
    }
    state.waiting = Some(RunEnding::from_reason(RunReason::Blocked));
    Ok(())
}

fn apply_requests(host: &RunHost<'_>, state: &mut ToyState, requests: &[UserRequest]) {
    for request in requests {
        match request {
            UserRequest::Say(remark) => state.dialog.remember_remark(host, remark.clone()),
            UserRequest::Answer { decision, answer } => {
                state.dialog.record_answer(host, decision, answer);
            }
            _ => {}
        }
    }
}

/// Asks again for the children that the user has answered, or for all that wait if the user resumed the run.
async fn continue_children(
    host: &RunHost<'_>,
    order: &ToyOrder,
    state: &mut ToyState,
    requests: &[UserRequest],
) -> Result<(), ParkedRun> {
    let is_resumed = requests.contains(&UserRequest::Resume);
    let is_wanted = |name: &String| {
        is_resumed
            || requests.iter().any(|request| matches!(request, UserRequest::ContinueChild { child } if child == name))
    };
    let wanted: Vec<ToyChild> = order
        .steps
        .iter()
        .flat_map(ToyStep::list_children)
        .filter(|child| {
            // One that is at work again answers for itself.
            !state.pool.running.contains_key(&child.name)
                && state.children.get(&child.name).is_some_and(ChildProgress::is_waiting)
                && is_wanted(&child.name)
        })
        .cloned()
        .collect();
    run_children(host, state, &wanted).await
}

/// Runs children side by side; they share what is left of the limits.
async fn run_children(host: &RunHost<'_>, state: &mut ToyState, children: &[ToyChild]) -> Result<(), ParkedRun> {
    let remaining = remaining_share(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms);
    let mut pending = Vec::new();
    for (index, ToyChild { name, order }) in children.iter().enumerate() {
        let asked = state.children.get(name).map_or(0, |progress| progress.asked) + 1;
        let share = state.ledger.lend_share(name, remaining, (children.len() - index) as u32);
        let child_key = Key::new(format!("child/{name}/{asked}"));
        let effect = RunChild { name: name.clone(), order: RunOrder::clone(order), share, workspace: None, tier: None };
        let outcome = host.perform(child_key, effect);
        pending.push(async move { outcome.await.map(|outcome| (name.clone(), asked, outcome)) });
    }
    for ended in join_all(pending).await {
        let (name, asked, outcome) = ended?;
        let used = state.ledger.settle_account(&name, &outcome);
        state.spent.add_child(&used);
        state.children.insert(name, ChildProgress { asked, outcome });
    }
    Ok(())
}

/// A step whose children are started and awaited one by one.
#[derive(Clone, Copy)]
struct ToyPoolStep<'a> {
    step_key: &'a Key,
    children: &'a [ToyChild],
    at_once: u32,
}

/// Starts a child of the pool, or waits for one. Returns whether some are left.
async fn turn_pool(host: &RunHost<'_>, state: &mut ToyState, step: ToyPoolStep<'_>) -> Result<bool, ParkedRun> {
    let ToyPoolStep { step_key, children, at_once } = step;
    let has_room = (state.pool.running.len() as u32) < at_once.max(1);
    if let Some(child) = children.get(state.pool.started as usize).filter(|_| has_room) {
        state.pool.started += 1;
        let left = children.len() as u32 + 1 - state.pool.started;
        start_child(host, state, child, left).await?;
        return Ok(true);
    }
    if state.pool.running.is_empty() {
        return Ok(false);
    }
    match host.perform(step_key.child_key("await"), AwaitChild {}).await? {
        ChildNews::Word(Requests { requests }) => {
            apply_requests(host, state, &requests);
            for child in children {
                let is_wanted = requests.contains(&UserRequest::ContinueChild { child: child.name.clone() });
                let is_running = state.pool.running.contains_key(&child.name);
                if is_wanted && !is_running && state.children.get(&child.name).is_some_and(ChildProgress::is_waiting) {
                    start_child(host, state, child, 1).await?;
                }
            }
        }
        ChildNews::Returned(ReturnedChild { name, outcome }) => {
            let used = state.ledger.settle_account(&name, &outcome);
            state.spent.add_child(&used);
            let asked = state.pool.running.remove(&name).unwrap_or_default();
            state.children.insert(name, ChildProgress { asked, outcome });
        }
    }
    Ok(true)
}

async fn start_child(host: &RunHost<'_>, state: &mut ToyState, child: &ToyChild, parts: u32) -> Result<(), ParkedRun> {
    let ToyChild { name, order } = child;
    let remaining = remaining_share(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms);
    let asked = state.children.get(name).map_or(0, |progress| progress.asked) + 1;
    let share = state.ledger.lend_share(name, remaining, parts);
    let child_key = Key::new(format!("child/{name}/{asked}"));
    let child = RunChild { name: name.clone(), order: RunOrder::clone(order), share, workspace: None, tier: None };
    let started = host.perform(child_key, StartChild { child }).await?;
    state.pool.running.insert(started.name, asked);
    Ok(())
}

/// Returns the ending if no child waits.
fn end_of(state: &ToyState) -> Option<RunEnding> {
    if state.children.values().any(ChildProgress::is_waiting) {
        return None;
    }
    let is_resolved = |progress: &&ChildProgress| match &progress.outcome {
        ChildOutcome::Ended(report) => report.outcome == Some(RunOutcome::Resolved),
        ChildOutcome::Waiting(_) | ChildOutcome::Failed(_) => false,
    };
    let resolved_count = state.children.values().filter(is_resolved).count();
    let detail = format!("{resolved_count} of {} resolved", format_count(state.children.len() as u32, "child run"));
    Some(RunEnding::new(RunReason::GoalMet, detail))
}

fn describe_waiting(state: &ToyState) -> String {
    let waiting_count = state.children.values().filter(|progress| progress.is_waiting()).count() as u32;
    format!("{} waiting", format_count(waiting_count, "child run"))
}
