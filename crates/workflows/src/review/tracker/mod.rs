//! The issue tracker: the state of a review as a Markdown file that users read, edit and keep.
//!
//! This module only makes and parses text; writing the file is an effect.

mod edits;

use alloc::{format, string::String};
use core::fmt::Write;

pub use edits::{TrackerEdits, parse_edits};

use crate::{
    findings::{
        counts::FindingCounts,
        finding::{Evidence, Finding, FindingStatus},
    },
    review::{challenge_rules, order::ReviewOrder, state::ReviewState},
};
use tribunal_engine::{
    ids::{Hash, RunId},
    text::{keep_last_chars, sanitize_to_line},
    timestamp::Timestamp,
    user_remark::UserRemark,
};

/// Renders the whole file without its last line. `revision` grows with every version.
pub fn render_tracker(state: &ReviewState, order: &ReviewOrder, revision: u32, timestamp: Timestamp) -> String {
    let mut rendered = String::new();
    // Writing into a String cannot fail.
    // See `write_tracker` for the layout; `parse_edits` relies on it.
    let _ = write_tracker(&mut rendered, state, order, revision, timestamp);
    rendered
}

const ISSUES_START: &str = "<!-- ISSUES_START -->";
const ISSUES_END: &str = "<!-- ISSUES_END -->";
/// Begins the comment that records the state of an issue when it was written.
const SNAPSHOT_PREFIX: &str = "<!-- was: ";
const HOW_TO_EDIT: &str = "You can edit this file while a run is active: tick a box, change a severity or a status (open, \
                           dismissed: why, deferred: why),\nwrite remarks below an issue, or add an issue under a \
                           heading `### [ ] new · high` with its text and optionally a line `- Quote: …`. After the run has \
                           ended, the next run on the same subject\nstill takes dismissals from it: `dismissed: why`, and \
                           `open` for what you dismissed.";

/// Adds the last line: the result is what is written to disk.
pub fn add_stamp(mut tracker_text: String, run: &RunId) -> String {
    let last_line = stamp_line(&tracker_text, run.as_str());
    tracker_text.push_str(&last_line);
    tracker_text
}

/// The beginning of the first line; the subject follows.
pub const TITLE_PREFIX: &str = "# Issue tracker: ";

const STAMP_PREFIX: &str = "<!-- tribunal: ";

/// Makes the last line: the run of the tracker, a hash of everything around the issues, and one of everything above it.
fn stamp_line(text_above: &str, run_id: &str) -> String {
    let content_hash = Hash::digest_of(text_above.as_bytes());
    if run_id.is_empty() {
        // `is_untouched` may meet a line that names no run; such a line has no frame either.
        return format!("{STAMP_PREFIX}content {} -->\n", content_hash.short_hex());
    }
    format!(
        "{STAMP_PREFIX}run {run_id} frame {} content {} -->\n",
        edits::frame_hash(text_above),
        content_hash.short_hex()
    )
}

/// Returns the value behind a keyword in the last line.
fn stamp_value<'t>(tracker_text: &'t str, keyword: &str) -> Option<&'t str> {
    // The last occurrence counts: text of agents above cannot forge it.
    let stamp_text = tracker_text.get(tracker_text.rfind(STAMP_PREFIX)? + STAMP_PREFIX.len()..)?;
    let mut tokens = stamp_text.split(' ');
    tokens.find(|token| *token == keyword)?;
    tokens.next()
}

/// Returns the run that wrote a tracker, if its last line still says so.
pub fn tracker_run(tracker_text: &str) -> Option<&str> {
    stamp_value(tracker_text, "run")
}

/// Whether the text is a tracker as Tribunal wrote it, without any change.
pub fn is_untouched(tracker_text: &str) -> bool {
    match tracker_text.rfind(STAMP_PREFIX) {
        // The line is computed anew from the text above it; any edit changes the hash.
        Some(stamp_offset) => {
            tracker_text[stamp_offset..]
                == stamp_line(&tracker_text[..stamp_offset], tracker_run(tracker_text).unwrap_or_default())
        }
        None => false,
    }
}

fn write_tracker(
    rendered: &mut String,
    state: &ReviewState,
    order: &ReviewOrder,
    revision: u32,
    timestamp: Timestamp,
) -> Result<(), core::fmt::Error> {
    let finding_counts = FindingCounts::from_findings(&state.findings);
    writeln!(rendered, "{TITLE_PREFIX}{}\n", escape_line(&order.subject.title()))?;
    writeln!(rendered, "Generated: {} UTC", timestamp.format_utc())?;
    writeln!(rendered, "Workflow: review")?;
    writeln!(rendered, "Section: {}", escape_line(order.subject.section_title().unwrap_or("all")))?;
    writeln!(rendered, "Confidence: {}", format_confidence(state))?;
    writeln!(rendered, "Round: {} · rev {revision}\n", state.round)?;
    // The user should see what the review does not cover.
    if let Some(change) = order.subject.code_change().filter(|change| !change.left_out.is_empty()) {
        writeln!(rendered, "Also changed, but not reviewed:\n")?;
        for left_out in &change.left_out {
            writeln!(rendered, "- {}", escape_line(left_out))?;
        }
        writeln!(rendered)?;
    }
    write_summary(rendered, &finding_counts)?;
    writeln!(rendered, "## Issues\n\n{HOW_TO_EDIT}\n\n{ISSUES_START}")?;
    // All findings are listed, also dismissed ones: the user may disagree and reopen them.
    for finding in &state.findings {
        write_issue(rendered, finding, &state.dialog.said)?;
    }
    writeln!(rendered, "{ISSUES_END}\n")?;
    writeln!(rendered, "## Fix log\n\n<!-- FIXES_START -->")?;
    for fix_entry in &state.fixes {
        writeln!(rendered, "- {} ({}): {}", fix_entry.finding, fix_entry.key, escape_line(&fix_entry.note))?;
    }
    writeln!(rendered, "<!-- FIXES_END -->")
}

/// Formats `83 (validation 35/35, reviewers 15/25; …); for gates 78, medium`.
fn format_confidence(state: &ReviewState) -> String {
    match &state.confidence {
        None => String::from("not calculated (no signals yet)"),
        Some(calculated) => {
            format!(
                "{} ({}); for gates {}, {}",
                calculated.score,
                calculated.describe_all(),
                calculated.for_gates,
                calculated.band
            )
        }
    }
}

fn write_summary(rendered: &mut String, finding_counts: &FindingCounts) -> core::fmt::Result {
    writeln!(rendered, "## Summary\n")?;
    writeln!(rendered, "| Metric | Value |\n| --- | --- |")?;
    let by_severity = &finding_counts.by_severity;
    for (name, value) in [
        ("Total issues", finding_counts.total),
        ("Critical", by_severity.critical),
        ("High", by_severity.high),
        ("Medium", by_severity.medium),
        ("Low", by_severity.low),
        ("Fixed", finding_counts.fixed),
        ("Remaining", finding_counts.open + finding_counts.blocked),
        ("Deferred", finding_counts.deferred),
        ("Dismissed", finding_counts.dismissed),
    ] {
        writeln!(rendered, "| {name} | {value} |")?;
    }
    writeln!(rendered)
}

/// The most characters of a check's output that one line of the tracker shows.
const MAX_OUTPUT_CHARS: usize = 400;

fn write_issue(rendered: &mut String, finding: &Finding, remarks: &[UserRemark]) -> core::fmt::Result {
    let status_text = format_status(&finding.status);
    // The body is rendered first, because the comment below it contains its hash.
    let mut issue_body = String::new();
    write_issue_body(&mut issue_body, finding, remarks)?;
    // A ticked box means fixed; `parse_edits` reads it the same way.
    let tick = if matches!(finding.status, FindingStatus::Fixed) { "x" } else { " " };
    writeln!(rendered, "### [{tick}] {} · {} · {status_text}\n\n{issue_body}", finding.id, finding.severity)?;
    writeln!(rendered, "{}\n", edits::snapshot_comment(finding.id, finding.severity, &status_text, &issue_body))
}

fn write_issue_body(rendered: &mut String, finding: &Finding, remarks: &[UserRemark]) -> core::fmt::Result {
    writeln!(rendered, "{}\n", escape_paragraph(&finding.description))?;
    if let Some(place) = &finding.place {
        let section =
            if place.section.is_empty() { String::new() } else { format!(" ({})", escape_line(&place.section)) };
        let match_suffix = finding.found.map(|quote_match| format!(", {quote_match}")).unwrap_or_default();
        writeln!(rendered, "- Location: {place}{section}{match_suffix}")?;
    }
    match &finding.evidence {
        // Only findings of the user may lack a quote.
        Evidence::Quote { text } if text.is_empty() => {}
        Evidence::Quote { text } => writeln!(rendered, "- Quote: “{}”", escape_line(text))?,
        Evidence::Absence { heading, terms } => {
            let terms = escape_line(&terms.join(", "));
            writeln!(rendered, "- Missing under “{}”: {terms}", escape_line(heading))?;
        }
        Evidence::Check { command, output } => {
            writeln!(rendered, "- Check: `{}`", escape_line(command).replace('`', "'"))?;
            if !output.trim().is_empty() {
                writeln!(rendered, "- Output: {}", escape_line(&keep_last_chars(output.trim(), MAX_OUTPUT_CHARS)))?;
            }
        }
    }
    writeln!(rendered, "- Category: {}", escape_line(&finding.category))?;
    if !finding.suggested_fix.is_empty() {
        writeln!(rendered, "- Suggested fix: {}", escape_line(&finding.suggested_fix))?;
    }
    let raiser_names: alloc::vec::Vec<String> =
        finding.raisers.iter().map(|raiser| format!("{} (round {})", raiser.role, raiser.round)).collect();
    let raised_by = match raiser_names.is_empty() {
        true if finding.check_command().is_some() => String::from("a check"),
        true => String::from("the user"),
        false => raiser_names.join(", "),
    };
    writeln!(rendered, "- Raised by: {raised_by}")?;
    if let Some(earlier_id) = finding.maybe_same_as {
        writeln!(rendered, "- Possible duplicate of: {earlier_id}")?;
    }
    let challenge_text = challenge_rules::challenge_note(finding);
    if let Some(challenge_line) = challenge_text {
        writeln!(rendered, "- Challenged: {}", escape_line(challenge_line))?;
    }
    for remark in remarks.iter().filter(|remark| remark.about == Some(finding.id)) {
        writeln!(rendered, "- Remark: {}", escape_line(&remark.text))?;
    }
    // The challenge is not repeated if it is also the last note.
    if challenge_text != Some(finding.last_note()) {
        writeln!(rendered, "- Last: {}", escape_line(finding.last_note()))?;
    }
    Ok(())
}

/// Formats a status such as `dismissed (evidence not found)`.
pub fn format_status(finding_status: &FindingStatus) -> String {
    match finding_status {
        FindingStatus::Dismissed { why } => format!("dismissed ({why})"),
        FindingStatus::Deferred { why } => format!("deferred ({why})"),
        FindingStatus::Blocked { decision } => format!("blocked ({decision})"),
        plain_status => String::from(plain_status.as_str()),
    }
}

/// Escapes a paragraph: at the beginning of a line the text must not become a heading or a list either.
fn escape_paragraph(untrusted: &str) -> String {
    let escaped = escape_line(untrusted);
    if escaped.starts_with(['#', '-', '*', '+', '>', '|', '`', '~', '=']) { format!("\\{escaped}") } else { escaped }
}

/// Escapes untrusted text, which must not end a list item or forge a marker.
fn escape_line(untrusted: &str) -> String {
    sanitize_to_line(untrusted).replace("<!--", "<!- -")
}
