//! The roles of agents that raise, dispute and repair findings.

use tribunal_engine::text::word_table::words;
use tribunal_json::{Deserialize, Serialize, schemars};

use crate::tasks::{
    client::JobKind,
    purpose::{ExpectedAnswer, TaskPurpose},
};

/// What an agent is asked to do; never two of these at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentRole {
    Party,
    Spec,
    Quality,
    Adversarial,
    Elicitation,
    Fixer,
    Challenger,
    Judge,
}

impl AgentRole {
    pub const ALL: [AgentRole; 8] = [
        AgentRole::Party,
        AgentRole::Spec,
        AgentRole::Quality,
        AgentRole::Adversarial,
        AgentRole::Elicitation,
        AgentRole::Fixer,
        AgentRole::Challenger,
        AgentRole::Judge,
    ];

    /// Returns what the tasks of an agent in this role are for, and what they expect.
    pub fn task_purpose(self) -> TaskPurpose {
        match self {
            AgentRole::Fixer => TaskPurpose { job: JobKind::Fix, expects: ExpectedAnswer::Fixes },
            AgentRole::Challenger | AgentRole::Judge => {
                TaskPurpose { job: JobKind::Challenge, expects: ExpectedAnswer::Rulings }
            }
            AgentRole::Party
            | AgentRole::Spec
            | AgentRole::Quality
            | AgentRole::Adversarial
            | AgentRole::Elicitation => TaskPurpose { job: JobKind::Review, expects: ExpectedAnswer::Findings },
        }
    }
}

words!(AgentRole {
    Party = "party",
    Spec = "spec",
    Quality = "quality",
    Adversarial = "adversarial",
    Elicitation = "elicitation",
    Fixer = "fixer",
    Challenger = "challenger",
    Judge = "judge",
});
