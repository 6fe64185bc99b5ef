//! The lines of a headless loop: one for each iteration, and one for everything out of the ordinary.

use tribunal_engine::ids::Key;
use tribunal_workflows::{
    loop_run::{
        breaker::BreakerPhase,
        event::{IterationReport, LoopEvent},
    },
    runs::{kinds::WorkflowEvent, types::RunEvent, view::RunView},
    tasks::brief::AgentTask,
};

use super::{LoopReporter, describe_iteration};
use crate::{
    development_lines::{LandedPlace, write_accepted_concerns, write_baseline, write_landed, write_prepared},
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    phrases::format_count,
    style::{LineMark, TextStyle},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct LoopLines;

impl KindLines<LoopReporter> for LoopLines {
    fn write_event(&mut self, event: &LoopEvent, _: &RunView, lines: &mut LineBuffer) {
        match event {
            LoopEvent::LoopPrepared { path, base, remarks } => write_prepared(path, base, remarks, lines),
            LoopEvent::LoopBaseline { results, .. } => write_baseline(results, lines),
            LoopEvent::IterationEnded { iteration, report } => {
                let line_text = format!("iteration {iteration}: {}", describe_iteration(report));
                lines.write_marked(2, iteration_mark(report), &line_text);
            }
            LoopEvent::PromiseRefused { why, .. } => {
                let line_text = format!("the agent said that the task is done, but {why}");
                lines.write_marked(4, LineMark::RETRIED, &line_text);
            }
            LoopEvent::LoopCommitted { iteration, commit } => {
                let line_text = format!("commit {} after iteration {iteration}", commit.short_hex());
                lines.write_wrapped(4, TextStyle::Dim, &line_text);
            }
            LoopEvent::BreakerMoved { phase, detail, .. } => {
                let line_mark = if *phase == BreakerPhase::Closed { LineMark::DONE } else { LineMark::WARNING };
                lines.write_marked(4, line_mark, &format!("circuit breaker {phase}: {detail}"));
            }
            LoopEvent::LoopReviewed { review, findings, .. } => {
                let result_text = match findings {
                    0 => "found nothing".to_string(),
                    count => format!("found {}; the next iteration is told", format_count(*count, "problem")),
                };
                lines.write_wrapped(4, TextStyle::Plain, &format!("review {review} {result_text}"));
            }
            // The ending, which follows, says what was kept.
            LoopEvent::LoopClosed { .. } => {}
            LoopEvent::LoopLanded { commit, branch, checkout_moved, in_the_way, concerns } => {
                let landed = LandedPlace { commit, branch, checkout_moved: *checkout_moved, in_the_way };
                write_landed("work", &landed, lines);
                write_accepted_concerns(concerns, lines);
            }
        }
    }

    fn write_stage_end(&mut self, run_event: &RunEvent, _: &RunView, lines: &mut LineBuffer) {
        if let RunEvent::Workflow(WorkflowEvent::Loop(LoopEvent::IterationEnded { iteration, report })) = run_event {
            let line_text = format!("iteration {iteration}: {}", describe_iteration(report));
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

fn iteration_mark(report: &IterationReport) -> LineMark {
    if !report.fault.is_empty() {
        LineMark::FAILED
    } else if report.progress && report.failed_checks.is_empty() {
        LineMark::DONE
    } else {
        LineMark::PAUSED
    }
}
