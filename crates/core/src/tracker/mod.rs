//! The issue tracker: the court's record as a Markdown file that people read and keep.
//!
//! Text only; writing it is an effect.

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

/// The whole file. `rev` grows with every version.
pub fn render(court: &Court, settings: &Settings, rev: u32, at: Stamp) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut out, court, settings, rev, at);
    out
}

const START: &str = "<!-- ISSUES_START -->";
const END: &str = "<!-- ISSUES_END -->";
/// Begins the comment that says how an issue stood when it was written.
const WAS: &str = "<!-- was: ";
const HOW_TO_EDIT: &str = "Edit it as you like while a run works: tick a box, replace a severity or a status (open, \
                           dismissed: why, deferred: why),\nwrite remarks below an issue, or add one under a heading \
                           `### [ ] new · high` with its text and perhaps a line `- Quote: …`.";

/// The text with its last line: what is written to disk.
pub fn stamped(mut text: String, run: &RunId) -> String {
    let stamp = stamp(&text, run.as_str());
    text.push_str(&stamp);
    text
}

/// How the first line begins; the subject follows.
pub const TITLE: &str = "# Issue tracker: ";

const STAMP: &str = "<!-- tribunal: ";

/// The last line: whose tracker it is, a hash of what stands around the issues and one of all above it.
fn stamp(above: &str, run: &str) -> String {
    let content = Hash::of(above.as_bytes());
    if run.is_empty() {
        // As the first builds had it.
        return format!("{STAMP}content {} -->\n", content.short());
    }
    format!("{STAMP}run {run} frame {} content {} -->\n", edits::frame(above), content.short())
}

/// What follows a word in the last line.
fn stamped_with<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let stamp = text.get(text.rfind(STAMP)? + STAMP.len()..)?;
    let mut words = stamp.split(' ');
    words.find(|known| *known == word)?;
    words.next()
}

/// The run that wrote a tracker, if its last line still says so.
pub fn run(text: &str) -> Option<&str> {
    stamped_with(text, "run")
}

/// Whether this is a tracker as Tribunal wrote it, with nothing changed since.
pub fn is_untouched(text: &str) -> bool {
    match text.rfind(STAMP) {
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
    if let Some(change) = settings.subject.change().filter(|change| !change.left_out.is_empty()) {
        writeln!(out, "Also changed, and not reviewed:\n")?;
        for left_out in &change.left_out {
            writeln!(out, "- {}", one_line(left_out))?;
        }
        writeln!(out)?;
    }
    summary(out, &counts)?;
    writeln!(out, "## Issues\n\n{HOW_TO_EDIT}\n\n{START}")?;
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

/// `83 (validation 35/35, reviewers 15/25; …); for gates 78, medium`.
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
    let mut told = String::new();
    body(&mut told, finding, said)?;
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
    // Said once, where it is the last thing, too.
    if challenged != Some(finding.last_note()) {
        writeln!(out, "- Last: {}", one_line(finding.last_note()))?;
    }
    Ok(())
}

/// `dismissed (ungrounded)`.
pub fn status(status: &Status) -> String {
    match status {
        Status::Dismissed { why } => format!("dismissed ({why})"),
        Status::Deferred { why } => format!("deferred ({why})"),
        Status::Blocked { decision } => format!("blocked ({decision})"),
        other => String::from(other.word()),
    }
}

/// The same at the beginning of a line, where it must not become a heading or a list either.
fn paragraph(text: &str) -> String {
    let text = one_line(text);
    if text.starts_with(['#', '-', '*', '+', '>', '|', '`', '~', '=']) { format!("\\{text}") } else { text }
}

/// Untrusted text must not be able to end a list item or forge a marker.
fn one_line(text: &str) -> String {
    fold_line(text).replace("<!--", "<!- -")
}
