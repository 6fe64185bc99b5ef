//! What a run is pinned to: its order, and the settings for it.

use crate::runs::{kinds::RunOrder, settings::Settings};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan<O = RunOrder> {
    pub settings: Settings,
    pub order: O,
}

impl<O> RunPlan<O> {
    /// Returns the plan after a change.
    #[must_use]
    pub fn with_change(mut self, change: impl FnOnce(&mut RunPlan<O>)) -> RunPlan<O> {
        change(&mut self);
        self
    }
}

impl<O: Into<RunOrder>> RunPlan<O> {
    /// Returns the plan for code that serves all kinds of runs.
    pub fn into_run(self) -> RunPlan {
        RunPlan { settings: self.settings, order: self.order.into() }
    }
}
