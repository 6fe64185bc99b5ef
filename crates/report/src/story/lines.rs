//! The lines of a story: one for each session and each step, and one for everything out of the ordinary.

use tribunal_core::{
    engine::{event::RunEvent, ids::Key, kinds::WorkflowEvent, view::RunView},
    story::{
        event::{SessionOutcome, SessionReport, StoryEvent},
        facts::StoryFollowUp,
        order::StoryStepName,
        verification::StoryProblem,
    },
    tasks::brief::AgentTask,
};

use super::{StoryReporter, describe_review, describe_session};
use crate::{
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    phrases::{self, format_count},
    style::{LineMark, TextStyle},
};

/// The most lines that are shown of the output of a check.
const MAX_OUTPUT_LINES: usize = 20;

#[derive(Clone, Debug, Default)]
pub(crate) struct StoryLines;

impl KindLines<StoryReporter> for StoryLines {
    fn write_event(&mut self, event: &StoryEvent, _: &RunView, lines: &mut LineBuffer) {
        match event {
            StoryEvent::StoryPrepared { path, base, remarks } => {
                let line_text = format!("workspace: {path} at {}", base.short_hex());
                lines.write_wrapped(0, TextStyle::Plain, &line_text);
                for remark in remarks {
                    lines.write_marked(2, LineMark::WARNING, remark);
                }
            }
            StoryEvent::StoryBaseline { results } => {
                let elapsed_ms: u64 = results.iter().map(|result| result.elapsed_ms).sum();
                for result in results.iter().filter(|result| !result.status.is_passed()) {
                    lines.write_marked(2, LineMark::FAILED, &format!("`{}` {}", result.command, result.status));
                    for output_line in last_lines(&result.output) {
                        lines.write_wrapped(4, TextStyle::Dim, output_line);
                    }
                }
                if results.iter().all(|result| result.status.is_passed()) {
                    let line_text = format!(
                        "checks pass on the untouched workspace ({}, {})",
                        format_count(results.len() as u32, "check"),
                        phrases::format_duration(elapsed_ms)
                    );
                    lines.write_marked(2, LineMark::DONE, &line_text);
                }
            }
            StoryEvent::StorySession { session, step, report } => write_session(*session, *step, report, lines),
            // What was done says the line of its session; the landing says it by itself.
            StoryEvent::StoryStepDone { .. } | StoryEvent::StoryClosed { .. } => {}
            StoryEvent::StoryReviewed { review, critical, follow_ups, detail } => {
                let line_text = format!("review {review}: {} ({detail})", describe_review(*critical, follow_ups.len()));
                let line_mark = if *critical > 0 { LineMark::RETRIED } else { LineMark::DONE };
                lines.write_marked(2, line_mark, &line_text);
                for follow_up in follow_ups {
                    lines.write_wrapped(4, TextStyle::Dim, &StoryFollowUp::describe(follow_up));
                }
            }
            StoryEvent::StoryKept { commit } => {
                lines.write_wrapped(4, TextStyle::Dim, &format!("work so far kept as commit {}", commit.short_hex()));
            }
            StoryEvent::StoryLanded { commit, branch, checkout_moved, in_the_way, changed_controls } => {
                let checkout_text = if *checkout_moved { ", and your checkout with it" } else { "" };
                let line_text = match in_the_way.is_empty() {
                    true => format!("{branch} is at {} now{checkout_text}", commit.short_hex()),
                    false => format!(
                        "the story is on {branch} at {}: your uncommitted changes of {} were in the way",
                        commit.short_hex(),
                        in_the_way.join(", ")
                    ),
                };
                lines.write_marked(2, LineMark::DONE, &line_text);
                if !changed_controls.is_empty() {
                    let line_text =
                        format!("it changes what checks, hooks or pipelines run: {}", changed_controls.join(", "));
                    lines.write_marked(2, LineMark::WARNING, &line_text);
                }
            }
            StoryEvent::StoryMoved { stage } => {
                lines.write_wrapped(2, TextStyle::Plain, &format!("board: {stage}"));
            }
        }
    }

    fn write_stage_end(&mut self, run_event: &RunEvent, _: &RunView, lines: &mut LineBuffer) {
        if let RunEvent::Workflow(WorkflowEvent::Story(StoryEvent::StorySession { session, step, report })) = run_event
        {
            let line_text = format!("session {session} ({step}): {}", describe_session(report));
            lines.write_wrapped(2, TextStyle::Plain, &line_text);
        }
    }

    fn name_worker(&self, _: &Key) -> Option<String> {
        Some("agent".into())
    }

    fn name_retried_worker(&self, _: &Key, _: &AgentTask) -> String {
        "agent".into()
    }
}

/// Writes what came of a session, with everything that speaks against it.
fn write_session(session: u32, step: StoryStepName, report: &SessionReport, lines: &mut LineBuffer) {
    let worker = report.agent.as_ref().map_or_else(|| "you".to_string(), ToString::to_string);
    let result_text = match report.outcome {
        SessionOutcome::Completed => format!("completed, {} changed", format_count(report.changed_files, "file")),
        outcome => outcome.to_string(),
    };
    let line_mark = match report.outcome {
        SessionOutcome::Completed => LineMark::DONE,
        SessionOutcome::Incomplete => LineMark::RETRIED,
        _ => LineMark::FAILED,
    };
    lines.write_marked(2, line_mark, &format!("{step}, session {session} ({worker}): {result_text}"));
    if !report.fault.is_empty() {
        lines.write_wrapped(4, TextStyle::Plain, &report.fault);
    }
    for problem in &report.problems {
        lines.write_wrapped(4, TextStyle::Plain, &format!("- {}", StoryProblem::describe(problem)));
    }
    if report.outcome != SessionOutcome::Completed && !report.claim.is_empty() {
        lines.write_wrapped(4, TextStyle::Dim, &format!("the agent said: {}", report.claim));
    }
    for remark in &report.remarks {
        lines.write_marked(4, LineMark::WARNING, remark);
    }
}

/// Returns the end of an output, where tools say what failed.
fn last_lines(output: &str) -> Vec<&str> {
    let filled_lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    filled_lines[filled_lines.len().saturating_sub(MAX_OUTPUT_LINES)..].to_vec()
}
