//! Findings counted by status and severity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity, Status};

/// Findings by status, and the open ones by severity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All findings except the dismissed ones.
    pub total: u32,
    /// Findings that are open or assigned to a fixer.
    pub open: u32,
    pub fixed: u32,
    pub blocked: u32,
    pub deferred: u32,
    pub dismissed: u32,
    /// All findings except the dismissed ones, by severity.
    pub by_severity: BySeverity,
    pub open_by_severity: BySeverity,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BySeverity {
    pub critical: u32,
    pub high: u32,
    pub medium: u32,
    pub low: u32,
}

impl BySeverity {
    pub fn of(&self, severity: Severity) -> u32 {
        match severity {
            Severity::Critical => self.critical,
            Severity::High => self.high,
            Severity::Medium => self.medium,
            Severity::Low => self.low,
        }
    }

    fn count(&mut self, severity: Severity) {
        let slot = match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
        };
        *slot += 1;
    }
}

impl Counts {
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            match finding.status {
                Status::Dismissed { .. } => {
                    // Dismissed findings are no issues, so they count in no total.
                    counts.dismissed += 1;
                    continue;
                }
                // An assigned finding is still to be fixed, so it counts as open.
                Status::Open | Status::Assigned => {
                    counts.open += 1;
                    counts.open_by_severity.count(finding.severity);
                }
                Status::Fixed => counts.fixed += 1,
                Status::Blocked { .. } => counts.blocked += 1,
                Status::Deferred { .. } => counts.deferred += 1,
            }
            counts.total += 1;
            counts.by_severity.count(finding.severity);
        }
        counts
    }
}
