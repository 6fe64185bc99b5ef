//! The world of the court: it answers every effect of a review with what its simulated agents do to its document.

use std::collections::BTreeMap;

use tribunal_engine::{
    effect::{Elapsed, PostOutcome, RecordsWritten, RestoreOutcome},
    fault::FaultKind,
    ids::AgentName,
    limits::{AgentUsage, Cost},
};
use tribunal_workflows::{
    findings::{agent_role::AgentRole, finding::Evidence},
    runs::{
        effect::{AskOutcome, Effect, Reply, WriteOutcome},
        types::{PendingEffect, RecordList, Requests},
    },
    tasks::{
        brief::{AgentTask, RaisedFinding, ReviewBrief},
        claims::ChallengeVerdict,
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

/// The percentage of cases in which a challenger repeats the verdict of another one of its provider.
const SAME_VERDICT_PERCENT: usize = 25;

/// The percentages of wrong verdicts of a judge, and of those in doubt.
const JUDGE_ACCEPTS_WRONG: usize = 10;
const JUDGE_REJECTS_RIGHT: usize = 5;
const JUDGE_IN_DOUBT: usize = 5;

/// What one request of an agent costs.
pub(super) const REQUEST_CENTS: u64 = 4;

/// The truth about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimTruth {
    Defect(DefectId),
    False { groundless: bool },
}

/// Identifies a claim: flaws from one template have the same description, and only their quotes tell them apart.
pub(super) fn truth_key(description: &str, evidence: &Evidence) -> String {
    match evidence {
        Evidence::Quote { text } => format!("{description}\n{text}"),
        _ => description.to_string(),
    }
}

/// A claim that a reviewer has raised.
#[derive(Clone, Debug)]
pub(super) struct RecordedClaim {
    pub seat: CourtSeat,
    pub description: String,
    pub evidence: Evidence,
    pub truth: ClaimTruth,
}

/// The numbers of agent tasks that were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCalls {
    pub reviewers: u64,
    pub challengers: u64,
    pub fixers: u64,
    pub judges: u64,
}

#[derive(Debug)]
pub(super) struct Courtroom {
    pub seed: u64,
    pub dice: Dice,
    pub document: CourtDocument,
    /// The number of defects at the start; all others come from fixes.
    pub planted: usize,
    /// The truth by the key of a claim.
    pub truths: BTreeMap<String, ClaimTruth>,
    /// The last verdict of each provider on a claim.
    last_verdicts: BTreeMap<(usize, String), ChallengeVerdict>,
    /// The number of landed changes that no finding asked for.
    pub landed_off_task: u64,
    /// What the agents have cost, and the most that a single request did.
    pub spent: Cost,
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
            last_verdicts: BTreeMap::new(),
            landed_off_task: 0,
            spent: Cost::default(),
            claims: Vec::new(),
            owed_claims: [0; PROVIDERS],
            pending_work: BTreeMap::new(),
            calls: AgentCalls::default(),
        }
    }

    fn answer_task(&mut self, effect_key: &str, task: &AgentTask, brief: &ReviewBrief) -> Reply {
        let agent = &task.agent;
        match brief.role {
            AgentRole::Fixer => self.calls.fixers += 1,
            AgentRole::Challenger => self.calls.challengers += 1,
            AgentRole::Judge => self.calls.judges += 1,
            _ => self.calls.reviewers += 1,
        }
        let cents = match brief.role {
            AgentRole::Challenger | AgentRole::Judge => 2 + self.dice.roll(5),
            _ => 6 + self.dice.roll(11),
        };
        // A client ends a task with the first request that passes its budget.
        let budget_cents = task.budget.map_or(u64::MAX, |budget| budget.0 / 10_000 + REQUEST_CENTS);
        let cents = (cents as u64).min(budget_cents) as usize;
        self.spent += Cost(cents as u64 * 10_000);
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
                let provider = provider_index(agent);
                let verdicts = brief.disputed.iter().map(|disputed| {
                    let key = truth_key(&disputed.description, &disputed.evidence);
                    (disputed.id, self.challenge_claim(provider, key))
                });
                samples::rulings_reply(verdicts.collect())
            }
            AgentRole::Judge => self.judge_change(effect_key, brief),
            role => {
                let provider = provider_index(agent);
                let seat = CourtSeat { provider, role, round: brief.round };
                samples::findings_reply(self.review_document(seat, brief))
            }
        }
    }

    /// The verdict of a challenger of this provider on a claim. Challengers of one provider err together.
    fn challenge_claim(&mut self, provider: usize, key: String) -> ChallengeVerdict {
        let earlier_verdict = self.last_verdicts.get(&(provider, key.clone())).copied();
        let verdict = match earlier_verdict {
            Some(earlier_verdict) if self.dice.roll_percent(SAME_VERDICT_PERCENT) => earlier_verdict,
            _ => self.judge_claim(&key),
        };
        self.last_verdicts.insert((provider, key), verdict);
        verdict
    }

    /// What a judge says about the work of a fixer.
    fn judge_change(&mut self, judge_key: &str, brief: &ReviewBrief) -> Reply {
        let fixer_key = judge_key.split("/judge").next().unwrap_or_default();
        let work = self.pending_work.get(fixer_key);
        let is_repaired: Vec<bool> = brief
            .assigned
            .iter()
            .map(|finding| match self.truths.get(&truth_key(&finding.description, &finding.evidence)) {
                Some(ClaimTruth::Defect(defect_id)) => {
                    work.is_some_and(|work| work.repairs_defect(*defect_id))
                        || !self.document.defects[*defect_id].is_present
                }
                // What is changed for a false finding does what the finding asks for.
                _ => true,
            })
            .collect();
        let off_task_flags = work.map(FixerWork::off_task_flags).unwrap_or_default();
        let verdicts = brief.assigned.iter().zip(is_repaired);
        let verdicts = verdicts.map(|(finding, is_repaired)| (finding.id, self.roll_judgement(is_repaired)));
        let mut reply = samples::rulings_reply(verdicts.collect());
        let part_verdicts: Vec<ChallengeVerdict> =
            off_task_flags.into_iter().map(|is_off_task| self.roll_judgement(!is_off_task)).collect();
        samples::set_part_verdicts(&mut reply, &part_verdicts);
        reply
    }

    fn roll_judgement(&mut self, is_right: bool) -> ChallengeVerdict {
        let wrong_percent = if is_right { JUDGE_REJECTS_RIGHT } else { 100 - JUDGE_ACCEPTS_WRONG - JUDGE_IN_DOUBT };
        match self.dice.roll(100) {
            roll if roll < wrong_percent => ChallengeVerdict::Invalid,
            roll if roll < wrong_percent + JUDGE_IN_DOUBT => ChallengeVerdict::Ambiguous,
            _ => ChallengeVerdict::Valid,
        }
    }

    /// The independent verdict of one challenger on a claim.
    pub fn judge_claim(&mut self, key: &str) -> ChallengeVerdict {
        let invalid_percent = match self.truths.get(key) {
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
        let subject = tribunal_workflows::findings::subject::Subject::from_path("plan.md", None);
        let seat = CourtSeat { provider, role: AgentRole::Adversarial, round: 1 };
        self.review_document(seat, &ReviewBrief::new(AgentRole::Adversarial, subject, 1))
    }
}

fn provider_index(agent: &AgentName) -> usize {
    AGENTS.iter().position(|name| *name == agent.as_str()).unwrap_or(0)
}

impl SimulatedWorld for Courtroom {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::Freeze(_) => samples::frozen_reply(&self.document.full_text()),
            Effect::Ask(asked) => match asked.task.brief.as_review() {
                Some(brief) => self.answer_task(ask.effect_key.as_str(), &asked.task, brief),
                // A review has no tasks without a subject.
                None => samples::unreadable_reply(),
            },
            Effect::Land(landing) => self.land_work(landing),
            // There is no session that could have changed the text.
            Effect::TakeIn(changed) => samples::taken_in_reply(&changed.before, &self.document.full_text()),
            Effect::Write(_) => Reply::Write(WriteOutcome::Written {
                path: "plan-issues.md".into(),
                kept_copy: None,
                unusable_edits: Vec::new(),
            }),
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
