//! Which entries of a journal a person asked for.
//!
//! All that was asked for must hold of an entry. An entry without a round or a finding of its own belongs to that of the
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

/// What was asked for; the default is everything.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub round: Option<u32>,
    pub finding: Option<FindingId>,
    /// Any of these; none: all.
    pub kinds: Vec<String>,
    /// A part of the effect's key.
    pub key: Option<String>,
    /// Only what went wrong.
    pub warnings: bool,
    /// Recorded at this wall time or later.
    pub since_ms: Option<u64>,
}

/// Goes through a journal from its first entry on.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    wanted: Wanted,
    round: u32,
    /// Effects that the finding is in the hands of.
    keys: BTreeSet<Key>,
    /// Decisions about the finding.
    decisions: BTreeSet<DecisionId>,
}

impl Filter {
    pub fn new(wanted: Wanted) -> Filter {
        Filter { wanted, ..Filter::default() }
    }

    /// Whether the next entry was asked for. Every entry has to be shown to the filter, in order.
    pub fn wants(&mut self, entry: &Entry) -> bool {
        let event = &entry.event;
        if let Some(round) = round_of(event) {
            self.round = round;
        }
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
                let ours = match effect {
                    Effect::Ask(asked) => is_about(&asked.task.brief, finding),
                    Effect::Land(landing) => self.keys.contains(&landing.by),
                    Effect::Post(posted) => self.decisions.contains(&posted.decision.id),
                    _ => false,
                };
                // A key comes again in a later stretch, and then for others.
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

/// A fixer has it in hand, or a challenger disputes it.
fn is_about(brief: &Brief, finding: FindingId) -> bool {
    let assigned = brief.assigned.iter().any(|assigned| assigned.id == finding);
    assigned || brief.disputed.iter().any(|disputed| disputed.id == finding)
}

/// The round an event names, or that its key names (`round-2/…`).
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

/// Faults, refusals, warnings, and endings that are none of the good ones.
fn went_wrong(event: &Event) -> bool {
    match event {
        Event::SeatIncomplete { .. }
        | Event::FixerFailed { .. }
        | Event::PatchRefused { .. }
        | Event::Warned { .. }
        | Event::Unknown => true,
        Event::ChallengerAnswered { fault, .. } => fault.is_some(),
        // Tried once more, with the reason.
        Event::EffectStarted { key, .. } => key.is_second_try(),
        Event::EffectFinished { reply, .. } => match reply {
            reply if reply.fault().is_some() => true,
            Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => true,
            Reply::Ask(AskOutcome::Answered(reply)) => {
                matches!(reply.content, Content::Unreadable { .. }) || !reply.remarks.is_empty()
            }
            _ => false,
        },
        Event::RunParked(Summary { outcome, .. }) | Event::RunFinished(Summary { outcome, .. }) => {
            matches!(outcome, None | Some(Outcome::Halted | Outcome::Failed))
        }
        _ => false,
    }
}
