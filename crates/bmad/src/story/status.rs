//! A story's status: a line `Status: review` above the first section, as BMAD's template has it, or `status:` in the front
//! matter, as specs of late eras have it. `Status:` anywhere else is about something else.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::tasks;
use crate::{
    keys::StoryStatus,
    page::{Line, Page, plain},
    problem::Problem,
    specs::SpecStatus,
    yaml::Node,
};

/// The status and where it stands. Where body and front matter both have one, this is the body's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusLine {
    /// As it is written, without emphasis.
    pub said: String,
    /// None: no word that a story can have.
    pub status: Option<StoryStatus>,
    pub line: usize,
    pub place: Place,
    /// What a spec's status means, which knows `draft` and `blocked`, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A line of its own.
    Body,
    /// The front matter.
    Front,
}

/// A status in the body, with the bytes to exchange.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub line: StatusLine,
    /// What stands for the status; empty where nothing is said.
    pub bytes: Range<usize>,
}

pub(super) fn read(
    path: &str,
    page: &Page<'_>,
    front: Option<&Node>,
    problems: &mut Vec<Problem>,
) -> Option<StatusLine> {
    let mut body = in_body(page).into_iter();
    let first = body.next().map(|spot| spot.line);
    if let (Some(first), Some(second)) = (&first, body.next()) {
        let what = format!("a second status stands here; the one on line {} counts", first.line);
        let second = Problem::warning("story-status-twice", path, what).at(second.line.line);
        problems.push(second.todo("take one of them out"));
    }
    let front = front.and_then(in_front).map(|spot| spot.line);
    if let (Some(body), Some(front)) = (&first, &front)
        && meaning(body) != meaning(front)
    {
        let what =
            format!("the body says {:?} on line {}, the front matter {:?}", body.said, body.line, front.said);
        let differs = Problem::warning("story-status-differs", path, what).at(front.line);
        problems.push(differs.why("the body's counts").todo("make them the same"));
    }
    let found = first.or(front);
    match &found {
        None => problems.push(
            Problem::warning("story-no-status", path, "there is no line `Status: …`")
                .why("the board alone says how far the story is")
                .todo("write `Status: ready-for-dev` under the title"),
        ),
        Some(line) if line.status.is_none() && line.spec.is_none() => {
            let what = if line.said.is_empty() {
                "the status is empty".to_string()
            } else {
                format!("{:?} is no status of a story", line.said)
            };
            problems.push(
                Problem::error("story-status-unknown", path, what)
                    .at(line.line)
                    .todo("use one of backlog, ready-for-dev, in-progress, review, done"),
            );
        }
        Some(_) => {}
    }
    found
}

fn meaning(line: &StatusLine) -> (Option<StoryStatus>, Option<&str>) {
    // Words that nobody knows are compared as they stand.
    (line.status, line.status.is_none().then_some(line.said.as_str()))
}

/// The status in the front matter; its bytes are those of the front matter's text.
pub(super) fn in_front(front: &Node) -> Option<Spot> {
    let node = front.get("status")?;
    let said = node.text().unwrap_or_default().trim().to_string();
    let bytes = node.span.clone().unwrap_or_default();
    Some(Spot { line: line(said, node.line + 1, Place::Front), bytes })
}

fn line(said: String, line: usize, place: Place) -> StatusLine {
    StatusLine { status: StoryStatus::parse(&said), spec: SpecStatus::parse(&said), said, line, place }
}

/// Every status above the first section, in `## Story` and under a heading `Status`.
pub(super) fn in_body(page: &Page<'_>) -> Vec<Spot> {
    let mut found = Vec::new();
    let mut here = Part::Head;
    for at in &page.lines {
        if let Some((level, title)) = at.heading() {
            here = match plain(title).as_str() {
                "status" => Part::Status,
                "story" => Part::Head,
                _ if level == 1 && found.is_empty() => Part::Head,
                _ => Part::Else,
            };
            continue;
        }
        if !at.is_prose() || at.is_blank() {
            continue;
        }
        let spot = match here {
            Part::Else => None,
            Part::Head => labelled(at),
            // A list under it is something else.
            Part::Status => tasks::boxed(at).is_none().then(|| spot(at, 0)),
        };
        if here == Part::Status {
            here = Part::Else;
        }
        found.extend(spot);
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// Under a heading `Status`, before its first line.
    Status,
    Else,
}

const MARKS: [char; 4] = ['*', '_', '`', ' '];

/// `Status: x`, `**Status:** x`, `- **Status**: x`, `> Status: x`.
fn labelled(line: &Line<'_>) -> Option<Spot> {
    let rest = line.text.trim_start_matches(['>', '-', '*', '_', ' ', '\t']);
    let word = rest.get(..6).filter(|word| word.eq_ignore_ascii_case("status"))?;
    let behind = rest[word.len()..].trim_start_matches(MARKS).strip_prefix(':')?;
    Some(spot(line, line.text.len() - behind.len()))
}

/// The status in what a line has from a byte on.
fn spot(line: &Line<'_>, from: usize) -> Spot {
    let whole = &line.text[from..];
    let value = whole.split("<!--").next().unwrap_or(whole);
    let lead = value.len() - value.trim_start_matches([' ', '\t', '*', '_', '`', '"', '\'']).len();
    let value = &value[lead..];
    let start = from + lead;
    // `review (again)`, `done ✅`: what follows the word is a remark, and stays.
    let remark = value.find(['(', '<', '#', ',', ';', '—', '–', '|', '*', '`', '"', '\'', '✅']);
    let cut = remark.map_or(value, |at| &value[..at]).trim_end();
    let known = |word: &str| StoryStatus::parse(word).is_some() || SpecStatus::parse(word).is_some();
    let word = if known(cut) { cut } else { value.trim_end_matches([' ', '\t', '*', '_', '`', '"', '\'']) };
    let start = line.start + start;
    let bytes = start..start + word.len();
    Spot { line: self::line(word.to_string(), line.number, Place::Body), bytes }
}
