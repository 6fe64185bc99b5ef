//! The host as a review sees it: with its order, and with its own events.

use core::ops::Deref;

use crate::{
    engine::{event::RunEvent, host::Host},
    review::{event::ReviewEvent, order::ReviewOrder},
};

#[derive(Clone, Copy)]
pub(super) struct ReviewHost<'a> {
    host: &'a dyn Host,
    pub order: &'a ReviewOrder,
}

impl<'a> ReviewHost<'a> {
    pub fn new(host: &'a dyn Host, order: &'a ReviewOrder) -> ReviewHost<'a> {
        ReviewHost { host, order }
    }

    /// The host for code that serves all kinds of runs.
    pub fn run_host(&self) -> &'a dyn Host {
        self.host
    }

    /// Writes an event of a review into the journal.
    pub fn note_review(&self, event: ReviewEvent) {
        self.host.note_event(RunEvent::from_workflow(event));
    }
}

impl<'a> Deref for ReviewHost<'a> {
    type Target = dyn Host + 'a;

    fn deref(&self) -> &(dyn Host + 'a) {
        self.host
    }
}
