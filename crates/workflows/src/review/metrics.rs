//! The metrics of a review, under the names that its metrics file uses.

use alloc::string::String;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::counts::FindingCounts;
use tribunal_engine::limits::Cost;

/// Counters a review keeps in its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewMetrics {
    pub review_rounds: u32,
    pub fix_iterations: u32,
    pub subagent_invocations: u32,
    pub failures: u32,
    pub recoveries: u32,
    pub loops_detected: u32,
    pub total_backoff_seconds: u64,
    /// The points to which a run's file can be reverted: one for each landing.
    pub checkpoints: u32,
}

/// The file `review-metrics-{unix seconds}.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MetricsFile {
    pub schema: String,
    #[serde(flatten)]
    pub counted: ReviewMetrics,
    #[serde(flatten)]
    pub findings: FindingMetrics,
    pub tokens: u64,
    pub cost: Cost,
    /// How often a run's file was reverted to a checkpoint while it ran. A review never does this, so it is 0.
    pub rollbacks: u32,
    /// The confidence after the last round; `None` if no round was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_confidence: Option<u32>,
    pub exit_reason: String,
    pub elapsed_seconds: f64,
    pub elapsed_minutes: f64,
    /// The share of fixed findings among those that had to be fixed; 1.0 if there were none.
    pub success_rate: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingMetrics {
    pub total_issues_found: u32,
    pub total_issues_fixed: u32,
    pub total_issues_blocked: u32,
    pub dismissed: u32,
    pub deferred: u32,
}

impl FindingMetrics {
    pub fn from_counts(finding_counts: &FindingCounts) -> FindingMetrics {
        FindingMetrics {
            // The names belong to the format of the file; this code says finding where the file says issue.
            total_issues_found: finding_counts.total,
            total_issues_fixed: finding_counts.fixed,
            total_issues_blocked: finding_counts.blocked,
            dismissed: finding_counts.dismissed,
            deferred: finding_counts.deferred,
        }
    }
}

pub fn success_rate(finding_counts: &FindingCounts) -> f64 {
    // Deferred and dismissed findings did not have to be fixed.
    let due_count = finding_counts.open + finding_counts.fixed + finding_counts.blocked;
    if due_count == 0 { 1.0 } else { f64::from(finding_counts.fixed) / f64::from(due_count) }
}
