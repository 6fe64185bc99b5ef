//! Findings counted by status and severity.

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::finding::{Finding, FindingStatus, Severity};

/// Findings by status, and the open ones by severity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FindingCounts {
    /// All findings except the dismissed ones.
    pub total: u32,
    /// Findings that are open or assigned to a fixer.
    pub open: u32,
    pub fixed: u32,
    pub blocked: u32,
    pub deferred: u32,
    pub dismissed: u32,
    /// All findings except the dismissed ones, by severity.
    pub by_severity: SeverityCounts,
    pub open_by_severity: SeverityCounts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeverityCounts {
    pub critical: u32,
    pub high: u32,
    pub medium: u32,
    pub low: u32,
}

impl SeverityCounts {
    pub fn with_severity(&self, severity: Severity) -> u32 {
        match severity {
            Severity::Critical => self.critical,
            Severity::High => self.high,
            Severity::Medium => self.medium,
            Severity::Low => self.low,
        }
    }

    fn count_severity(&mut self, severity: Severity) {
        let counter = match severity {
            Severity::Critical => &mut self.critical,
            Severity::High => &mut self.high,
            Severity::Medium => &mut self.medium,
            Severity::Low => &mut self.low,
        };
        *counter += 1;
    }
}

impl FindingCounts {
    pub fn from_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> FindingCounts {
        let mut finding_counts = FindingCounts::default();
        for finding in findings {
            match finding.status {
                FindingStatus::Dismissed { .. } => {
                    // Dismissed findings are no issues, so they count in no total.
                    finding_counts.dismissed += 1;
                    continue;
                }
                // An assigned finding is still to be fixed, so it counts as open.
                FindingStatus::Open | FindingStatus::Assigned => {
                    finding_counts.open += 1;
                    finding_counts.open_by_severity.count_severity(finding.severity);
                }
                FindingStatus::Fixed => finding_counts.fixed += 1,
                FindingStatus::Blocked { .. } => finding_counts.blocked += 1,
                FindingStatus::Deferred { .. } => finding_counts.deferred += 1,
            }
            finding_counts.total += 1;
            finding_counts.by_severity.count_severity(finding.severity);
        }
        finding_counts
    }
}
