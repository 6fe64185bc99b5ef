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

use super::{END, START, WAS};
use crate::{
    effect::{Change, Request},
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
    let (Some(start), Some(end)) = (text.find(START), text.find(END)) else {
        edits.strange.push(format!("`{START}` or `{END}` is missing"));
        return edits;
    };
    if end < start {
        edits.strange.push(format!("`{END}` stands before `{START}`"));
        return edits;
    }
    let first = text[..start].lines().count() + 1;
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (index, line) in text[start + START.len()..end].lines().enumerate() {
        match (line.strip_prefix("### "), blocks.last_mut()) {
            (Some(heading), _) => blocks.push(Block { line: first + index, heading, body: Vec::new() }),
            (None, Some(block)) => block.body.push(line),
            (None, None) if line.trim().is_empty() => {}
            (None, None) => edits.strange.push(format!("line {}: it belongs to no issue", first + index)),
        }
    }
    for block in &blocks {
        issue(block, &mut edits);
    }
    edits
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
            edits.requests.push(Request::Amend { finding: id, change: Change::Severity { to } });
        }
        Some(_) => {}
        None => edits.strange.push(format!("line {}: {id} has no severity any more", block.line)),
    }
    if now.status != was.status || now.ticked != was.ticked() {
        match status(&now, &was) {
            Some(change) => edits.requests.push(Request::Amend { finding: id, change }),
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
    let ours = |line: &&str| line.starts_with("- ") && line.contains(": ");
    let mut rest: Vec<&str> = block.body.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    // What the issue is about comes first.
    let about = if rest.is_empty() { None } else { Some(rest.remove(0)) };
    let added: Vec<&str> =
        rest.iter().copied().filter(|line| !ours(line) && !line.trim().starts_with(WAS)).collect();
    let kept = about.into_iter().chain(rest.iter().copied().filter(|line| !added.contains(line)));
    if body_hash(kept) != was.body {
        edits
            .strange
            .push(format!("line {}: lines of {id} were changed that cannot be taken in", block.line));
    }
    if !added.is_empty() {
        let text = format!("about {id}: {}", cut(&fold_line(&added.join(" ")), 1_000));
        edits.requests.push(Request::Say { text });
    }
}

fn add(block: &Block<'_>, edits: &mut Edits) {
    let parts = || block.heading.split('·').map(str::trim);
    let severity = parts().find_map(Severity::parse).unwrap_or(Severity::Medium);
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
