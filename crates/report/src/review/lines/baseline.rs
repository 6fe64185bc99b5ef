//! Draws how the checks ended on the untouched project.

use tribunal_workflows::development::checks::{CheckResult, ChecksReport, FailureAction};

use crate::{
    line_buffer::LineBuffer,
    phrases,
    style::{LineMark, TextStyle},
};

/// The most lines of a check's output that are drawn; the end says what went wrong.
const MAX_OUTPUT_LINES: usize = 20;

/// Draws one line if all checks pass; else each check that fails, with its output and what may explain it.
pub(super) fn write_baseline(report: &ChecksReport, lines: &mut LineBuffer) {
    if list_failures(report).is_empty() {
        let elapsed_ms: u64 = report.results.iter().map(|result| result.elapsed_ms).sum();
        let check_count = phrases::format_count(report.results.len() as u32, "check");
        let duration = format!("{}.{} s", elapsed_ms / 1000, elapsed_ms % 1000 / 100);
        lines.write_marked(
            2,
            LineMark::DONE,
            &format!("checks pass on the untouched project ({check_count}, {duration})"),
        );
        return;
    }
    write_failures(report, lines);
}

/// Checks that only warn have a line of their own.
fn list_failures(report: &ChecksReport) -> Vec<&CheckResult> {
    report.list_failures().filter(|result| result.on_failure != FailureAction::Warn).collect()
}

/// Draws the checks that fail, if there are any.
pub(super) fn write_failures(report: &ChecksReport, lines: &mut LineBuffer) {
    let failures = list_failures(report);
    if failures.is_empty() {
        return;
    }
    // A check to fix that can be run does not keep the review from starting.
    let is_obstacle =
        failures.iter().any(|result| result.on_failure == FailureAction::Block || result.status.is_environment());
    for result in failures {
        let line_text = format!("`{}` {} on the untouched project", result.command, result.status);
        lines.write_marked(2, LineMark::FAILED, &line_text);
        let output_lines: Vec<&str> = result.output.trim().lines().collect();
        for output_line in &output_lines[output_lines.len().saturating_sub(MAX_OUTPUT_LINES)..] {
            let output_line = lines.screen.fit_text(6, output_line);
            let output_line = lines.screen.paint(TextStyle::Dim, &output_line);
            lines.write_line(6, &output_line);
        }
    }
    if !report.differences.is_empty() {
        let missing_files = report.differences.join(", ");
        let line_text = format!(
            "not in the workspace: {missing_files}; if the checks need one of them, add it to `workspace.seed`"
        );
        lines.write_wrapped(4, TextStyle::Plain, &line_text);
    }
    if is_obstacle {
        lines.write_wrapped(4, TextStyle::Plain, "to review without running the checks first: `--skip-baseline`");
    }
}
