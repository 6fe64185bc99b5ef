//! Selects the journal entries that the user asked for.
//!
//! An entry must meet all conditions of the query. Which round and which finding an entry belongs to is found by
//! [`ReviewConditions`]. Nothing is drawn here.

use tribunal_engine::{
    ids::{FindingId, Key},
    reason::RunOutcome,
};
use tribunal_workflows::{
    runs::{
        effect::{AskOutcome, LandOutcome, Reply},
        types::{JournalEntry, RunEvent, RunSummary},
    },
    tasks::brief::AnswerContent,
};

use crate::{kind_table, review::ReviewConditions};

/// Conditions on entries; the default matches every entry.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// The round of a review.
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
    review_conditions: ReviewConditions,
}

impl EntryFilter {
    pub fn new(query: LogQuery) -> EntryFilter {
        EntryFilter { query, ..EntryFilter::default() }
    }

    /// Returns whether the next entry matches. The filter has to see every entry, in order, because an entry's round and
    /// finding may follow from the entries before it.
    pub fn matches_entry(&mut self, journal_entry: &JournalEntry) -> bool {
        let event = &journal_entry.event;
        let query = &self.query;
        let effect_key = key_of_event(event);
        // These have to run even if another condition fails: they record what later entries refer to.
        let current_round = self.review_conditions.find_round(event, effect_key);
        let is_concerned = match query.finding_id {
            Some(finding_id) => self.review_conditions.concerns_finding(event, finding_id),
            None => true,
        };
        let event_kind = event.kind_name();
        is_concerned
            && query.round_number.is_none_or(|round_number| round_number == current_round)
            && (query.event_kinds.is_empty() || query.event_kinds.iter().any(|wanted_kind| wanted_kind == event_kind))
            && query.key_part.as_ref().is_none_or(|key_fragment| {
                effect_key.is_some_and(|effect_key| effect_key.as_str().contains(key_fragment))
            })
            && (!query.only_problems || is_problem(event))
            && query.since_ms.is_none_or(|earliest_ms| journal_entry.at.wall_ms >= earliest_ms)
    }
}

/// The key of the effect that an event is about.
fn key_of_event(event: &RunEvent) -> Option<&Key> {
    match event {
        RunEvent::EffectStarted { key: effect_key, .. }
        | RunEvent::EffectFinished { key: effect_key, .. }
        | RunEvent::Boundary { key: effect_key, .. }
        | RunEvent::ChildStarted { key: effect_key, .. } => Some(effect_key),
        RunEvent::Workflow(event) => kind_table::find_key(event),
        _ => None,
    }
}

/// Returns whether an event is a failure, a refusal, a warning or an ending other than a success.
fn is_problem(event: &RunEvent) -> bool {
    match event {
        RunEvent::Warned { .. } | RunEvent::WordIgnored { .. } | RunEvent::Unknown(_) => true,
        RunEvent::Workflow(event) => kind_table::is_problem(event),
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
