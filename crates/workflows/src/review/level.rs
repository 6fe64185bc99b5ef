//! How thorough a review is: tier, level, roles, panel.
//!
//! The settings have the tier and may have a level; without one [`super::level_rules`] chooses it.

use alloc::{vec, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::{agent_role::AgentRole, subject::Subject};
use tribunal_engine::{text::word_table::words, tier::ProcessTier};

/// The size of the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewLevel {
    Minimal,
    Dual,
    Full,
}

/// When a review counts as successful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewGoal {
    /// No finding is left open.
    #[default]
    ZeroOpen,
    /// No critical finding is left open; the others are deferred.
    CriticalOnly,
}

words!(ReviewLevel { Minimal = "minimal", Dual = "dual", Full = "full" });
words!(ReviewGoal { ZeroOpen = "zero-open", CriticalOnly = "critical-only" });

/// Returns the reviewers of one round, in a fixed order.
pub fn panel_roles(subject: &Subject, level: ReviewLevel, tier: ProcessTier) -> Vec<AgentRole> {
    // Besides the adversarial reviewer, documents get a party and elicitation, and code gets specification and quality.
    let is_document = subject.is_document();
    let mut roles = match (is_document, level) {
        (_, ReviewLevel::Minimal) => vec![AgentRole::Adversarial],
        (true, ReviewLevel::Dual) => vec![AgentRole::Party, AgentRole::Adversarial],
        (true, ReviewLevel::Full) => vec![AgentRole::Party, AgentRole::Adversarial, AgentRole::Elicitation],
        (false, ReviewLevel::Dual) => vec![AgentRole::Spec, AgentRole::Adversarial],
        (false, ReviewLevel::Full) => vec![AgentRole::Spec, AgentRole::Quality, AgentRole::Adversarial],
    };
    // Only the highest tier adds a party to a code review; documents always have one at this level.
    if !is_document && level == ReviewLevel::Full && tier.number() == 4 {
        roles.push(AgentRole::Party);
    }
    roles
}

/// Returns another panel of the same size, for the one additional round that a degraded panel gets.
pub fn alternative_panel(subject: &Subject, level: ReviewLevel, tier: ProcessTier) -> Vec<AgentRole> {
    let mut roles = match (subject.is_document(), level) {
        (true, ReviewLevel::Minimal) => vec![AgentRole::Elicitation],
        (false, ReviewLevel::Minimal) => vec![AgentRole::Quality],
        (true, ReviewLevel::Dual) => vec![AgentRole::Adversarial, AgentRole::Elicitation],
        (false, ReviewLevel::Dual) => vec![AgentRole::Quality, AgentRole::Adversarial],
        // A full panel has no other roles to call, so the same roles change places and thereby agents.
        (_, ReviewLevel::Full) => panel_roles(subject, level, tier),
    };
    // Reversed seats go to other agents, because agents are assigned by position.
    if level == ReviewLevel::Full {
        roles.reverse();
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_documents_have_panels_of_their_own() {
        let tier = ProcessTier::default();
        let document = Subject::from_path("prd.md", None);
        let source_file = Subject::from_path("main.rs", None);
        assert_eq!(
            panel_roles(&document, ReviewLevel::Full, tier),
            [AgentRole::Party, AgentRole::Adversarial, AgentRole::Elicitation]
        );
        assert_eq!(panel_roles(&source_file, ReviewLevel::Dual, tier), [AgentRole::Spec, AgentRole::Adversarial]);
        assert!(panel_roles(&source_file, ReviewLevel::Full, ProcessTier::new(4).unwrap()).contains(&AgentRole::Party));
    }
}
