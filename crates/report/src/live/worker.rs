//! One seat, one challenger or one fixer, and what it is doing.

use tribunal_core::{
    event::Event,
    ids::{FindingId, Key},
};

use crate::{columns::clean, words};

/// An agent that has reported nothing for this long may hang.
pub const STALL_MS: u64 = 60_000;

/// What a worker is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its turn has not come yet.
    Waiting,
    Working {
        since: u64,
        /// When it last reported anything.
        heard: u64,
        doing: String,
    },
    /// Its agent has reached a usage limit.
    Limited,
    /// Its patch is being merged and checked.
    Landing {
        since: u64,
    },
    Done {
        says: String,
    },
    Failed {
        says: String,
    },
}

/// A seat, challenger or fixer that the live view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The key of its task, without `/again`.
    pub key: Key,
    /// The name of its role, or `challenger 1`, `fixer 2`.
    pub name: String,
    /// The agent's name; empty until it is asked.
    pub agent: String,
    /// The findings that a fixer repairs or a challenger disputes.
    pub hand: Vec<FindingId>,
    pub state: State,
}

impl Worker {
    pub(super) fn new(key: Key, name: String, hand: Vec<FindingId>) -> Worker {
        Worker { key, name, agent: String::new(), hand, state: State::Waiting }
    }

    /// Records that the agent was asked.
    pub(super) fn asked(&mut self, agent: &str, doing: &str, now: u64) {
        self.agent = clean(agent);
        self.state = State::Working { since: now, heard: now, doing: clean(doing) };
    }

    /// Records what the agent reports.
    pub(super) fn heard_of(&mut self, text: &str, now: u64) {
        // Output may still arrive after the task has ended; it must not bring the worker back to work.
        if let State::Working { heard, doing, .. } = &mut self.state {
            *heard = now;
            *doing = clean(text);
        }
    }

    pub(super) fn done(&mut self, says: &str) {
        // The state keeps cleaned text, so that drawing needs no further care.
        self.state = State::Done { says: clean(says) };
    }

    pub(super) fn failed(&mut self, says: &str) {
        self.state = State::Failed { says: clean(says) };
    }

    /// Takes in an event about this worker.
    pub(super) fn noted(&mut self, event: &Event) {
        match event {
            Event::SeatAnswered { raised, .. } => self.done(&words::raised(*raised)),
            Event::SeatIncomplete { fault, .. } | Event::FixerFailed { fault, .. } => {
                self.failed(&fault.detail);
            }
            Event::ChallengerAnswered { fault: Some(fault), .. } => self.failed(&fault.detail),
            // What a challenger said is shown with the rulings, not here.
            Event::ChallengerAnswered { .. } => self.done("answered"),
            Event::PatchLanded { lines, .. } => {
                self.done(&format!("landed, {}", words::count(*lines, "line")));
            }
            Event::PatchRefused { why, .. } => self.failed(&format!("not landed: {}", words::refused(why))),
            _ => {}
        }
    }

    /// How long it has been working.
    pub fn busy_ms(&self, now: u64) -> Option<u64> {
        match self.state {
            // A worker that waits or has finished is not busy.
            State::Working { since, .. } | State::Landing { since } => Some(now.saturating_sub(since)),
            _ => None,
        }
    }

    /// How long it has reported nothing, if that is worth a warning.
    pub fn stalled_ms(&self, now: u64) -> Option<u64> {
        match self.state {
            State::Working { heard, .. } => Some(now.saturating_sub(heard)).filter(|ms| *ms >= STALL_MS),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_counts_as_stalled_a_minute_after_its_last_sign_of_life() {
        let mut worker = Worker::new(Key::new("k"), "party".into(), Vec::new());
        assert_eq!(worker.stalled_ms(STALL_MS * 9), None, "who waits does not stall");
        worker.asked("claude", "", 1_000);
        assert_eq!(worker.stalled_ms(60_999), None);
        assert_eq!(worker.stalled_ms(61_000), Some(60_000));
        worker.heard_of("reading", 61_000);
        assert_eq!(worker.stalled_ms(61_500), None);
        assert_eq!(worker.busy_ms(61_500), Some(60_500));
    }
}
