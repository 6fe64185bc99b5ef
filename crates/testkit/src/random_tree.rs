//! A random world for runs with child runs: every child is a trial of its own, in a random world of its own, killed at random and
//! resumed.

use std::collections::BTreeMap;

use tribunal_engine::{
    ids::RunId,
    limits::{LimitShare, RunUsage, UsageTotals},
    reason::RunEnding,
};
use tribunal_workflows::{
    findings::reported_finding::LeftFindings,
    runs::{
        effect::{Effect, Reply},
        plan::RunPlan,
        settings::Settings,
        types::{ChildOutcome, ChildReport, PendingEffect, RunChild},
        view::RunView,
    },
};

use crate::{
    dice::Dice,
    random_world::RandomWorld,
    trial::{EffectResult, SimulatedWorld, TrialOutcome, TrialRun, ordered_workflow},
};

/// A child run and how it came back last.
#[derive(Debug)]
pub struct TreeChild {
    pub trial: TrialRun<RandomTree>,
    /// What it was given, each with the number of journal entries at that time.
    pub shares: Vec<(usize, LimitShare)>,
    pub outcome: Option<ChildOutcome>,
}

/// The world of one run of a tree.
#[derive(Debug)]
pub struct RandomTree {
    own_world: RandomWorld,
    dice: Dice,
    settings: Settings,
    pub children: BTreeMap<String, TreeChild>,
}

impl RandomTree {
    /// The settings are those of the run that lives in this world; its children inherit them.
    pub fn new(settings: Settings, seed: u64) -> RandomTree {
        let own_world = RandomWorld::new(seed);
        RandomTree { own_world, dice: Dice::new(seed ^ 0x7ee), settings, children: BTreeMap::new() }
    }

    fn run_child(&mut self, run_child: &RunChild, resumed: bool) -> ChildOutcome {
        let mut settings = self.settings.clone();
        settings.limits.share = Some(run_child.share);
        let child_seed = self.dice.roll(1 << 20) as u64;
        let child = self.children.entry(run_child.name.clone()).or_insert_with(|| {
            let plan = RunPlan { settings: settings.clone(), order: run_child.order.clone() };
            let world = RandomTree::new(settings.clone(), child_seed);
            TreeChild { trial: TrialRun::new(plan, world, child_seed), shares: Vec::new(), outcome: None }
        });
        child.shares.push((child.trial.journal.len(), run_child.share));
        child.trial.plan.settings = settings.clone();
        child.trial.world.settings = settings;
        // The end of a child is kept: only a new request continues one that waits.
        let is_over = matches!(child.outcome, Some(ChildOutcome::Ended(_)));
        if let Some(outcome) = child.outcome.clone().filter(|_| resumed || is_over) {
            return outcome;
        }
        let outcome = child.drive(&mut self.dice, &run_child.name);
        child.outcome = Some(outcome.clone());
        outcome
    }
}

impl TreeChild {
    /// Executes the child until it ends or parks, killed now and then.
    fn drive(&mut self, dice: &mut Dice, name: &str) -> ChildOutcome {
        loop {
            let kill_at = dice.roll_percent(20).then(|| dice.roll(40));
            match self.trial.run_workflow(ordered_workflow, kill_at) {
                TrialOutcome::Killed => {}
                TrialOutcome::Done(ending) => return ChildOutcome::Ended(self.report(name, &ending)),
                TrialOutcome::Parked(ending) => return ChildOutcome::Waiting(self.report(name, &ending)),
                unexpected => panic!("child {name}: {unexpected:?}"),
            }
        }
    }

    fn report(&self, name: &str, ending: &RunEnding) -> ChildReport {
        ChildReport {
            run: RunId::new(name),
            outcome: ending.reason.outcome(),
            reason: ending.reason,
            detail: ending.detail.clone(),
            used: total_usage(&self.trial),
            worked_ms: RunView::from_entries(&self.trial.journal).last_time.awake_ms,
            result: LeftFindings::default(),
        }
    }
}

/// Returns what a run and all runs below it used, according to their journals.
pub fn total_usage(trial: &TrialRun<RandomTree>) -> UsageTotals {
    let mut usage = RunUsage::default();
    usage.add_child(&RunView::from_entries(&trial.journal).usage.usage_totals());
    for child in trial.world.children.values() {
        usage.add_child(&total_usage(&child.trial));
    }
    usage.usage_totals()
}

impl SimulatedWorld for RandomTree {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        match &ask.effect {
            Effect::RunChild(run_child) => EffectResult::Reply(Reply::RunChild(self.run_child(run_child, ask.resumed))),
            _ => self.own_world.perform(ask),
        }
    }
}
