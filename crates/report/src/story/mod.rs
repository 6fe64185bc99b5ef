//! The reporter of stories: steps, sessions and why they do not count, reviews, the landing.

mod lines;
mod live;
mod report_rules;
pub(crate) mod report_section;

use tribunal_engine::{limits::RemainingLimits, reason::RunOutcome};
use tribunal_workflows::{
    runs::view::RunView,
    story::{
        event::{SessionOutcome, SessionReport, StoryEvent},
        order::{StoryGoal, StoryOrder, StoryReviewMode, StoryStepName, StorySummary},
        verification::StoryProblem,
        view::StoryView,
    },
};

use crate::{
    escape_line,
    kind_reporter::{KindReporter, ResultCommand},
    phrases::{self, format_count},
    report_parts::{document::ReportSources, section::ReportSection},
    run_standing::RunStanding,
    step_list::NextStep,
};
use lines::StoryLines;
use live::StoryLive;

/// Reports stories.
pub(crate) struct StoryReporter;

impl KindReporter for StoryReporter {
    type Kind = StoryOrder;
    type Lines = StoryLines;
    type Live = StoryLive;

    const LIMIT_OWNER: &'static str = "story";

    fn list_limits(order: &StoryOrder) -> Vec<String> {
        vec![format!("{} a step", format_count(order.pacing.max_cycles, "session"))]
    }

    fn list_order_facts(order: &StoryOrder) -> Vec<String> {
        let mut facts = vec![format!("until {}", order.goal), format!("{}, branch {}", order.place, order.branch.name)];
        if order.goal == StoryGoal::Done {
            facts.push(format!("review {}", order.review.mode));
        }
        facts
    }

    fn describe_event(event: &StoryEvent) -> String {
        match event {
            StoryEvent::StoryPrepared { path, base, .. } => format!("{path} at {}", base.short_hex()),
            StoryEvent::StoryBaseline { results } => {
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
            StoryEvent::StorySession { report, .. } => describe_session(report),
            StoryEvent::StoryReviewed { critical, follow_ups, .. } => describe_review(*critical, follow_ups.len()),
            StoryEvent::StoryLanded { commit, .. } => format!("at {}", commit.short_hex()),
            StoryEvent::StoryClosed { kept: Some(commit), .. } => format!("work kept as {}", commit.short_hex()),
            StoryEvent::StoryClosed { kept: None, .. } => "no work to keep".to_string(),
            StoryEvent::StoryStepDone { .. } | StoryEvent::StoryKept { .. } | StoryEvent::StoryMoved { .. } => {
                String::new()
            }
        }
    }

    fn is_problem(event: &StoryEvent) -> bool {
        match event {
            StoryEvent::StorySession { report, .. } => report.outcome != SessionOutcome::Completed,
            StoryEvent::StoryBaseline { results } => results.iter().any(|result| !result.status.is_passed()),
            StoryEvent::StoryReviewed { critical, .. } => *critical > 0,
            _ => false,
        }
    }

    fn describe_result(summary: &StorySummary) -> String {
        let mut parts = vec![format_count(summary.sessions, "session")];
        if summary.refused > 0 {
            parts.push(format!("{} not completed", summary.refused));
        }
        parts.push(format!("{} changed", format_count(summary.changed_files, "file")));
        parts.extend(summary.reviews.last().map(|review| format!("reviewed in {review}")));
        if summary.follow_ups > 0 {
            parts.push(format_count(summary.follow_ups, "follow-up"));
        }
        if let (Some(branch), Some(commit)) = (&summary.landed_on, &summary.commit) {
            parts.push(format!("commit {} on {branch}", commit.short_hex()));
            parts.extend(summary.confirmation.as_ref().map(|commit| format!("confirmed in {}", commit.short_hex())));
        }
        if !summary.changed_controls.is_empty() {
            parts.push(format!("changes what checks or hooks run: {}", phrases::list_names(&summary.changed_controls)));
        }
        parts.join(", ")
    }

    fn describe_result_cell(summary: &StorySummary) -> String {
        match (&summary.landed_on, summary.completed) {
            (Some(branch), _) => format!("on {branch}"),
            (None, Some(step)) => format!("{step} done"),
            (None, None) => "not begun".to_string(),
        }
    }

    fn describe_remaining(remaining: &RemainingLimits) -> String {
        phrases::describe_remaining(remaining)
    }

    fn list_result_commands(summary: &StorySummary, outcome: Option<RunOutcome>) -> Vec<ResultCommand> {
        let mut commands = vec![ResultCommand { command: "diff", explanation: "what the story changed" }];
        if summary.landed_on.is_none() && outcome.is_some() {
            commands.push(ResultCommand { command: "log", explanation: "what each session did" });
        }
        commands
    }

    fn list_status_lines(view: &StoryView) -> Vec<String> {
        let mut lines = vec![draw_strip(view)];
        if let Some((step, report)) = &view.last_session {
            let session = view.summary.sessions;
            lines.push(format!("session {session} ({step}): {}", describe_session(report)));
        }
        if let (None, Some(kept), Some(base)) = (&view.summary.landed_on, &view.kept, &view.base) {
            lines.push(format!("work so far: git diff {}..{}", base.short_hex(), kept.short_hex()));
        }
        lines
    }

    fn list_file_lines(view: &StoryView) -> Vec<String> {
        match (&view.summary.landed_on, view.workspace_path.as_str()) {
            // The workspace of work that has landed is gone.
            (Some(_), _) | (None, "") => Vec::new(),
            (None, path) => vec![format!("workspace  {}", escape_line(path))],
        }
    }

    fn build_section(
        view: &StoryView,
        _: &StorySummary,
        run_standing: &RunStanding<'_>,
        sources: &ReportSources<'_>,
    ) -> ReportSection {
        report_section::build_section(view, run_standing, sources)
    }

    fn list_merge_steps(_: &StoryView, run_view: &RunView) -> Vec<NextStep> {
        report_section::list_merge_steps(run_view)
    }
}

/// Draws the steps as a strip: those that are done, the one under way, and those that are left.
fn draw_strip(view: &StoryView) -> String {
    let Some(order) = &view.order else { return String::new() };
    let completed = view.summary.completed;
    let is_done = |step: StoryStepName| completed.is_some_and(|completed| step <= completed);
    let steps = list_steps(order);
    let current = steps.iter().copied().find(|step| !is_done(*step));
    let drawn = steps.iter().map(|step| match () {
        () if is_done(*step) => format!("✓ {step}"),
        () if current == Some(*step) => format!("● {step}"),
        () => format!("○ {step}"),
    });
    drawn.collect::<Vec<_>>().join("  ")
}

/// Lists the steps that a story goes through.
fn list_steps(order: &StoryOrder) -> Vec<StoryStepName> {
    let has_review = order.goal == StoryGoal::Done && order.review.mode != StoryReviewMode::Off;
    let mut steps = vec![StoryStepName::Prepare];
    steps.extend((order.steps.create.is_some()).then_some(StoryStepName::Create));
    steps.push(StoryStepName::Develop);
    steps.extend(has_review.then_some(StoryStepName::Review));
    steps.push(StoryStepName::Land);
    steps
}

fn describe_review(critical: u32, follow_ups: usize) -> String {
    let critical_text = match critical {
        0 => "no critical finding".to_string(),
        count => format!("{} open", format_count(count, "critical finding")),
    };
    match follow_ups {
        0 => critical_text,
        count => format!("{critical_text}, {} for later", format_count(count as u32, "finding")),
    }
}

/// Describes what came of a session in one line.
fn describe_session(report: &SessionReport) -> String {
    let mut parts = vec![report.outcome.to_string()];
    if !report.fault.is_empty() {
        parts.push(report.fault.clone());
    }
    parts.extend(report.problems.iter().map(StoryProblem::describe));
    if report.outcome == SessionOutcome::Completed {
        parts.push(format!("{} changed", format_count(report.changed_files, "file")));
    }
    parts.join(" · ")
}
