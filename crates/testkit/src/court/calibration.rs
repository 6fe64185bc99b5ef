//! Checks that the world has its configured rates: one look of every provider at fresh documents, and one challenger's verdict
//! on each claim.

use std::collections::BTreeSet;

use tribunal_workflows::{review::ground::EvidenceFinder, tasks::claims::ChallengeVerdict};

use super::{
    derive_seed,
    document::PROVIDERS,
    world::{ClaimTruth, Courtroom, truth_key},
};

/// The measured shares, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct CourtCalibration {
    /// The defects that one look of one, two, three, four providers finds.
    pub found: [f64; PROVIDERS],
    /// The false claims whose evidence the rules of the product do not find.
    pub groundless: f64,
    /// The true claims whose evidence they do not find; there should be none.
    pub true_groundless: f64,
    /// The verdicts invalid and ambiguous on plausible false claims; `on_true` has those on true ones.
    pub on_false: [f64; 2],
    pub on_true: [f64; 2],
}

#[derive(Default)]
struct CalibrationCounts {
    defects: u64,
    found: [u64; PROVIDERS],
    /// The numbers of claims and of groundless claims, for false and for true ones.
    claims: [[u64; 2]; 2],
    /// The verdicts on grounded claims: all, invalid, ambiguous; for false and for true ones.
    verdicts: [[u64; 3]; 2],
}

pub fn calibrate(seed: u64, documents: u64) -> CourtCalibration {
    let mut counts = CalibrationCounts::default();
    for document_number in 0..documents {
        look_at_document(&mut Courtroom::new(derive_seed(seed, document_number)), &mut counts);
    }
    let [false_claims, true_claims] = counts.claims;
    let verdict_shares = |[all, invalid, ambiguous]: [u64; 3]| [percent(invalid, all), percent(ambiguous, all)];
    CourtCalibration {
        found: counts.found.map(|found| percent(found, counts.defects)),
        groundless: percent(false_claims[1], false_claims[0]),
        true_groundless: percent(true_claims[1], true_claims[0]),
        on_false: verdict_shares(counts.verdicts[0]),
        on_true: verdict_shares(counts.verdicts[1]),
    }
}

fn look_at_document(world: &mut Courtroom, counts: &mut CalibrationCounts) {
    let document_text = world.document.full_text();
    let Some(evidence_finder) = EvidenceFinder::new("plan.md", &document_text, world.document.section) else {
        return;
    };
    counts.defects += world.planted as u64;
    let mut found = BTreeSet::new();
    for provider in 0..PROVIDERS {
        for claim in world.look_once(provider) {
            let truth = world.truths.get(&truth_key(&claim.description, &claim.evidence)).copied();
            let truth_index = usize::from(matches!(truth, Some(ClaimTruth::Defect(_))));
            if let Some(ClaimTruth::Defect(defect_id)) = truth {
                found.insert(defect_id);
            }
            let is_grounded = evidence_finder.find_evidence(&claim).is_ok();
            counts.claims[truth_index][0] += 1;
            counts.claims[truth_index][1] += u64::from(!is_grounded);
            if is_grounded {
                let verdict = world.judge_claim(&truth_key(&claim.description, &claim.evidence));
                counts.verdicts[truth_index][0] += 1;
                counts.verdicts[truth_index][1] += u64::from(verdict == ChallengeVerdict::Invalid);
                counts.verdicts[truth_index][2] += u64::from(verdict == ChallengeVerdict::Ambiguous);
            }
        }
        counts.found[provider] += found.len() as u64;
    }
}

pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
