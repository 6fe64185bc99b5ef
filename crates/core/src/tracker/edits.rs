//! What a person changed in a tracker.
//!
//! Every issue carries, in a comment, how it stood when it was written. So a change is seen against what the person saw, not
//! against what has become of it since: an old copy saved late brings its own changes and takes none of ours back.
//!
//! | in the file | means |
//! | --- | --- |
//! | the box ticked, or unticked | fixed by a person; open again |
//! | the severity replaced | that severity |
//! | the status replaced by `open`, `dismissed: why`, `deferred: why`, `fixed` | that status |
//! | lines added below an issue | a remark, for the next briefs |
//! | a heading `### …` without a known id | a finding of the person's own |
//!
//! What fits none of these is named, and whoever writes the next version keeps this one beside it.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{END, STAMP, START, WAS, stamped_with};
use crate::{
    effect::{self, Change, Remark, Request},
    finding::Severity,
    ids::{FindingId, Hash},
    text::{cut, fold_line},
};

/// What was understood, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    pub requests: Vec<Request>,
    /// In a line each, for people.
    pub strange: Vec<String>,
}

/// An issue as it stands in a file.
struct Block<'t> {
    line: usize,
    heading: &'t str,
    body: Vec<&'t str>,
}

pub fn read(text: &str) -> Edits {
    let mut edits = Edits::default();
    let Some((start, end)) = markers(text) else {
        edits.strange.push(format!("the lines `{START}` and `{END}` are missing"));
        return edits;
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (index, line) in lines.iter().enumerate().take(end).skip(start + 1) {
        match (line.strip_prefix("### "), blocks.last_mut()) {
            (Some(heading), _) => blocks.push(Block { line: index + 1, heading, body: Vec::new() }),
            (None, Some(block)) => block.body.push(line),
            (None, None) if line.trim().is_empty() => {}
            (None, None) => edits.strange.push(format!("line {}: it belongs to no issue", index + 1)),
        }
    }
    for block in &blocks {
        issue(block, &mut edits);
    }
    let (above, below) = text.split_at(text.rfind(STAMP).unwrap_or(text.len()));
    let after = below.split_once("-->").map_or("", |(_, after)| after);
    if stamped_with(text, "frame") != Some(frame(above).as_str()) || !after.trim().is_empty() {
        edits.strange.push(String::from("lines outside the issues were changed, or an issue was taken out"));
    }
    edits
}

/// The lines of the two markers, from 0.
fn markers(text: &str) -> Option<(usize, usize)> {
    let start = text.lines().position(|line| line.trim_end() == START)?;
    let end = text.lines().position(|line| line.trim_end() == END)?;
    (start < end).then_some((start, end))
}

/// A hash of all that stands around the issues, and of which issues there are; people's own do not count.
pub(super) fn frame(text: &str) -> String {
    let (start, end) = markers(text).unwrap_or((usize::MAX, usize::MAX));
    let mut kept = String::new();
    for (index, line) in text.lines().enumerate() {
        if index <= start || index >= end {
            kept.push_str(line.trim_end());
            kept.push('\n');
        } else if let Some(was) = line.trim().strip_prefix(WAS).and_then(|was| was.split(' ').next()) {
            kept.push_str(was);
            kept.push('\n');
        }
    }
    Hash::of(kept.as_bytes()).short().to_string()
}

/// A heading in its parts: `[x] F1 · high · dismissed: it is meant so`.
struct Heading<'t> {
    ticked: bool,
    id: Option<FindingId>,
    severity: Option<&'t str>,
    status: &'t str,
}

fn heading(text: &str) -> Heading<'_> {
    let text = text.trim();
    let ticked = ["[x]", "[X]"].iter().any(|tick| text.starts_with(tick));
    let rest = text.strip_prefix(['[']).and_then(|rest| rest.split_once(']')).map_or(text, |(_, rest)| rest);
    let mut parts = rest.splitn(3, '·').map(str::trim);
    let id = parts.next().and_then(|id| id.strip_prefix('F')?.parse().ok()).map(FindingId);
    let severity = parts.next();
    Heading { ticked, id, severity, status: parts.next().unwrap_or_default() }
}

fn issue(block: &Block<'_>, edits: &mut Edits) {
    let now = heading(block.heading);
    let ours = block.body.iter().any(|line| line.trim().starts_with(WAS));
    let Some(id) = now.id else {
        if ours {
            edits.strange.push(format!("line {}: the id of an issue is gone", block.line));
        } else {
            add(block, edits);
        }
        return;
    };
    let was = block.body.iter().find_map(|line| line.trim().strip_prefix(WAS)?.strip_suffix(" -->"));
    let Some(was) = was.and_then(Was::parse).filter(|was| was.id == id) else {
        let line = block.line;
        edits.strange.push(format!("line {line}: the comment that says how {id} stood is gone or another's"));
        return;
    };
    match now.severity.and_then(Severity::parse) {
        Some(to) if to != was.severity => {
            edits.requests.push(was.amend(Change::Severity { to }));
        }
        Some(_) => {}
        None => edits.strange.push(format!("line {}: {id} has no severity any more", block.line)),
    }
    if now.status != was.status || now.ticked != was.ticked() {
        match status(&now, &was) {
            Some(change) => edits.requests.push(was.amend(change)),
            None => edits.strange.push(format!("line {}: `{}` is no status", block.line, now.status)),
        }
    }
    remarks(block, id, &was, edits);
}

/// Words beat ticks: who writes `dismissed` has said more than who ticks.
fn status(now: &Heading<'_>, was: &Was<'_>) -> Option<Change> {
    if now.status == was.status {
        return Some(if now.ticked { Change::Fixed } else { Change::Open });
    }
    let end = now.status.find(|c: char| !c.is_alphanumeric()).unwrap_or(now.status.len());
    let (word, why) = now.status.split_at(end);
    let reason = why.trim_matches(|c: char| c.is_whitespace() || ":,;-–()".contains(c)).to_string();
    match word.to_lowercase().as_str() {
        "open" | "reopened" => Some(Change::Open),
        "fixed" | "done" => Some(Change::Fixed),
        "dismissed" | "dismiss" | "invalid" | "wontfix" => Some(Change::Dismissed { reason }),
        "deferred" | "defer" | "later" => Some(Change::Deferred { reason }),
        _ => None,
    }
}

/// Lines that are not ours. If without them the rest is as it was written, all is understood.
fn remarks(block: &Block<'_>, id: FindingId, was: &Was<'_>, edits: &mut Edits) {
    if body_hash(block.body.iter().copied()) == was.body {
        return;
    }
    let lines: Vec<&str> = block.body.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let ours = |line: &str| (line.starts_with("- ") && line.contains(": ")) || line.trim().starts_with(WAS);
    // One of the lines that do not look like ours is what the issue is about; the others are the person's, if without them
    // all is as it was written. Else nobody knows which lines are a person's and which an agent's.
    let free: Vec<usize> = (0..lines.len()).filter(|at| !ours(lines[*at])).collect();
    let without =
        |about: usize| lines.iter().enumerate().filter(move |(at, line)| *at == about || ours(line));
    let Some(about) =
        free.iter().find(|about| body_hash(without(**about).map(|(_, line)| *line)) == was.body)
    else {
        let line = block.line;
        edits.strange.push(format!("line {line}: lines of {id} were changed that cannot be taken in"));
        return;
    };
    let added: Vec<&str> = free.iter().filter(|at| *at != about).map(|at| lines[*at]).collect();
    if !added.is_empty() {
        let text = cut(&fold_line(&added.join(" ")), 1_000);
        edits.requests.push(Request::Say(Remark { about: Some(id), text }));
    }
}

fn add(block: &Block<'_>, edits: &mut Edits) {
    let mut parts = block.heading.split('·').skip(1).map(str::trim);
    let said = parts.next();
    let severity = said.and_then(Severity::parse).unwrap_or(Severity::Medium);
    if let Some(said) = said.filter(|said| Severity::parse(said).is_none()) {
        edits.strange.push(format!(
            "line {}: `{}` is no severity; medium was taken",
            block.line,
            cut(said, 40)
        ));
    }
    let body = block.body.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let (quotes, text): (Vec<&str>, Vec<&str>) = body.partition(|line| line.starts_with("- Quote:"));
    let quote = quotes.first().map(|line| line.trim_start_matches("- Quote:").trim());
    let quote = quote.map(|quote| quote.trim_matches(['“', '”', '"'])).unwrap_or_default();
    // The text is what it is about; else the heading itself, without its box, marks and severity.
    let title = block.heading.trim_start_matches("[ ]").trim_start_matches("[x]");
    let title: Vec<&str> = title
        .split('·')
        .map(str::trim)
        .filter(|part| Severity::parse(part).is_none() && *part != "new")
        .collect();
    let description = if text.is_empty() { title.join(" ") } else { text.join(" ") };
    let description = cut(&fold_line(&description), 2_000);
    if description.trim().is_empty() {
        edits.strange.push(format!("line {}: an issue was added that says nothing", block.line));
        return;
    }
    edits.requests.push(Request::Add { severity, description, quote: quote.into() });
}

/// How an issue stood when it was written.
struct Was<'t> {
    id: FindingId,
    severity: Severity,
    body: &'t str,
    status: &'t str,
}

impl<'t> Was<'t> {
    fn amend(&self, change: Change) -> Request {
        let was = effect::Was { status: self.status.into(), severity: self.severity };
        Request::Amend { finding: self.id, was: Some(was), change }
    }

    fn parse(text: &'t str) -> Option<Was<'t>> {
        let mut parts = text.splitn(4, ' ');
        let id = FindingId(parts.next()?.strip_prefix('F')?.parse().ok()?);
        let severity = Severity::parse(parts.next()?)?;
        let body = parts.next()?;
        Some(Was { id, severity, body, status: parts.next()? })
    }

    fn ticked(&self) -> bool {
        self.status == "fixed"
    }
}

/// The comment below an issue.
pub(super) fn was(id: FindingId, severity: Severity, status: &str, body: &str) -> String {
    format!("{WAS}{id} {severity} {} {status} -->", body_hash(body.lines()))
}

/// Of the lines that people read; empty ones and the comment itself do not count.
fn body_hash<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(WAS));
    let text: Vec<&str> = lines.collect();
    Hash::of(text.join("\n").as_bytes()).short().to_string()
}
