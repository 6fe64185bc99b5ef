//! How much of an entry each [`DisplayMode`] shows: only what the user must know, one line per stage, the story, or every
//! effect with its key.

use std::io::Write;

use tribunal_workflows::runs::{
    effect::{Effect, LandOutcome, Reply},
    types::{JournalEntry, RunEvent},
};

use super::LineReporter;
use crate::{DisplayMode, style::TextStyle};

impl<W: Write> LineReporter<W> {
    /// Draws what the mode shows of an entry.
    pub(super) fn draw_at_level(&mut self, journal_entry: &JournalEntry) {
        match self.mode {
            DisplayMode::Silent => match &journal_entry.event {
                // Even a silent run says why it stands still.
                RunEvent::Warned { .. }
                | RunEvent::WordIgnored { .. }
                | RunEvent::EffectStarted { effect: Effect::AwaitReset(_), .. }
                | RunEvent::RunParked(_)
                | RunEvent::RunFinished(_) => self.draw_entry(journal_entry),
                _ => {}
            },
            DisplayMode::Summary => self.draw_stage_summary(journal_entry),
            DisplayMode::Streaming => self.draw_entry(journal_entry),
            DisplayMode::Verbose => {
                self.draw_effect_line(&journal_entry.event);
                self.draw_entry(journal_entry);
            }
        }
    }

    /// Draws one line for each stage that ended, and the few other entries that concern the user.
    fn draw_stage_summary(&mut self, journal_entry: &JournalEntry) {
        match &journal_entry.event {
            RunEvent::RunStarted { order, .. } => self.draw_title(&journal_entry.run, order, None),
            // These end no stage, but they are rare and concern the user.
            RunEvent::EffectStarted {
                effect: Effect::AwaitReset(_) | Effect::RunChild(_) | Effect::StartChild(_),
                ..
            }
            | RunEvent::EffectFinished { reply: Reply::RunChild(_), .. }
            | RunEvent::ChildStarted { .. }
            | RunEvent::ChildReturned(_)
            | RunEvent::RunResumed { .. }
            | RunEvent::SettingsChanged { .. }
            | RunEvent::DecisionAnswered { .. }
            | RunEvent::Warned { .. }
            | RunEvent::WordIgnored { .. }
            | RunEvent::RunParked(_)
            | RunEvent::RunFinished(_) => self.draw_entry(journal_entry),
            run_event => self.run_lines.write_stage_end(run_event, &self.run_view, &mut self.lines),
        }
    }

    /// Draws the line that only `verbose` shows, before the other lines of the entry.
    fn draw_effect_line(&mut self, run_event: &RunEvent) {
        let (effect_word, effect_key) = match run_event {
            RunEvent::EffectStarted { key: effect_key, .. } => ("started", effect_key),
            RunEvent::EffectFinished { key: effect_key, reply: effect_reply, .. } => {
                (reply_outcome_word(effect_reply), effect_key)
            }
            RunEvent::Boundary { key: effect_key, .. } => ("stage ended", effect_key),
            _ => return,
        };
        let effect_key = self.lines.screen.fit_text(16, effect_key.as_str());
        let line_text = self.lines.screen.paint(TextStyle::Dim, &format!("> {effect_word:<12}{effect_key}"));
        self.lines.write_line(2, &line_text);
    }
}

/// The word for a reply in the `verbose` mode.
fn reply_outcome_word(effect_reply: &Reply) -> &'static str {
    match effect_reply {
        // A fault comes first: a failed landing is not a refused one.
        effect_reply if effect_reply.fault().is_some() => "failed",
        Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => "rejected",
        Reply::Ask(_) => "answered",
        Reply::Land(LandOutcome::Previewed(_)) => "done",
        Reply::Land(_) | Reply::TakeIn(_) => "applied",
        _ => "done",
    }
}
