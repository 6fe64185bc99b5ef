//! Access to the events of recorded runs.

use tribunal_core::{
    engine::{event::RunEvent, kinds::WorkflowEvent},
    review::event::ReviewEvent,
};

/// Returns the event of a review, to be changed; `None` if it is another one.
pub fn review_event_mut(run_event: &mut RunEvent) -> Option<&mut ReviewEvent> {
    match run_event {
        RunEvent::Workflow(WorkflowEvent::Review(event)) => Some(event),
        _ => None,
    }
}
