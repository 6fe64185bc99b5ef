//! A loop in a session has no code of its own: the client's hooks drive it. A host that is asked to run it parks at once.

use alloc::boxed::Box;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    runs::types::RunHost,
    session::event::SessionAssignment,
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    host::ParkedRun,
    reason::{RunEnding, RunReason},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SessionState {}

impl Workflow for SessionAssignment {
    type State = SessionState;

    fn run<'a>(_: &'a RunHost<'a>, _: &'a SessionAssignment, _: SessionState) -> WorkflowFuture<'a> {
        let ending = RunEnding::from_reason(RunReason::InSession);
        Box::pin(core::future::ready(Err(ParkedRun { ending })))
    }
}
