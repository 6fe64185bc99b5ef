//! The reporter of toy runs, which tests use to try the engine.

use tribunal_workflows::toy::{
    event::ToyEvent,
    order::{ToyOrder, ToySummary},
};

use crate::{
    kind_reporter::{KindReporter, PlainLines, PlainLive},
    phrases,
};

pub(crate) struct ToyReporter;

impl KindReporter for ToyReporter {
    type Kind = ToyOrder;
    type Lines = PlainLines;
    type Live = PlainLive;

    fn describe_event(event: &ToyEvent) -> String {
        let ToyEvent::ToyStepDone { step, text } = event;
        format!("step {step}: {text}")
    }

    fn describe_result(summary: &ToySummary) -> String {
        phrases::format_count(summary.steps_done, "step") + " done"
    }
}
