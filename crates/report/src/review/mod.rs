//! The reporter of reviews: rounds, findings, challenges, fixes, confidence, and the exports of findings.

mod diffstat;
mod entry_conditions;
mod event_text;
mod export;
mod findings_table;
mod lines;
mod live;
mod phrases;
mod round_strip;
mod rulings;
mod severity_bars;

pub(crate) use entry_conditions::ReviewConditions;
pub use export::FindingsExport;
pub use findings_table::render_findings;
pub use phrases::describe_confidence;
pub use rulings::{Ruling, RulingIndex};

use tribunal_engine::{files::PatchRefusal, ids::Key, limits::RemainingLimits, reason::RunOutcome};
use tribunal_workflows::{
    findings::finding::{DismissalReason, Finding, FindingStatus, Severity},
    review::{
        event::ReviewEvent,
        order::{ReviewOrder, ReviewSummary},
        own_file::OwnFile,
        review_keys::ReviewKeys,
        view::ReviewView,
    },
    runs::effect::Effect,
    tasks::brief::AgentTask,
};

use crate::{
    escape_line,
    kind_reporter::{ItemCounts, KindReporter, ResultCommand, TaskDescription},
    report_parts::{
        document::{FindingTotals, OtherRunReport, ReportSources},
        section::ReportSection,
    },
    run_standing::RunStanding,
    style::TextStyle,
};
use lines::ReviewLines;
use live::ReviewLive;

/// Reports reviews.
pub(crate) struct ReviewReporter;

impl KindReporter for ReviewReporter {
    type Kind = ReviewOrder;
    type Lines = ReviewLines;
    type Live = ReviewLive;

    const RESULT_HEADING: &'static str = "FINDINGS";

    fn build_section(
        _: &ReviewView,
        result: &ReviewSummary,
        run_standing: &RunStanding<'_>,
        sources: &ReportSources<'_>,
    ) -> ReportSection {
        let result_parts = [Self::describe_effort(result), Self::describe_result(result)];
        let (run_view, commands) = (run_standing.run_view, ["findings", "diff", "log"]);
        let report = OtherRunReport::from_result(run_view, result_parts, &commands, sources).map(|report| {
            OtherRunReport { findings: Some(FindingTotals::from_counts(&run_view.finding_counts())), ..report }
        });
        ReportSection { result: report, ..ReportSection::default() }
    }

    fn list_limits(order: &ReviewOrder) -> Vec<String> {
        phrases::list_limits(&order.limits)
    }

    fn list_order_facts(order: &ReviewOrder) -> Vec<String> {
        let fix_note = if order.fix { "" } else { ", review only" };
        vec![format!("goal {}{fix_note}", order.goal)]
    }

    fn describe_event(event: &ReviewEvent) -> String {
        event_text::describe_event(event)
    }

    fn is_problem(event: &ReviewEvent) -> bool {
        matches!(
            event,
            ReviewEvent::SeatIncomplete { .. }
                | ReviewEvent::FixerFailed { .. }
                | ReviewEvent::PatchRefused { .. }
                | ReviewEvent::ChallengerAnswered { fault: Some(_), .. }
                | ReviewEvent::JudgeAnswered { fault: Some(_), .. }
        )
    }

    fn find_key(event: &ReviewEvent) -> Option<&Key> {
        match event {
            ReviewEvent::ChallengerAnswered { key: effect_key, .. }
            | ReviewEvent::JudgeAnswered { key: effect_key, .. }
            | ReviewEvent::FixerFailed { key: effect_key, .. }
            | ReviewEvent::PatchLanded { key: effect_key, .. }
            | ReviewEvent::PatchRefused { key: effect_key, .. } => Some(effect_key),
            _ => None,
        }
    }

    /// What a check printed says why it failed.
    fn find_output(event: &ReviewEvent) -> Option<&str> {
        match event {
            ReviewEvent::PatchRefused { why: PatchRefusal::Check { output, .. }, .. } => Some(output),
            _ => None,
        }
    }

    fn describe_result(summary: &ReviewSummary) -> String {
        phrases::describe_counts(&summary.findings)
    }

    fn describe_result_cell(summary: &ReviewSummary) -> String {
        phrases::describe_statuses(&summary.findings)
    }

    fn describe_effort(summary: &ReviewSummary) -> String {
        phrases::describe_effort(summary)
    }

    fn describe_remaining(remaining: &RemainingLimits) -> String {
        phrases::describe_remaining(remaining)
    }

    fn count_items(summary: &ReviewSummary) -> Option<ItemCounts> {
        let counts = &summary.findings;
        Some(ItemCounts { found: counts.total, fixed: counts.fixed, open: counts.open })
    }

    fn list_result_commands(summary: &ReviewSummary, outcome: Option<RunOutcome>) -> Vec<ResultCommand> {
        let counts = &summary.findings;
        let mut commands = Vec::new();
        // Even without open findings the user may want to see what was fixed.
        if outcome == Some(RunOutcome::Resolved) || counts.open > 0 {
            commands.push(ResultCommand { command: "findings", explanation: "" });
        }
        // Only applied patches fix findings. The counts are known even where the run was read in outline.
        if outcome.is_some() && counts.fixed > 0 {
            commands.push(ResultCommand { command: "diff", explanation: "" });
            commands.push(ResultCommand { command: "undo", explanation: "preview; add --yes to undo" });
        }
        commands
    }

    fn list_closing_facts(review_view: &ReviewView) -> Vec<String> {
        review_view.confidence.as_ref().map(phrases::describe_score).into_iter().collect()
    }

    fn list_status_lines(review_view: &ReviewView) -> Vec<String> {
        let mut status_lines = Vec::new();
        // Refuted findings are named because they disappear from the counts of open ones.
        let is_refuted =
            |finding: &&Finding| finding.status == FindingStatus::Dismissed { why: DismissalReason::Invalid };
        let refuted_ids: Vec<_> = review_view.findings.values().filter(is_refuted).map(|finding| finding.id).collect();
        if !refuted_ids.is_empty() {
            status_lines.push(format!("refuted by challengers: {}", phrases::join_ids(&refuted_ids)));
        }
        status_lines.extend(review_view.confidence.as_ref().map(|score_card| {
            format!(
                "{} ({} for gates, {}): {}",
                phrases::describe_score(score_card),
                score_card.for_gates,
                score_card.band,
                score_card.describe_all()
            )
        }));
        status_lines
    }

    fn list_file_lines(review_view: &ReviewView) -> Vec<String> {
        let tracker_path = review_view.tracker_path.as_ref();
        tracker_path.map(|tracker_path| format!("tracker: {}", escape_line(tracker_path))).into_iter().collect()
    }

    fn describe_own_work(effect: &Effect) -> Option<&'static str> {
        match effect {
            Effect::Freeze(_) => Some("copying files for the reviewers"),
            // This effect never writes files of the user: those change by landings.
            Effect::Write(write_effect) => match write_effect.file {
                OwnFile::Tracker => Some("writing the tracker"),
                OwnFile::Metrics { .. } => Some("writing metrics"),
            },
            _ => None,
        }
    }

    /// Names the agent's place, `adversarial`, `fixer 2`, `challenger`, and the findings that it was given, or the round that
    /// it reviews.
    fn describe_task(task_key: &Key, task: &AgentTask) -> TaskDescription {
        let worker = match task_key.fixer_number() {
            Some(fixer_number) => format!("fixer {fixer_number}"),
            None => task.worker_name().to_string(),
        };
        let work = match (task.brief.finding_ids(), task.brief.as_review()) {
            (finding_ids, _) if !finding_ids.is_empty() => phrases::join_ids(&finding_ids),
            (_, Some(review_brief)) => format!("round {}", review_brief.round),
            (_, None) => String::new(),
        };
        TaskDescription { worker, work }
    }
}

/// The style of a severity.
fn severity_style(severity: Severity) -> TextStyle {
    match severity {
        Severity::Critical => TextStyle::Failure,
        Severity::High => TextStyle::Warning,
        Severity::Medium => TextStyle::Plain,
        Severity::Low => TextStyle::Dim,
    }
}
