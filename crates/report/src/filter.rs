//! Selects the journal entries that the user asked for.
//!
//! An entry must meet all conditions of the query. An entry that names neither round nor finding belongs to those of the
//! effect it is about, or to the round that is under way. Nothing is drawn here.

use std::collections::BTreeSet;

use tribunal_core::{
    brief::{Brief, Content},
    decision::About,
    effect::{AskOutcome, Effect, LandOutcome, Reply},
    event::{Entry, Event, Summary},
    ids::{DecisionId, FindingId, Key},
    reason::Outcome,
};

/// Conditions on entries; the default matches every entry.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub round: Option<u32>,
    pub finding: Option<FindingId>,
    /// Kinds of events, any of which matches. An empty list matches all kinds.
    pub kinds: Vec<String>,
    /// A substring of the effect's key.
    pub key: Option<String>,
    /// Whether only failures, refusals and warnings match.
    pub warnings: bool,
    /// The earliest wall time at which a matching entry was recorded.
    pub since_ms: Option<u64>,
}

/// Walks through one journal from its first entry on and remembers what later entries refer to.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    wanted: Wanted,
    round: u32,
    /// Keys of effects that work on the finding of the query.
    keys: BTreeSet<Key>,
    /// Decisions about the finding of the query.
    decisions: BTreeSet<DecisionId>,
}

impl Filter {
    pub fn new(wanted: Wanted) -> Filter {
        Filter { wanted, ..Filter::default() }
    }

    /// Returns whether the next entry matches. The filter has to see every entry, in order, because an entry's round and
    /// finding may follow from the entries before it.
    pub fn wants(&mut self, entry: &Entry) -> bool {
        let event = &entry.event;
        // Entries without a round of their own count to the last round that was named.
        if let Some(round) = round_of(event) {
            self.round = round;
        }
        // This has to run even if another condition fails: it records keys and decisions for later entries.
        let concerns = match self.wanted.finding {
            Some(finding) => self.concerns(event, finding),
            None => true,
        };
        let wanted = &self.wanted;
        let kind = event.kind();
        concerns
            && wanted.round.is_none_or(|round| round == self.round)
            && (wanted.kinds.is_empty() || wanted.kinds.iter().any(|asked| asked == kind))
            && wanted
                .key
                .as_ref()
                .is_none_or(|part| key_of(event).is_some_and(|key| key.as_str().contains(part)))
            && (!wanted.warnings || went_wrong(event))
            && wanted.since_ms.is_none_or(|since| entry.at.wall_ms >= since)
    }

    /// Returns whether an event concerns the finding, and remembers the effects and decisions through which later events do.
    fn concerns(&mut self, event: &Event, finding: FindingId) -> bool {
        match event {
            Event::FindingRaised { finding: raised } => raised.id == finding,
            Event::FindingJoined { finding: id, .. }
            | Event::FindingMoved { finding: id, .. }
            | Event::FindingRuled { finding: id, .. } => *id == finding,
            Event::FixersDealt { hands, .. } => hands.iter().flatten().any(|id| *id == finding),
            Event::PatchLanded { findings, .. } | Event::PatchRefused { findings, .. } => {
                findings.contains(&finding)
            }
            Event::EffectStarted { key, effect, .. } => {
                // Only these effects can concern one finding; freezing and writing files concern the run as a whole.
                let ours = match effect {
                    Effect::Ask(asked) => is_about(&asked.task.brief, finding),
                    Effect::Land(landing) => self.keys.contains(&landing.by),
                    Effect::Post(posted) => self.decisions.contains(&posted.decision.id),
                    _ => false,
                };
                // The same key is used again in a later stretch, possibly for other findings.
                if ours {
                    self.keys.insert(key.clone())
                } else {
                    self.keys.remove(key)
                };
                ours
            }
            Event::EffectFinished { key, .. }
            | Event::FixerFailed { key, .. }
            | Event::ChallengerAnswered { key, .. } => self.keys.contains(key),
            Event::DecisionPosted { decision } => {
                // A decision names its finding only while it is posted; its answer names the decision alone.
                let (blocked, disputed) = (About::Blocked { finding }, About::Disputed { finding });
                let ours = decision.about == blocked || decision.about == disputed;
                if ours {
                    self.decisions.insert(decision.id.clone());
                }
                ours
            }
            Event::DecisionAnswered { decision, .. } => self.decisions.contains(decision),
            _ => false,
        }
    }
}

/// Returns whether the task repairs the finding or disputes it.
fn is_about(brief: &Brief, finding: FindingId) -> bool {
    let assigned = brief.assigned.iter().any(|assigned| assigned.id == finding);
    assigned || brief.disputed.iter().any(|disputed| disputed.id == finding)
}

/// The round that an event names, itself or in its key (`round-2/…`).
fn round_of(event: &Event) -> Option<u32> {
    match event {
        Event::RoundStarted { round, .. }
        | Event::SeatAnswered { round, .. }
        | Event::SeatIncomplete { round, .. }
        | Event::FixersDealt { round, .. }
        | Event::RoundEnded { round, .. }
        | Event::ConfidenceCalculated { round, .. } => Some(*round),
        other => key_of(other)?.round_number(),
    }
}

/// The key of the effect that an event is about.
fn key_of(event: &Event) -> Option<&Key> {
    match event {
        Event::EffectStarted { key, .. }
        | Event::EffectFinished { key, .. }
        | Event::Boundary { key, .. }
        | Event::ChallengerAnswered { key, .. }
        | Event::FixerFailed { key, .. }
        | Event::PatchLanded { key, .. }
        | Event::PatchRefused { key, .. } => Some(key),
        _ => None,
    }
}

/// Returns whether an event is a failure, a refusal, a warning or an ending other than a success.
fn went_wrong(event: &Event) -> bool {
    match event {
        Event::SeatIncomplete { .. }
        | Event::FixerFailed { .. }
        | Event::PatchRefused { .. }
        | Event::Warned { .. }
        | Event::Unknown => true,
        Event::ChallengerAnswered { fault, .. } => fault.is_some(),
        // The second try names the reason why the first one failed.
        Event::EffectStarted { key, .. } => key.is_second_try(),
        Event::EffectFinished { reply, .. } => match reply {
            reply if reply.fault().is_some() => true,
            Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => true,
            // An answer that could only be read in part counts as a problem although the call succeeded.
            Reply::Ask(AskOutcome::Answered(reply)) => {
                matches!(reply.content, Content::Unreadable { .. }) || !reply.remarks.is_empty()
            }
            _ => false,
        },
        // A run that was stopped has no outcome.
        Event::RunParked(Summary { outcome, .. }) | Event::RunFinished(Summary { outcome, .. }) => {
            matches!(outcome, None | Some(Outcome::Halted | Outcome::Failed))
        }
        _ => false,
    }
}
