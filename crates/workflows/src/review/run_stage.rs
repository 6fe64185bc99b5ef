//! Why a stage of a review ends before it is done.

use tribunal_engine::{
    fault::Fault,
    host::ParkedRun,
    reason::{RunEnding, RunReason},
};

/// Why a stage ended early; `?` carries it up to the loop, which knows what follows.
#[derive(Debug)]
pub(super) enum ReviewExit {
    /// The host parks the run.
    Parked(ParkedRun),
    /// The review ends: a limit was reached, or the environment failed.
    Ended(RunEnding),
}

impl From<ParkedRun> for ReviewExit {
    fn from(parked: ParkedRun) -> ReviewExit {
        ReviewExit::Parked(parked)
    }
}

impl From<RunEnding> for ReviewExit {
    fn from(ending: RunEnding) -> ReviewExit {
        ReviewExit::Ended(ending)
    }
}

/// The result of one piece of work among several: the others continue either way.
#[derive(Debug)]
#[must_use]
pub(super) enum WorkResult {
    Done,
    /// The environment has to change first; another attempt would only cost money.
    EnvironmentFailed(Fault),
}

impl WorkResult {
    /// Returns the first failure of the two.
    pub fn first_failure(self, other_result: WorkResult) -> WorkResult {
        match self {
            WorkResult::Done => other_result,
            failed @ WorkResult::EnvironmentFailed(_) => failed,
        }
    }

    /// Ends the stage if the environment failed.
    pub fn end_on_failure(self) -> Result<(), RunEnding> {
        match self {
            WorkResult::Done => Ok(()),
            // The detail of the fault is what the user has to fix.
            WorkResult::EnvironmentFailed(fault) => Err(RunEnding::new(RunReason::Environment, fault.detail)),
        }
    }
}
