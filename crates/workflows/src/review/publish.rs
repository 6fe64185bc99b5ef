//! What a review writes for users: the tracker and the metrics.

use alloc::{format, string::String};

use crate::{
    findings::counts::FindingCounts,
    review::{
        ReviewState,
        event::ReviewEvent,
        metrics::{FindingMetrics, MetricsFile, success_rate},
        own_file::OwnFile,
        review_host::ReviewHost,
        tracker, user_requests,
    },
    runs::{
        effect::{WriteFile, WriteOutcome},
        types::RunEvent,
    },
};
use tribunal_engine::{host::ParkedRun, ids::Key, reason::RunEnding};

impl ReviewState {
    /// Writes the tracker. Edits of the user since the last write are applied first; then it is written.
    pub(super) async fn publish_tracker(&mut self, host: &ReviewHost<'_>, parent_key: &Key) -> Result<(), ParkedRun> {
        const WRITE_NAMES: [&str; 3] = ["tracker", "tracker-2", "tracker-3"];
        // Each attempt needs its own key. Three are enough unless the file is edited constantly.
        for write_name in WRITE_NAMES {
            // The revision counts only once the file was written.
            let next_revision = self.tracker_rev + 1;
            let tracker_text = tracker::render_tracker(self, host.order, next_revision, host.last_timestamp());
            let own_file = OwnFile::Tracker;
            match host
                .perform(parent_key.child_key(write_name), WriteFile { file: own_file, text: tracker_text })
                .await?
            {
                WriteOutcome::Edited { requests } => {
                    let write_key = parent_key.child_key(write_name).child_key(user_requests::DISMISSALS_NAME);
                    user_requests::apply_requests(host, self, requests, write_key).await?;
                }
                WriteOutcome::Written { path, kept_copy, unusable_edits } => {
                    self.tracker_rev = next_revision;
                    host.note_own_event(ReviewEvent::FileWritten { file: own_file, path });
                    if let Some(kept_copy) = kept_copy {
                        // The edited version is kept, so nothing that the user wrote is lost.
                        let problem = match unusable_edits.is_empty() {
                            true => String::from("unknown change"),
                            false => unusable_edits.join("; "),
                        };
                        let warning = format!(
                            "could not understand this edit of the tracker: {problem}; your version is kept as {kept_copy}"
                        );
                        host.note_event(RunEvent::Warned { text: warning });
                    }
                    return Ok(());
                }
                WriteOutcome::Failed { fault } => {
                    host.note_event(RunEvent::Warned { text: format!("could not write the tracker: {fault}") });
                    return Ok(());
                }
            }
        }
        let warning = String::from("could not write the tracker: it keeps being edited");
        host.note_event(RunEvent::Warned { text: warning });
        Ok(())
    }

    pub(super) async fn write_metrics(
        &mut self,
        host: &ReviewHost<'_>,
        parent_key: &Key,
        ending: &RunEnding,
    ) -> Result<(), ParkedRun> {
        let timestamp = host.last_timestamp();
        let finding_counts = FindingCounts::from_findings(&self.findings);
        let elapsed_seconds = timestamp.awake_ms as f64 / 1000.0;
        let metrics_file = MetricsFile {
            schema: "tribunal.metrics/1".into(),
            counted: self.metrics.clone(),
            findings: FindingMetrics::from_counts(&finding_counts),
            tokens: self.spent.tokens,
            cost: self.spent.cost,
            rollbacks: 0,
            final_confidence: self.confidence.as_ref().map(|confidence| confidence.score),
            exit_reason: ending.reason.code().into(),
            elapsed_seconds,
            // The minutes are cut off after three decimals.
            elapsed_minutes: (timestamp.awake_ms / 60) as f64 / 1000.0,
            success_rate: success_rate(&finding_counts),
        };
        // Metrics are informative: a failure to write them never fails the run.
        let Ok(mut json_text) = serde_json::to_string_pretty(&metrics_file) else { return Ok(()) };
        json_text.push('\n');
        let own_file = OwnFile::Metrics { unix_seconds: timestamp.wall_ms / 1000 };
        match host.perform(parent_key.child_key("metrics"), WriteFile { file: own_file, text: json_text }).await? {
            WriteOutcome::Written { path, .. } => {
                host.note_own_event(ReviewEvent::FileWritten { file: own_file, path })
            }
            // Metrics are never edited, so there is nothing to apply.
            WriteOutcome::Edited { .. } => {}
            WriteOutcome::Failed { fault } => {
                host.note_event(RunEvent::Warned { text: format!("could not write the metrics: {fault}") });
            }
        }
        Ok(())
    }
}
