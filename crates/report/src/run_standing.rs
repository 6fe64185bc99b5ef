//! The state of a run, as far as its journal and its lock, or the state file of its session, tell it.

use tribunal_engine::reason::RunOutcome;
use tribunal_workflows::runs::{
    run_kind::RunDriver,
    view::{RunPhase, RunView},
};

/// A run as `runs` and `status` list it: its journal, and whether it is worked on, by a process or, if it is a loop, by the
/// user's session.
#[derive(Clone, Copy, Debug)]
pub struct RunStanding<'a> {
    pub run_view: &'a RunView,
    pub is_live: bool,
}

impl RunStanding<'_> {
    pub fn run_state(&self) -> RunState {
        match (&self.run_view.phase, self.is_live) {
            (RunPhase::Running, true) => RunState::Running,
            // The user has released the session by deleting its state file. Nothing crashed.
            (RunPhase::Running, false) if is_driven_by_session(self.run_view) => RunState::Stopped,
            // The journal has no ending and no process holds the run: it crashed.
            (RunPhase::Running, false) => RunState::Crashed,
            (RunPhase::Parked(summary) | RunPhase::Finished(summary), _) => {
                summary.outcome.map_or(RunState::Stopped, RunState::Ended)
            }
        }
    }

    /// The state in one word.
    pub fn state_name(&self) -> &'static str {
        self.run_state().as_str()
    }
}

/// Returns whether the user's session continues the run. No process of ours does, so commands for processes are of no use.
pub fn is_driven_by_session(run_view: &RunView) -> bool {
    run_view.order.as_ref().is_some_and(|order| order.run_driver() == RunDriver::Session)
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Running,
    /// The journal has no ending, and no process works on the run.
    Crashed,
    /// The run was stopped before it reached an outcome.
    Stopped,
    /// The run ended, or waits, with this outcome.
    Ended(RunOutcome),
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Crashed => "crashed",
            RunState::Stopped => "stopped",
            RunState::Ended(outcome) => outcome.as_str(),
        }
    }
}
