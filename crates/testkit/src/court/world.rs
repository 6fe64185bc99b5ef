//! The world of the court: it answers every effect of a review with what its simulated agents do to its document.

use std::collections::BTreeMap;

use tribunal_core::{
    engine::{
        effect::{
            AskOutcome, Effect, Elapsed, PostOutcome, RecordList, RecordsWritten, Reply, Requests, RestoreOutcome,
            WriteOutcome,
        },
        ids::AgentName,
        limits::{AgentUsage, Cost},
        replayer::PendingEffect,
    },
    review::level::AgentRole,
    tasks::{
        brief::{RaisedFinding, ReviewBrief},
        claims::ChallengeVerdict,
        fault::FaultKind,
    },
};

use super::{
    document::{CourtDocument, DefectId, PROVIDERS},
    fixer::FixerWork,
    reviewer::CourtSeat,
};
use crate::{
    dice::Dice,
    samples,
    trial::{EffectResult, SimulatedWorld},
};

/// The agents, one for each provider, in the order in which the settings list them.
pub(super) const AGENTS: [&str; PROVIDERS] = ["amber", "birch", "cedar", "dogwood"];

/// The percentage of tasks that fail; the next one is that of unreadable answers.
const FAILURE_PERCENT: usize = 1;
const UNREADABLE_PERCENT: usize = 1;

/// The percentages of verdicts on plausible false findings and on true ones; the rest is valid.
const INVALID_IF_FALSE: usize = 80;
const INVALID_IF_TRUE: usize = 5;
const AMBIGUOUS: usize = 10;

/// The truth about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimTruth {
    Defect(DefectId),
    False { groundless: bool },
}

/// A claim that a reviewer has raised.
#[derive(Clone, Debug)]
pub(super) struct RecordedClaim {
    pub seat: CourtSeat,
    pub description: String,
    pub truth: ClaimTruth,
}

/// The numbers of agent tasks that were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCalls {
    pub reviewers: u64,
    pub challengers: u64,
    pub fixers: u64,
}

#[derive(Debug)]
pub(super) struct Courtroom {
    pub seed: u64,
    pub dice: Dice,
    pub document: CourtDocument,
    /// The number of defects at the start; all others come from fixes.
    pub planted: usize,
    /// The truth by the description of a claim. No two truths have the same description.
    pub truths: BTreeMap<String, ClaimTruth>,
    pub claims: Vec<RecordedClaim>,
    /// The number of false claims that each provider still has to make.
    pub owed_claims: [usize; PROVIDERS],
    /// The work of fixers that has not landed yet, by key.
    pub pending_work: BTreeMap<String, FixerWork>,
    pub calls: AgentCalls,
}

impl Courtroom {
    pub fn new(seed: u64) -> Courtroom {
        let mut dice = Dice::new(seed);
        let document = CourtDocument::new(&mut dice);
        Courtroom {
            seed,
            planted: document.defects.len(),
            dice,
            document,
            truths: BTreeMap::new(),
            claims: Vec::new(),
            owed_claims: [0; PROVIDERS],
            pending_work: BTreeMap::new(),
            calls: AgentCalls::default(),
        }
    }

    fn answer_task(&mut self, effect_key: &str, agent: &AgentName, brief: &ReviewBrief) -> Reply {
        match brief.role {
            AgentRole::Fixer => self.calls.fixers += 1,
            AgentRole::Challenger => self.calls.challengers += 1,
            _ => self.calls.reviewers += 1,
        }
        let cents = match brief.role {
            AgentRole::Challenger => 2 + self.dice.roll(5),
            _ => 6 + self.dice.roll(11),
        };
        let mut reply = match self.dice.roll(100) {
            roll if roll < FAILURE_PERCENT => return samples::failed_task_reply(FaultKind::TimedOut),
            roll if roll < FAILURE_PERCENT + UNREADABLE_PERCENT => samples::unreadable_reply(),
            _ => self.answer_brief(effect_key, agent, brief),
        };
        if let Reply::Ask(AskOutcome::Answered(reply)) = &mut reply {
            let cost = Some(Cost(cents as u64 * 10_000));
            reply.usage = AgentUsage { input_tokens: 9_000, output_tokens: 1_500, cost, ..AgentUsage::default() };
        }
        reply
    }

    fn answer_brief(&mut self, effect_key: &str, agent: &AgentName, brief: &ReviewBrief) -> Reply {
        match brief.role {
            AgentRole::Fixer => self.fix_findings(effect_key, brief),
            AgentRole::Challenger => {
                let verdicts =
                    brief.disputed.iter().map(|disputed| (disputed.id, self.judge_claim(&disputed.description)));
                samples::rulings_reply(verdicts.collect())
            }
            role => {
                let provider = AGENTS.iter().position(|name| *name == agent.as_str()).unwrap_or(0);
                let seat = CourtSeat { provider, role, round: brief.round };
                samples::findings_reply(self.review_document(seat, brief))
            }
        }
    }

    /// The verdict of one challenger on a finding.
    pub fn judge_claim(&mut self, description: &str) -> ChallengeVerdict {
        let invalid_percent = match self.truths.get(description) {
            Some(ClaimTruth::Defect(_)) => INVALID_IF_TRUE,
            _ => INVALID_IF_FALSE,
        };
        match self.dice.roll(100) {
            roll if roll < invalid_percent => ChallengeVerdict::Invalid,
            roll if roll < invalid_percent + AMBIGUOUS => ChallengeVerdict::Ambiguous,
            _ => ChallengeVerdict::Valid,
        }
    }

    /// One look of a provider at the current text, outside any run.
    pub fn look_once(&mut self, provider: usize) -> Vec<RaisedFinding> {
        let subject = tribunal_core::review::subject::Subject::from_path("plan.md", None);
        let seat = CourtSeat { provider, role: AgentRole::Adversarial, round: 1 };
        self.review_document(seat, &ReviewBrief::new(AgentRole::Adversarial, subject, 1))
    }
}

impl SimulatedWorld for Courtroom {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::Freeze(_) => samples::frozen_reply(&self.document.full_text()),
            Effect::Ask(asked) => match asked.task.brief.as_review() {
                Some(brief) => self.answer_task(ask.effect_key.as_str(), &asked.task.agent, brief),
                // A review has no tasks without a subject.
                None => samples::unreadable_reply(),
            },
            Effect::Land(landing) => self.land_work(landing.by.as_str()),
            // There is no session that could have changed the text.
            Effect::TakeIn(changed) => samples::taken_in_reply(&changed.before, &self.document.full_text()),
            Effect::Write(_) => {
                Reply::Write(WriteOutcome::Written { path: "plan-issues.md".into(), aside: None, strange: Vec::new() })
            }
            // There is no user who would ever answer.
            Effect::Restore(_) => Reply::Restore(RestoreOutcome::Restored { parked: None }),
            Effect::Post(_) => Reply::Post(PostOutcome::Posted),
            Effect::Inbox(_) => Reply::Inbox(Requests::default()),
            Effect::Wait(wait) => return EffectResult::Park(wait.ending.clone()),
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            Effect::AwaitReset(_) => Reply::AwaitReset(Elapsed {}),
            // Every run of this world is the first one on its document.
            Effect::ReadRecords(_) => Reply::ReadRecords(RecordList::default()),
            Effect::WriteRecords(_) => Reply::WriteRecords(RecordsWritten {}),
            // There are no child runs in this world, and nothing is developed.
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}
