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

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity};

/// The statistics of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sheet {
    /// The weight of the new findings that are believed.
    pub weight: u32,
    /// The number of claims, one for each reviewer and finding: what three reviewers raise counts three times.
    pub raised: u32,
    /// The number of claims that are ungrounded or invalid.
    pub unbelieved: u32,
    /// Everything was fixed and verified before the round.
    pub all_fixed_before: bool,
}

pub fn weight(severity: Severity) -> u32 {
    match severity {
        Severity::Critical => 8,
        Severity::High => 4,
        Severity::Medium => 2,
        Severity::Low => 1,
    }
}

impl Sheet {
    /// Counts what was raised about a finding in this round.
    pub fn count(&mut self, finding: &Finding, round: u32) {
        let voices = finding.raisers.iter().filter(|raiser| raiser.round == round).count() as u32;
        // Raisers are in order, so the first one says in which round the finding is new.
        let new = finding.raisers.first().is_some_and(|first| first.round == round);
        self.raised += voices;
        if finding.status.is_refuted() {
            self.unbelieved += voices;
        } else if new {
            self.weight += weight(finding.severity);
        }
    }
}

/// Returns why the panel is degraded, if it is.
pub fn sign(last: Option<&Sheet>, now: &Sheet) -> Option<String> {
    // This sign needs no earlier round.
    if now.unbelieved * 2 > now.raised {
        return Some(format!("{} of {} claims are not believed", now.unbelieved, now.raised));
    }
    let last = last?;
    if now.all_fixed_before && now.weight > last.weight {
        let (before, after) = (last.weight, now.weight);
        return Some(format!(
            "what is new weighs {after} after {before}, though everything was fixed in between"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(weight: u32, raised: u32, unbelieved: u32, all_fixed_before: bool) -> Sheet {
        Sheet { weight, raised, unbelieved, all_fixed_before }
    }

    #[test]
    fn the_table_holds() {
        let first = sheet(10, 4, 2, false);
        for (last, now, bad) in [
            (None, first, false),
            (None, sheet(10, 4, 3, false), true),
            (None, sheet(0, 0, 0, false), false),
            (Some(first), sheet(11, 3, 0, true), true),
            (Some(first), sheet(10, 3, 0, true), false),
            (Some(first), sheet(11, 3, 0, false), false),
            (Some(first), sheet(1, 3, 2, false), true),
        ] {
            assert_eq!(sign(last.as_ref(), &now).is_some(), bad, "{last:?} then {now:?}");
        }
    }
}
