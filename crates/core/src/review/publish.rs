//! What a review writes for people: the tracker and the metrics.

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
    /// Writes the tracker. What a person has changed in it since the last look comes first: it is taken in, then it is
    /// written.
    pub(super) async fn publish(&mut self, host: &dyn Host, parent: &Key) -> Result<(), Parked> {
        const TIMES: [&str; 3] = ["tracker", "tracker-2", "tracker-3"];
        for name in TIMES {
            let rev = self.tracker_rev + 1;
            let text = tracker::render(self, host.settings(), rev, host.now());
            let file = OwnFile::Tracker;
            match host.perform(parent.child(name), WriteFile { file, text }).await? {
                WriteOutcome::Edited { requests } => people::apply(host, self, requests),
                WriteOutcome::Written { path, aside, strange } => {
                    self.tracker_rev = rev;
                    host.note(Event::FileWritten { file, path });
                    if let Some(aside) = aside {
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
            elapsed_minutes: (now.awake_ms / 60) as f64 / 1000.0,
            success_rate: success_rate(&counts),
        };
        let Ok(mut text) = serde_json::to_string_pretty(&metrics) else { return Ok(()) };
        text.push('\n');
        let file = OwnFile::Metrics { unix_seconds: now.wall_ms / 1000 };
        match host.perform(parent.child("metrics"), WriteFile { file, text }).await? {
            WriteOutcome::Written { path, .. } => host.note(Event::FileWritten { file, path }),
            // Nobody edits metrics: there is nothing in them to be taken in.
            WriteOutcome::Edited { .. } => {}
            WriteOutcome::Failed { fault } => {
                host.note(Event::Warned { text: format!("the metrics were not written: {fault}") });
            }
        }
        Ok(())
    }
}
