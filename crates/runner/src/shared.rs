//! The state that all runs of one process share.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use crate::{permits::Permits, rate::Rate};

/// Created once per process and passed to every [`crate::Runner`]; all clones share the same state.
#[derive(Clone, Debug)]
pub struct Shared {
    pub(crate) permits: Permits,
    /// Held while one of our files gets its name, so that of two subjects with the same slug the later sees the first one's file.
    pub(crate) naming: Arc<Mutex<()>>,
    /// The limit on calls per hour; `None` if calls are not counted.
    pub(crate) rate: Option<Rate>,
}

impl Shared {
    /// `max_agents`: how many agents of all runs together work at the same time.
    pub fn new(at_once: NonZeroUsize) -> Shared {
        Shared { permits: Permits::new(at_once), naming: Arc::default(), rate: None }
    }

    /// Limits the calls per hour, together with all runs on this machine.
    #[must_use]
    pub fn counted(self, rate: Rate) -> Shared {
        Shared { rate: Some(rate), ..self }
    }
}
