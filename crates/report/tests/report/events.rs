//! Access to the events of recorded runs.

use tribunal_workflows::{
    review::event::ReviewEvent,
    runs::{kinds::WorkflowEvent, types::RunEvent},
};

/// Returns the event of a review, to be changed; `None` if it is another one.
pub fn review_event_mut(run_event: &mut RunEvent) -> Option<&mut ReviewEvent> {
    match run_event {
        RunEvent::Workflow(WorkflowEvent::Review(event)) => Some(event),
        _ => None,
    }
}
