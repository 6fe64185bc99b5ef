//! Plans which fixer gets which open findings.
//!
//! In one fix iteration every open finding is offered exactly once, most severe first, in waves of parallel fixers. Two
//! fixers of a wave never have findings of one section (of one file, if it has no sections): their patches could conflict.
//! Findings without a place could be anywhere, so they come last, one fixer in each wave.

use alloc::{string::String, vec, vec::Vec};

use crate::{finding::Finding, ids::FindingId, settings::TaskSettings};

/// The findings of each fixer in one wave.
pub type Wave = Vec<Vec<FindingId>>;

pub fn deal(open: &[Finding], settings: &TaskSettings) -> Vec<Wave> {
    let most = settings.max_issues_per_agent.max(1) as usize;
    let (mut left, mut anywhere): (Vec<&Finding>, Vec<&Finding>) =
        open.iter().partition(|finding| finding.place.is_some());
    // The most severe findings go into the first wave; ids make the order reproducible.
    left.sort_by_key(|finding| (finding.severity, finding.id));
    anywhere.sort_by_key(|finding| (finding.severity, finding.id));
    let mut waves = vec![];
    while !left.is_empty() {
        // A fixer is worth starting for about three findings.
        let fixers = left.len().div_ceil(3).min(settings.max_concurrent_fixers.max(1) as usize);
        let mut hands: Vec<Hand> = vec![Hand::default(); fixers];
        // Each wave takes at least one finding, so the loop ends.
        left.retain(|finding| !offer(&mut hands, finding, most));
        waves.push(hands.into_iter().map(|hand| hand.findings).filter(|hand| !hand.is_empty()).collect());
    }
    waves.extend(anywhere.chunks(most).map(|some| vec![some.iter().map(|finding| finding.id).collect()]));
    waves
}

#[derive(Clone, Default)]
struct Hand {
    territories: Vec<String>,
    findings: Vec<FindingId>,
}

/// Gives the finding to the fixer that has its section, else to the one with the fewest findings. Returns false if no fixer
/// can take it in this wave.
fn offer(hands: &mut [Hand], finding: &Finding, most: usize) -> bool {
    let territory = territory(finding);
    let holder = hands.iter().position(|hand| hand.territories.contains(&territory));
    let index = holder.or_else(|| (0..hands.len()).min_by_key(|index| hands[*index].findings.len()));
    let Some(hand) = index.and_then(|index| hands.get_mut(index)) else { return false };
    // The section's fixer is full; another one must not get the finding in the same wave.
    if hand.findings.len() >= most {
        return false;
    }
    if holder.is_none() {
        hand.territories.push(territory);
    }
    hand.findings.push(finding.id);
    true
}

fn territory(finding: &Finding) -> String {
    match &finding.place {
        Some(place) => alloc::format!("{}\n{}", place.file, place.section),
        None => String::new(),
    }
}
