//! Why a stage of a review ends before it is done.

use crate::{
    fault::Fault,
    host::Parked,
    reason::{Ending, Reason},
};

/// Why a stage ended early; `?` carries it up to the loop, which knows what follows.
#[derive(Debug)]
pub(super) enum StageExit {
    /// The host parks the run.
    Parked(Parked),
    /// The review ends: a limit was reached, or the environment failed.
    Ended(Ending),
}

impl From<Parked> for StageExit {
    fn from(parked: Parked) -> StageExit {
        StageExit::Parked(parked)
    }
}

impl From<Ending> for StageExit {
    fn from(ending: Ending) -> StageExit {
        StageExit::Ended(ending)
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
    pub fn and(self, other: WorkResult) -> WorkResult {
        match self {
            // Parallel work is always finished before the stage ends, so no paid result is lost.
            WorkResult::Done => other,
            failed @ WorkResult::EnvironmentFailed(_) => failed,
        }
    }

    /// Ends the stage if the environment failed.
    pub fn or_end(self) -> Result<(), Ending> {
        match self {
            WorkResult::Done => Ok(()),
            // The detail of the fault is what the user has to fix.
            WorkResult::EnvironmentFailed(fault) => Err(Ending::new(Reason::Environment, fault.detail)),
        }
    }
}
