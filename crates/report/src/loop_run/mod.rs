//! The reporter of headless loops: iterations, refused promises, commits, the circuit breaker, the landing.

mod lines;
mod live;

use tribunal_engine::{limits::RemainingLimits, reason::RunOutcome};
use tribunal_workflows::{
    loop_run::{
        breaker::BreakerPhase,
        event::{IterationReport, LoopEvent},
        order::{LoopOrder, LoopSummary, PlanProgress, ReviewMode},
        view::LoopView,
    },
    session::SessionWork,
};

use crate::{
    escape_line,
    kind_reporter::{KindReporter, ResultCommand},
    phrases::{self, format_count},
    report_parts::{
        document::{OtherRunReport, ReportSources, list_concerns},
        section::ReportSection,
    },
    run_standing::RunStanding,
};
use lines::LoopLines;
use live::LoopLive;

/// Reports headless loops.
pub(crate) struct LoopReporter;

impl KindReporter for LoopReporter {
    type Kind = LoopOrder;
    type Lines = LoopLines;
    type Live = LoopLive;

    fn build_section(
        view: &LoopView,
        result: &LoopSummary,
        run_standing: &RunStanding<'_>,
        sources: &ReportSources<'_>,
    ) -> ReportSection {
        let result_parts = [Self::describe_effort(result), Self::describe_result(result)];
        let summary = &view.summary;
        let report =
            OtherRunReport::from_result(run_standing.run_view, result_parts, &["log"], sources).map(|report| {
                let show_commit = summary.tip.iter().map(|commit| format!("git show {}", commit.short_hex()));
                OtherRunReport {
                    look_closer: show_commit.chain(report.look_closer).collect(),
                    iterations: Some(summary.iterations),
                    branch: summary.landed_on.clone(),
                    look_at: list_concerns(&summary.concerns),
                    commit: summary.tip.clone(),
                    ..report
                }
            });
        ReportSection { result: report, ..ReportSection::default() }
    }

    fn list_limits(order: &LoopOrder) -> Vec<String> {
        vec![format_count(order.pacing.max_iterations, "iteration")]
    }

    fn list_order_facts(order: &LoopOrder) -> Vec<String> {
        let until_text = match &order.completion.plan_file {
            Some(plan_file) => format!("until every box in {plan_file} is ticked"),
            None => format!("until {}", SessionWork::Loop.tag_promise(&order.completion.promise)),
        };
        let mut facts = vec![until_text, format!("{}, branch {}", order.place, order.branch.name)];
        if order.pacing.continue_session {
            facts.push("one session".into());
        }
        if order.review.mode != ReviewMode::Off {
            facts.push(format!("review {}", order.review.mode));
        }
        facts
    }

    fn describe_event(event: &LoopEvent) -> String {
        match event {
            LoopEvent::LoopPrepared { path, base, .. } => format!("{path} at {}", base.short_hex()),
            LoopEvent::LoopBaseline { results, .. } => {
                let failures: Vec<String> = results
                    .iter()
                    .filter(|result| !result.status.is_passed())
                    .map(|result| result.describe())
                    .collect();
                match failures.is_empty() {
                    true => format!("{} passed", format_count(results.len() as u32, "check")),
                    false => failures.join("; "),
                }
            }
            LoopEvent::IterationEnded { report, .. } => describe_iteration(report),
            LoopEvent::PromiseRefused { why, .. } => why.clone(),
            LoopEvent::LoopCommitted { commit, .. } => format!("commit {}", commit.short_hex()),
            LoopEvent::BreakerMoved { detail, .. } => detail.clone(),
            LoopEvent::LoopReviewed { review, findings, .. } => {
                format!("{review}: {}", format_count(*findings, "finding"))
            }
            LoopEvent::LoopLanded { commit, .. } => format!("at {}", commit.short_hex()),
            LoopEvent::LoopClosed { kept: Some(commit), .. } => format!("work kept as {}", commit.short_hex()),
            LoopEvent::LoopClosed { kept: None, .. } => "no work to keep".to_string(),
        }
    }

    fn is_problem(event: &LoopEvent) -> bool {
        match event {
            LoopEvent::PromiseRefused { .. } => true,
            LoopEvent::BreakerMoved { phase, .. } => *phase == BreakerPhase::Open,
            LoopEvent::IterationEnded { report, .. } => !report.fault.is_empty() || !report.failed_checks.is_empty(),
            LoopEvent::LoopBaseline { results, .. } => results.iter().any(|result| !result.status.is_passed()),
            _ => false,
        }
    }

    fn describe_result(summary: &LoopSummary) -> String {
        let mut parts = vec![format_count(summary.iterations, "iteration")];
        parts.extend(summary.plan.map(describe_plan));
        parts.push(format!("{} changed", format_count(summary.changed_files, "file")));
        if summary.refused > 0 {
            parts.push(format!("{} refused", format_count(summary.refused, "promise")));
        }
        match (&summary.landed_on, &summary.tip) {
            (Some(branch), _) => parts.push(format!("{} on {branch}", format_count(summary.commits, "commit"))),
            (None, Some(tip)) => parts.push(format!("work kept as {}", tip.short_hex())),
            (None, None) => {}
        }
        parts.join(", ")
    }

    fn describe_result_cell(summary: &LoopSummary) -> String {
        match (&summary.landed_on, summary.plan) {
            (_, Some(plan)) => describe_plan(plan),
            (Some(branch), None) => format!("{} on {branch}", format_count(summary.commits, "commit")),
            (None, None) => format_count(summary.iterations, "iteration"),
        }
    }

    fn describe_remaining(remaining: &RemainingLimits) -> String {
        // The shared phrase would list it as well, and not in the singular.
        let mut shared_limits = remaining.clone();
        let iterations = shared_limits.counts.remove("iterations").unwrap_or_default();
        format!("{}, {}", format_count(iterations, "iteration"), phrases::describe_remaining(&shared_limits))
    }

    fn list_result_commands(summary: &LoopSummary, outcome: Option<RunOutcome>) -> Vec<ResultCommand> {
        let has_kept_work = summary.tip.is_some() && summary.landed_on.is_none();
        match (has_kept_work, outcome) {
            (true, _) => vec![ResultCommand { command: "log", explanation: "what each iteration did" }],
            _ => Vec::new(),
        }
    }

    fn list_status_lines(view: &LoopView) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(last_iteration) = &view.last_iteration {
            let iteration = view.summary.iterations;
            lines.push(format!("iteration {iteration}: {}", describe_iteration(last_iteration)));
        }
        if view.breaker != BreakerPhase::Closed {
            lines.push(format!("circuit breaker: {}", view.breaker));
        }
        if let (None, Some(tip), Some(base)) = (&view.summary.landed_on, &view.summary.tip, &view.base) {
            lines.push(format!("work so far: git diff {}..{}", base.short_hex(), tip.short_hex()));
        }
        lines
    }

    fn list_file_lines(view: &LoopView) -> Vec<String> {
        match (&view.summary.landed_on, view.workspace_path.as_str()) {
            // The workspace of work that has landed is gone.
            (Some(_), _) | (None, "") => Vec::new(),
            (None, path) => vec![format!("workspace  {}", escape_line(path))],
        }
    }
}

fn describe_plan(plan: PlanProgress) -> String {
    format!("{}/{} tasks", plan.done, plan.total)
}

/// Describes what came of an iteration in one line.
fn describe_iteration(report: &IterationReport) -> String {
    if !report.fault.is_empty() {
        return format!("failed: {}", report.fault);
    }
    let mut parts = Vec::new();
    parts.push(match (report.progress, report.repeated) {
        (true, _) => format!("{} changed in all", format_count(report.changed_files, "file")),
        (false, true) => "nothing changed, and it said the same as before".to_string(),
        (false, false) => "nothing changed".to_string(),
    });
    parts.extend(report.plan.map(describe_plan));
    parts.extend(report.failed_checks.iter().cloned());
    if !report.summary.is_empty() {
        parts.push(report.summary.clone());
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use tribunal_engine::limits::{RunLimits, RunUsage};

    use super::*;

    #[test]
    fn remaining_iterations_are_listed_once() {
        let remaining = RemainingLimits::calculate(&RunLimits::default(), &RunUsage::default(), 0);
        let remaining_text = LoopReporter::describe_remaining(&remaining.with_count("iterations", 1));
        assert!(remaining_text.starts_with("1 iteration, 5 failures, "), "{remaining_text}");
    }
}
