//! Runs with child runs in random worlds: every run of every kind ends, within its limits and the share it was given.

use std::collections::BTreeSet;

use tribunal_engine::{
    limits::{Cost, LimitShare, RunUsage},
    reason::{RunEnding, RunOutcome},
};
use tribunal_testkit::{
    Dice, RandomTree, samples, total_usage,
    trial::{TrialOutcome, TrialRun, ordered_workflow},
};
use tribunal_workflows::{
    runs::{
        effect::{AskOutcome, Effect, Reply},
        kinds::RunOrder,
        plan::RunPlan,
        types::{ChildOutcome, JournalEntry, RunEvent},
    },
    toy::{ToyChild, ToyOrder, ToyStep},
};

/// An order with random steps; reviews are the leaves.
fn random_order(dice: &mut Dice, depth: usize) -> RunOrder {
    if depth == 0 || dice.roll_percent(40) {
        let mut plan = samples::sample_plan();
        plan.order.panel.required_issues = dice.roll(3) as u32;
        plan.order.fix = !dice.roll_percent(10);
        return plan.order.into();
    }
    let steps = (0..1 + dice.roll(3)).map(|index| match dice.roll(6) {
        0 => ToyStep::Sleep { ms: 1 },
        1 => ToyStep::Question { text: "Shall it rain?".to_string() },
        2 if index > 0 => ToyStep::Fail { detail: "the disk is gone".to_string() },
        _ => {
            let children = (0..1 + dice.roll(3)).map(|number| ToyChild {
                name: format!("{index}-{number}"),
                order: Box::new(random_order(dice, depth - 1)),
            });
            let children = children.collect();
            match dice.roll(2) {
                0 => ToyStep::Children { children },
                _ => ToyStep::Pool { children, at_once: 1 + dice.roll(3) as u32 },
            }
        }
    });
    let steps = steps.collect();
    ToyOrder { name: "toy".to_string(), steps }.into()
}

fn random_tree(seed: u64) -> TrialRun<RandomTree> {
    let mut dice = Dice::new(seed);
    let mut settings = samples::sample_settings();
    settings.limits.tokens = [2_000, 20_000, 200_000][dice.roll(3)];
    settings.limits.cost = Cost::from_amount(5.0);
    let children = (0..1 + dice.roll(3))
        .map(|number| ToyChild { name: format!("c{number}"), order: Box::new(random_order(&mut dice, 2)) })
        .collect();
    let children_step = match seed % 2 {
        0 => ToyStep::Children { children },
        _ => ToyStep::Pool { children, at_once: 2 },
    };
    let steps = vec![children_step, ToyStep::Sleep { ms: 1 }];
    let order = ToyOrder { name: "root".to_string(), steps };
    TrialRun::new(RunPlan { settings: settings.clone(), order }, RandomTree::new(settings, seed), seed)
}

/// Checks that a run asked no agent in a stage that began with its tokens used up: it may exceed its share by what one stage
/// requests at once, and by no more.
fn assert_shares_held(journal: &[JournalEntry], shares: &[(usize, LimitShare)], name: &str) {
    let mut used = RunUsage::default();
    let mut used_at_boundary = 0;
    for (index, entry) in journal.iter().enumerate() {
        let current_share = shares.iter().rev().find(|(from_index, _)| *from_index <= index);
        let token_limit = current_share.map_or(u64::MAX, |(_, share)| share.tokens);
        match &entry.event {
            RunEvent::Boundary { .. } => used_at_boundary = used.uncosted_tokens,
            RunEvent::EffectStarted { effect: Effect::Ask(_), .. } => {
                assert!(used_at_boundary < token_limit, "{name}: {used_at_boundary} of {token_limit} tokens were used");
            }
            RunEvent::EffectFinished { reply: Reply::Ask(AskOutcome::Answered(reply)), .. } => {
                used.add_usage(&reply.usage);
            }
            _ => {}
        }
    }
}

fn check_tree(trial: &TrialRun<RandomTree>, name: &str, seed: u64, outcomes: &mut BTreeSet<&'static str>) {
    for (child_name, child) in &trial.world.children {
        let child_name = format!("seed {seed}: {name}/{child_name}");
        assert_shares_held(&child.trial.journal, &child.shares, &child_name);
        if let Some(outcome) = &child.outcome {
            let (ChildOutcome::Ended(report) | ChildOutcome::Waiting(report)) = outcome else {
                panic!("{child_name}: {outcome:?}");
            };
            outcomes.extend(report.outcome.map(RunOutcome::as_str));
        }
        check_tree(&child.trial, &child_name, seed, outcomes);
    }
}

fn is_end(outcome: &TrialOutcome<RunEnding>) -> bool {
    matches!(outcome, TrialOutcome::Done(_) | TrialOutcome::Parked(_))
}

#[test]
fn every_run_of_a_tree_ends_within_its_limits() {
    let mut outcomes = BTreeSet::new();
    let mut done_count = 0;
    for seed in 0..120 {
        let mut trial = random_tree(seed);
        let token_limit = trial.plan.settings.limits.tokens;
        let mut outcome = trial.run_workflow(ordered_workflow, None);
        for _ in 0..4 {
            assert!(is_end(&outcome), "seed {seed}: {outcome:?}");
            if matches!(outcome, TrialOutcome::Done(_)) {
                done_count += 1;
                break;
            }
            // The user resumes the root; the children that wait are continued.
            outcome = trial.run_workflow(ordered_workflow, None);
        }
        check_tree(&trial, "root", seed, &mut outcomes);
        // Children that run side by side divide what is left, so together they stay within the limit of the root, apart from
        // what the last stages of each had requested at once.
        let used = total_usage(&trial).uncosted_tokens;
        let run_count = count_runs(&trial);
        assert!(used < token_limit + run_count * 120 * 12, "seed {seed}: {used} of {token_limit} by {run_count} runs");
    }
    assert!(done_count > 12, "only {done_count} trees came to their end");
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["cancelled", "failed", "halted", "resolved", "waiting"]);
}

fn count_runs(trial: &TrialRun<RandomTree>) -> u64 {
    1 + trial.world.children.values().map(|child| count_runs(&child.trial)).sum::<u64>()
}

#[test]
fn a_tree_killed_at_any_write_never_diverges() {
    for seed in 0..6 {
        let mut uninterrupted = random_tree(seed);
        uninterrupted.run_workflow(ordered_workflow, None);
        for kill_at in 0..uninterrupted.write_count() {
            let mut trial = random_tree(seed);
            assert_eq!(trial.run_workflow(ordered_workflow, Some(kill_at)), TrialOutcome::Killed, "seed {seed}");
            let outcome = trial.run_workflow(ordered_workflow, None);
            assert!(is_end(&outcome), "seed {seed}, killed at {kill_at}: {outcome:?}");
        }
    }
}
