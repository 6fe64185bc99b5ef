//! Counts the results of a run from its journal and from what its world knows, and adds them up over runs.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::{
    ids::FindingId,
    limits::Cost,
    reason::{RunOutcome, RunReason},
};
use tribunal_workflows::{
    findings::finding::{DismissalReason, FindingRaiser, FindingStatus, StatusTransition},
    review::{challenge_rules::ChallengeResult, event::ReviewEvent},
    runs::types::{JournalEntry, find_event},
};

use super::{
    document::DefectId,
    world::{AGENTS, AgentCalls, ClaimTruth, Courtroom, REQUEST_CENTS, truth_key},
};

/// The limit of a run, and one request more for each of three tasks at the same time.
const MOST_COST: Cost = Cost(5_000_000 + 3 * REQUEST_CENTS * 10_000);

/// Sums over runs; they can be added in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CourtTally {
    pub runs: u64,
    pub false_ones: FalseFindings,
    pub true_ones: TrueFindings,
    pub defects: DefectCounts,
    pub rounds: u64,
    pub max_rounds: u64,
    pub calls: AgentCalls,
    pub claims: ClaimCounts,
    /// The number of runs by outcome and reason.
    pub ends: BTreeMap<(&'static str, &'static str), u64>,
    /// The seeds of runs that did not end.
    pub endless: BTreeSet<u64>,
    pub repairs: RepairCounts,
    /// The number of runs that cost more than their limit and one request for each task at the same time.
    pub over_budget: u64,
}

/// The numbers of claims that reviewers raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimCounts {
    pub raised: u64,
    /// Of these: false.
    pub untrue: u64,
    /// Of these: joined to a finding about something else.
    pub misjoined: u64,
}

/// The numbers of findings about true defects that ended as fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairCounts {
    pub fixed: u64,
    /// Of these: the defect is still there.
    pub unrepaired: u64,
    /// The landed changes that no finding asked for.
    pub off_task: u64,
}

/// The numbers of distinct false findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FalseFindings {
    pub raised: u64,
    /// Those that a fixer got at least once.
    pub to_fixer: u64,
    /// Of these: not challenged, because another reviewer seemed to have raised the same.
    pub corroborated: u64,
    /// Of these: upheld by challengers; `in_doubt` are those left in doubt or not heard.
    pub upheld: u64,
    pub in_doubt: u64,
}

/// The numbers of defects that were raised, however often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrueFindings {
    pub raised: u64,
    /// Those that are still present, that no fixer got, and whose findings, if they have any, were all dismissed.
    pub lost: u64,
    /// Of these: refuted; the next two are those not found in the text and those joined to something else.
    pub refuted: u64,
    pub ungrounded: u64,
    pub misjoined: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefectCounts {
    pub before: u64,
    /// Of these: raised by at least one reviewer.
    pub found: u64,
    /// Those that fixes have added.
    pub added: u64,
    pub left: u64,
}

impl CourtTally {
    pub fn merge(mut self, second: CourtTally) -> CourtTally {
        let (false_sum, added) = (&mut self.false_ones, second.false_ones);
        false_sum.raised += added.raised;
        false_sum.to_fixer += added.to_fixer;
        false_sum.corroborated += added.corroborated;
        false_sum.upheld += added.upheld;
        false_sum.in_doubt += added.in_doubt;
        let (true_sum, added) = (&mut self.true_ones, second.true_ones);
        true_sum.raised += added.raised;
        true_sum.lost += added.lost;
        true_sum.refuted += added.refuted;
        true_sum.ungrounded += added.ungrounded;
        true_sum.misjoined += added.misjoined;
        let (defect_sum, added) = (&mut self.defects, second.defects);
        defect_sum.before += added.before;
        defect_sum.found += added.found;
        defect_sum.added += added.added;
        defect_sum.left += added.left;
        self.runs += second.runs;
        self.rounds += second.rounds;
        self.max_rounds = self.max_rounds.max(second.max_rounds);
        self.calls.reviewers += second.calls.reviewers;
        self.calls.challengers += second.calls.challengers;
        self.calls.fixers += second.calls.fixers;
        self.calls.judges += second.calls.judges;
        self.claims.raised += second.claims.raised;
        self.claims.untrue += second.claims.untrue;
        self.claims.misjoined += second.claims.misjoined;
        self.repairs.fixed += second.repairs.fixed;
        self.repairs.unrepaired += second.repairs.unrepaired;
        self.repairs.off_task += second.repairs.off_task;
        self.over_budget += second.over_budget;
        for (end, runs) in second.ends {
            *self.ends.entry(end).or_default() += runs;
        }
        self.endless.extend(second.endless);
        self
    }

    /// The number of runs with this outcome.
    pub fn count_ended(&self, outcome: RunOutcome) -> u64 {
        let ends = self.ends.iter().filter(|((outcome_word, _), _)| *outcome_word == outcome.as_str());
        ends.map(|(_, runs)| runs).sum()
    }
}

/// The fate of one finding.
#[derive(Debug)]
struct FindingFate {
    truth: ClaimTruth,
    status: FindingStatus,
    ruled: Option<ChallengeResult>,
    reached_fixer: bool,
}

/// Counts one run. `end_reason` is `None` if it did not end.
pub(super) fn tally_run(world: &Courtroom, journal: &[JournalEntry], end_reason: Option<RunReason>) -> CourtTally {
    let fates = trace_fates(world, journal);
    let misjoined_defects = find_misjoined(world, journal, &fates);
    let rounds = journal
        .iter()
        .filter(|entry| matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::RoundStarted { .. })))
        .count() as u64;
    let mut tally = CourtTally {
        runs: 1,
        false_ones: count_false_findings(&fates),
        true_ones: count_true_findings(world, &fates, &misjoined_defects),
        defects: count_defects(world),
        rounds,
        max_rounds: rounds,
        calls: world.calls,
        claims: ClaimCounts {
            raised: world.claims.len() as u64,
            untrue: world.claims.iter().filter(|claim| defect_of_truth(claim.truth).is_none()).count() as u64,
            misjoined: misjoined_defects.len() as u64,
        },
        repairs: count_repairs(world, &fates),
        over_budget: u64::from(world.spent > MOST_COST),
        ..CourtTally::default()
    };
    match end_reason {
        Some(reason) => {
            let outcome = reason.outcome().map_or("parked", RunOutcome::as_str);
            tally.ends.insert((outcome, reason.code()), 1);
        }
        None => {
            tally.endless.insert(world.seed);
        }
    }
    tally
}

fn trace_fates(world: &Courtroom, journal: &[JournalEntry]) -> BTreeMap<FindingId, FindingFate> {
    let mut fates: BTreeMap<FindingId, FindingFate> = BTreeMap::new();
    for entry in journal {
        match find_event::<ReviewEvent>(&entry.event) {
            Some(ReviewEvent::FindingRaised { finding }) => {
                let known_truth = world.truths.get(&truth_key(&finding.description, &finding.evidence)).copied();
                let truth = known_truth.unwrap_or(ClaimTruth::False { groundless: true });
                let fate = FindingFate { truth, status: finding.status.clone(), ruled: None, reached_fixer: false };
                fates.insert(finding.id, fate);
            }
            Some(ReviewEvent::FindingMoved { finding: finding_id, transition: StatusTransition { to, .. } }) => {
                if let Some(fate) = fates.get_mut(finding_id) {
                    fate.status = to.clone();
                }
            }
            Some(ReviewEvent::FindingRuled { finding: finding_id, ruled, .. }) => {
                if let Some(fate) = fates.get_mut(finding_id) {
                    fate.ruled = Some(*ruled);
                }
            }
            Some(ReviewEvent::FixersDealt { hands, .. }) => {
                for id in hands.iter().flatten() {
                    if let Some(fate) = fates.get_mut(id) {
                        fate.reached_fixer = true;
                    }
                }
            }
            _ => {}
        }
    }
    fates
}

fn count_false_findings(fates: &BTreeMap<FindingId, FindingFate>) -> FalseFindings {
    let mut sum = FalseFindings::default();
    for fate in fates.values().filter(|fate| matches!(fate.truth, ClaimTruth::False { .. })) {
        sum.raised += 1;
        if fate.reached_fixer {
            sum.to_fixer += 1;
            sum.corroborated += u64::from(fate.ruled.is_none());
            sum.upheld += u64::from(matches!(fate.ruled, Some(ChallengeResult::Valid)));
            sum.in_doubt +=
                u64::from(matches!(fate.ruled, Some(ChallengeResult::Ambiguous | ChallengeResult::Unheard)));
        }
    }
    sum
}

fn count_repairs(world: &Courtroom, fates: &BTreeMap<FindingId, FindingFate>) -> RepairCounts {
    let mut sum = RepairCounts { off_task: world.landed_off_task, ..RepairCounts::default() };
    for fate in fates.values().filter(|fate| fate.status == FindingStatus::Fixed) {
        if let ClaimTruth::Defect(defect_id) = fate.truth {
            sum.fixed += 1;
            sum.unrepaired += u64::from(world.document.defects[defect_id].is_present);
        }
    }
    sum
}

fn count_true_findings(
    world: &Courtroom,
    fates: &BTreeMap<FindingId, FindingFate>,
    misjoined_defects: &[DefectId],
) -> TrueFindings {
    let raised: BTreeSet<DefectId> = world.claims.iter().filter_map(|claim| defect_of_truth(claim.truth)).collect();
    let mut sum = TrueFindings { raised: raised.len() as u64, ..TrueFindings::default() };
    for defect_id in raised.into_iter().filter(|defect_id| world.document.defects[*defect_id].is_present) {
        let defect_fates: Vec<&FindingFate> =
            fates.values().filter(|fate| fate.truth == ClaimTruth::Defect(defect_id)).collect();
        if defect_fates.iter().any(|fate| fate.reached_fixer || !matches!(fate.status, FindingStatus::Dismissed { .. }))
        {
            continue;
        }
        let dismissed =
            |dismissal| defect_fates.iter().any(|fate| fate.status == FindingStatus::Dismissed { why: dismissal });
        sum.lost += 1;
        if dismissed(DismissalReason::Invalid) {
            sum.refuted += 1;
        } else if dismissed(DismissalReason::Ungrounded) {
            sum.ungrounded += 1;
        } else if misjoined_defects.contains(&defect_id) {
            sum.misjoined += 1;
        }
    }
    sum
}

fn defect_of_truth(truth: ClaimTruth) -> Option<DefectId> {
    match truth {
        ClaimTruth::Defect(id) => Some(id),
        ClaimTruth::False { .. } => None,
    }
}

fn count_defects(world: &Courtroom) -> DefectCounts {
    let all_defects = &world.document.defects;
    DefectCounts {
        before: world.planted as u64,
        found: all_defects.iter().take(world.planted).filter(|defect| !defect.descriptions.is_empty()).count() as u64,
        added: (all_defects.len() - world.planted) as u64,
        left: all_defects.iter().filter(|defect| defect.is_present).count() as u64,
    }
}

/// Finds defects whose claims were joined to a finding about something else, once for every such claim.
///
/// The journal tells which raiser joined which finding, but not with which of its claims. The result is what remains after
/// leaving out the claims that have a finding of their own or joined one about the same defect.
fn find_misjoined(
    world: &Courtroom,
    journal: &[JournalEntry],
    fates: &BTreeMap<FindingId, FindingFate>,
) -> Vec<DefectId> {
    let mut joins: Vec<(&FindingRaiser, ClaimTruth)> = Vec::new();
    let mut own_findings: BTreeSet<(u32, usize, String)> = BTreeSet::new();
    for entry in journal {
        match find_event::<ReviewEvent>(&entry.event) {
            Some(ReviewEvent::FindingJoined { finding: finding_id, raiser, .. }) => {
                joins.extend(fates.get(finding_id).map(|fate| (raiser, fate.truth)));
            }
            Some(ReviewEvent::FindingRaised { finding }) => {
                let first_raiser = &finding.raisers[0];
                let key = truth_key(&finding.description, &finding.evidence);
                own_findings.insert((first_raiser.round, first_raiser.role as usize, key));
            }
            _ => {}
        }
    }
    let mut misjoined_defects = Vec::new();
    for claim in &world.claims {
        let (seat, Some(defect_id)) = (claim.seat, defect_of_truth(claim.truth)) else { continue };
        let key = truth_key(&claim.description, &claim.evidence);
        if own_findings.contains(&(seat.round, seat.role as usize, key)) {
            continue;
        }
        let is_same_seat = |raiser: &FindingRaiser| {
            raiser.round == seat.round && raiser.role == seat.role && raiser.agent.as_str() == AGENTS[seat.provider]
        };
        if !joins.iter().any(|(raiser, truth)| is_same_seat(raiser) && *truth == claim.truth)
            && joins.iter().any(|(raiser, _)| is_same_seat(raiser))
        {
            misjoined_defects.push(defect_id);
        }
    }
    misjoined_defects
}
