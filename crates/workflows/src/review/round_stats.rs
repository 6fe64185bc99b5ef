//! Detects a degraded panel: it raises worse findings after everything was fixed, or most of what it raises is not
//! believed. Reviewers can always find something; that alone must not keep a loop running.
//!
//! | round | before it | weight of what is new | not believed | sign |
//! | --- | --- | --- | --- | --- |
//! | 1 | | | at most half | none |
//! | any | | | more than half | unbelieved |
//! | 2 up | all fixed and verified | more than in the round before | at most half | rising |
//! | 2 up | all fixed and verified | no more than in the round before | at most half | none |
//! | 2 up | something was left | | at most half | none |
//!
//! The first sign gives one more round, with another panel. The second ends the run. Rounds are counted in
//! the module `next_stage`, not here.

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::finding::{Finding, FindingStatus, Severity};

/// The statistics of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RoundStats {
    /// The weight of the new findings that are believed and that the user has not dismissed in an earlier run.
    pub weight: u32,
    /// The number of claims, one for each reviewer and finding: what three reviewers raise counts three times.
    pub raised: u32,
    /// The number of claims that are ungrounded or invalid.
    pub unbelieved: u32,
    /// Everything was fixed and verified before the round.
    pub all_fixed_before: bool,
}

pub fn severity_weight(severity: Severity) -> u32 {
    match severity {
        Severity::Critical => 8,
        Severity::High => 4,
        Severity::Medium => 2,
        Severity::Low => 1,
    }
}

impl RoundStats {
    /// Counts what was raised about a finding in this round.
    pub fn count_finding(&mut self, finding: &Finding, round: u32) {
        let claim_count = finding.raisers.iter().filter(|raiser| raiser.round == round).count() as u32;
        // Raisers are in order, so the first one says in which round the finding is new.
        let is_new = finding.raisers.first().is_some_and(|first_raiser| first_raiser.round == round);
        self.raised += claim_count;
        if finding.status.is_refuted() {
            self.unbelieved += claim_count;
        } else if is_new && !matches!(finding.status, FindingStatus::Dismissed { .. }) {
            self.weight += severity_weight(finding.severity);
        }
    }
}

/// Returns why the panel is degraded, if it is.
pub fn find_degradation(previous: Option<&RoundStats>, current: &RoundStats) -> Option<String> {
    // This sign needs no earlier round.
    if current.unbelieved * 2 > current.raised {
        return Some(format!("{} of {} claims were dismissed", current.unbelieved, current.raised));
    }
    let previous = previous?;
    if current.all_fixed_before && current.weight > previous.weight {
        let (weight_before, weight_after) = (previous.weight, current.weight);
        return Some(format!(
            "new findings weigh more than before ({weight_after}, was {weight_before}), although everything had been fixed"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_stats(weight: u32, raised: u32, unbelieved: u32, all_fixed_before: bool) -> RoundStats {
        RoundStats { weight, raised, unbelieved, all_fixed_before }
    }

    #[test]
    fn the_table_holds() {
        let first_round = round_stats(10, 4, 2, false);
        for (previous, current, is_degraded) in [
            (None, first_round, false),
            (None, round_stats(10, 4, 3, false), true),
            (None, round_stats(0, 0, 0, false), false),
            (Some(first_round), round_stats(11, 3, 0, true), true),
            (Some(first_round), round_stats(10, 3, 0, true), false),
            (Some(first_round), round_stats(11, 3, 0, false), false),
            (Some(first_round), round_stats(1, 3, 2, false), true),
        ] {
            assert_eq!(
                find_degradation(previous.as_ref(), &current).is_some(),
                is_degraded,
                "{previous:?} then {current:?}"
            );
        }
    }
}
