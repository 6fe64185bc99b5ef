//! Random trees of runs, killed at random, in any order of their effects: every one ends, and nothing is lost.

use proptest::prelude::*;

use crate::{
    kills::order,
    memory_host::{EntryBudget, LifeEnd, MemoryRun},
    toy::{ToyOrder, ToyStep},
};

fn random_steps(depth: u32) -> BoxedStrategy<Vec<ToyStep>> {
    let simple = prop_oneof![
        (1u64..50).prop_map(|ms| ToyStep::Sleep { ms }),
        Just(ToyStep::Question { text: String::from("go on?") }),
    ];
    if depth == 0 {
        return prop::collection::vec(simple, 0..3).boxed();
    }
    let children = prop::collection::vec(random_steps(depth - 1), 1..4).prop_map(|children| ToyStep::Children {
        orders: children.into_iter().map(|steps| order("", steps)).collect(),
    });
    let pool = (prop::collection::vec(random_steps(depth - 1), 1..5), 1u32..4).prop_map(|(children, at_once)| {
        ToyStep::Pool { orders: children.into_iter().map(|steps| order("", steps)).collect(), at_once }
    });
    let steps = prop_oneof![2 => simple, 1 => children, 1 => pool];
    prop::collection::vec(steps, 0..3).prop_map(name_children).boxed()
}

/// A name is one child for the whole life of its parent, so no two steps may use the same one.
fn name_children(mut steps: Vec<ToyStep>) -> Vec<ToyStep> {
    for (step_index, step) in steps.iter_mut().enumerate() {
        let (ToyStep::Children { orders } | ToyStep::Pool { orders, .. }) = step else { continue };
        for (index, order) in orders.iter_mut().enumerate() {
            order.name = format!("step{step_index}-child{index}");
        }
    }
    steps
}

fn count_steps(order: &ToyOrder) -> usize {
    let children_of = |step: &ToyStep| match step {
        ToyStep::Children { orders } | ToyStep::Pool { orders, .. } => orders.iter().map(count_steps).sum(),
        _ => 0,
    };
    order.steps.len() + order.steps.iter().map(children_of).sum::<usize>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_tree_ends_however_often_it_is_killed(
        steps in random_steps(3),
        seed in any::<u64>(),
        kills in prop::collection::vec(0usize..40, 0..12),
    ) {
        let mut run = MemoryRun::new(order("root", steps), seed);
        for kill_at in kills {
            run.live_once(&mut EntryBudget(Some(kill_at)));
        }
        let lives = 2 + 2 * count_steps(&run.order);
        let is_over = (0..lives).any(|_| matches!(run.live_once(&mut EntryBudget(None)), LifeEnd::Finished(_)));
        prop_assert!(is_over, "{} lives were not enough", lives);
        let step_ends = run.list_facts().iter().filter(|fact| fact.contains("\"step_done\"")).count();
        prop_assert_eq!(step_ends, count_steps(&run.order));
    }
}
