//! Parses what the user changed in a tracker.
//!
//! Every issue has a comment with its state when it was written. So an edit is compared with what the user saw, not with the
//! current state: an old copy that is saved late brings its own edits and reverts none of ours.
//!
//! | in the file | means |
//! | --- | --- |
//! | the box ticked, or unticked | fixed by the user; open again |
//! | the severity replaced | that severity |
//! | the status replaced by `open`, `dismissed: why`, `deferred: why`, `fixed` | that status |
//! | lines added below an issue | a remark, for the next briefs |
//! | a heading `### …` without a known id | a finding of the user |
//!
//! Other edits are reported as not understood, and the next write keeps this version under another name.

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

/// The edits that were understood, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    pub requests: Vec<Request>,
    /// The edits that were not understood, one line each.
    pub strange: Vec<String>,
}

/// An issue as it is written in the file.
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
            // Empty lines between the marker and the first issue are ours.
            (None, None) if line.trim().is_empty() => {}
            (None, None) => edits.strange.push(format!("line {}: it belongs to no issue", index + 1)),
        }
    }
    for block in &blocks {
        issue(block, &mut edits);
    }
    let (above, below) = text.split_at(text.rfind(STAMP).unwrap_or(text.len()));
    let after = below.split_once("-->").map_or("", |(_, after)| after);
    // Text outside the issues is generated, so an edit there would be lost with the next version.
    if stamped_with(text, "frame") != Some(frame(above).as_str()) || !after.trim().is_empty() {
        edits.strange.push(String::from("lines outside the issues were changed, or an issue was taken out"));
    }
    edits
}

/// Returns the lines of the two markers, from 0.
fn markers(text: &str) -> Option<(usize, usize)> {
    let start = text.lines().position(|line| line.trim_end() == START)?;
    let end = text.lines().position(|line| line.trim_end() == END)?;
    (start < end).then_some((start, end))
}

/// Hashes everything around the issues and the ids of the issues; issues that the user added do not count.
pub(super) fn frame(text: &str) -> String {
    let (start, end) = markers(text).unwrap_or((usize::MAX, usize::MAX));
    let mut kept = String::new();
    for (index, line) in text.lines().enumerate() {
        if index <= start || index >= end {
            kept.push_str(line.trim_end());
            kept.push('\n');
        // Of the issues only the ids count, so that an edited issue does not change the frame but a removed one does.
        } else if let Some(was) = line.trim().strip_prefix(WAS).and_then(|was| was.split(' ').next()) {
            kept.push_str(was);
            kept.push('\n');
        }
    }
    Hash::of(kept.as_bytes()).short().to_string()
}

/// The parts of a heading such as `[x] F1 · high · dismissed: it is meant so`.
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
    // A heading without an id is an issue that the user added.
    let id = parts.next().and_then(|id| id.strip_prefix('F')?.parse().ok()).map(FindingId);
    let severity = parts.next();
    Heading { ticked, id, severity, status: parts.next().unwrap_or_default() }
}

fn issue(block: &Block<'_>, edits: &mut Edits) {
    let now = heading(block.heading);
    let ours = block.body.iter().any(|line| line.trim().starts_with(WAS));
    let Some(id) = now.id else {
        // With a comment of ours it is an edited issue, without one a new issue.
        if ours {
            edits.strange.push(format!("line {}: the id of an issue is gone", block.line));
        } else {
            add(block, edits);
        }
        return;
    };
    let was = block.body.iter().find_map(|line| line.trim().strip_prefix(WAS)?.strip_suffix(" -->"));
    // Without the original state it cannot be told what was edited.
    let Some(was) = was.and_then(Was::parse).filter(|was| was.id == id) else {
        let line = block.line;
        edits.strange.push(format!("line {line}: the comment that says how {id} stood is gone or another's"));
        return;
    };
    // Severity and status are independent: one edit may change both.
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

/// Returns the change of the status. Words win over ticks: `dismissed` says more than a tick.
fn status(now: &Heading<'_>, was: &Was<'_>) -> Option<Change> {
    // Only the box was changed.
    if now.status == was.status {
        return Some(if now.ticked { Change::Fixed } else { Change::Open });
    }
    // The first word is the status, everything behind it the reason.
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

/// Reads lines that the user added. They are understood if the remaining lines are exactly what was written.
fn remarks(block: &Block<'_>, id: FindingId, was: &Was<'_>, edits: &mut Edits) {
    if body_hash(block.body.iter().copied()) == was.body {
        return;
    }
    let lines: Vec<&str> = block.body.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let ours = |line: &str| (line.starts_with("- ") && line.contains(": ")) || line.trim().starts_with(WAS);
    // One of the lines that do not look generated is the description; the others are the user's, if without them everything
    // is as it was written. Otherwise it cannot be told which lines are the user's and which an agent's.
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
    // The first part is the box and the word `new`; the severity follows.
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
    // The text is the description; without one it is the heading without its box, marks and severity.
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

/// The state of an issue when it was written.
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

/// Makes the comment below an issue.
pub(super) fn was(id: FindingId, severity: Severity, status: &str, body: &str) -> String {
    format!("{WAS}{id} {severity} {} {status} -->", body_hash(body.lines()))
}

/// Hashes the visible lines; empty ones and the comment itself do not count.
fn body_hash<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines = lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(WAS));
    let text: Vec<&str> = lines.collect();
    // Twelve digits keep the comment short and are enough to notice an edit.
    Hash::of(text.join("\n").as_bytes()).short().to_string()
}
