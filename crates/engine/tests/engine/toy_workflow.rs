//! The workflow of toy runs. It takes the steps of its order one after the other.

use std::pin::Pin;

use tribunal_engine::{
    answer::ChoiceKey,
    child_outcome::ChildOutcome,
    children::{AwaitChild, ChildLedger, ChildNews, RunChild, StartChild},
    decision::{Decision, DecisionTopic, build_choices},
    dialog::user_dialog::{self, UserDialog},
    effect::Sleep,
    event::RunEvent,
    host::{Host, ParkedRun, cross_boundary},
    ids::Key,
    limits::{Cost, LimitShare},
    reason::{RunEnding, RunReason},
};
use tribunal_json::{Deserialize, Serialize};

use crate::toy::{Toy, ToyEvent, ToyOrder, ToyStep, ToyTopic};

/// What a toy run knows at a boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToyState {
    pub step: u32,
    pub dialog: UserDialog<Toy>,
    pub ledger: ChildLedger,
    /// How many children have ended, in all steps.
    pub ended: u32,
    pub pool: ToyPool,
}

/// The children of a step that starts and awaits them one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToyPool {
    /// How many were started, and how many of them have not ended.
    pub started: u32,
    pub running: u32,
    pub turns: u32,
    pub details: Vec<String>,
}

pub type ToyFuture<'a> = Pin<Box<dyn Future<Output = Result<RunEnding, ParkedRun>> + 'a>>;

/// Starts the workflow of an order from a recorded state, or from the beginning.
pub fn start_toy<'a>(
    host: &'a dyn Host<Toy>,
    order: &'a ToyOrder,
    recorded_state: Option<serde_json::Value>,
) -> ToyFuture<'a> {
    let state = recorded_state.map(|state| serde_json::from_value(state).unwrap()).unwrap_or_default();
    Box::pin(run_toy(host, order, state))
}

async fn run_toy(host: &dyn Host<Toy>, order: &ToyOrder, mut state: ToyState) -> Result<RunEnding, ParkedRun> {
    while let Some(step) = order.steps.get(state.step as usize) {
        let step_key = Key::new(format!("step-{}", state.step + 1));
        for request in user_dialog::read_inbox(host, &step_key).await? {
            state.dialog.take_request(host, request);
        }
        let text = match step {
            ToyStep::Sleep { ms } => {
                host.perform(step_key.child_key("sleep"), Sleep { ms: *ms }).await?;
                format!("slept {ms}")
            }
            ToyStep::Question { text } => ask_user(host, &mut state, &step_key, text).await?,
            ToyStep::Children { orders } => run_children(host, &mut state, &step_key, orders).await?,
            ToyStep::Pool { orders, at_once } => {
                if turn_pool(host, &mut state, &step_key, (orders, *at_once)).await? {
                    cross_boundary(host, step_key, &state).await?;
                    continue;
                }
                std::mem::take(&mut state.pool).details.join("; ")
            }
        };
        state.step += 1;
        host.note_event(RunEvent::from_workflow(ToyEvent::StepDone { step: state.step, text }));
        cross_boundary(host, step_key, &state).await?;
    }
    Ok(RunEnding::new(RunReason::GoalMet, format!("{} children ended", state.ended)))
}

async fn ask_user(host: &dyn Host<Toy>, state: &mut ToyState, step_key: &Key, text: &str) -> Result<String, ParkedRun> {
    let decision = Decision {
        id: state.dialog.next_decision_id(),
        about: DecisionTopic::Workflow(ToyTopic::Step { step: state.step }),
        owner: String::from("the user"),
        question: String::from(text),
        choices: build_choices(&[(ChoiceKey::Accept, "go on"), (ChoiceKey::End, "go on, too")]),
        answer: None,
    };
    state.dialog.post_decision(host, &step_key.child_key("ask"), decision).await?;
    // One wait is enough: it returns when something has arrived.
    let requests = user_dialog::wait_for_user(host, RunEnding::from_reason(RunReason::Blocked)).await?;
    let answers = requests.into_iter().filter_map(|request| state.dialog.take_request(host, request));
    Ok(answers.map(|answer| answer.choice.to_string()).collect::<Vec<_>>().join(" "))
}

async fn run_children(
    host: &dyn Host<Toy>,
    state: &mut ToyState,
    step_key: &Key,
    orders: &[ToyOrder],
) -> Result<String, ParkedRun> {
    let whole = LimitShare { runtime_ms: 1_000, cost: Cost(1_000), tokens: 1_000 };
    let mut pending = Vec::new();
    for (index, order) in orders.iter().enumerate() {
        let share = state.ledger.lend_share(&order.name, whole, (orders.len() - index) as u32);
        let child = RunChild { name: order.name.clone(), order: order.clone(), share, workspace: None, tier: None };
        pending.push((order, host.perform(step_key.child_key(&order.name), child)));
    }
    let mut details = Vec::new();
    for (order, outcome) in pending {
        let mut outcome = outcome.await?;
        let mut attempt = 1;
        while let ChildOutcome::Waiting(_) = outcome {
            attempt += 1;
            let share = state.ledger.lend_share(&order.name, whole, 1);
            let child = RunChild { name: order.name.clone(), order: order.clone(), share, workspace: None, tier: None };
            outcome = host.perform(step_key.child_key(&format!("{}-{attempt}", order.name)), child).await?;
        }
        state.ledger.settle_account(&order.name, &outcome);
        if let ChildOutcome::Ended(report) = outcome {
            state.ended += 1;
            details.push(format!("{}: {}", report.run, report.detail));
        }
    }
    Ok(details.join("; "))
}

/// Starts a child of the pool, or waits for one. Returns whether some are left.
async fn turn_pool(
    host: &dyn Host<Toy>,
    state: &mut ToyState,
    step_key: &Key,
    (orders, at_once): (&[ToyOrder], u32),
) -> Result<bool, ParkedRun> {
    state.pool.turns += 1;
    let turn_key = step_key.child_key(&format!("turn-{}", state.pool.turns));
    if let Some(order) = orders.get(state.pool.started as usize).filter(|_| state.pool.running < at_once) {
        start_child(host, state, turn_key, order).await?;
        state.pool.started += 1;
        state.pool.running += 1;
        return Ok(true);
    }
    if state.pool.running == 0 {
        return Ok(false);
    }
    match host.perform(turn_key.child_key("await"), AwaitChild {}).await? {
        ChildNews::Word(requests) => {
            requests.requests.into_iter().for_each(|request| drop(state.dialog.take_request(host, request)));
        }
        ChildNews::Returned(returned) => {
            state.ledger.settle_account(&returned.name, &returned.outcome);
            match (returned.outcome, orders.iter().find(|order| order.name == returned.name)) {
                (ChildOutcome::Waiting(_), Some(order)) => start_child(host, state, turn_key, order).await?,
                (ChildOutcome::Ended(report), _) => {
                    state.ended += 1;
                    state.pool.running -= 1;
                    state.pool.details.push(format!("{}: {}", report.run, report.detail));
                }
                unexpected => panic!("{unexpected:?}"),
            }
        }
    }
    Ok(true)
}

async fn start_child(
    host: &dyn Host<Toy>,
    state: &mut ToyState,
    turn_key: Key,
    order: &ToyOrder,
) -> Result<(), ParkedRun> {
    let whole = LimitShare { runtime_ms: 1_000, cost: Cost(1_000), tokens: 1_000 };
    let share = state.ledger.lend_share(&order.name, whole, 1);
    let child = RunChild { name: order.name.clone(), order: order.clone(), share, workspace: None, tier: None };
    let started = host.perform(turn_key.child_key("start"), StartChild { child }).await?;
    assert_eq!(started.name, order.name);
    Ok(())
}
