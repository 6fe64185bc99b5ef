//! One agent with its task, or one child run, and what it is doing.

use tribunal_engine::ids::Key;

use crate::{child_runs::ChildResult, style::LineMark, terminal_text::clean_line};

/// An agent that has reported nothing for this long may hang.
pub(super) const STALL_MS: u64 = 60_000;

/// What a worker is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerState {
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
    /// All calls of the hour are used up.
    WaitingForCall {
        message: String,
    },
    /// Its patch is being merged and checked.
    Landing {
        started_ms: u64,
    },
    /// It is a child run. Its agents report to the child's own view, so it never counts as stalled here.
    RunningChild {
        started_ms: u64,
        /// The id of the child; empty until it has one.
        child_id: String,
    },
    /// It is a child run that waits or was stopped, and can go on.
    Paused {
        mark: LineMark,
        message: String,
    },
    Finished {
        message: String,
    },
    Failed {
        message: String,
    },
}

/// An agent or a child run that the live view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveWorker {
    /// The key of its task, without the suffixes of further attempts, waits and landings.
    pub task_key: Key,
    /// What it is called in this kind of run, for instance `fixer 2`.
    pub worker_name: String,
    /// The agent's name; empty until it is asked.
    pub agent_name: String,
    /// What it works on, for instance `F3 F4`; empty if its name says everything.
    pub work: String,
    pub state: WorkerState,
}

impl LiveWorker {
    pub(super) fn new(task_key: Key, worker_name: String, work: String) -> LiveWorker {
        LiveWorker { task_key, worker_name, agent_name: String::new(), work, state: WorkerState::Waiting }
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

    pub(crate) fn mark_finished(&mut self, message: &str) {
        // The state keeps cleaned text, so that drawing needs no further care.
        self.state = WorkerState::Finished { message: clean_line(message) };
    }

    /// Records how a child run ended or what it waits for.
    pub(super) fn mark_child_result(&mut self, result: &ChildResult) {
        match result.mark {
            LineMark::DONE => self.mark_finished(&result.text),
            LineMark::FAILED => self.mark_failed(&result.text),
            mark => self.state = WorkerState::Paused { mark, message: clean_line(&result.text) },
        }
    }

    pub(crate) fn mark_failed(&mut self, message: &str) {
        self.state = WorkerState::Failed { message: clean_line(message) };
    }

    /// How long it has been working.
    pub(super) fn busy_ms(&self, now_ms: u64) -> Option<u64> {
        match self.state {
            // A worker that waits or has finished is not busy.
            WorkerState::Working { started_ms, .. }
            | WorkerState::Landing { started_ms }
            | WorkerState::RunningChild { started_ms, .. } => Some(now_ms.saturating_sub(started_ms)),
            _ => None,
        }
    }

    /// How long it has reported nothing, if that is worth a warning.
    pub(super) fn stalled_ms(&self, now_ms: u64) -> Option<u64> {
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
        let mut worker = LiveWorker::new(Key::new("k"), "party".into(), String::new());
        assert_eq!(worker.stalled_ms(STALL_MS * 9), None, "who waits does not stall");
        worker.start_work("claude", "", 1_000);
        assert_eq!(worker.stalled_ms(60_999), None);
        assert_eq!(worker.stalled_ms(61_000), Some(60_000));
        worker.note_activity("reading", 61_000);
        assert_eq!(worker.stalled_ms(61_500), None);
        assert_eq!(worker.busy_ms(61_500), Some(60_500));
    }
}
