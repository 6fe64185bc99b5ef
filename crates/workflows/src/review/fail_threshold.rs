//! The rule behind `--fail-on`: findings of a certain severity, and not the outcome alone, decide the exit code of a run that
//! has ended.

use crate::findings::finding::{Finding, Severity};
use tribunal_engine::reason::{RunOutcome, RunReason};

/// The exit code of a run whose findings are bad enough to fail it.
const EXIT_FAILED_BY_FINDINGS: u8 = 3;

/// What a threshold means for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdVerdict {
    pub exit_code: u8,
    /// Whether the findings decided. If not, the exit code is that of the reason, as without a threshold.
    pub is_by_findings: bool,
    /// The unresolved findings of the threshold's severity or a higher one.
    pub failing_count: u32,
}

/// Decides the exit code of a run that ended or was parked for `reason`.
///
/// Only a review that came to its end is judged by its findings. A run that a limit halted, that failed, or that waits for an
/// answer has not looked at everything yet, so its own exit code says more than the findings that it has so far.
pub fn judge_by_threshold<'a>(
    reason: RunReason,
    threshold: Severity,
    findings: impl IntoIterator<Item = &'a Finding>,
) -> ThresholdVerdict {
    // Severities are ordered with the most severe first.
    let is_failing = |finding: &&Finding| finding.status.is_unresolved() && finding.severity <= threshold;
    let failing_count = u32::try_from(findings.into_iter().filter(is_failing).count()).unwrap_or(u32::MAX);
    let is_by_findings = reason == RunReason::ReviewOnly || reason.outcome() == Some(RunOutcome::Resolved);
    let exit_code = match (is_by_findings, failing_count) {
        (false, _) => reason.exit_code(),
        (true, 0) => 0,
        (true, _) => EXIT_FAILED_BY_FINDINGS,
    };
    ThresholdVerdict { exit_code, is_by_findings, failing_count }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec, vec::Vec};

    use super::*;
    use crate::findings::finding::{DeferralReason, DismissalReason, Evidence, FindingStatus};
    use tribunal_engine::{
        ids::{DecisionId, FindingId},
        reason::REASON_TABLE,
    };

    fn finding_with(severity: Severity, status: FindingStatus) -> Finding {
        Finding {
            id: FindingId(1),
            severity,
            category: String::new(),
            description: String::new(),
            evidence: Evidence::Quote { text: String::new() },
            place: None,
            found: None,
            suggested_fix: String::new(),
            raisers: Vec::new(),
            status,
            maybe_same_as: None,
            history: Vec::new(),
        }
    }

    fn exit_code_for(reason: RunReason, threshold: Severity, findings: &[Finding]) -> u8 {
        judge_by_threshold(reason, threshold, findings).exit_code
    }

    #[test]
    fn a_finding_fails_an_ended_run_if_it_is_as_severe_as_the_threshold() {
        for (threshold_index, threshold) in Severity::ALL.into_iter().enumerate() {
            for (severity_index, severity) in Severity::ALL.into_iter().enumerate() {
                let findings = [finding_with(severity, FindingStatus::Open)];
                let expected_code = if severity_index <= threshold_index { 3 } else { 0 };
                for reason in [RunReason::ReviewOnly, RunReason::GoalMet, RunReason::Accepted] {
                    assert_eq!(exit_code_for(reason, threshold, &findings), expected_code, "{severity} {threshold}");
                }
            }
        }
    }

    #[test]
    fn only_what_is_still_in_the_text_counts() {
        for (status, expected_code) in [
            (FindingStatus::Open, 3),
            (FindingStatus::Assigned, 3),
            (FindingStatus::Blocked { decision: DecisionId::new("D1") }, 3),
            (FindingStatus::Deferred { why: DeferralReason::Person }, 3),
            (FindingStatus::Fixed, 0),
            (FindingStatus::Dismissed { why: DismissalReason::Invalid }, 0),
        ] {
            let findings = vec![finding_with(Severity::High, status.clone())];
            assert_eq!(exit_code_for(RunReason::ReviewOnly, Severity::High, &findings), expected_code, "{status:?}");
        }
        assert_eq!(exit_code_for(RunReason::ReviewOnly, Severity::Low, &[]), 0);
    }

    #[test]
    fn a_run_that_did_not_come_to_its_end_keeps_its_exit_code() {
        let severe_findings = [finding_with(Severity::Critical, FindingStatus::Open)];
        for table_row in REASON_TABLE {
            let is_ended = table_row.reason == RunReason::ReviewOnly || table_row.outcome == Some(RunOutcome::Resolved);
            for findings in [&severe_findings[..], &[]] {
                let verdict = judge_by_threshold(table_row.reason, Severity::Low, findings);
                assert_eq!(verdict.is_by_findings, is_ended, "{}", table_row.code);
                assert_eq!(verdict.failing_count as usize, findings.len());
                if !is_ended {
                    assert_eq!(verdict.exit_code, table_row.exit_code, "{}", table_row.code);
                }
            }
        }
    }
}
