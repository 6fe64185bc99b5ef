//! A journal that does not fit the workflow is refused, never guessed at.

use std::pin::Pin;

use tribunal_engine::{
    children::AwaitChild,
    event::{JournalEntry, RunEvent},
    host::Host,
    ids::Key,
    replayer::{ReplayDivergence, ReplayHistory, Replayer, WorkflowPoll},
};

use crate::{
    kills::{live_to_end, order},
    memory_host::{EntryBudget, MemoryRun},
    toy::{Toy, ToyEvent, ToyOrder, ToyReply, ToySettings, ToyStep},
    toy_workflow::start_toy,
};

/// Records a run of two steps and returns its journal without the boundaries, so that all of it is replayed.
fn recorded_run() -> (ToyOrder, Vec<JournalEntry<Toy>>) {
    let mut run = MemoryRun::new(order("root", vec![ToyStep::Sleep { ms: 1 }]), 0);
    live_to_end(&mut run, EntryBudget(None));
    let before_boundary =
        run.journal.into_iter().take_while(|entry| !matches!(entry.event, RunEvent::Boundary { .. })).collect();
    (run.order, before_boundary)
}

fn replay(order: &ToyOrder, journal: Vec<JournalEntry<Toy>>) -> Option<ReplayDivergence> {
    let replayer = Replayer::new(ToySettings {}, ReplayHistory::from_entries(journal));
    let mut workflow = start_toy(&replayer, order, None);
    match replayer.poll_workflow(&mut workflow) {
        WorkflowPoll::Diverged(divergence) => Some(divergence),
        WorkflowPoll::Waiting { .. } | WorkflowPoll::Finished { .. } => None,
    }
}

#[test]
fn an_unchanged_journal_replays() {
    let (order, journal) = recorded_run();
    assert_eq!(replay(&order, journal), None);
}

#[test]
fn another_effect_under_a_recorded_key_is_refused() {
    let (mut order, journal) = recorded_run();
    order.steps = vec![ToyStep::Sleep { ms: 2 }];
    assert!(matches!(replay(&order, journal), Some(ReplayDivergence::Fingerprint { .. })));
}

#[test]
fn a_reply_that_was_never_requested_is_refused() {
    let (order, mut journal) = recorded_run();
    for entry in &mut journal {
        if let RunEvent::EffectFinished { key, .. } = &mut entry.event {
            *key = Key::new("elsewhere");
        }
    }
    assert!(matches!(replay(&order, journal), Some(ReplayDivergence::ReplyWithoutRequest { .. })));
}

#[test]
fn a_reply_to_another_kind_of_effect_is_refused() {
    let (order, mut journal) = recorded_run();
    for entry in &mut journal {
        if let RunEvent::EffectFinished { reply, .. } = &mut entry.event {
            *reply = ToyReply::Inbox(tribunal_engine::effect::Requests::default());
        }
    }
    let divergence = replay(&order, journal);
    let Some(ReplayDivergence::WrongReplyKind { asked, replied, .. }) = divergence else { panic!("{divergence:?}") };
    assert_eq!((asked, replied), ("sleep", "inbox"));
}

#[test]
fn what_something_else_records_is_no_part_of_the_comparison() {
    let (order, mut journal) = recorded_run();
    let overheard = RunEvent::from_workflow(ToyEvent::Overheard { text: String::from("a hook ran") });
    let entry = JournalEntry { id: String::from("overheard:1"), event: overheard, ..journal[1].clone() };
    journal.insert(1, entry);
    assert_eq!(replay(&order, journal), None);
}

#[test]
fn an_event_that_the_workflow_does_not_note_any_more_is_refused() {
    let (order, mut journal) = recorded_run();
    let step_done = RunEvent::from_workflow(ToyEvent::StepDone { step: 9, text: String::new() });
    let entry = JournalEntry { id: String::from("0:step_done:9#1"), event: step_done, ..journal[1].clone() };
    journal.push(entry);
    assert!(matches!(replay(&order, journal), Some(ReplayDivergence::UnexpectedEvent { .. })));
}

#[test]
fn a_boundary_while_a_wait_for_a_child_is_open_is_refused() {
    let replayer = Replayer::<Toy>::new(ToySettings {}, ReplayHistory::default());
    let host: &dyn Host<Toy> = &replayer;
    let mut workflow: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
        let wait = host.perform(Key::new("await"), AwaitChild {});
        let boundary = host.record_boundary(Key::new("boundary"), serde_json::Value::Null).await;
        drop((wait, boundary));
    });
    let WorkflowPoll::Diverged(divergence) = replayer.poll_workflow(&mut workflow) else { panic!("it was accepted") };
    assert_eq!(divergence, ReplayDivergence::AwaitsChildAtBoundary { key: Key::new("await") });
}
