//! The state that all runs of one process share.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use tokio::sync::watch;

use crate::shared::{permits::AgentPermits, rate_limit::CallRate, user_words::UserWordWatch};

/// Created once per process and passed to every [`crate::Runner`]; all clones share the same state.
#[derive(Clone, Debug)]
pub struct SharedState {
    pub(crate) agent_permits: AgentPermits,
    /// Held while one of our files gets its name, so that of two subjects with the same slug the later sees the first one's file.
    pub(crate) naming_lock: Arc<Mutex<()>>,
    /// The limit on calls per hour; `None` if calls are not counted.
    pub(crate) call_rate: Option<CallRate>,
    /// What counts as the user's word while agents without a sandbox work.
    pub(crate) user_words: Arc<UserWordWatch>,
    /// Counts how often the user asked to stop single child runs; every run that hears of it looks into its inbox.
    stop_requests: watch::Sender<u64>,
}

impl SharedState {
    /// `max_agents`: how many agents of all runs together work at the same time.
    pub fn new(max_agents: NonZeroUsize) -> SharedState {
        SharedState {
            agent_permits: AgentPermits::new(max_agents),
            naming_lock: Arc::default(),
            call_rate: None,
            user_words: Arc::default(),
            stop_requests: watch::Sender::new(0),
        }
    }

    /// Tells all child runs of this process to look whether the user wants to stop them.
    pub fn announce_stop_requests(&self) {
        self.stop_requests.send_modify(|count| *count += 1);
    }

    pub(crate) fn stop_requests(&self) -> watch::Receiver<u64> {
        self.stop_requests.subscribe()
    }

    /// Limits the calls per hour, together with all runs on this machine.
    #[must_use]
    pub fn with_rate_limit(self, call_rate: CallRate) -> SharedState {
        SharedState { call_rate: Some(call_rate), ..self }
    }
}
