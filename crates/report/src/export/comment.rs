//! Renders a comment for a pull request: open findings first, the others folded away.
//!
//! Forges limit the length of a comment. Findings that do not fit are left out, the least severe first, and counted.

use std::fmt::Write;

use tribunal_core::{finding::Finding, text::cut, tracker};

use super::{
    Export, Group,
    inert::{code, prose},
    place,
};
use crate::{clean, words};

/// GitHub takes 65,536 characters; the difference leaves room for text that is put around the comment.
const LIMIT: usize = 65_000;
/// The maximum length of one finding's text: enough to know what it is about.
const TEXT: usize = 300;
/// The maximum length of paths and statuses.
const PLACE: usize = 200;

/// Renders the comment with as many findings as fit.
pub(super) fn comment(export: &Export<'_>) -> String {
    let mut ranked: Vec<&Finding> = export.findings.clone();
    ranked.sort_by_key(|finding| (finding.severity, Group::of(&finding.status), finding.id));
    // Every finding that is left out makes the comment shorter, so a binary search finds the largest number that fits.
    let fits = |number: usize| length(&with(export, &ranked, number)) <= LIMIT;
    // The lower bound always fits: without findings there is only the head.
    let (mut most, mut too_many) = (0, ranked.len() + 1);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if fits(middle) { most = middle } else { too_many = middle }
    }
    with(export, &ranked, most)
}

/// The length as the strictest forge counts it: in UTF-16 units.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Renders the comment with the given number of findings, which are sorted by severity.
fn with(export: &Export<'_>, ranked: &[&Finding], number: usize) -> String {
    let (kept, left) = ranked.split_at(number);
    let mut out = head(export);
    // What needs work is shown at once; what is settled stays folded.
    let is = |finding: &&&Finding, groups: &[Group]| groups.contains(&Group::of(&finding.status));
    let of =
        |groups: &[Group]| kept.iter().filter(|finding| is(finding, groups)).copied().collect::<Vec<_>>();
    let first = of(&[Group::Open, Group::Blocked]);
    if !first.is_empty() {
        let _ = write!(out, "\n{}", table(&first, export));
    }
    for group in [Group::Fixed, Group::Deferred, Group::Dismissed] {
        let folded = of(&[group]);
        if !folded.is_empty() {
            let summary = format!("{} {}", folded.len(), group.title().to_lowercase());
            let table = table(&folded, export);
            let _ = write!(out, "\n<details>\n<summary>{summary}</summary>\n\n{table}\n</details>\n");
        }
    }
    // The findings are sorted, so the first one that was left out is the worst of them.
    if let [worst, ..] = left {
        let _ = writeln!(
            out,
            "\n{} left out, of {} severity at most: the comment would be too long. {} shows all of them.",
            words::count(left.len() as u32, "finding"),
            worst.severity,
            code(&format!("tribunal findings {}", export.run())),
        );
    }
    out
}

/// Renders the summary in one line, and which part of the findings is shown.
fn head(export: &Export<'_>) -> String {
    let why = export.why();
    let why = if why.is_empty() { String::new() } else { format!(", {}", prose(&cut(&why, TEXT))) };
    let subject = code(&cut(&clean(&export.subject()), PLACE));
    let counts = words::tally(&export.standing.view.counts());
    let mut out = format!(
        "**Tribunal: {}**{why} · {subject} · {counts} · {}\n",
        export.standing.word(),
        export.spent()
    );
    if let Some(part) = export.part() {
        let _ = write!(out, "\nShown here: {part}.\n");
    }
    out
}

/// Renders the table of findings.
fn table(findings: &[&Finding], export: &Export<'_>) -> String {
    let mut out = "| | Severity | Status | Finding | Place |\n|:--|:--|:--|:--|:--|\n".to_string();
    for finding in findings {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            finding.id,
            finding.severity,
            // Escaping makes text longer, so it is cut first; otherwise an entity could be cut in half.
            prose(&cut(&tracker::status(&finding.status), PLACE)),
            prose(&cut(&clean(&finding.description), TEXT)),
            at(finding, export),
        );
    }
    out
}

/// The place of a finding: `line 33` in the file under review, which the head names, or the file with its line.
fn at(finding: &Finding, export: &Export<'_>) -> String {
    let settings = export.standing.view.settings.as_ref();
    let file = settings.and_then(|settings| settings.subject.path());
    match &finding.place {
        None => String::new(),
        Some(known) if file == Some(known.file.as_str()) => format!("line {}", known.line),
        Some(_) => code(&cut(&place(finding), PLACE)),
    }
}
