//! Lines that all runs that develop have: the workspace, the checks before any work, and where the work landed.

use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    checks::CheckResult,
    concerns::{LandingConcern, describe_concerns},
};

use crate::{
    line_buffer::LineBuffer,
    phrases::{self, format_count},
    style::{LineMark, TextStyle},
};

/// The most lines that are shown of the output of a check.
const MAX_OUTPUT_LINES: usize = 20;

/// Writes where the workspace is, and what is missing in it.
pub(crate) fn write_prepared(path: &str, base: &CommitId, remarks: &[String], lines: &mut LineBuffer) {
    lines.write_wrapped(0, TextStyle::Plain, &format!("workspace: {path} at {}", base.short_hex()));
    for remark in remarks {
        lines.write_marked(2, LineMark::WARNING, remark);
    }
}

/// Writes what the checks say about the untouched workspace.
pub(crate) fn write_baseline(results: &[CheckResult], lines: &mut LineBuffer) {
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

/// Returns the end of an output, where tools say what failed.
fn last_lines(output: &str) -> Vec<&str> {
    let filled_lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    filled_lines[filled_lines.len().saturating_sub(MAX_OUTPUT_LINES)..].to_vec()
}

/// Work that is on a branch of the user.
pub(crate) struct LandedPlace<'a> {
    pub commit: &'a CommitId,
    pub branch: &'a str,
    pub checkout_moved: bool,
    /// The files of the checkout that kept the intended branch from moving.
    pub in_the_way: &'a [String],
}

/// Writes what was questionable about the work, and the user has accepted.
pub(crate) fn write_accepted_concerns(concerns: &[LandingConcern], lines: &mut LineBuffer) {
    let (notes, accepted): (Vec<LandingConcern>, Vec<LandingConcern>) =
        concerns.iter().cloned().partition(LandingConcern::is_note);
    for note in notes {
        let line_text = format!("look at: {}", describe_concerns(&[note]));
        lines.write_marked(2, LineMark::WARNING, &line_text);
    }
    if !accepted.is_empty() {
        let line_text = format!("you accepted that {}", describe_concerns(&accepted));
        lines.write_marked(2, LineMark::WARNING, &line_text);
    }
}

/// Writes where the work is now, which users call `work_word`.
pub(crate) fn write_landed(work_word: &str, landed: &LandedPlace<'_>, lines: &mut LineBuffer) {
    let (branch, commit) = (landed.branch, landed.commit.short_hex());
    let checkout_text = if landed.checkout_moved { ", and your checkout with it" } else { "" };
    let line_text = match landed.in_the_way.is_empty() {
        true => format!("{branch} is at {commit} now{checkout_text}"),
        false => format!(
            "the {work_word} is on {branch} at {commit}: your uncommitted changes of {} were in the way",
            phrases::list_names(landed.in_the_way)
        ),
    };
    lines.write_marked(2, LineMark::DONE, &line_text);
}
