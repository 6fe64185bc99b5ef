//! Renders one Markdown page with everything that is known about the findings.

use std::fmt::Write;

use tribunal_core::{
    challenge,
    finding::{Evidence, Finding, Raiser, Severity, Status},
    tracker,
};

use super::{
    Export, Group, by_severity,
    inert::{code, fenced, prose},
    place,
};
use crate::{rulings::Ruling, words};

/// Renders the whole page.
pub(super) fn page(export: &Export<'_>) -> String {
    let mut out = format!("# Review of {}\n\n{}", prose(&export.subject()), head(export));
    if export.findings.is_empty() {
        out.push_str("\nThere are no such findings.\n");
        return out;
    }
    let _ = write!(out, "\n{}", table(export));
    // Groups come in the order of their importance.
    for group in Group::ALL {
        let mut findings = export.of(group).peekable();
        if findings.peek().is_some() {
            let _ = writeln!(out, "\n## {}", group.title());
        }
        for finding in findings {
            let _ = write!(out, "\n{}", section(finding, export));
        }
    }
    out
}

/// Renders the list at the top: the run, its state, its results and its cost.
fn head(export: &Export<'_>) -> String {
    let view = export.standing.view;
    let why = export.why();
    let why = if why.is_empty() { String::new() } else { format!(": {}", prose(&why)) };
    let mut out = String::new();
    let _ = writeln!(out, "- Run: {}, started {} UTC", code(export.run()), view.started.utc());
    let _ = writeln!(out, "- Outcome: **{}**{why}", export.standing.word());
    let _ = writeln!(out, "- Findings: {}", words::tally(&view.counts()));
    let _ = writeln!(out, "- Spent: {}", export.spent());
    if let Some(found) = &view.confidence {
        let _ = writeln!(out, "- Confidence: {} ({})", found.score, prose(&found.parts()));
    }
    if let Some(part) = export.part() {
        let _ = writeln!(out, "- On this page: {part}");
    }
    out
}

/// Renders how many findings there are by severity and status. A status that no finding has gets no column.
fn table(export: &Export<'_>) -> String {
    let counted = Group::ALL.map(|group| (group, by_severity(export.of(group))));
    let columns: Vec<(Group, [usize; 4])> =
        counted.into_iter().filter(|(_, counts)| counts.iter().sum::<usize>() > 0).collect();
    let titles: String = columns.iter().map(|(group, _)| format!(" {} |", group.title())).collect();
    let mut out = format!("| Severity |{titles} All |\n|:--|{}\n", "--:|".repeat(columns.len() + 1));
    for (row, severity) in Severity::ALL.iter().enumerate() {
        let cells: Vec<usize> = columns.iter().map(|(_, counts)| counts[row]).collect();
        let _ = writeln!(out, "| {severity} |{}", numbers(&cells));
    }
    let sums: Vec<usize> = columns.iter().map(|(_, counts)| counts.iter().sum()).collect();
    let _ = writeln!(out, "| **all** |{}", numbers(&sums));
    out
}

/// Renders the cells of a row and their sum.
fn numbers(cells: &[usize]) -> String {
    let all = cells.iter().sum::<usize>();
    cells.iter().chain([&all]).map(|number| format!(" {number} |")).collect()
}

/// Renders the section of one finding.
fn section(finding: &Finding, export: &Export<'_>) -> String {
    let status = prose(&tracker::status(&finding.status));
    let mut out = format!("### {} · {} · {status}\n\n", finding.id, finding.severity);
    let _ = writeln!(out, "{}\n", lead(finding));
    let _ = writeln!(out, "{}\n", prose(&finding.description));
    // Only documents are quoted as prose; code keeps its lines.
    let document = export.standing.view.settings.as_ref().is_some_and(|set| set.subject.is_document());
    let _ = writeln!(out, "{}", evidence(finding, document));
    let ruling = export.rulings.get(finding.id);
    if !finding.suggested_fix.trim().is_empty() {
        let _ = writeln!(out, "- Suggested: {}", prose(&finding.suggested_fix));
    }
    if let Some(ruling) = ruling {
        let _ = writeln!(out, "- Challenged: {}", challenged(ruling));
    }
    // The note is not repeated if the ruling already says it.
    let told = ruling.is_some() && challenge::told(finding) == Some(finding.last_note());
    // An open finding with a single note has only been raised.
    let moved = finding.history.len() > 1 || finding.status != Status::Open;
    if moved && !told && !finding.last_note().is_empty() {
        let _ = writeln!(out, "- What became of it: {}", prose(finding.last_note()));
    }
    if let Some(other) = finding.maybe_same_as {
        let _ = writeln!(out, "- Maybe the same as {other}");
    }
    // The optional lines may leave a blank line at the end; sections are separated by exactly one.
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The first line of a section: `prd.md:33 (as quoted), under Goals · scope · raised by party (round 1)`.
fn lead(finding: &Finding) -> String {
    let mut parts = Vec::new();
    if let Some(at) = &finding.place {
        // How well the quote matched is shown beside the place.
        let found = finding.found.map(|found| format!(" ({found})")).unwrap_or_default();
        let under = if at.section.is_empty() {
            String::new()
        } else {
            format!(", under “{}”", prose(&at.section))
        };
        parts.push(format!("{}{found}{under}", code(&place(finding))));
    }
    if !finding.category.trim().is_empty() {
        parts.push(prose(&finding.category));
    }
    let raiser = |by: &Raiser| format!("{} ({}, round {})", by.role, prose(by.agent.as_str()), by.round);
    let raisers: Vec<String> = finding.raisers.iter().map(raiser).collect();
    if !raisers.is_empty() {
        parts.push(format!("raised by {}", raisers.join(", ")));
    }
    // The untrusted text of a category may come first, so it was escaped for the start of a line, too.
    parts.join(" · ")
}

/// Renders the evidence. One line of a document is a block quote, so that it wraps; code and longer texts keep their lines.
fn evidence(finding: &Finding, document: bool) -> String {
    match &finding.evidence {
        Evidence::Quote { text } if document && text.trim().lines().count() <= 1 => {
            format!("> {}\n", prose(text))
        }
        Evidence::Quote { text } => fenced(text),
        Evidence::Absence { heading, terms } => {
            format!("> Nothing about {} under “{}”\n", prose(&terms.join(", ")), prose(heading))
        }
    }
}

/// Describes the verdict with the objection and the evidence for it.
fn challenged(ruling: &Ruling) -> String {
    let (note, counter) = ruling.against().unwrap_or_default();
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    let counter = if counter.is_empty() { String::new() } else { format!(" (“{counter}”)") };
    prose(&format!("{}{note}{counter}", ruling.says()))
}
