//! The issue tracker: the state of a review as a Markdown file that users read, edit and keep.
//!
//! This module only makes and parses text; writing the file is an effect.

mod edits;

use alloc::{format, string::String};
use core::fmt::Write;

pub use edits::{Edits, read};

use crate::{
    challenge,
    counts::Counts,
    effect::Remark,
    finding::{Evidence, Finding, Status},
    ids::{Hash, RunId},
    review::state::Court,
    settings::Settings,
    stamp::Stamp,
    text::fold_line,
};

/// Renders the whole file without its last line. `rev` grows with every version.
pub fn render(court: &Court, settings: &Settings, rev: u32, at: Stamp) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    // See `write_tracker` for the layout; `parse_edits` relies on it.
    let _ = write(&mut out, court, settings, rev, at);
    out
}

const START: &str = "<!-- ISSUES_START -->";
const END: &str = "<!-- ISSUES_END -->";
/// Begins the comment that records the state of an issue when it was written.
const WAS: &str = "<!-- was: ";
const HOW_TO_EDIT: &str = "Edit it as you like while a run works: tick a box, replace a severity or a status (open, \
                           dismissed: why, deferred: why),\nwrite remarks below an issue, or add one under a heading \
                           `### [ ] new · high` with its text and perhaps a line `- Quote: …`.";

/// Adds the last line: the result is what is written to disk.
pub fn stamped(mut text: String, run: &RunId) -> String {
    let stamp = stamp(&text, run.as_str());
    text.push_str(&stamp);
    text
}

/// The beginning of the first line; the subject follows.
pub const TITLE: &str = "# Issue tracker: ";

const STAMP: &str = "<!-- tribunal: ";

/// Makes the last line: the run of the tracker, a hash of everything around the issues, and one of everything above it.
fn stamp(above: &str, run: &str) -> String {
    let content = Hash::of(above.as_bytes());
    if run.is_empty() {
        // The first builds wrote the line without run and frame.
        return format!("{STAMP}content {} -->\n", content.short());
    }
    format!("{STAMP}run {run} frame {} content {} -->\n", edits::frame(above), content.short())
}

/// Returns the value behind a keyword in the last line.
fn stamped_with<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    // The last occurrence counts: text of agents above cannot forge it.
    let stamp = text.get(text.rfind(STAMP)? + STAMP.len()..)?;
    let mut words = stamp.split(' ');
    words.find(|known| *known == word)?;
    words.next()
}

/// Returns the run that wrote a tracker, if its last line still says so.
pub fn run(text: &str) -> Option<&str> {
    stamped_with(text, "run")
}

/// Whether the text is a tracker as Tribunal wrote it, without any change.
pub fn is_untouched(text: &str) -> bool {
    match text.rfind(STAMP) {
        // The line is computed anew from the text above it; any edit changes the hash.
        Some(at) => text[at..] == stamp(&text[..at], run(text).unwrap_or_default()),
        None => false,
    }
}

fn write(
    out: &mut String,
    court: &Court,
    settings: &Settings,
    rev: u32,
    at: Stamp,
) -> Result<(), core::fmt::Error> {
    let counts = Counts::of(&court.findings);
    writeln!(out, "{TITLE}{}\n", one_line(&settings.subject.title()))?;
    writeln!(out, "Generated: {} UTC", at.utc())?;
    writeln!(out, "Workflow: review")?;
    writeln!(out, "Section: {}", one_line(settings.subject.section().unwrap_or("all")))?;
    writeln!(out, "Confidence: {}", confidence(court))?;
    writeln!(out, "Round: {} · rev {rev}\n", court.round)?;
    // The user should see what the review does not cover.
    if let Some(change) = settings.subject.change().filter(|change| !change.left_out.is_empty()) {
        writeln!(out, "Also changed, and not reviewed:\n")?;
        for left_out in &change.left_out {
            writeln!(out, "- {}", one_line(left_out))?;
        }
        writeln!(out)?;
    }
    summary(out, &counts)?;
    writeln!(out, "## Issues\n\n{HOW_TO_EDIT}\n\n{START}")?;
    // All findings are listed, also dismissed ones: the user may disagree and reopen them.
    for finding in &court.findings {
        issue(out, finding, &court.said)?;
    }
    writeln!(out, "{END}\n")?;
    writeln!(out, "## Fix log\n\n<!-- FIXES_START -->")?;
    for fix in &court.fixes {
        writeln!(out, "- {} ({}): {}", fix.finding, fix.key, one_line(&fix.note))?;
    }
    writeln!(out, "<!-- FIXES_END -->")
}

/// Formats `83 (validation 35/35, reviewers 15/25; …); for gates 78, medium`.
fn confidence(court: &Court) -> String {
    match &court.confidence {
        None => String::from("not calculated (no signal yet)"),
        Some(found) => {
            format!("{} ({}); for gates {}, {}", found.score, found.parts(), found.for_gates, found.band)
        }
    }
}

fn summary(out: &mut String, counts: &Counts) -> core::fmt::Result {
    writeln!(out, "## Summary\n")?;
    writeln!(out, "| Metric | Value |\n| --- | --- |")?;
    let severity = &counts.by_severity;
    for (name, value) in [
        ("Total issues", counts.total),
        ("Critical", severity.critical),
        ("High", severity.high),
        ("Medium", severity.medium),
        ("Low", severity.low),
        ("Fixed", counts.fixed),
        ("Remaining", counts.open + counts.blocked),
        ("Deferred", counts.deferred),
        ("Dismissed", counts.dismissed),
    ] {
        writeln!(out, "| {name} | {value} |")?;
    }
    writeln!(out)
}

fn issue(out: &mut String, finding: &Finding, said: &[Remark]) -> core::fmt::Result {
    let status = status(&finding.status);
    // The body is rendered first, because the comment below it contains its hash.
    let mut told = String::new();
    body(&mut told, finding, said)?;
    // A ticked box means fixed; `parse_edits` reads it the same way.
    let tick = if matches!(finding.status, Status::Fixed) { "x" } else { " " };
    writeln!(out, "### [{tick}] {} · {} · {status}\n\n{told}", finding.id, finding.severity)?;
    writeln!(out, "{}\n", edits::was(finding.id, finding.severity, &status, &told))
}

fn body(out: &mut String, finding: &Finding, said: &[Remark]) -> core::fmt::Result {
    writeln!(out, "{}\n", paragraph(&finding.description))?;
    if let Some(place) = &finding.place {
        let section =
            if place.section.is_empty() { String::new() } else { format!(" ({})", one_line(&place.section)) };
        let found = finding.found.map(|found| format!(", {found}")).unwrap_or_default();
        writeln!(out, "- Place: {place}{section}{found}")?;
    }
    match &finding.evidence {
        // Only findings of the user may lack a quote.
        Evidence::Quote { text } if text.is_empty() => {}
        Evidence::Quote { text } => writeln!(out, "- Quote: “{}”", one_line(text))?,
        Evidence::Absence { heading, terms } => {
            let terms = one_line(&terms.join(", "));
            writeln!(out, "- Absent under “{}”: {terms}", one_line(heading))?;
        }
    }
    writeln!(out, "- Category: {}", one_line(&finding.category))?;
    if !finding.suggested_fix.is_empty() {
        writeln!(out, "- Suggested fix: {}", one_line(&finding.suggested_fix))?;
    }
    let raisers: alloc::vec::Vec<String> =
        finding.raisers.iter().map(|r| format!("{} (round {})", r.role, r.round)).collect();
    let raisers = if raisers.is_empty() { String::from("a person") } else { raisers.join(", ") };
    writeln!(out, "- Raised by: {raisers}")?;
    if let Some(old) = finding.maybe_same_as {
        writeln!(out, "- Maybe the same as: {old}")?;
    }
    let challenged = challenge::told(finding);
    if let Some(told) = challenged {
        writeln!(out, "- Challenged: {}", one_line(told))?;
    }
    for remark in said.iter().filter(|remark| remark.about == Some(finding.id)) {
        writeln!(out, "- Remark: {}", one_line(&remark.text))?;
    }
    // The challenge is not repeated if it is also the last note.
    if challenged != Some(finding.last_note()) {
        writeln!(out, "- Last: {}", one_line(finding.last_note()))?;
    }
    Ok(())
}

/// Formats a status such as `dismissed (ungrounded)`.
pub fn status(status: &Status) -> String {
    match status {
        Status::Dismissed { why } => format!("dismissed ({why})"),
        Status::Deferred { why } => format!("deferred ({why})"),
        Status::Blocked { decision } => format!("blocked ({decision})"),
        other => String::from(other.word()),
    }
}

/// Escapes a paragraph: at the beginning of a line the text must not become a heading or a list either.
fn paragraph(text: &str) -> String {
    let text = one_line(text);
    if text.starts_with(['#', '-', '*', '+', '>', '|', '`', '~', '=']) { format!("\\{text}") } else { text }
}

/// Escapes untrusted text, which must not end a list item or forge a marker.
fn one_line(text: &str) -> String {
    fold_line(text).replace("<!--", "<!- -")
}
