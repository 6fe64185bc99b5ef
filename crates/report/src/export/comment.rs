//! A comment for a pull request: what is open first, the rest folded.
//!
//! Forges take only so much text. What does not fit is left out by severity, the least severe first, and counted.

use std::fmt::Write;

use tribunal_core::{finding::Finding, text::cut, tracker};

use super::{
    Export, Group,
    inert::{code, prose},
    place,
};
use crate::{clean, words};

/// GitHub takes 65,536 characters; a little is left for whoever writes something around it.
const LIMIT: usize = 65_000;
/// Of one finding's text: enough to know what it is about.
const TEXT: usize = 300;
const PLACE: usize = 200;

pub(super) fn comment(export: &Export<'_>) -> String {
    let mut ranked: Vec<&Finding> = export.findings.clone();
    ranked.sort_by_key(|finding| (finding.severity, Group::of(&finding.status), finding.id));
    // With every finding that is left out the comment gets shorter, so the most that fit are found by halving.
    let fits = |number: usize| length(&with(export, &ranked, number)) <= LIMIT;
    let (mut most, mut too_many) = (0, ranked.len() + 1);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if fits(middle) { most = middle } else { too_many = middle }
    }
    with(export, &ranked, most)
}

/// As the strictest would count: in units of UTF-16.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The comment with so many of the findings, which come most severe first.
fn with(export: &Export<'_>, ranked: &[&Finding], number: usize) -> String {
    let (kept, left) = ranked.split_at(number);
    let mut out = head(export);
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

/// The summary, in one line, and what part of the findings this is.
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

fn table(findings: &[&Finding], export: &Export<'_>) -> String {
    let mut out = "| | Severity | Status | Finding | Place |\n|:--|:--|:--|:--|:--|\n".to_string();
    for finding in findings {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            finding.id,
            finding.severity,
            prose(&cut(&tracker::status(&finding.status), PLACE)),
            prose(&cut(&clean(&finding.description), TEXT)),
            at(finding, export),
        );
    }
    out
}

/// `line 33` of the file under review, which is named above; else with its file.
fn at(finding: &Finding, export: &Export<'_>) -> String {
    let settings = export.standing.view.settings.as_ref();
    let file = settings.and_then(|settings| settings.subject.path());
    match &finding.place {
        None => String::new(),
        Some(known) if file == Some(known.file.as_str()) => format!("line {}", known.line),
        Some(_) => code(&cut(&place(finding), PLACE)),
    }
}
