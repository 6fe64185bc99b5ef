//! A run that is killed before any entry of its journal, or of those of its children, reaches the same end with the same facts.

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

#[test]
fn a_tree_of_runs_killed_at_every_entry_reaches_the_same_end() {
    let mut reference = MemoryRun::new(family(), 0);
    live_to_end(&mut reference, EntryBudget(None));
    let entry_count = reference.count_entries();
    assert!(entry_count > 50, "{entry_count}");
    for kill_at in 0..entry_count {
        let mut run = MemoryRun::new(family(), 0);
        run.live_once(&mut EntryBudget(Some(kill_at)));
        live_to_end(&mut run, EntryBudget(None));
        let (facts, expected) = (lasting_facts(&run), lasting_facts(&reference));
        let difference = facts.iter().zip(&expected).find(|(fact, expected)| fact != expected);
        assert_eq!((difference, facts.len()), (None, expected.len()), "killed at entry {kill_at}");
    }
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
