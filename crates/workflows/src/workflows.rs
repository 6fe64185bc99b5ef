//! The workflow of every kind of run: plain `async` code over the host.

use alloc::boxed::Box;
use core::{future::Future, pin::Pin};

use serde::{Serialize, de::DeserializeOwned};

use crate::runs::{
    kinds::{RunOrder, dispatch_order},
    run_kind::RunKind,
    types::RunHost,
};
use tribunal_engine::{host::ParkedRun, reason::RunEnding};

/// A workflow that runs; it is local to one thread.
pub type WorkflowFuture<'a> = Pin<Box<dyn Future<Output = Result<RunEnding, ParkedRun>> + 'a>>;

/// A kind of run with its code.
pub trait Workflow: RunKind {
    /// What a boundary records.
    type State: Default + Serialize + DeserializeOwned;

    /// Runs the workflow from a state (a new one, or that of the last boundary) to its end.
    fn run<'a>(host: &'a RunHost<'a>, order: &'a Self, state: Self::State) -> WorkflowFuture<'a>;
}

/// Starts the workflow of an order from a recorded state, or from the beginning.
pub fn start_workflow<'a>(
    host: &'a RunHost<'a>,
    order: &'a RunOrder,
    recorded_state: Option<serde_json::Value>,
) -> Result<WorkflowFuture<'a>, serde_json::Error> {
    dispatch_order!(order, typed_order => start_typed(host, typed_order, recorded_state))
}

fn start_typed<'a, W: Workflow>(
    host: &'a RunHost<'a>,
    order: &'a W,
    recorded_state: Option<serde_json::Value>,
) -> Result<WorkflowFuture<'a>, serde_json::Error> {
    let state = match recorded_state {
        Some(recorded_state) => serde_json::from_value(recorded_state)?,
        None => W::State::default(),
    };
    Ok(W::run(host, order, state))
}
