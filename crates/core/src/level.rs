//! How thorough a review is: tier, level, roles, panel.
//!
//! The user or a setting chooses the tier; the level follows from it by one table.

use alloc::{vec, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::subject::Subject;

/// 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Tier(#[schemars(range(min = 0, max = 4))] u8);

impl Tier {
    pub fn new(number: u8) -> Option<Tier> {
        // The field is private, so every tier has passed this check.
        (number <= 4).then_some(Tier(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Tier {
    fn default() -> Self {
        Tier(2)
    }
}

impl<'de> Deserialize<'de> for Tier {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(from)?;
        Tier::new(number).ok_or_else(|| {
            serde::de::Error::custom(alloc::format!("tier {number} does not exist: tiers are 0 to 4"))
        })
    }
}

/// The size of the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Minimal,
    Dual,
    Full,
}

/// When a review counts as successful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// No finding is left open.
    #[default]
    ZeroOpen,
    /// No critical finding is left open; the others are deferred.
    CriticalOnly,
}

/// What an agent is asked to do; never two of these at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Party,
    Spec,
    Quality,
    Adversarial,
    Elicitation,
    Fixer,
    Challenger,
}

impl Role {
    pub const ALL: [Role; 7] = [
        Role::Party,
        Role::Spec,
        Role::Quality,
        Role::Adversarial,
        Role::Elicitation,
        Role::Fixer,
        Role::Challenger,
    ];
}

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),* }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words!(Level { Minimal = "minimal", Dual = "dual", Full = "full" });
words!(Goal { ZeroOpen = "zero-open", CriticalOnly = "critical-only" });
words!(Role {
    Party = "party",
    Spec = "spec",
    Quality = "quality",
    Adversarial = "adversarial",
    Elicitation = "elicitation",
    Fixer = "fixer",
    Challenger = "challenger",
});

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Returns the level for a tier and a confidence (0 to 100) without the tier's deduction.
///
/// | tier | confidence | level |
/// | --- | --- | --- |
/// | 0 | any | minimal |
/// | 1 | any | dual |
/// | 2-4 | above 98 | minimal |
/// | 2-4 | 95 to 98 | dual |
/// | 2-4 | below 95 | full |
/// | 2-4 | no signal yet | full |
pub fn level_for(tier: Tier, confidence: Option<u32>) -> Level {
    match (tier.number(), confidence) {
        (0, _) => Level::Minimal,
        (1, _) => Level::Dual,
        // The confidence lowers the effort only from tier 2 on; below that the tier alone decides.
        (_, Some(score)) if score > 98 => Level::Minimal,
        (_, Some(score)) if score >= 95 => Level::Dual,
        _ => Level::Full,
    }
}

/// Returns the reviewers of one round, in a fixed order.
pub fn panel(subject: &Subject, level: Level, tier: Tier) -> Vec<Role> {
    // Documents are reviewed by a party and by elicitation, code by specification and quality.
    let document = subject.is_document();
    let mut seats = match (document, level) {
        (_, Level::Minimal) => vec![Role::Adversarial],
        (true, Level::Dual) => vec![Role::Party, Role::Adversarial],
        (true, Level::Full) => vec![Role::Party, Role::Adversarial, Role::Elicitation],
        (false, Level::Dual) => vec![Role::Spec, Role::Adversarial],
        (false, Level::Full) => vec![Role::Spec, Role::Quality, Role::Adversarial],
    };
    // Only the highest tier adds a party to a code review; documents always have one at this level.
    if !document && level == Level::Full && tier.number() == 4 {
        seats.push(Role::Party);
    }
    seats
}

/// Returns another panel of the same size, for the one additional round that a degraded panel gets.
pub fn other_panel(subject: &Subject, level: Level, tier: Tier) -> Vec<Role> {
    let mut seats = match (subject.is_document(), level) {
        (true, Level::Minimal) => vec![Role::Elicitation],
        (false, Level::Minimal) => vec![Role::Quality],
        (true, Level::Dual) => vec![Role::Adversarial, Role::Elicitation],
        (false, Level::Dual) => vec![Role::Quality, Role::Adversarial],
        // A full panel has no other roles to call, so the same roles change places and thereby agents.
        (_, Level::Full) => panel(subject, level, tier),
    };
    // Reversed seats go to other agents, because agents are assigned by position.
    if level == Level::Full {
        seats.reverse();
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_table_holds_at_its_borders() {
        let tier = |n| Tier::new(n).unwrap();
        for (n, confidence, level) in [
            (0, None, Level::Minimal),
            (0, Some(10), Level::Minimal),
            (1, Some(99), Level::Dual),
            (2, None, Level::Full),
            (2, Some(94), Level::Full),
            (3, Some(95), Level::Dual),
            (3, Some(98), Level::Dual),
            (4, Some(99), Level::Minimal),
        ] {
            assert_eq!(level_for(tier(n), confidence), level, "tier {n}, confidence {confidence:?}");
        }
    }

    #[test]
    fn changes_and_documents_have_panels_of_their_own() {
        let tier = Tier::default();
        let document = Subject::at("prd.md", None);
        let source = Subject::at("main.rs", None);
        assert_eq!(panel(&document, Level::Full, tier), [Role::Party, Role::Adversarial, Role::Elicitation]);
        assert_eq!(panel(&source, Level::Dual, tier), [Role::Spec, Role::Adversarial]);
        assert!(panel(&source, Level::Full, Tier::new(4).unwrap()).contains(&Role::Party));
    }
}
