//! What a review writes for users: the tracker and the metrics.

use alloc::{format, string::String};

use crate::{
    counts::Counts,
    effect::{OwnFile, WriteFile, WriteOutcome},
    event::Event,
    host::{Host, Parked},
    ids::Key,
    metrics::{FindingMetrics, MetricsFile, success_rate},
    reason::Ending,
    review::{Court, people},
    tracker,
};

impl Court {
    /// Writes the tracker. Edits of the user since the last write are applied first; then it is written.
    pub(super) async fn publish(&mut self, host: &dyn Host, parent: &Key) -> Result<(), Parked> {
        const TIMES: [&str; 3] = ["tracker", "tracker-2", "tracker-3"];
        // Each attempt needs its own key. Three are enough unless the file is edited constantly.
        for name in TIMES {
            // The revision counts only once the file was written.
            let rev = self.tracker_rev + 1;
            let text = tracker::render(self, host.settings(), rev, host.now());
            let file = OwnFile::Tracker;
            match host.perform(parent.child(name), WriteFile { file, text }).await? {
                WriteOutcome::Edited { requests } => people::apply(host, self, requests),
                WriteOutcome::Written { path, aside, strange } => {
                    self.tracker_rev = rev;
                    host.note(Event::FileWritten { file, path });
                    if let Some(aside) = aside {
                        // The edited version was put aside, so nothing that the user wrote is lost.
                        let what = if strange.is_empty() { "something" } else { &strange.join("; ") };
                        let text = format!(
                            "in the tracker was edited what is not taken in ({what}); it is kept as {aside}"
                        );
                        host.note(Event::Warned { text });
                    }
                    return Ok(());
                }
                WriteOutcome::Failed { fault } => {
                    host.note(Event::Warned { text: format!("the tracker was not written: {fault}") });
                    return Ok(());
                }
            }
        }
        let text = String::from("the tracker is being edited all the time; it was not written");
        host.note(Event::Warned { text });
        Ok(())
    }

    pub(super) async fn write_metrics(
        &mut self,
        host: &dyn Host,
        parent: &Key,
        ending: &Ending,
    ) -> Result<(), Parked> {
        let now = host.now();
        let counts = Counts::of(&self.findings);
        let seconds = now.awake_ms as f64 / 1000.0;
        let metrics = MetricsFile {
            schema: "tribunal.metrics/1".into(),
            counted: self.metrics.clone(),
            findings: FindingMetrics::of(&counts),
            tokens: self.spent.tokens,
            cost: self.spent.cost,
            rollbacks: 0,
            final_confidence: self.confidence.as_ref().map(|confidence| confidence.score),
            exit_reason: ending.reason.code().into(),
            elapsed_seconds: seconds,
            // Rounded to thousandths of a minute.
            elapsed_minutes: (now.awake_ms / 60) as f64 / 1000.0,
            success_rate: success_rate(&counts),
        };
        // Metrics are informative: a failure to write them never fails the run.
        let Ok(mut text) = serde_json::to_string_pretty(&metrics) else { return Ok(()) };
        text.push('\n');
        let file = OwnFile::Metrics { unix_seconds: now.wall_ms / 1000 };
        match host.perform(parent.child("metrics"), WriteFile { file, text }).await? {
            WriteOutcome::Written { path, .. } => host.note(Event::FileWritten { file, path }),
            // Metrics are never edited, so there is nothing to apply.
            WriteOutcome::Edited { .. } => {}
            WriteOutcome::Failed { fault } => {
                host.note(Event::Warned { text: format!("the metrics were not written: {fault}") });
            }
        }
        Ok(())
    }
}
