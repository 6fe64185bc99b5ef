//! A run that is killed before any entry of its journal, or of those of its children, reaches the same end with the same facts.

use tribunal_engine::{child_queue::ChildQueue, event::RunEvent};

use crate::{
    memory_host::{EntryBudget, LifeEnd, MemoryRun},
    toy::{ToyOrder, ToyStep},
};

fn sleep(ms: u64) -> ToyStep {
    ToyStep::Sleep { ms }
}

fn question(text: &str) -> ToyStep {
    ToyStep::Question { text: text.to_string() }
}

pub fn order(name: &str, steps: Vec<ToyStep>) -> ToyOrder {
    ToyOrder { name: name.to_string(), steps }
}

/// A run with a question, children side by side, one of which asks, and a grandchild.
fn family() -> ToyOrder {
    let grandchild = order("c", vec![sleep(3), question("deep?")]);
    let children = vec![
        order("a", vec![sleep(5)]),
        order("b", vec![question("which?"), ToyStep::Children { orders: vec![grandchild] }]),
    ];
    order("root", vec![sleep(1), ToyStep::Children { orders: children }, question("all?"), sleep(2)])
}

/// A run that starts its children one by one and crosses boundaries while they work; one asks, and one has such children itself.
fn pool() -> ToyOrder {
    let inner = ToyStep::Pool { orders: vec![order("d", vec![sleep(4)]), order("e", vec![sleep(6)])], at_once: 2 };
    let orders = vec![
        order("a", vec![sleep(5), question("a?")]),
        order("b", vec![sleep(1), inner]),
        order("c", vec![sleep(2), sleep(3)]),
    ];
    order("root", vec![ToyStep::Pool { orders, at_once: 2 }, sleep(2)])
}

/// Lives until the run has finished. Returns how often it had to live.
pub fn live_to_end(run: &mut MemoryRun, mut budget: EntryBudget) -> usize {
    for life in 1..100 {
        if let LifeEnd::Finished(_) = run.live_once(&mut budget) {
            return life;
        }
        budget = EntryBudget(None);
    }
    panic!("{} does not end", run.order.name);
}

/// The facts without what depends on how often a run lived.
fn lasting_facts(run: &MemoryRun) -> Vec<String> {
    run.list_facts().into_iter().filter(|fact| !fact.starts_with("run_parked:")).collect()
}

/// Kills the run before each of its entries, and checks that it comes to the same end with the same facts.
fn kill_everywhere(order: &ToyOrder, seed: u64) {
    let mut reference = MemoryRun::new(order.clone(), seed);
    live_to_end(&mut reference, EntryBudget(None));
    let entry_count = reference.count_entries();
    assert!(entry_count > 50, "{entry_count}");
    for kill_at in 0..entry_count {
        let mut run = MemoryRun::new(order.clone(), seed);
        run.live_once(&mut EntryBudget(Some(kill_at)));
        live_to_end(&mut run, EntryBudget(None));
        let (facts, expected) = (lasting_facts(&run), lasting_facts(&reference));
        let difference = facts.iter().zip(&expected).find(|(fact, expected)| fact != expected);
        assert_eq!((difference, facts.len()), (None, expected.len()), "killed at entry {kill_at}, seed {seed}");
    }
}

#[test]
fn a_tree_of_runs_killed_at_every_entry_reaches_the_same_end() {
    kill_everywhere(&family(), 0);
}

#[test]
fn children_that_outlive_boundaries_are_found_again_after_a_kill_at_every_entry() {
    let mut crossed = (0, 0);
    // The seed decides in which order children come back, before or after the boundaries of their parent.
    for seed in 0..4 {
        kill_everywhere(&pool(), seed);
        let mut run = MemoryRun::new(pool(), seed);
        live_to_end(&mut run, EntryBudget(None));
        let (under_way, returned) = count_crossings(&run);
        crossed = (crossed.0 + under_way, crossed.1 + returned);
    }
    assert!(crossed.0 > 10 && crossed.1 > 3, "{crossed:?}");
}

/// Counts the boundaries with children under way, and those with children that had come back and were not awaited yet.
fn count_crossings(run: &MemoryRun) -> (u32, u32) {
    let mut queue = ChildQueue::default();
    let (mut under_way, mut returned) = (0, 0);
    for entry in &run.journal {
        queue.apply_event(&entry.event);
        if let RunEvent::Boundary { .. } = entry.event {
            under_way += u32::from(!queue.under_way().is_empty());
            returned += u32::from(queue.first_returned().is_some());
        }
    }
    (under_way, returned)
}

#[test]
fn what_was_answered_before_a_kill_is_not_performed_again() {
    let mut run = MemoryRun::new(order("root", vec![sleep(1), sleep(2), sleep(3)]), 0);
    let mut whole = MemoryRun::new(run.order.clone(), 0);
    live_to_end(&mut whole, EntryBudget(None));
    for kill_at in 1..whole.journal.len() {
        run = MemoryRun::new(whole.order.clone(), 0);
        run.live_once(&mut EntryBudget(Some(kill_at)));
        live_to_end(&mut run, EntryBudget(None));
        // At most the effect that was under way is performed twice.
        assert!(run.performed.len() <= whole.performed.len() + 1, "{kill_at}: {:?}", run.performed);
    }
}
