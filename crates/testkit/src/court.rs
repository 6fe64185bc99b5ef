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

use tribunal_core::{
    level::{Level, Tier},
    settings::{AgentSpec, DriverSpec, Settings, TaskSettings},
    subject::Subject,
};

pub use calibration::{Calibration, calibrate};
pub use table::{ALLOWED, Allowed, Bar, bars, table};
pub use tally::{Defects, FalseOnes, Tally, TrueOnes};

use crate::{
    dice::Dice,
    samples,
    trial::{Life, Trial, review_workflow},
};
pub use world::Calls;
use world::{AGENTS, Courtroom};

/// The number of journal entries after which a run counts as endless.
const ENDLESS: usize = 10_000;
/// The time that passes between two journal entries.
const TICK_MS: u64 = 1_000;

/// One panel of reviewers to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    pub tier: u8,
    pub level: Option<Level>,
    pub providers: usize,
}

/// The variants that are compared. The first one has no second opinion.
pub const VARIANTS: [Variant; 5] = [
    Variant { name: "one reviewer, no challenge", tier: 0, level: Some(Level::Minimal), providers: 1 },
    Variant { name: "one provider", tier: 2, level: None, providers: 1 },
    Variant { name: "two providers", tier: 2, level: None, providers: 2 },
    Variant { name: "three providers", tier: 2, level: None, providers: 3 },
    Variant { name: "four providers", tier: 2, level: None, providers: 4 },
];

impl Variant {
    fn settings(&self, section: Option<&str>) -> Settings {
        let agents = AGENTS
            .iter()
            .take(self.providers)
            .map(|name| AgentSpec::new(*name, DriverSpec::Command { argv: vec![(*name).into()] }));
        Settings {
            subject: Subject::at("plan.md", section.map(String::from)),
            tier: Tier::new(self.tier).unwrap_or_default(),
            level: self.level,
            tasks: TaskSettings::default(),
            agents: agents.collect(),
            ..samples::settings()
        }
    }

    /// Simulates one run. The same seed gives the same document for every variant.
    pub fn run(&self, seed: u64) -> Tally {
        let world = Courtroom::new(seed);
        let settings = self.settings(world.document.section);
        let mut trial = Trial::new(settings, world, seed);
        trial.tick_ms = TICK_MS;
        trial.hasty = true;
        let ended = match trial.live(review_workflow, Some(ENDLESS)) {
            Life::Done(ending) | Life::Parked(ending) => Some(ending.reason),
            Life::Killed | Life::Stuck | Life::Diverged(_) => None,
        };
        tally::count(&trial.world, &trial.journal, ended)
    }

    /// Simulates runs 0 to `run_count` of a seed on all processors. The sum is the same on every machine.
    pub fn runs(&self, seed: u64, runs: u64) -> Tally {
        let workers = thread::available_parallelism().map_or(1, |number| number.get() as u64);
        thread::scope(|scope| {
            let share = |worker: u64| (worker..runs).step_by(workers as usize);
            let work: Vec<_> = (0..workers)
                .map(|worker| {
                    scope.spawn(move || {
                        share(worker)
                            .fold(Tally::default(), |sum, run| sum.plus(self.run(seed_of(seed, run))))
                    })
                })
                .collect();
            let sums = work.into_iter().map(|worker| match worker.join() {
                Ok(sum) => sum,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            sums.fold(Tally::default(), Tally::plus)
        })
    }
}

/// Derives the seed of one run among many.
pub fn seed_of(seed: u64, run: u64) -> u64 {
    let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ run);
    (dice.roll(1 << 30) as u64) << 30 | dice.roll(1 << 30) as u64
}
