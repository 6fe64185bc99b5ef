//! The lines of a story: one for each session and each step, and one for everything out of the ordinary.

use tribunal_engine::ids::Key;
use tribunal_workflows::{
    runs::{kinds::WorkflowEvent, types::RunEvent, view::RunView},
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
    development_lines::{LandedPlace, write_accepted_concerns, write_baseline, write_landed, write_prepared},
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    phrases::{self, format_count},
    style::{LineMark, TextStyle},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct StoryLines;

impl KindLines<StoryReporter> for StoryLines {
    fn write_event(&mut self, event: &StoryEvent, _: &RunView, lines: &mut LineBuffer) {
        match event {
            StoryEvent::StoryPrepared { path, base, remarks } => write_prepared(path, base, remarks, lines),
            StoryEvent::StoryBaseline { results } => write_baseline(results, lines),
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
            StoryEvent::StoryLanded {
                commit, branch, checkout_moved, in_the_way, changed_controls, concerns, ..
            } => {
                let landed = LandedPlace { commit, branch, checkout_moved: *checkout_moved, in_the_way };
                write_landed("story", &landed, lines);
                if !changed_controls.is_empty() {
                    let names_text = phrases::list_names(changed_controls);
                    let line_text = format!("it changes what checks, hooks or pipelines run: {names_text}");
                    lines.write_marked(2, LineMark::WARNING, &line_text);
                }
                write_accepted_concerns(concerns, lines);
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
