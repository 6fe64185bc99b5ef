//! One seat, one challenger or one fixer, and what it is doing.

use tribunal_core::engine::{
    event::RunEvent,
    ids::{FindingId, Key},
};

use crate::{phrases, terminal_text::clean_line};

/// An agent that has reported nothing for this long may hang.
pub const STALL_MS: u64 = 60_000;

/// What a worker is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// Its turn has not come yet, or it pauses before another try.
    Waiting,
    Working {
        started_ms: u64,
        /// When it last reported anything.
        last_heard_ms: u64,
        activity: String,
    },
    /// Its agent has reached a usage limit.
    WaitingForReset,
    /// Its patch is being merged and checked.
    Landing {
        started_ms: u64,
    },
    Finished {
        message: String,
    },
    Failed {
        message: String,
    },
}

/// A seat, challenger or fixer that the live view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWorker {
    /// The key of its task, without the suffixes of further tries, waits and landings.
    pub task_key: Key,
    /// The name of its role, or `challenger 1`, `fixer 2`.
    pub worker_name: String,
    /// The agent's name; empty until it is asked.
    pub agent_name: String,
    /// The findings that a fixer repairs or a challenger disputes.
    pub finding_ids: Vec<FindingId>,
    pub state: WorkerState,
}

impl LiveWorker {
    pub(super) fn new(task_key: Key, worker_name: String, finding_ids: Vec<FindingId>) -> LiveWorker {
        LiveWorker { task_key, worker_name, agent_name: String::new(), finding_ids, state: WorkerState::Waiting }
    }

    /// Records that the agent was asked.
    pub(super) fn start_work(&mut self, agent_name: &str, activity: &str, now_ms: u64) {
        self.agent_name = clean_line(agent_name);
        self.state = WorkerState::Working { started_ms: now_ms, last_heard_ms: now_ms, activity: clean_line(activity) };
    }

    /// Records what the agent reports.
    pub(super) fn note_activity(&mut self, activity_text: &str, now_ms: u64) {
        // Output may still arrive after the task has ended; it must not bring the worker back to work.
        if let WorkerState::Working { last_heard_ms, activity, .. } = &mut self.state {
            *last_heard_ms = now_ms;
            *activity = clean_line(activity_text);
        }
    }

    pub(super) fn mark_finished(&mut self, message: &str) {
        // The state keeps cleaned text, so that drawing needs no further care.
        self.state = WorkerState::Finished { message: clean_line(message) };
    }

    pub(super) fn mark_failed(&mut self, message: &str) {
        self.state = WorkerState::Failed { message: clean_line(message) };
    }

    /// Takes in an event about this worker.
    pub(super) fn track_event(&mut self, run_event: &RunEvent) {
        match run_event {
            RunEvent::SeatAnswered { raised: raised_count, .. } => {
                self.mark_finished(&phrases::describe_raised(*raised_count))
            }
            RunEvent::SeatIncomplete { fault, .. } | RunEvent::FixerFailed { fault, .. } => {
                self.mark_failed(&fault.detail);
            }
            RunEvent::ChallengerAnswered { fault: Some(fault), .. } => self.mark_failed(&fault.detail),
            // What a challenger said is shown with the rulings, not here.
            RunEvent::ChallengerAnswered { .. } => self.mark_finished("answered"),
            RunEvent::PatchLanded { lines: line_count, .. } => {
                self.mark_finished(&format!("applied, {}", phrases::format_count(*line_count, "line")));
            }
            RunEvent::PatchRefused { why: refusal, .. } => {
                self.mark_failed(&format!("rejected: {}", phrases::describe_refusal(refusal)))
            }
            _ => {}
        }
    }

    /// How long it has been working.
    pub fn busy_ms(&self, now_ms: u64) -> Option<u64> {
        match self.state {
            // A worker that waits or has finished is not busy.
            WorkerState::Working { started_ms, .. } | WorkerState::Landing { started_ms } => {
                Some(now_ms.saturating_sub(started_ms))
            }
            _ => None,
        }
    }

    /// How long it has reported nothing, if that is worth a warning.
    pub fn stalled_ms(&self, now_ms: u64) -> Option<u64> {
        match self.state {
            WorkerState::Working { last_heard_ms, .. } => {
                Some(now_ms.saturating_sub(last_heard_ms)).filter(|silent_ms| *silent_ms >= STALL_MS)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_counts_as_stalled_a_minute_after_its_last_report() {
        let mut worker = LiveWorker::new(Key::new("k"), "party".into(), Vec::new());
        assert_eq!(worker.stalled_ms(STALL_MS * 9), None, "who waits does not stall");
        worker.start_work("claude", "", 1_000);
        assert_eq!(worker.stalled_ms(60_999), None);
        assert_eq!(worker.stalled_ms(61_000), Some(60_000));
        worker.note_activity("reading", 61_000);
        assert_eq!(worker.stalled_ms(61_500), None);
        assert_eq!(worker.busy_ms(61_500), Some(60_500));
    }
}
