//! What all stages of a sprint have in common.

use crate::{
    runs::types::{RunEvent, RunHost},
    sprint::{event::SprintEvent, order::SprintOrder},
};

/// The host of a sprint, with what was asked.
#[derive(Clone, Copy)]
pub(super) struct SprintHost<'a> {
    pub host: &'a RunHost<'a>,
    pub order: &'a SprintOrder,
}

impl SprintHost<'_> {
    pub fn note_event(self, event: SprintEvent) {
        self.host.note_event(RunEvent::from_workflow(event));
    }
}
