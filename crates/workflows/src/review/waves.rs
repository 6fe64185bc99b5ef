//! Plans which fixer gets which open findings.
//!
//! In one fix iteration every open finding is offered exactly once, most severe first, in waves of parallel fixers. Two
//! fixers of a wave never have findings of one section (of one file, if it has no sections): their patches could conflict.
//! Findings without a place could be anywhere, so they come last, one fixer in each wave.

use alloc::{string::String, vec, vec::Vec};

use crate::{findings::finding::Finding, review::order::FixerSettings};
use tribunal_engine::ids::FindingId;

/// The findings of each fixer in one wave.
pub type FixWave = Vec<Vec<FindingId>>;

pub fn plan_waves(open_findings: &[Finding], fixer_settings: &FixerSettings) -> Vec<FixWave> {
    let max_per_fixer = fixer_settings.max_issues_per_agent.max(1) as usize;
    let (mut unassigned, mut without_place): (Vec<&Finding>, Vec<&Finding>) =
        open_findings.iter().partition(|finding| finding.place.is_some());
    // The most severe findings go into the first wave; ids make the order reproducible.
    unassigned.sort_by_key(|finding| (finding.severity, finding.id));
    without_place.sort_by_key(|finding| (finding.severity, finding.id));
    let mut waves = vec![];
    while !unassigned.is_empty() {
        // A fixer is worth starting for about three findings.
        let fixer_count = unassigned.len().div_ceil(3).min(fixer_settings.max_concurrent.max(1) as usize);
        let mut fixer_loads: Vec<FixerLoad> = vec![FixerLoad::default(); fixer_count];
        // Each wave takes at least one finding, so the loop ends.
        unassigned.retain(|finding| !assign_finding(&mut fixer_loads, finding, max_per_fixer));
        waves.push(
            fixer_loads
                .into_iter()
                .map(|fixer_load| fixer_load.findings)
                .filter(|assigned_ids| !assigned_ids.is_empty())
                .collect(),
        );
    }
    waves.extend(
        without_place.chunks(max_per_fixer).map(|chunk| vec![chunk.iter().map(|finding| finding.id).collect()]),
    );
    waves
}

#[derive(Clone, Default)]
struct FixerLoad {
    sections: Vec<String>,
    findings: Vec<FindingId>,
}

/// Gives the finding to the fixer that has its section, else to the one with the fewest findings. Returns false if no fixer
/// can take it in this wave.
fn assign_finding(fixer_loads: &mut [FixerLoad], finding: &Finding, max_per_fixer: usize) -> bool {
    let section = section_key(finding);
    let holder_index = fixer_loads.iter().position(|fixer_load| fixer_load.sections.contains(&section));
    let fixer_index = holder_index
        .or_else(|| (0..fixer_loads.len()).min_by_key(|fixer_index| fixer_loads[*fixer_index].findings.len()));
    let Some(fixer_load) = fixer_index.and_then(|fixer_index| fixer_loads.get_mut(fixer_index)) else {
        return false;
    };
    // The fixer is full. If it has the section, another one must not get the finding in the same wave.
    if fixer_load.findings.len() >= max_per_fixer {
        return false;
    }
    if holder_index.is_none() {
        fixer_load.sections.push(section);
    }
    fixer_load.findings.push(finding.id);
    true
}

fn section_key(finding: &Finding) -> String {
    match &finding.place {
        Some(place) => alloc::format!("{}\n{}", place.file, place.section),
        None => String::new(),
    }
}
