//! Counts the results of a run from its journal and from what its world knows, and adds them up over runs.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_core::{
    challenge::Ruled,
    event::{Entry, Event},
    finding::{Dismissal, Raiser, Status, Transition},
    ids::FindingId,
    reason::{Outcome, Reason},
};

use super::{
    document::DefectId,
    world::{AGENTS, Calls, Courtroom, Truth},
};

/// Sums over runs; they can be added in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub runs: u64,
    pub false_ones: FalseOnes,
    pub true_ones: TrueOnes,
    pub defects: Defects,
    pub rounds: u64,
    pub most_rounds: u64,
    pub calls: Calls,
    /// The number of claims that reviewers raised; `false_claims` are those that are false.
    pub claims: u64,
    pub false_claims: u64,
    /// The number of runs by outcome and reason.
    pub ends: BTreeMap<(&'static str, &'static str), u64>,
    /// The seeds of runs that did not end.
    pub endless: BTreeSet<u64>,
    /// The number of claims that were joined to a finding about something else.
    pub misjoined: u64,
}

/// The numbers of distinct false findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FalseOnes {
    pub raised: u64,
    /// Those that a fixer got at least once.
    pub to_fixer: u64,
    /// Of these: not challenged, because another reviewer seemed to have raised the same.
    pub corroborated: u64,
    /// Of these: upheld by challengers; `in_doubt` are those left in doubt.
    pub upheld: u64,
    pub in_doubt: u64,
}

/// The numbers of defects that were raised, however often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrueOnes {
    pub raised: u64,
    /// Those that no fixer got, that wait for no decision, and that are still present.
    pub lost: u64,
    /// Of these: refuted; the next two are those not found in the text and those joined to something else.
    pub refuted: u64,
    pub ungrounded: u64,
    pub misjoined: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    pub before: u64,
    /// Of these: raised by at least one reviewer.
    pub found: u64,
    /// Those that fixes have added.
    pub added: u64,
    pub left: u64,
}

impl Tally {
    pub fn plus(mut self, other: Tally) -> Tally {
        let (f, of) = (&mut self.false_ones, other.false_ones);
        f.raised += of.raised;
        f.to_fixer += of.to_fixer;
        f.corroborated += of.corroborated;
        f.upheld += of.upheld;
        f.in_doubt += of.in_doubt;
        let (t, of) = (&mut self.true_ones, other.true_ones);
        t.raised += of.raised;
        t.lost += of.lost;
        t.refuted += of.refuted;
        t.ungrounded += of.ungrounded;
        t.misjoined += of.misjoined;
        let (d, of) = (&mut self.defects, other.defects);
        d.before += of.before;
        d.found += of.found;
        d.added += of.added;
        d.left += of.left;
        self.runs += other.runs;
        self.rounds += other.rounds;
        self.most_rounds = self.most_rounds.max(other.most_rounds);
        self.calls.reviewers += other.calls.reviewers;
        self.calls.challengers += other.calls.challengers;
        self.calls.fixers += other.calls.fixers;
        self.claims += other.claims;
        self.false_claims += other.false_claims;
        self.misjoined += other.misjoined;
        for (end, runs) in other.ends {
            *self.ends.entry(end).or_default() += runs;
        }
        self.endless.extend(other.endless);
        self
    }

    /// The number of runs with this outcome.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        let ends = self.ends.iter().filter(|((word, _), _)| *word == outcome.as_str());
        ends.map(|(_, runs)| runs).sum()
    }
}

/// The fate of one finding.
#[derive(Debug)]
struct Fate {
    truth: Truth,
    status: Status,
    ruled: Option<Ruled>,
    dealt: bool,
}

/// Counts one run. `end_reason` is `None` if it did not end.
pub(super) fn count(world: &Courtroom, journal: &[Entry], ended: Option<Reason>) -> Tally {
    let fates = fates(world, journal);
    let joined = misjoined(world, journal, &fates);
    let rounds =
        journal.iter().filter(|entry| matches!(entry.event, Event::RoundStarted { .. })).count() as u64;
    let mut tally = Tally {
        runs: 1,
        false_ones: false_ones(&fates),
        true_ones: true_ones(world, &fates, &joined),
        defects: defects(world),
        rounds,
        most_rounds: rounds,
        calls: world.calls,
        claims: world.claims.len() as u64,
        false_claims: world.claims.iter().filter(|claim| defect(claim.truth).is_none()).count() as u64,
        misjoined: joined.len() as u64,
        ..Tally::default()
    };
    match ended {
        Some(reason) => {
            let outcome = reason.outcome().map_or("parked", Outcome::as_str);
            tally.ends.insert((outcome, reason.code()), 1);
        }
        None => {
            tally.endless.insert(world.seed);
        }
    }
    tally
}

fn fates(world: &Courtroom, journal: &[Entry]) -> BTreeMap<FindingId, Fate> {
    let mut fates: BTreeMap<FindingId, Fate> = BTreeMap::new();
    for entry in journal {
        match &entry.event {
            Event::FindingRaised { finding } => {
                let known = world.truths.get(&finding.description).copied();
                let truth = known.unwrap_or(Truth::False { groundless: true });
                let fate = Fate { truth, status: finding.status.clone(), ruled: None, dealt: false };
                fates.insert(finding.id, fate);
            }
            Event::FindingMoved { finding, transition: Transition { to, .. } } => {
                if let Some(fate) = fates.get_mut(finding) {
                    fate.status = to.clone();
                }
            }
            Event::FindingRuled { finding, ruled, .. } => {
                if let Some(fate) = fates.get_mut(finding) {
                    fate.ruled = Some(*ruled);
                }
            }
            Event::FixersDealt { hands, .. } => {
                for id in hands.iter().flatten() {
                    if let Some(fate) = fates.get_mut(id) {
                        fate.dealt = true;
                    }
                }
            }
            _ => {}
        }
    }
    fates
}

fn false_ones(fates: &BTreeMap<FindingId, Fate>) -> FalseOnes {
    let mut sum = FalseOnes::default();
    for fate in fates.values().filter(|fate| matches!(fate.truth, Truth::False { .. })) {
        sum.raised += 1;
        if fate.dealt {
            sum.to_fixer += 1;
            sum.corroborated += u64::from(fate.ruled.is_none());
            sum.upheld += u64::from(matches!(fate.ruled, Some(Ruled::Valid)));
            sum.in_doubt += u64::from(matches!(fate.ruled, Some(Ruled::Ambiguous | Ruled::Unheard)));
        }
    }
    sum
}

fn true_ones(world: &Courtroom, fates: &BTreeMap<FindingId, Fate>, joined: &[DefectId]) -> TrueOnes {
    let raised: BTreeSet<DefectId> = world.claims.iter().filter_map(|claim| defect(claim.truth)).collect();
    let mut sum = TrueOnes { raised: raised.len() as u64, ..TrueOnes::default() };
    for id in raised.into_iter().filter(|id| world.document.defects[*id].alive) {
        let about: Vec<&Fate> = fates.values().filter(|fate| fate.truth == Truth::Defect(id)).collect();
        if about.iter().any(|fate| fate.dealt || !matches!(fate.status, Status::Dismissed { .. })) {
            continue;
        }
        let dismissed = |why| about.iter().any(|fate| fate.status == Status::Dismissed { why });
        sum.lost += 1;
        if dismissed(Dismissal::Invalid) {
            sum.refuted += 1;
        } else if dismissed(Dismissal::Ungrounded) {
            sum.ungrounded += 1;
        } else if joined.contains(&id) {
            sum.misjoined += 1;
        }
    }
    sum
}

fn defect(truth: Truth) -> Option<DefectId> {
    match truth {
        Truth::Defect(id) => Some(id),
        Truth::False { .. } => None,
    }
}

fn defects(world: &Courtroom) -> Defects {
    let all = &world.document.defects;
    Defects {
        before: world.planted as u64,
        found: all.iter().take(world.planted).filter(|defect| !defect.said.is_empty()).count() as u64,
        added: (all.len() - world.planted) as u64,
        left: all.iter().filter(|defect| defect.alive).count() as u64,
    }
}

/// Finds defects whose claims were joined to a finding about something else, once for every such claim.
///
/// The journal tells which raiser joined which finding, but not with which of its claims. The result is what remains after
/// leaving out the claims that have a finding of their own or joined one about the same defect.
fn misjoined(world: &Courtroom, journal: &[Entry], fates: &BTreeMap<FindingId, Fate>) -> Vec<DefectId> {
    let mut joins: Vec<(&Raiser, Truth)> = Vec::new();
    let mut named: BTreeSet<(u32, usize, &str)> = BTreeSet::new();
    for entry in journal {
        match &entry.event {
            Event::FindingJoined { finding, raiser, .. } => {
                joins.extend(fates.get(finding).map(|fate| (raiser, fate.truth)));
            }
            Event::FindingRaised { finding } => {
                let first = &finding.raisers[0];
                named.insert((first.round, first.role as usize, finding.description.as_str()));
            }
            _ => {}
        }
    }
    let mut wrong = Vec::new();
    for claim in &world.claims {
        let (seat, Some(id)) = (claim.seat, defect(claim.truth)) else { continue };
        if named.contains(&(seat.round, seat.role as usize, claim.description.as_str())) {
            continue;
        }
        let same = |raiser: &Raiser| {
            raiser.round == seat.round
                && raiser.role == seat.role
                && raiser.agent.as_str() == AGENTS[seat.provider]
        };
        if !joins.iter().any(|(raiser, truth)| same(raiser) && *truth == claim.truth)
            && joins.iter().any(|(raiser, _)| same(raiser))
        {
            wrong.push(id);
        }
    }
    wrong
}
