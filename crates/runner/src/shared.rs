//! What all runs of one process share.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use crate::{permits::Permits, rate::Rate};

/// Made once a process and handed to every [`crate::Runner`]; its clones are the same.
#[derive(Clone, Debug)]
pub struct Shared {
    pub(crate) permits: Permits,
    /// Held while a file of ours gets its name: of two subjects called the same, the later sees the first one's.
    pub(crate) naming: Arc<Mutex<()>>,
    /// None: nobody counts.
    pub(crate) rate: Option<Rate>,
}

impl Shared {
    /// `at_once`: agents at work at the same time, of all runs together.
    pub fn new(at_once: NonZeroUsize) -> Shared {
        Shared { permits: Permits::new(at_once), naming: Arc::default(), rate: None }
    }

    /// With all runs of this machine.
    #[must_use]
    pub fn counted(self, rate: Rate) -> Shared {
        Shared { rate: Some(rate), ..self }
    }
}
