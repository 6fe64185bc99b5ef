//! The world of the court: it answers every effect of a review with what its simulated agents do to its document.

use std::collections::BTreeMap;

use tribunal_core::{
    brief::{Brief, Holds, Raised},
    desk::Ask,
    effect::{AskOutcome, Effect, Elapsed, PostOutcome, Reply, Requests, RestoreOutcome, WriteOutcome},
    fault::FaultKind,
    ids::AgentName,
    level::Role,
    limits::{Cost, Usage},
};

use super::{
    document::{DefectId, Document, PROVIDERS},
    fixer::Work,
    reviewer::Seat,
};
use crate::{
    dice::Dice,
    samples,
    trial::{Performed, World},
};

/// The agents, one for each provider, in the order in which the settings list them.
pub(super) const AGENTS: [&str; PROVIDERS] = ["amber", "birch", "cedar", "dogwood"];

/// The percentage of tasks that fail; the next one is that of unreadable answers.
const FAILS: usize = 1;
const UNREADABLE: usize = 1;

/// The percentages of verdicts on plausible false findings and on true ones; the rest is valid.
const INVALID_IF_FALSE: usize = 80;
const INVALID_IF_TRUE: usize = 5;
const AMBIGUOUS: usize = 10;

/// The truth about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    Defect(DefectId),
    False { groundless: bool },
}

/// A claim that a reviewer has raised.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    pub seat: Seat,
    pub description: String,
    pub truth: Truth,
}

/// The numbers of agent tasks that were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub reviewers: u64,
    pub challengers: u64,
    pub fixers: u64,
}

#[derive(Debug)]
pub(super) struct Courtroom {
    pub seed: u64,
    pub dice: Dice,
    pub document: Document,
    /// The number of defects at the start; all others come from fixes.
    pub planted: usize,
    /// The truth by the description of a claim. No two truths have the same description.
    pub truths: BTreeMap<String, Truth>,
    pub claims: Vec<Claimed>,
    /// The number of false claims that each provider still has to make.
    pub owed: [usize; PROVIDERS],
    /// The work of fixers that has not landed yet, by key.
    pub work: BTreeMap<String, Work>,
    pub calls: Calls,
}

impl Courtroom {
    pub fn new(seed: u64) -> Courtroom {
        let mut dice = Dice::new(seed);
        let document = Document::new(&mut dice);
        Courtroom {
            seed,
            planted: document.defects.len(),
            dice,
            document,
            truths: BTreeMap::new(),
            claims: Vec::new(),
            owed: [0; PROVIDERS],
            work: BTreeMap::new(),
            calls: Calls::default(),
        }
    }

    fn ask(&mut self, key: &str, agent: &AgentName, brief: &Brief) -> Reply {
        match brief.role {
            Role::Fixer => self.calls.fixers += 1,
            Role::Challenger => self.calls.challengers += 1,
            _ => self.calls.reviewers += 1,
        }
        let cents = match brief.role {
            Role::Challenger => 2 + self.dice.roll(5),
            _ => 6 + self.dice.roll(11),
        };
        let mut reply = match self.dice.roll(100) {
            roll if roll < FAILS => return samples::failed(FaultKind::TimedOut),
            roll if roll < FAILS + UNREADABLE => samples::unreadable(),
            _ => self.answer(key, agent, brief),
        };
        if let Reply::Ask(AskOutcome::Answered(reply)) = &mut reply {
            let cost = Some(Cost(cents as u64 * 10_000));
            reply.usage = Usage { input_tokens: 9_000, output_tokens: 1_500, cost, ..Usage::default() };
        }
        reply
    }

    fn answer(&mut self, key: &str, agent: &AgentName, brief: &Brief) -> Reply {
        match brief.role {
            Role::Fixer => self.fix(key, brief),
            Role::Challenger => {
                let said =
                    brief.disputed.iter().map(|disputed| (disputed.id, self.dispute(&disputed.description)));
                samples::rulings(said.collect())
            }
            role => {
                let provider = AGENTS.iter().position(|name| *name == agent.as_str()).unwrap_or(0);
                let seat = Seat { provider, role, round: brief.round };
                samples::findings(self.review(seat, brief))
            }
        }
    }

    /// The verdict of one challenger on a finding.
    pub fn dispute(&mut self, description: &str) -> Holds {
        let invalid = match self.truths.get(description) {
            Some(Truth::Defect(_)) => INVALID_IF_TRUE,
            _ => INVALID_IF_FALSE,
        };
        match self.dice.roll(100) {
            roll if roll < invalid => Holds::Invalid,
            roll if roll < invalid + AMBIGUOUS => Holds::Ambiguous,
            _ => Holds::Valid,
        }
    }

    /// One look of a provider at the current text, outside any run.
    pub fn one_look(&mut self, provider: usize) -> Vec<Raised> {
        let subject = tribunal_core::subject::Subject::at("plan.md", None);
        let seat = Seat { provider, role: Role::Adversarial, round: 1 };
        self.review(seat, &Brief::new(Role::Adversarial, subject, 1))
    }
}

impl World for Courtroom {
    fn perform(&mut self, ask: &Ask) -> Performed {
        let reply = match &ask.effect {
            Effect::Freeze(_) => samples::frozen(&self.document.text()),
            Effect::Ask(asked) => self.ask(ask.key.as_str(), &asked.task.agent, &asked.task.brief),
            Effect::Land(landing) => self.land(landing.by.as_str()),
            // There is no session that could have changed the text.
            Effect::TakeIn(changed) => samples::taken_in(&changed.before, &self.document.text()),
            Effect::Write(_) => Reply::Write(WriteOutcome::Written {
                path: "plan-issues.md".into(),
                aside: None,
                strange: Vec::new(),
            }),
            // There is no user who would ever answer.
            Effect::Restore(_) => Reply::Restore(RestoreOutcome::Restored { parked: None }),
            Effect::Post(_) => Reply::Post(PostOutcome::Posted),
            Effect::Inbox(_) => Reply::Inbox(Requests::default()),
            Effect::Wait(wait) => return Performed::Park(wait.ending.clone()),
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
        };
        Performed::Reply(reply)
    }
}
