//! Chooses the level of a review from its tier and the confidence of the last review of the same subject.
//!
//! | tier | confidence | level |
//! | --- | --- | --- |
//! | 0 | any | minimal |
//! | 1 | any | dual |
//! | 2-4 | above 98 | minimal |
//! | 2-4 | 95 to 98 | dual |
//! | 2-4 | below 95 | full |
//! | 2-4 | not reviewed before, or changed since | full |
//!
//! The settings may have other thresholds. With the policy `floor`, the level is at least the one that they have for the tier.

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::review::{level::ReviewLevel, review_record::LastReview};
use tribunal_engine::{text::word_table::words, tier::ProcessTier};

/// How the level follows from tier and confidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LevelRules {
    /// A higher confidence needs only a minimal panel.
    pub minimal_above: u32,
    /// From this confidence on, a dual panel is enough.
    pub dual_from: u32,
    pub policy: LevelPolicy,
    pub tier_minimums: TierMinimums,
}

impl Default for LevelRules {
    fn default() -> Self {
        LevelRules {
            minimal_above: 98,
            dual_from: 95,
            policy: LevelPolicy::default(),
            tier_minimums: TierMinimums::default(),
        }
    }
}

/// Whether the minimums of the tiers apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LevelPolicy {
    /// The table alone decides.
    #[default]
    Table,
    /// The level is at least the minimum of the tier.
    Floor,
}

words!(LevelPolicy { Table = "table", Floor = "floor" });

/// The smallest panel for each tier; `None` allows any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct TierMinimums {
    pub tier_0: Option<ReviewLevel>,
    pub tier_1: Option<ReviewLevel>,
    pub tier_2: Option<ReviewLevel>,
    pub tier_3: Option<ReviewLevel>,
    pub tier_4: Option<ReviewLevel>,
}

impl TierMinimums {
    fn for_tier(&self, tier: ProcessTier) -> Option<ReviewLevel> {
        match tier.number() {
            0 => self.tier_0,
            1 => self.tier_1,
            2 => self.tier_2,
            3 => self.tier_3,
            _ => self.tier_4,
        }
    }
}

/// A level with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenLevel {
    pub level: ReviewLevel,
    pub reason: String,
}

impl LevelRules {
    pub fn is_default(&self) -> bool {
        *self == LevelRules::default()
    }

    /// Chooses the level by the tier and by what is known of the last review of the same subject.
    pub fn choose_level(&self, tier: ProcessTier, last: &LastReview) -> ChosenLevel {
        let table_level = self.table_level(tier, last.valid_confidence().map(|last| last.confidence.score));
        let mut reason = format!("tier {tier}");
        if tier.number() >= 2 {
            reason.push_str(&match last {
                LastReview::Never => String::from(", not reviewed before"),
                LastReview::OtherText { run } => format!(", changed since it was reviewed in {run}"),
                LastReview::SameText(last) => format!(", confidence {} in {}", last.confidence.score, last.run),
            });
        }
        let level = match (self.tier_minimums.for_tier(tier).filter(|minimum| *minimum > table_level), self.policy) {
            (Some(minimum), LevelPolicy::Floor) => {
                reason.push_str(&format!(", at least {minimum} at this tier"));
                minimum
            }
            (Some(_), LevelPolicy::Table) => {
                reason.push_str("; minimums of tiers apply only with `levels.policy: floor`");
                table_level
            }
            (None, _) => table_level,
        };
        ChosenLevel { level, reason }
    }

    /// Looks the level up in the table of this module. The confidence is the one without the tier's deduction.
    fn table_level(&self, tier: ProcessTier, confidence: Option<u32>) -> ReviewLevel {
        match (tier.number(), confidence) {
            (0, _) => ReviewLevel::Minimal,
            (1, _) => ReviewLevel::Dual,
            // The confidence lowers the effort only from tier 2 on; below that the tier alone decides.
            (_, Some(score)) if score > self.minimal_above => ReviewLevel::Minimal,
            (_, Some(score)) if score >= self.dual_from => ReviewLevel::Dual,
            _ => ReviewLevel::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{
        confidence::{Confidence, ConfidenceBand},
        review_record::LastConfidence,
    };
    use tribunal_engine::ids::RunId;

    fn last_review(score: u32) -> LastReview {
        let band = ConfidenceBand::from_score(score);
        let shares = alloc::vec![];
        let confidence = Confidence { score, band, shares, adjustment: 0, for_gates: score, edge: None, capped: false };
        LastReview::SameText(LastConfidence { confidence, run: RunId::new("plan-1") })
    }

    fn choose(rules: &LevelRules, tier_number: u8, score: Option<u32>) -> (ReviewLevel, String) {
        let last = score.map_or(LastReview::Never, last_review);
        let chosen = rules.choose_level(ProcessTier::new(tier_number).unwrap(), &last);
        (chosen.level, chosen.reason)
    }

    #[test]
    fn the_confidence_of_another_text_counts_for_nothing() {
        let last = LastReview::OtherText { run: RunId::new("plan-1") };
        let chosen = LevelRules::default().choose_level(ProcessTier::new(3).unwrap(), &last);
        assert_eq!(chosen.level, ReviewLevel::Full);
        assert_eq!(chosen.reason, "tier 3, changed since it was reviewed in plan-1");
    }

    #[test]
    fn the_level_table_holds_at_its_borders() {
        for (tier_number, confidence, level) in [
            (0, None, ReviewLevel::Minimal),
            (0, Some(10), ReviewLevel::Minimal),
            (1, Some(99), ReviewLevel::Dual),
            (2, None, ReviewLevel::Full),
            (2, Some(94), ReviewLevel::Full),
            (3, Some(95), ReviewLevel::Dual),
            (3, Some(98), ReviewLevel::Dual),
            (4, Some(99), ReviewLevel::Minimal),
        ] {
            let (chosen, reason) = choose(&LevelRules::default(), tier_number, confidence);
            assert_eq!(chosen, level, "tier {tier_number}, confidence {confidence:?}: {reason}");
        }
    }

    #[test]
    fn thresholds_of_the_settings_replace_those_of_the_table() {
        let rules = LevelRules { minimal_above: 70, dual_from: 60, ..LevelRules::default() };
        assert_eq!(choose(&rules, 2, Some(71)).0, ReviewLevel::Minimal);
        assert_eq!(choose(&rules, 2, Some(70)).0, ReviewLevel::Dual);
        assert_eq!(choose(&rules, 2, Some(60)).0, ReviewLevel::Dual);
        assert_eq!(choose(&rules, 2, Some(59)).0, ReviewLevel::Full);
    }

    #[test]
    fn minimums_are_floors_only_with_that_policy() {
        let tier_minimums = TierMinimums {
            tier_0: Some(ReviewLevel::Dual),
            tier_2: Some(ReviewLevel::Full),
            ..TierMinimums::default()
        };
        let table = LevelRules { tier_minimums, ..LevelRules::default() };
        let floor = LevelRules { policy: LevelPolicy::Floor, ..table.clone() };
        assert_eq!(
            choose(&table, 2, Some(99)),
            (
                ReviewLevel::Minimal,
                "tier 2, confidence 99 in plan-1; minimums of tiers apply only with `levels.policy: floor`".into()
            )
        );
        assert_eq!(
            choose(&floor, 2, Some(99)),
            (ReviewLevel::Full, "tier 2, confidence 99 in plan-1, at least full at this tier".into())
        );
        assert_eq!(choose(&floor, 0, None).0, ReviewLevel::Dual);
        // A floor never lowers the level.
        assert_eq!(choose(&floor, 2, Some(50)), (ReviewLevel::Full, "tier 2, confidence 50 in plan-1".into()));
        assert_eq!(choose(&floor, 3, Some(99)).0, ReviewLevel::Minimal);
    }
}
