//! The seam: everything a workflow may do to the world.
//!
//! A host performs effects and keeps the journal. `start` schedules its effect when it is *called*, not when its
//! future is first polled, and dropping the future neither loses nor ends what was started. The only error is
//! [`Parked`]: an agent that fails is a reply.
//!
//! The rule behind resuming: recorded replies are delivered one at a time, in journal order, the workflow polled in
//! between. [`crate::desk::Desk`] is that rule; hosts wrap it.

use alloc::{boxed::Box, string::ToString};
use core::{future::Future, pin::Pin};

use serde::Serialize;

use crate::{
    effect::{Effect, Reply, TypedEffect},
    event::Event,
    ids::Key,
    reason::Ending,
    settings::Settings,
    stamp::Stamp,
};

/// A local future: a workflow runs on one thread.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Parked>> + 'a>>;

/// The run stops here with its state kept; the workflow unwinds with `?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parked: {}", ending.detail)]
pub struct Parked {
    pub ending: Ending,
}

pub trait Host {
    /// Asks for an effect under a key that is unique in this stretch. A host never answers with a reply of another kind: it
    /// ends with [`crate::desk::Divergence::WrongReply`] instead. Workflows call [`perform`](#method.perform).
    fn start(&self, key: Key, effect: Effect) -> Pending<'_, Reply>;

    /// Ends a stretch: resuming enters with this state, and what came before is not replayed. Waits for all that is
    /// under way. Hosts then call the workflow again with the state *as recorded*, so that a run that went on and one that
    /// was resumed are the same by construction; what stands behind a boundary is reached only through its state. Use
    /// [`boundary`].
    fn boundary(&self, key: Key, state: serde_json::Value) -> Pending<'_, ()>;

    /// Writes a fact into the journal, in order with the effects.
    fn note(&self, event: Event);

    /// The stamp of the last delivered reply.
    fn now(&self) -> Stamp;

    /// Whether this stretch runs with the change: true from the first time a build that has it gets here, false where
    /// an older build had already gone past.
    fn patched(&self, change: &'static str) -> bool;

    /// What the run is pinned to.
    fn settings(&self) -> &Settings;
}

impl dyn Host + '_ {
    /// Asks for an effect; the future has its outcome.
    pub fn perform<E: TypedEffect>(&self, key: Key, effect: E) -> Pending<'_, E::Outcome> {
        // Scheduled here, not when the future is first polled.
        let reply = self.start(key, effect.into());
        Box::pin(async move {
            match E::outcome(reply.await?) {
                Some(outcome) => Ok(outcome),
                // The host has seen that the reply is of another kind; the run ends with that.
                None => core::future::pending().await,
            }
        })
    }
}

/// [`Host::boundary`] with a typed state. A state that cannot be written is a bug of ours and parks the run as one.
pub async fn boundary<S: Serialize>(host: &dyn Host, key: Key, state: &S) -> Result<(), Parked> {
    match serde_json::to_value(state) {
        Ok(value) => host.boundary(key, value).await,
        Err(cause) => {
            let ending = Ending::new(crate::reason::Reason::Environment, cause.to_string());
            Err(Parked { ending })
        }
    }
}
