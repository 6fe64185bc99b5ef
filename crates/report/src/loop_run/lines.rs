//! The lines of a headless loop: one for each iteration, and one for everything out of the ordinary.

use tribunal_core::{
    engine::{event::RunEvent, ids::Key, kinds::WorkflowEvent, view::RunView},
    loop_run::{
        breaker::BreakerPhase,
        event::{IterationReport, LoopEvent},
    },
    tasks::brief::AgentTask,
};

use super::{LoopReporter, describe_iteration};
use crate::{
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    phrases::{self, format_count},
    style::{LineMark, TextStyle},
};

/// The most lines that are shown of the output of a check.
const MAX_OUTPUT_LINES: usize = 20;

#[derive(Clone, Debug, Default)]
pub(crate) struct LoopLines;

impl KindLines<LoopReporter> for LoopLines {
    fn write_event(&mut self, event: &LoopEvent, _: &RunView, lines: &mut LineBuffer) {
        match event {
            LoopEvent::LoopPrepared { path, base, remarks } => {
                let line_text = format!("workspace: {path} at {}", base.short_hex());
                lines.write_wrapped(0, TextStyle::Plain, &line_text);
                for remark in remarks {
                    lines.write_marked(2, LineMark::WARNING, remark);
                }
            }
            LoopEvent::LoopBaseline { results, .. } => {
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
            LoopEvent::LoopLanded { commit, branch, checkout_moved, in_the_way } => {
                let checkout_text = if *checkout_moved { ", and your checkout with it" } else { "" };
                let line_text = match in_the_way.is_empty() {
                    true => format!("{branch} is at {} now{checkout_text}", commit.short_hex()),
                    false => format!(
                        "the work is on {branch} at {}: your uncommitted changes of {} were in the way",
                        commit.short_hex(),
                        in_the_way.join(", ")
                    ),
                };
                lines.write_marked(2, LineMark::DONE, &line_text);
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

/// Returns the end of an output, where tools say what failed.
fn last_lines(output: &str) -> Vec<&str> {
    let filled_lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    filled_lines[filled_lines.len().saturating_sub(MAX_OUTPUT_LINES)..].to_vec()
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
