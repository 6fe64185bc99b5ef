//! The state that all runs of one process share.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use crate::engine::{permits::AgentPermits, rate_limit::CallRate};

/// Created once per process and passed to every [`crate::Runner`]; all clones share the same state.
#[derive(Clone, Debug)]
pub struct SharedState {
    pub(crate) agent_permits: AgentPermits,
    /// Held while one of our files gets its name, so that of two subjects with the same slug the later sees the first one's file.
    pub(crate) naming_lock: Arc<Mutex<()>>,
    /// The limit on calls per hour; `None` if calls are not counted.
    pub(crate) call_rate: Option<CallRate>,
}

impl SharedState {
    /// `max_agents`: how many agents of all runs together work at the same time.
    pub fn new(max_agents: NonZeroUsize) -> SharedState {
        SharedState { agent_permits: AgentPermits::new(max_agents), naming_lock: Arc::default(), call_rate: None }
    }

    /// Limits the calls per hour, together with all runs on this machine.
    #[must_use]
    pub fn with_rate_limit(self, call_rate: CallRate) -> SharedState {
        SharedState { call_rate: Some(call_rate), ..self }
    }
}
