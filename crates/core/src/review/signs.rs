//! Signs that a panel has gone bad: it raises worse things after everything was fixed, or most of what it raises is not
//! believed. Reviewers can always find something; a loop must not run on only because of that.
//!
//! | round | before it | weight of what is new | not believed | sign |
//! | --- | --- | --- | --- | --- |
//! | 1 | | | at most half | none |
//! | any | | | more than half | unbelieved |
//! | 2 up | all fixed and verified | more than in the round before | at most half | rising |
//! | 2 up | all fixed and verified | no more than in the round before | at most half | none |
//! | 2 up | something was left | | at most half | none |
//!
//! The first sign gives one more round, with another panel. The second ends the run. What this module does not do is count
//! rounds: that is [`super::next`]'s.

use alloc::{format, string::String};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity};

/// What one round came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sheet {
    /// Of new findings that are believed.
    pub weight: u32,
    /// Claims that were raised, one a reviewer and finding: what three say is thrice as loud as what one dreams up.
    pub raised: u32,
    /// Of these: ungrounded or invalid.
    pub unbelieved: u32,
    /// Before it, everything was fixed and verified.
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
    /// Takes into account what was raised about a finding in this round.
    pub fn count(&mut self, finding: &Finding, round: u32) {
        let voices = finding.raisers.iter().filter(|raiser| raiser.round == round).count() as u32;
        let new = finding.raisers.first().is_some_and(|first| first.round == round);
        self.raised += voices;
        if finding.status.is_refuted() {
            self.unbelieved += voices;
        } else if new {
            self.weight += weight(finding.severity);
        }
    }
}

/// Why the panel is degraded, if it is.
pub fn sign(last: Option<&Sheet>, now: &Sheet) -> Option<String> {
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
