//! What a party reports in addition to its findings: who took part, what they agreed on, and their votes.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::finding::Severity;

/// What a party reports in addition to its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartyMinutes {
    /// The personas that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub personas: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub consensus: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dissent: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<SeverityBallot>,
}

/// The votes on one finding of the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeverityBallot {
    /// The position of the finding in the answer, from 0.
    pub finding: usize,
    pub votes: Vec<SeverityVote>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dissent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeverityVote {
    pub persona: String,
    pub severity: Severity,
}

impl SeverityBallot {
    /// Returns the highest severity that more than half of the voters gave or exceeded.
    pub fn majority_severity_floor(&self) -> Option<Severity> {
        // Severities are ordered most severe first, so `<=` counts the votes for this severity or a worse one.
        let votes_at_least = |severity: Severity| self.votes.iter().filter(|vote| vote.severity <= severity).count();
        Severity::ALL.into_iter().find(|severity| votes_at_least(*severity) * 2 > self.votes.len())
    }
}

impl SeverityBallot {
    /// Whether more than half voted for the same severity and no dissent was written down.
    pub fn has_undisputed_majority(&self) -> bool {
        let votes_per_severity =
            Severity::ALL.map(|severity| self.votes.iter().filter(|vote| vote.severity == severity).count());
        // A written dissent counts even if the votes agree.
        self.dissent.is_empty() && votes_per_severity.into_iter().max().unwrap_or(0) * 2 > self.votes.len()
    }
}

impl PartyMinutes {
    pub fn is_empty(&self) -> bool {
        *self == PartyMinutes::default()
    }
}
