//! The conditions on journal entries that only a review has: a round, a finding.
//!
//! An entry that names neither belongs to those of the effect it is about, or to the round that is under way.

use std::collections::BTreeSet;

use tribunal_engine::ids::{DecisionId, FindingId, Key};
use tribunal_workflows::{
    review::{event::ReviewEvent, review_keys::ReviewKeys, topic::ReviewTopic},
    runs::{
        effect::Effect,
        types::{Decision, RunEvent, find_event, find_topic},
    },
};

/// Follows a journal and knows which round and finding each entry belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReviewConditions {
    current_round: u32,
    /// Keys of effects that work on the finding that is looked for.
    finding_keys: BTreeSet<Key>,
    /// Decisions about the finding that is looked for.
    finding_decisions: BTreeSet<DecisionId>,
}

impl ReviewConditions {
    /// Returns the round that the next entry belongs to. `effect_key` is the key of the effect that it is about.
    pub(crate) fn find_round(&mut self, event: &RunEvent, effect_key: Option<&Key>) -> u32 {
        let named_round = match find_event::<ReviewEvent>(event) {
            Some(
                ReviewEvent::RoundStarted { round: round_number, .. }
                | ReviewEvent::SeatAnswered { round: round_number, .. }
                | ReviewEvent::SeatIncomplete { round: round_number, .. }
                | ReviewEvent::FixersDealt { round: round_number, .. }
                | ReviewEvent::RoundEnded { round: round_number, .. }
                | ReviewEvent::ConfidenceCalculated { round: round_number, .. },
            ) => Some(*round_number),
            _ => effect_key.and_then(Key::round_number),
        };
        // Entries without a round of their own count to the last round that was named.
        self.current_round = named_round.unwrap_or(self.current_round);
        self.current_round
    }

    /// Returns whether an event concerns the finding, and remembers the effects and decisions through which later events do.
    pub(crate) fn concerns_finding(&mut self, event: &RunEvent, finding_id: FindingId) -> bool {
        match event {
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                // Only these effects name findings, or a task or a decision that is about some.
                let is_ours = match effect {
                    Effect::Ask(ask_effect) => ask_effect.task.brief.finding_ids().contains(&finding_id),
                    Effect::Land(land_effect) => self.finding_keys.contains(&land_effect.by),
                    Effect::Post(post_effect) => self.finding_decisions.contains(&post_effect.decision.id),
                    _ => false,
                };
                // The same key is used again in a later segment, possibly for other findings.
                if is_ours {
                    self.finding_keys.insert(effect_key.clone())
                } else {
                    self.finding_keys.remove(effect_key)
                };
                is_ours
            }
            RunEvent::EffectFinished { key: effect_key, .. } => self.finding_keys.contains(effect_key),
            RunEvent::DecisionPosted { decision } => {
                // A decision names its finding only while it is posted; its answer names the decision alone.
                let is_ours = is_decision_about(decision, finding_id);
                if is_ours {
                    self.finding_decisions.insert(decision.id.clone());
                }
                is_ours
            }
            RunEvent::DecisionAnswered { decision, .. } => self.finding_decisions.contains(decision),
            _ => find_event::<ReviewEvent>(event).is_some_and(|event| self.is_event_about(event, finding_id)),
        }
    }

    fn is_event_about(&self, event: &ReviewEvent, finding_id: FindingId) -> bool {
        match event {
            ReviewEvent::FindingRaised { finding: raised_finding } => raised_finding.id == finding_id,
            ReviewEvent::FindingJoined { finding: event_finding, .. }
            | ReviewEvent::FindingMoved { finding: event_finding, .. }
            | ReviewEvent::FindingRuled { finding: event_finding, .. } => *event_finding == finding_id,
            ReviewEvent::FixersDealt { hands, .. } => {
                hands.iter().flatten().any(|event_finding| *event_finding == finding_id)
            }
            ReviewEvent::PatchLanded { findings, .. }
            | ReviewEvent::PatchRefused { findings, .. }
            | ReviewEvent::JudgeAnswered { findings, .. }
            | ReviewEvent::DismissalsKept { findings, .. } => findings.contains(&finding_id),
            ReviewEvent::FixerFailed { key: effect_key, .. }
            | ReviewEvent::ChallengerAnswered { key: effect_key, .. } => self.finding_keys.contains(effect_key),
            _ => false,
        }
    }
}

/// Returns whether the question is about this finding alone.
fn is_decision_about(decision: &Decision, finding_id: FindingId) -> bool {
    match find_topic::<ReviewTopic>(&decision.about) {
        Some(ReviewTopic::Blocked { finding } | ReviewTopic::Disputed { finding }) => *finding == finding_id,
        _ => false,
    }
}
