//! Less detail and more detail than streaming: one line per stage for `summary`, every effect with its key for `verbose`.

use std::io::{self, Write};

use tribunal_core::{
    effect::{Effect, LandOutcome, Reply},
    event::{Entry, Event},
};

use super::Lines;
use crate::{style::Style, words};

/// The results of a fix iteration so far. They are counted in every mode, since the mode may change while it runs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    round: u32,
    iteration: u32,
    fixers: u32,
    landed: u32,
}

impl Tally {
    /// Updates the counts with the next event.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::FixersDealt { round, iteration, wave, hands, .. } => {
                // Later waves belong to the same iteration and add to its counts.
                if *wave == 1 {
                    *self = Tally { round: *round, iteration: *iteration, ..Tally::default() };
                }
                self.fixers += hands.len() as u32;
            }
            Event::PatchLanded { .. } => self.landed += 1,
            _ => {}
        }
    }
}

impl<W: Write> Lines<W> {
    /// Writes one line for a stage that ended; other entries write nothing.
    pub(super) fn stage(&mut self, entry: &Entry) -> io::Result<()> {
        match &entry.event {
            Event::RunStarted { settings, .. } => {
                let title = format!("review of {} · run {}", settings.subject.title(), entry.run);
                let title = self.screen.paint(Style::Bold, &self.screen.wrap(0, &title));
                self.line(0, &title)
            }
            Event::RoundEnded { round, new, dry, counts } => {
                if let Some(came) = self.sitting.came() {
                    let text = self.screen.wrap(2, &format!("round {round}, challenged: {came}"));
                    self.line(0, &text)?;
                }
                let came = words::round(*new, *dry, counts);
                let text = self.screen.wrap(2, &format!("round {round}: {came}"));
                self.line(0, &text)
            }
            // An iteration ends with its boundary; no event of its own sums it up.
            Event::Boundary { key, .. } if key.is_fix_iteration() => {
                let Tally { round, iteration, fixers, landed } = self.tally;
                let counts = self.view.counts();
                let text = format!(
                    "round {round}, fix iteration {iteration}: patches landed: {landed} of {fixers}; {} fixed, {} open",
                    counts.fixed, counts.open,
                );
                let text = self.screen.wrap(2, &text);
                self.line(0, &text)
            }
            // These are rare and concern the user in every mode.
            Event::EffectStarted { effect: Effect::AwaitReset(_), .. }
            | Event::RunResumed { .. }
            | Event::SettingsChanged { .. }
            | Event::DecisionAnswered { .. }
            | Event::Warned { .. }
            | Event::RunParked(_)
            | Event::RunFinished(_) => self.shown(entry),
            _ => Ok(()),
        }
    }

    /// Writes the line that only `verbose` shows, before the other lines of the entry.
    pub(super) fn inner(&mut self, event: &Event) -> io::Result<()> {
        let (what, key) = match event {
            Event::EffectStarted { key, .. } => ("started", key),
            Event::EffectFinished { key, reply, .. } => (outcome(reply), key),
            Event::Boundary { key, .. } => ("stage ended", key),
            _ => return Ok(()),
        };
        let key = self.screen.fit(16, key.as_str());
        let text = self.screen.paint(Style::Dim, &format!("> {what:<12}{key}"));
        self.line(2, &text)
    }
}

/// The word for a reply in the `verbose` mode.
fn outcome(reply: &Reply) -> &'static str {
    match reply {
        // A fault comes first: a failed landing is not a refused one.
        reply if reply.fault().is_some() => "failed",
        Reply::Land(LandOutcome::Refused { .. }) | Reply::TakeIn(LandOutcome::Refused { .. }) => "not landed",
        Reply::Ask(_) => "answered",
        Reply::Land(_) | Reply::TakeIn(_) => "landed",
        _ => "done",
    }
}
