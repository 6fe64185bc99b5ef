//! How a stage ends that does not simply come to its end.

use alloc::{string::String, vec::Vec};

use tribunal_engine::{
    fault::{Fault, FaultKind},
    host::ParkedRun,
    reason::{RunEnding, RunReason},
};

/// The result of a step within a stage. After `Ok` the stage goes on; `?` leaves it.
pub type Staged<V> = Result<V, StageExit>;

/// Why a stage is left.
#[derive(Debug)]
pub enum StageExit {
    /// The run goes on with its next stage.
    Next,
    /// The run is over.
    Ended(RunEnding),
    /// The user has ended the run, so what it has in hand is closed before it is over.
    Abandoned(RunEnding),
    /// The user has edited these files of the checkout while the work was verified, so it is verified again.
    Edited { paths: Vec<String> },
    /// The run has to wait for its user.
    Halted(RunEnding),
    /// The process leaves the run as it is; a resume repeats the stage.
    Parked(ParkedRun),
}

impl StageExit {
    pub fn halt_run(reason: RunReason, detail: impl Into<String>) -> StageExit {
        StageExit::Halted(RunEnding::new(reason, detail))
    }

    /// The exit of a run that its user has ended.
    pub fn abandon_run(detail: impl Into<String>) -> StageExit {
        StageExit::Abandoned(RunEnding::new(RunReason::Abandoned, detail))
    }

    /// The exit of a stage that cannot go on because of its environment, or because the user's checkout is not ready for it.
    pub fn from_fault(fault: &Fault) -> StageExit {
        let reason = match fault.kind {
            FaultKind::CheckoutNotReady => RunReason::CheckoutNotReady,
            _ => RunReason::Environment,
        };
        StageExit::halt_run(reason, fault.detail.clone())
    }
}

impl From<ParkedRun> for StageExit {
    fn from(parked: ParkedRun) -> StageExit {
        StageExit::Parked(parked)
    }
}
