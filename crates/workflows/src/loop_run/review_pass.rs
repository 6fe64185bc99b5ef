//! Reviews of a loop's changes: when one is due, and what the next iteration is told of it.
//!
//! The review is a child run that only reviews. Its findings are told until an iteration that knew them has succeeded.

use alloc::{format, string::String};

use crate::{
    development::changes::{ChangeOutcome, ReadChange},
    findings::{
        finding::Severity,
        reported_finding::ReportedFinding,
        subject::{CodeChange, Subject},
    },
    loop_run::{
        breaker::BreakerPhase,
        event::LoopEvent,
        loop_host::LoopHost,
        order::{LoopOrder, LoopReview, ReviewMode},
        state::LoopState,
    },
    review::order::{ReviewLimits, ReviewOrder},
    runs::{
        kinds::RunOrder,
        types::{ChildOutcome, ChildReport, RunChild},
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::Key,
    limits::remaining_share,
    reason::RunReason,
    text::{format_count, truncate_chars},
};

/// The most characters that an iteration is told of a review.
const MAX_CHARS: usize = 500;
/// The same, if a finding is high or critical.
const MAX_URGENT_CHARS: usize = 700;
/// How many findings are told with their details.
const DETAILED_FINDINGS: usize = 2;

/// Whether the changes are to be reviewed after this iteration.
pub(super) fn is_due(order: &LoopOrder, state: &LoopState) -> bool {
    let Some(work) = &state.work else { return false };
    // The first iteration has hardly anything to review, and a loop that is stuck needs no review to know it.
    if state.iteration <= 1 || state.breaker.phase != BreakerPhase::Closed {
        return false;
    }
    let last_commit = state.reviews.last_commit.as_ref().unwrap_or(&work.base);
    let has_changed = work.has_uncommitted_work() || work.tip != *last_commit;
    let is_turn = match order.review.mode {
        ReviewMode::Off => false,
        ReviewMode::Enhanced => state.iteration.is_multiple_of(order.review.interval.max(1)),
        ReviewMode::Ultimate => work.plan.is_some_and(|plan| plan.done > state.reviews.plan_done),
    };
    is_turn && has_changed
}

/// Reviews what was committed since the last review. A review that fails is a warning: the loop goes on without it.
pub(super) async fn review_changes(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
) -> Result<(), ParkedRun> {
    let Some(work) = state.work.clone() else { return Ok(()) };
    let base = state.reviews.last_commit.clone().unwrap_or_else(|| work.base.clone());
    let read_change =
        ReadChange { title: format!("{}..{}", base.short_hex(), work.tip.short_hex()), base, end: work.tip.clone() };
    let change = match host.perform(stage_key.child_key("change"), read_change).await? {
        ChangeOutcome::Listed { change } => *change,
        ChangeOutcome::Empty => return Ok(()),
        ChangeOutcome::Failed { fault } => {
            host.note_warning(format!("could not review the changes: {}", fault.detail));
            return Ok(());
        }
    };
    state.reviews.count += 1;
    state.reviews.plan_done = work.plan.map_or(0, |plan| plan.done);
    let child_name = format!("review-{}", state.reviews.count);
    let remaining = remaining_share(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms);
    let share = state.reviews.ledger.lend_share(&child_name, remaining, 1);
    let order = RunOrder::Review(review_order(&host.order.review, change));
    let run_child = RunChild { name: child_name.clone(), order, share, workspace: None, tier: None };
    let outcome = host.perform(stage_key.child_key("review"), run_child).await?;
    let used = state.reviews.ledger.settle_account(&child_name, &outcome);
    state.spent.add_child(&used);
    match outcome {
        ChildOutcome::Ended(report) if has_reviewed(&report) => {
            state.reviews.last_commit = Some(work.tip);
            state.reviews.last_content = work.content;
            state.reviews.last_iteration = state.iteration;
            state.feedback.review = describe_findings(&report);
            host.note_own_event(LoopEvent::LoopReviewed {
                iteration: state.iteration,
                review: report.run,
                findings: report.result.open_count,
            });
        }
        ChildOutcome::Ended(report) | ChildOutcome::Waiting(report) => {
            let text = format!("the review {} came to no result: {}", report.run, report.detail);
            host.note_warning(text);
        }
        ChildOutcome::Failed(failed) => {
            host.note_warning(format!("could not review the changes: {}", failed.fault.detail));
        }
    }
    Ok(())
}

/// Says what of the work no review has seen, although the user wants reviews; `None` if that is nothing.
pub(super) fn describe_unreviewed(order: &LoopOrder, state: &LoopState) -> Option<String> {
    let content = state.work.as_ref()?.content.as_ref();
    if order.review.mode == ReviewMode::Off || state.reviews.last_content.as_ref() == content {
        return None;
    }
    Some(match (state.reviews.last_iteration, state.iteration) {
        (0, _) => String::from("no review has looked at this work"),
        (reviewed, last) if last > reviewed => {
            format!("no review has looked at what iterations {} to {last} changed", reviewed + 1)
        }
        (reviewed, _) => format!("no review has looked at what has changed since iteration {reviewed}"),
    })
}

/// Makes the order of a review that only reviews, with one pass of a small panel.
fn review_order(review: &LoopReview, change: CodeChange) -> ReviewOrder {
    let LoopReview { level, panel, .. } = review.clone();
    ReviewOrder {
        level: Some(level),
        fix: false,
        limits: ReviewLimits { rounds: 1, parent_asks: true, ..ReviewLimits::default() },
        panel,
        ..ReviewOrder::new(Subject::Change(change.into()))
    }
}

fn has_reviewed(report: &ChildReport) -> bool {
    matches!(report.reason, RunReason::ReviewOnly | RunReason::GoalMet)
}

/// Describes the findings for the next iteration: how many, the two most severe with their details, the others by their number.
fn describe_findings(report: &ChildReport) -> String {
    let Some(first_finding) = report.result.open_findings.first() else { return String::new() };
    let is_urgent = first_finding.severity <= Severity::High;
    let lead = if is_urgent { "Fix these first. " } else { "" };
    let mut text = format!("{lead}{} in the last changes:", format_count(report.result.open_count, "finding"));
    for ReportedFinding { severity, description, place } in report.result.open_findings.iter().take(DETAILED_FINDINGS) {
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        text.push_str(&format!("\n- {severity}{place}: {description}"));
    }
    let other_count = report.result.open_count.saturating_sub(DETAILED_FINDINGS as u32);
    if other_count > 0 {
        text.push_str(&format!("\n- and {other_count} more"));
    }
    // A text that is cut ends with one more character.
    truncate_chars(&text, if is_urgent { MAX_URGENT_CHARS - 1 } else { MAX_CHARS - 1 })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::findings::reported_finding::LeftFindings;
    use tribunal_engine::{ids::RunId, limits::UsageTotals, reason::RunOutcome};

    fn report_with(severities: &[Severity], description: &str) -> ChildReport {
        let open_findings: Vec<ReportedFinding> = severities
            .iter()
            .map(|severity| ReportedFinding {
                severity: *severity,
                description: description.into(),
                place: "a.rs:3".into(),
            })
            .collect();
        ChildReport {
            run: RunId::new("r"),
            outcome: Some(RunOutcome::Waiting),
            reason: RunReason::ReviewOnly,
            detail: String::new(),
            used: UsageTotals::default(),
            worked_ms: 0,
            result: LeftFindings { open_count: open_findings.len() as u32, open_findings, ..LeftFindings::default() },
        }
    }

    #[test]
    fn two_findings_are_told_with_details_and_the_rest_is_counted() {
        let text = describe_findings(&report_with(&[Severity::Medium, Severity::Low, Severity::Low], "wrong sum"));
        assert_eq!(
            text,
            "3 findings in the last changes:\n- medium (a.rs:3): wrong sum\n- low (a.rs:3): wrong sum\n- and 1 more"
        );
        assert_eq!(describe_findings(&report_with(&[], "x")), "");
    }

    #[test]
    fn urgent_findings_lead_and_get_more_room() {
        let long_text = "x".repeat(2_000);
        let calm = describe_findings(&report_with(&[Severity::Medium], &long_text));
        let urgent = describe_findings(&report_with(&[Severity::High], &long_text));
        assert!(calm.chars().count() <= MAX_CHARS && !calm.contains("Fix these first"));
        assert!(urgent.starts_with("Fix these first.") && urgent.chars().count() > MAX_CHARS);
        assert!(urgent.chars().count() <= MAX_URGENT_CHARS);
    }
}
