//! A toy run as users see it.

use crate::{
    runs::kind_view::{KindView, ViewedKind},
    toy::{
        event::ToyEvent,
        order::{ToyOrder, ToySummary},
    },
};
use tribunal_engine::timestamp::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct ToyView {
    pub step_count: u32,
    pub steps_done: u32,
}

impl ViewedKind for ToyOrder {
    type View = ToyView;
}

impl KindView<ToyOrder> for ToyView {
    fn apply_order(&mut self, order: &ToyOrder) {
        self.step_count = order.steps.len() as u32;
    }

    fn apply_event(&mut self, event: &ToyEvent, _: Timestamp) {
        match event {
            ToyEvent::ToyStepDone { step, .. } => self.steps_done = *step,
        }
    }

    fn apply_summary(&mut self, summary: &ToySummary) {
        self.steps_done = summary.steps_done;
    }

    fn build_summary(&self) -> ToySummary {
        ToySummary { steps_done: self.steps_done }
    }
}
