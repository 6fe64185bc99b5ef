//! Less detail and more detail than streaming: one line per stage for `summary`, every effect with its key for `verbose`.

use std::io::{self, Write};

use tribunal_core::engine::{
    effect::{Effect, LandOutcome, Reply},
    event::{JournalEntry, RunEvent},
};

use super::LineReporter;
use crate::{phrases, style::TextStyle};

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
        match run_event {
            RunEvent::FixersDealt { round, iteration, wave, hands: fixer_findings, .. } => {
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
            RunEvent::PatchLanded { .. } => self.landed_count += 1,
            _ => {}
        }
    }
}

impl<W: Write> LineReporter<W> {
    /// Writes one line for each stage that ended, and the few other entries that concern the user.
    pub(super) fn write_stage_summary(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        match &journal_entry.event {
            RunEvent::RunStarted { settings, .. } => {
                let title_text = format!("review of {} · run {}", settings.subject.title(), journal_entry.run);
                self.write_wrapped(0, TextStyle::Bold, &title_text)
            }
            RunEvent::RoundEnded { round, new: new_findings, dry: is_dry, counts } => {
                if let Some(result_text) = self.challenge_progress.describe_result() {
                    let line_text = format!("round {round}, challenged: {result_text}");
                    self.write_wrapped(2, TextStyle::Plain, &line_text)?;
                }
                let result_text = phrases::describe_round(*new_findings, *is_dry, counts);
                self.write_wrapped(2, TextStyle::Plain, &format!("round {round}: {result_text}"))
            }
            // An iteration ends with its boundary; no event of its own sums it up.
            RunEvent::Boundary { key: boundary_key, .. } if boundary_key.is_fix_iteration() => {
                let FixIterationTally { round_number: round, iteration_number: iteration, fixer_count, landed_count } =
                    self.fix_tally;
                let counts = self.run_view.finding_counts();
                let line_text = format!(
                    "round {round}, fix iteration {iteration}: {landed_count} of {} applied; {} fixed, {} open",
                    phrases::format_patches(fixer_count),
                    counts.fixed,
                    counts.open,
                );
                self.write_wrapped(2, TextStyle::Plain, &line_text)
            }
            // These end no stage, but they are rare and concern the user.
            RunEvent::EffectStarted { effect: Effect::AwaitReset(_), .. }
            | RunEvent::RunResumed { .. }
            | RunEvent::SettingsChanged { .. }
            | RunEvent::DecisionAnswered { .. }
            | RunEvent::Warned { .. }
            | RunEvent::RunParked(_)
            | RunEvent::RunFinished(_) => self.write_entry(journal_entry),
            _ => Ok(()),
        }
    }

    /// Writes the line that only `verbose` shows, before the other lines of the entry.
    pub(super) fn write_effect_line(&mut self, run_event: &RunEvent) -> io::Result<()> {
        let (effect_word, effect_key) = match run_event {
            RunEvent::EffectStarted { key: effect_key, .. } => ("started", effect_key),
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => {
                (reply_outcome_word(effect_reply), effect_key)
            }
            RunEvent::Boundary { key: effect_key, .. } => ("stage ended", effect_key),
            _ => return Ok(()),
        };
        let effect_key = self.screen.fit_text(16, effect_key.as_str());
        let line_text = self.screen.paint(TextStyle::Dim, &format!("> {effect_word:<12}{effect_key}"));
        self.write_line(2, &line_text)
    }
}

/// The word for a reply in the `verbose` mode.
fn reply_outcome_word(effect_reply: &Reply) -> &'static str {
    match effect_reply {
        // A fault comes first: a failed landing is not a refused one.
        effect_reply if effect_reply.fault().is_some() => "failed",
        Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => "rejected",
        Reply::Ask(_) => "answered",
        Reply::Land(_) | Reply::TakeIn(_) => "applied",
        _ => "done",
    }
}
