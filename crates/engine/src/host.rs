//! The interface between a workflow and everything outside of it.
//!
//! A host performs effects and writes the journal. `start_effect` schedules its effect when it is *called*, not when its
//! future is first polled, and dropping the future neither loses nor stops the effect. The only error is [`ParkedRun`]: an
//! agent that fails is a normal reply.
//!
//! Resuming follows one rule: recorded replies are delivered one at a time, in journal order, and the workflow is polled in
//! between. [`crate::runs::types::Replayer`] implements the rule; hosts wrap it.

use alloc::{boxed::Box, string::ToString};
use core::{future::Future, pin::Pin};

use tribunal_json::Serialize;

use crate::{
    answer_to::AnswerTo, event::RunEvent, ids::Key, reason::RunEnding, run_types::RunTypes, timestamp::Timestamp,
};

/// A local future: a workflow runs on one thread.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ParkedRun>> + 'a>>;

/// The run stops here and its state is kept; the workflow unwinds with `?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parked: {}", ending.detail)]
pub struct ParkedRun {
    pub ending: RunEnding,
}

pub trait Host<T: RunTypes> {
    /// Requests an effect under a key that is unique in this segment. A host never answers with a reply of another kind: it
    /// ends with [`crate::replayer::ReplayDivergence::WrongReplyKind`] instead. Workflows call [`perform`](#method.perform).
    fn start_effect(&self, effect_key: Key, effect: T::Effect) -> HostFuture<'_, T::Reply>;

    /// Ends a segment: a resumed run starts with this state, and what came before is not replayed. Waits for all effects that
    /// are under way. Hosts then call the workflow again with the state *as recorded*, so that a run that continued and one
    /// that was resumed cannot differ; code behind a boundary is reached only through its state. Use [`cross_boundary`].
    fn record_boundary(&self, boundary_key: Key, state: serde_json::Value) -> HostFuture<'_, ()>;

    /// Writes a fact into the journal, in order with the effects.
    fn note_event(&self, event: RunEvent<T>);

    /// Returns the timestamp of the last delivered reply. A workflow has no other clock.
    fn last_timestamp(&self) -> Timestamp;

    /// Whether this segment runs with the change: true from the first time that a build with the change gets here, false where
    /// an older build had already passed this point.
    fn patched(&self, change: &'static str) -> bool;

    /// Returns the settings that the run is pinned to.
    fn settings(&self) -> &T::Settings;
}

impl<T: RunTypes> dyn Host<T> + '_ {
    /// Requests an effect; the future resolves to its outcome.
    pub fn perform<E>(&self, key: Key, effect: E) -> HostFuture<'_, <T::Reply as AnswerTo<E>>::Outcome>
    where
        T::Effect: From<E>,
        T::Reply: AnswerTo<E>,
    {
        // The effect is scheduled here, not when the future is first polled.
        let reply = self.start_effect(key, effect.into());
        Box::pin(async move {
            match reply.await?.into_outcome() {
                Some(outcome) => Ok(outcome),
                // The host has noticed that the reply is of another kind and ends the run with that divergence.
                None => core::future::pending().await,
            }
        })
    }
}

/// Calls [`Host::record_boundary`] with a typed state. A state that cannot be serialized is a bug and parks the run.
pub async fn cross_boundary<T: RunTypes, S: Serialize>(
    host: &(dyn Host<T> + '_),
    boundary_key: Key,
    workflow_state: &S,
) -> Result<(), ParkedRun> {
    match serde_json::to_value(workflow_state) {
        Ok(state_json) => host.record_boundary(boundary_key, state_json).await,
        Err(cause) => {
            // Parking keeps the journal usable: the stage is repeated by a build that can write its state.
            let ending = RunEnding::new(crate::reason::RunReason::Environment, cause.to_string());
            Err(ParkedRun { ending })
        }
    }
}
