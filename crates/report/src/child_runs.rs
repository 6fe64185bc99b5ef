//! Texts about the child runs of a run: how they ended, and what they used.

use tribunal_engine::reason::{RunOutcome, RunReason};
use tribunal_workflows::runs::types::{ChildOutcome, ChildReport, ChildStanding};

use crate::{
    phrases::{describe_reason, describe_usage, format_duration, join_parts},
    style::LineMark,
};

/// How a child run ended or was parked, as a line shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildResult {
    pub mark: LineMark,
    /// The result, without the name of the child: `resolved: goal met · 31k tokens, $0.31 · 4:05`.
    pub text: String,
}

impl ChildResult {
    pub(crate) fn from_outcome(outcome: &ChildOutcome) -> ChildResult {
        match outcome {
            ChildOutcome::Ended(report) | ChildOutcome::Waiting(report) => ChildResult::from_report(report),
            ChildOutcome::Failed(failed) => {
                ChildResult { mark: LineMark::FAILED, text: format!("could not run: {}", failed.fault.detail) }
            }
        }
    }

    fn from_report(report: &ChildReport) -> ChildResult {
        let (mark, outcome_text) = match report.outcome {
            Some(outcome @ (RunOutcome::Resolved | RunOutcome::Cancelled)) => (LineMark::DONE, outcome.as_str()),
            // It was only to review, and has: its parent decides what follows from the findings.
            Some(RunOutcome::Waiting) if report.reason == RunReason::ReviewOnly => (LineMark::DONE, "reviewed"),
            Some(RunOutcome::Waiting) => (LineMark::QUESTION, "waits for you"),
            Some(outcome @ (RunOutcome::Halted | RunOutcome::Failed)) => (LineMark::FAILED, outcome.as_str()),
            None => (LineMark::PAUSED, "stopped"),
        };
        let reason_text = describe_reason(report.reason, &report.detail);
        let usage_text = describe_usage(report.used.tokens, report.used.cost, report.used.notional);
        let text = join_parts([
            format!("{outcome_text}: {reason_text}").as_str(),
            &usage_text,
            &format_duration(report.worked_ms),
        ]);
        ChildResult { mark, text }
    }
}

/// Describes a child run for `tribunal status`: `child run docs: prd-k3f9 · resolved: goal met · …`.
pub(crate) fn describe_standing(child_name: &str, standing: &ChildStanding, is_live: bool) -> String {
    let result_text = match (&standing.outcome, is_live) {
        (Some(outcome), _) => ChildResult::from_outcome(outcome).text,
        (None, true) => "running".to_string(),
        (None, false) => "interrupted with its parent".to_string(),
    };
    format!("child run {child_name}: {} · {result_text}", standing.run)
}

#[cfg(test)]
mod tests {
    use tribunal_engine::{
        fault::{Fault, FaultKind},
        ids::RunId,
        limits::{Cost, UsageTotals},
    };
    use tribunal_workflows::findings::reported_finding::LeftFindings;

    use super::*;

    fn report(reason: RunReason, detail: &str) -> ChildReport {
        let used = UsageTotals { cost: Cost::from_amount(0.31), tokens: 31_000, ..UsageTotals::default() };
        let run = RunId::new("prd-k3f9");
        ChildReport {
            run,
            outcome: reason.outcome(),
            reason,
            detail: detail.into(),
            used,
            worked_ms: 245_000,
            result: LeftFindings::default(),
        }
    }

    #[test]
    fn a_child_says_how_it_ended_and_what_it_used() {
        for (outcome, symbol, text) in [
            (
                ChildOutcome::Ended(report(RunReason::GoalMet, "all findings fixed")),
                "✓",
                "resolved: all findings fixed · 31k tokens, $0.31 · 4:05",
            ),
            (
                ChildOutcome::Ended(report(RunReason::ReviewOnly, "")),
                "✓",
                "reviewed: findings are open, and fixing is off · 31k tokens, $0.31 · 4:05",
            ),
            (
                ChildOutcome::Waiting(report(RunReason::Blocked, "")),
                "?",
                "waits for you: your decision is needed · 31k tokens, $0.31 · 4:05",
            ),
            (
                ChildOutcome::Waiting(report(RunReason::Cost, "$5.00 of $5.00 spent")),
                "✗",
                "halted: cost limit reached ($5.00 of $5.00 spent) · 31k tokens, $0.31 · 4:05",
            ),
            (
                ChildOutcome::Waiting(report(RunReason::Environment, "the disk is full")),
                "✗",
                "failed: the disk is full · 31k tokens, $0.31 · 4:05",
            ),
            (
                ChildOutcome::Waiting(report(RunReason::Stopped, "")),
                "–",
                "stopped: interrupted; its state is saved · 31k tokens, $0.31 · 4:05",
            ),
            (
                Fault::new(FaultKind::World, "another run works on prd.md").into(),
                "✗",
                "could not run: another run works on prd.md",
            ),
        ] {
            let result = ChildResult::from_outcome(&outcome);
            assert_eq!((result.mark.symbol, result.text.as_str()), (symbol, text));
        }
    }

    #[test]
    fn the_status_names_the_run_of_a_child() {
        let mut standing = ChildStanding::new(RunId::new("prd-k3f9"));
        assert_eq!(describe_standing("docs", &standing, true), "child run docs: prd-k3f9 · running");
        let interrupted = "child run docs: prd-k3f9 · interrupted with its parent";
        assert_eq!(describe_standing("docs", &standing, false), interrupted);
        standing.apply_outcome(&ChildOutcome::Ended(report(RunReason::GoalMet, "all findings fixed")));
        let expected = "child run docs: prd-k3f9 · resolved: all findings fixed · 31k tokens, $0.31 · 4:05";
        assert_eq!(describe_standing("docs", &standing, false), expected);
    }
}
