//! Why a stage of a review ends before it is done.

use crate::{
    fault::Fault,
    host::Parked,
    reason::{Ending, Reason},
};

/// A stage that did not come to its end; `?` carries it up to the loop, which knows what follows.
#[derive(Debug)]
pub(super) enum StageExit {
    /// The host parks the run.
    Parked(Parked),
    /// The review has come to this end: a limit was reached, or the environment failed.
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

/// What became of one piece of work among several: those beside it go on either way.
#[derive(Debug)]
#[must_use]
pub(super) enum WorkResult {
    Done,
    /// Something outside has to change first; another try would only be paid for.
    EnvironmentFailed(Fault),
}

impl WorkResult {
    /// The first failure of the two.
    pub fn and(self, other: WorkResult) -> WorkResult {
        match self {
            WorkResult::Done => other,
            failed @ WorkResult::EnvironmentFailed(_) => failed,
        }
    }

    /// Ends the stage where the environment failed.
    pub fn or_end(self) -> Result<(), Ending> {
        match self {
            WorkResult::Done => Ok(()),
            WorkResult::EnvironmentFailed(fault) => Err(Ending::new(Reason::Environment, fault.detail)),
        }
    }
}
