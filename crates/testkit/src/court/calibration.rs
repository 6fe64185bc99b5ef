//! Checks that the world has its configured rates: one look of every provider at fresh documents, and one challenger's verdict
//! on each claim.

use std::collections::BTreeSet;

use tribunal_core::{brief::Holds, ground::Ground};

use super::{
    document::PROVIDERS,
    seed_of,
    world::{Courtroom, Truth},
};

/// The measured shares, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calibration {
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
struct Counts {
    defects: u64,
    found: [u64; PROVIDERS],
    /// The numbers of claims and of groundless claims, for false and for true ones.
    claims: [[u64; 2]; 2],
    /// The verdicts on grounded claims: all, invalid, ambiguous; for false and for true ones.
    words: [[u64; 3]; 2],
}

pub fn calibrate(seed: u64, documents: u64) -> Calibration {
    let mut counts = Counts::default();
    for run in 0..documents {
        look(&mut Courtroom::new(seed_of(seed, run)), &mut counts);
    }
    let [of_false, of_true] = counts.claims;
    let words = |[all, invalid, ambiguous]: [u64; 3]| [percent(invalid, all), percent(ambiguous, all)];
    Calibration {
        found: counts.found.map(|found| percent(found, counts.defects)),
        groundless: percent(of_false[1], of_false[0]),
        true_groundless: percent(of_true[1], of_true[0]),
        on_false: words(counts.words[0]),
        on_true: words(counts.words[1]),
    }
}

fn look(world: &mut Courtroom, counts: &mut Counts) {
    let text = world.document.text();
    let Some(ground) = Ground::new("plan.md", &text, world.document.section) else { return };
    counts.defects += world.planted as u64;
    let mut found = BTreeSet::new();
    for provider in 0..PROVIDERS {
        for claim in world.one_look(provider) {
            let truth = world.truths.get(&claim.description).copied();
            let kind = usize::from(matches!(truth, Some(Truth::Defect(_))));
            if let Some(Truth::Defect(id)) = truth {
                found.insert(id);
            }
            let stands = ground.find(&claim).is_ok();
            counts.claims[kind][0] += 1;
            counts.claims[kind][1] += u64::from(!stands);
            if stands {
                let word = world.dispute(&claim.description);
                counts.words[kind][0] += 1;
                counts.words[kind][1] += u64::from(word == Holds::Invalid);
                counts.words[kind][2] += u64::from(word == Holds::Ambiguous);
            }
        }
        counts.found[provider] += found.len() as u64;
    }
}

pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
