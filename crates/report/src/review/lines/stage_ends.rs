//! One line for each fix iteration, which is all that the mode `summary` shows of it.

use tribunal_workflows::{
    review::event::ReviewEvent,
    runs::{
        types::{RunEvent, find_event},
        view::RunView,
    },
};

use crate::{line_buffer::LineBuffer, review::phrases, style::TextStyle};

/// The results of a fix iteration so far. They are counted in every mode, since the mode may change while it runs.
#[derive(Debug, Default)]
pub(super) struct FixIterationTally {
    round_number: u32,
    iteration_number: u32,
    fixer_count: u32,
    landed_count: u32,
}

impl FixIterationTally {
    /// Updates the counts with the next event.
    pub(super) fn track_event(&mut self, run_event: &RunEvent) {
        match find_event::<ReviewEvent>(run_event) {
            Some(ReviewEvent::FixersDealt { round, iteration, wave, hands: fixer_findings, .. }) => {
                // Later waves belong to the same iteration and add to its counts.
                if *wave == 1 {
                    *self = FixIterationTally {
                        round_number: *round,
                        iteration_number: *iteration,
                        ..FixIterationTally::default()
                    };
                }
                self.fixer_count += fixer_findings.len() as u32;
            }
            Some(ReviewEvent::PatchLanded { .. }) => self.landed_count += 1,
            _ => {}
        }
    }

    /// Draws the result. An iteration ends with its boundary; no event of its own sums it up.
    pub(super) fn write_result(&self, run_view: &RunView, lines: &mut LineBuffer) {
        let FixIterationTally { round_number: round, iteration_number: iteration, fixer_count, landed_count } = self;
        let counts = run_view.finding_counts();
        let line_text = format!(
            "round {round}, fix iteration {iteration}: {landed_count} of {} applied; {} fixed, {} open",
            phrases::format_patches(*fixer_count),
            counts.fixed,
            counts.open,
        );
        lines.write_wrapped(2, TextStyle::Plain, &line_text);
    }
}
