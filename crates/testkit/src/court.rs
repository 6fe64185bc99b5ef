//! The simulated court: reviews of documents whose defects are known, by agents whose error rates are known.
//!
//! It drives the real workflow over a world of its own and counts false findings that reach a fixer, true ones that are lost,
//! remaining defects, rounds, and agent calls. The rules are those of the product; none of them is repeated here. The
//! assumptions about agents and the meaning of the figures are in `docs/court.md`.

mod calibration;
mod document;
mod fixer;
mod reviewer;
mod table;
mod tally;
mod vocabulary;
mod world;

use std::thread;

use tribunal_engine::tier::ProcessTier;
use tribunal_workflows::{
    findings::subject::Subject,
    review::{
        level::ReviewLevel,
        order::{PanelSettings, ReviewOrder},
    },
    runs::{
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
    },
};

pub use calibration::{CourtCalibration, calibrate};
pub use table::{ALLOWED_RATES, AllowedRates, CourtBar, check_bars, render_table};
pub use tally::{ClaimCounts, CourtTally, DefectCounts, FalseFindings, RepairCounts, TrueFindings};

use crate::{
    dice::Dice,
    samples,
    trial::{TrialOutcome, TrialRun, ordered_workflow},
};
pub use world::AgentCalls;
use world::{AGENTS, Courtroom};

/// The number of journal entries after which a run counts as endless.
const MAX_ENTRIES: usize = 10_000;
/// The time that passes between two journal entries.
const TICK_MS: u64 = 1_000;

/// One panel of reviewers to simulate.
#[derive(Clone, Copy, Debug)]
pub struct CourtVariant {
    pub name: &'static str,
    pub tier: u8,
    pub level: Option<ReviewLevel>,
    pub providers: usize,
}

/// The variants that are compared. The first one has no second opinion.
pub const VARIANTS: [CourtVariant; 5] = [
    CourtVariant { name: "one reviewer, no challenge", tier: 0, level: Some(ReviewLevel::Minimal), providers: 1 },
    CourtVariant { name: "one provider", tier: 2, level: None, providers: 1 },
    CourtVariant { name: "two providers", tier: 2, level: None, providers: 2 },
    CourtVariant { name: "three providers", tier: 2, level: None, providers: 3 },
    CourtVariant { name: "four providers", tier: 2, level: None, providers: 4 },
];

impl CourtVariant {
    fn plan(&self, section: Option<&str>) -> RunPlan<ReviewOrder> {
        let agents = AGENTS
            .iter()
            .take(self.providers)
            .map(|name| AgentSpec::new(*name, DriverSpec::Command { argv: vec![(*name).into()] }));
        samples::sample_plan().with_change(|plan| {
            plan.settings.tier = ProcessTier::new(self.tier).unwrap_or_default();
            plan.settings.agents = agents.collect();
            plan.order.subject = Subject::from_path("plan.md", section.map(String::from));
            plan.order.level = self.level;
            plan.order.panel = PanelSettings::default();
        })
    }

    /// Simulates one run. The same seed gives the same document for every variant.
    pub fn run_once(&self, seed: u64) -> CourtTally {
        let world = Courtroom::new(seed);
        let plan = self.plan(world.document.section);
        let mut trial = TrialRun::new(plan, world, seed);
        trial.tick_ms = TICK_MS;
        trial.keeps_raw_entries = true;
        let end_reason = match trial.run_workflow(ordered_workflow, Some(MAX_ENTRIES)) {
            TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => Some(ending.reason),
            TrialOutcome::Killed | TrialOutcome::Stuck | TrialOutcome::Diverged(_) => None,
        };
        tally::tally_run(&trial.world, &trial.journal, end_reason)
    }

    /// Simulates runs 0 to `run_count` of a seed on all processors. The sum is the same on every machine.
    pub fn run_many(&self, seed: u64, run_count: u64) -> CourtTally {
        let worker_count = thread::available_parallelism().map_or(1, |number| number.get() as u64);
        thread::scope(|scope| {
            let worker_runs = |worker: u64| (worker..run_count).step_by(worker_count as usize);
            let worker_threads: Vec<_> = (0..worker_count)
                .map(|worker| {
                    scope.spawn(move || {
                        worker_runs(worker)
                            .fold(CourtTally::default(), |sum, run| sum.merge(self.run_once(derive_seed(seed, run))))
                    })
                })
                .collect();
            let worker_sums = worker_threads.into_iter().map(|worker| match worker.join() {
                Ok(sum) => sum,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            worker_sums.fold(CourtTally::default(), CourtTally::merge)
        })
    }
}

/// Derives the seed of one run among many.
pub fn derive_seed(seed: u64, run_number: u64) -> u64 {
    let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ run_number);
    (dice.roll(1 << 30) as u64) << 30 | dice.roll(1 << 30) as u64
}
