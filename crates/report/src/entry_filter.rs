//! Selects the journal entries that the user asked for.
//!
//! An entry must meet all conditions of the query. An entry that names neither round nor finding belongs to those of the
//! effect it is about, or to the round that is under way. Nothing is drawn here.

use std::collections::BTreeSet;

use tribunal_core::{
    decisions::decision::DecisionTopic,
    engine::{
        effect::{AskOutcome, Effect, LandOutcome, Reply},
        event::{JournalEntry, RunEvent, RunSummary},
        ids::{DecisionId, FindingId, Key},
        reason::RunOutcome,
    },
    tasks::brief::{AnswerContent, TaskBrief},
};

/// Conditions on entries; the default matches every entry.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub round_number: Option<u32>,
    pub finding_id: Option<FindingId>,
    /// Kinds of events, any of which matches. An empty list matches all kinds.
    pub event_kinds: Vec<String>,
    /// A substring of the effect's key.
    pub key_part: Option<String>,
    /// Whether only failures, refusals and warnings match.
    pub only_problems: bool,
    /// The earliest wall time at which a matching entry was recorded.
    pub since_ms: Option<u64>,
}

/// Walks through one journal from its first entry on and remembers what later entries refer to.
#[derive(Clone, Debug, Default)]
pub struct EntryFilter {
    query: LogQuery,
    current_round: u32,
    /// Keys of effects that work on the finding of the query.
    finding_keys: BTreeSet<Key>,
    /// Decisions about the finding of the query.
    finding_decisions: BTreeSet<DecisionId>,
}

impl EntryFilter {
    pub fn new(query: LogQuery) -> EntryFilter {
        EntryFilter { query, ..EntryFilter::default() }
    }

    /// Returns whether the next entry matches. The filter has to see every entry, in order, because an entry's round and
    /// finding may follow from the entries before it.
    pub fn matches_entry(&mut self, journal_entry: &JournalEntry) -> bool {
        let event = &journal_entry.event;
        // Entries without a round of their own count to the last round that was named.
        if let Some(round_number) = round_of_event(event) {
            self.current_round = round_number;
        }
        // This has to run even if another condition fails: it records keys and decisions for later entries.
        let is_concerned = match self.query.finding_id {
            Some(finding_id) => self.concerns_finding(event, finding_id),
            None => true,
        };
        let query = &self.query;
        let event_kind = event.kind_name();
        is_concerned
            && query.round_number.is_none_or(|round_number| round_number == self.current_round)
            && (query.event_kinds.is_empty() || query.event_kinds.iter().any(|wanted_kind| wanted_kind == event_kind))
            && query.key_part.as_ref().is_none_or(|key_fragment| {
                key_of_event(event).is_some_and(|effect_key| effect_key.as_str().contains(key_fragment))
            })
            && (!query.only_problems || is_problem(event))
            && query.since_ms.is_none_or(|earliest_ms| journal_entry.at.wall_ms >= earliest_ms)
    }

    /// Returns whether an event concerns the finding, and remembers the effects and decisions through which later events do.
    fn concerns_finding(&mut self, event: &RunEvent, finding_id: FindingId) -> bool {
        match event {
            RunEvent::FindingRaised { finding: raised_finding } => raised_finding.id == finding_id,
            RunEvent::FindingJoined { finding: event_finding, .. }
            | RunEvent::FindingMoved { finding: event_finding, .. }
            | RunEvent::FindingRuled { finding: event_finding, .. } => *event_finding == finding_id,
            RunEvent::FixersDealt { hands, .. } => {
                hands.iter().flatten().any(|event_finding| *event_finding == finding_id)
            }
            RunEvent::PatchLanded { findings, .. } | RunEvent::PatchRefused { findings, .. } => {
                findings.contains(&finding_id)
            }
            RunEvent::EffectStarted { key: effect_key, effect, .. } => {
                // Only these effects name findings, or a task or a decision that is about some.
                let is_ours = match effect {
                    Effect::Ask(ask_effect) => is_brief_about(&ask_effect.task.brief, finding_id),
                    Effect::Land(land_effect) => self.finding_keys.contains(&land_effect.by),
                    Effect::Post(post_effect) => self.finding_decisions.contains(&post_effect.decision.id),
                    _ => false,
                };
                // The same key is used again in a later stretch, possibly for other findings.
                if is_ours {
                    self.finding_keys.insert(effect_key.clone())
                } else {
                    self.finding_keys.remove(effect_key)
                };
                is_ours
            }
            RunEvent::EffectFinished { key: effect_key, .. }
            | RunEvent::FixerFailed { key: effect_key, .. }
            | RunEvent::ChallengerAnswered { key: effect_key, .. } => self.finding_keys.contains(effect_key),
            RunEvent::DecisionPosted { decision } => {
                // A decision names its finding only while it is posted; its answer names the decision alone.
                let (blocked_topic, disputed_topic) =
                    (DecisionTopic::Blocked { finding: finding_id }, DecisionTopic::Disputed { finding: finding_id });
                let is_ours = decision.about == blocked_topic || decision.about == disputed_topic;
                if is_ours {
                    self.finding_decisions.insert(decision.id.clone());
                }
                is_ours
            }
            RunEvent::DecisionAnswered { decision, .. } => self.finding_decisions.contains(decision),
            _ => false,
        }
    }
}

/// Returns whether the task repairs the finding or disputes it.
fn is_brief_about(brief: &TaskBrief, finding_id: FindingId) -> bool {
    let is_assigned = brief.assigned.iter().any(|assigned_claim| assigned_claim.id == finding_id);
    is_assigned || brief.disputed.iter().any(|disputed_finding| disputed_finding.id == finding_id)
}

/// The round that an event names, itself or in its key (`round-2/…`).
fn round_of_event(event: &RunEvent) -> Option<u32> {
    match event {
        RunEvent::RoundStarted { round: round_number, .. }
        | RunEvent::SeatAnswered { round: round_number, .. }
        | RunEvent::SeatIncomplete { round: round_number, .. }
        | RunEvent::FixersDealt { round: round_number, .. }
        | RunEvent::RoundEnded { round: round_number, .. }
        | RunEvent::ConfidenceCalculated { round: round_number, .. } => Some(*round_number),
        other_event => key_of_event(other_event)?.round_number(),
    }
}

/// The key of the effect that an event is about.
fn key_of_event(event: &RunEvent) -> Option<&Key> {
    match event {
        RunEvent::EffectStarted { key: effect_key, .. }
        | RunEvent::EffectFinished { key: effect_key, .. }
        | RunEvent::Boundary { key: effect_key, .. }
        | RunEvent::ChallengerAnswered { key: effect_key, .. }
        | RunEvent::FixerFailed { key: effect_key, .. }
        | RunEvent::PatchLanded { key: effect_key, .. }
        | RunEvent::PatchRefused { key: effect_key, .. } => Some(effect_key),
        _ => None,
    }
}

/// Returns whether an event is a failure, a refusal, a warning or an ending other than a success.
fn is_problem(event: &RunEvent) -> bool {
    match event {
        RunEvent::SeatIncomplete { .. }
        | RunEvent::FixerFailed { .. }
        | RunEvent::PatchRefused { .. }
        | RunEvent::Warned { .. }
        | RunEvent::Unknown => true,
        RunEvent::ChallengerAnswered { fault, .. } => fault.is_some(),
        // A task is tried a second time only because its first try failed.
        RunEvent::EffectStarted { key: effect_key, .. } => effect_key.is_second_try(),
        RunEvent::EffectFinished { reply: effect_reply, .. } => match effect_reply {
            effect_reply if effect_reply.fault().is_some() => true,
            Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => true,
            // An answer that is unreadable or has remarks counts as a problem although the call succeeded.
            Reply::Ask(AskOutcome::Answered(answer)) => {
                matches!(answer.content, AnswerContent::Unreadable { .. }) || !answer.remarks.is_empty()
            }
            _ => false,
        },
        // A run that was interrupted has no outcome.
        RunEvent::RunParked(RunSummary { outcome, .. }) | RunEvent::RunFinished(RunSummary { outcome, .. }) => {
            matches!(outcome, None | Some(RunOutcome::Halted | RunOutcome::Failed))
        }
        _ => false,
    }
}
