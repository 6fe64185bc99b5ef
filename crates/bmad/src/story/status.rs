//! A story's status: a line `Status: review` above the first section, as BMAD's template has it, what stands under a heading
//! `Status`, or `status:` in the front matter, as specs of late eras have it. `Status:` anywhere else is about something else.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::tasks;
use crate::{
    keys::StoryStatus,
    page::{Line, Page, plain},
    problem::{Problem, rules},
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
    /// The word of the status; empty where nothing is said, or nothing that is one.
    pub bytes: Range<usize>,
}

impl Spot {
    /// It says something that a status can be.
    pub fn is_known(&self) -> bool {
        self.line.status.is_some() || self.line.spec.is_some()
    }
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
        let differs = Problem::warning(rules::STORY_STATUS_DIFFERS, path, what).at(front.line);
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
    // What is `backlog` on a board is `draft` in a spec.
    let status = line.status.or((line.spec == Some(SpecStatus::Draft)).then_some(StoryStatus::Backlog));
    // Words that nobody knows are compared as they stand.
    (status, status.is_none().then_some(line.said.as_str()))
}

/// The status in the front matter; its bytes are those of the front matter's text.
pub(super) fn in_front(front: &Node) -> Option<Spot> {
    let node = front.get("status")?;
    let said = node.text().unwrap_or_default().trim();
    let said = word(said).map_or(said, |within| &said[within]).to_string();
    let bytes = node.span.clone().unwrap_or_default();
    Some(Spot { line: line(said, node.line + 1, Place::Front), bytes })
}

fn line(said: String, line: usize, place: Place) -> StatusLine {
    StatusLine { status: StoryStatus::parse(&said), spec: SpecStatus::parse(&said), said, line, place }
}

/// Every status of the body: above the first heading behind the title, and under a heading `Status` that stands in no other
/// section. What says `Status:` further down is about something else.
pub(super) fn in_body(page: &Page<'_>) -> Vec<Spot> {
    let mut found = Vec::new();
    let mut here = Part::Head;
    let mut is_first = true;
    // The level of the section that the lines stand in.
    let mut outer = None;
    for at in &page.lines {
        if let Some((level, title)) = at.heading() {
            let is_outer = outer.is_none_or(|outer| level <= outer);
            here = match plain(title).as_str() {
                "status" if is_outer => Part::Status,
                _ if is_first && level == 1 => Part::Head,
                _ => Part::Else,
            };
            if is_outer && here != Part::Head {
                outer = Some(level);
            }
            is_first = false;
            continue;
        }
        if !at.is_prose() || at.is_blank() {
            continue;
        }
        let spot = match here {
            Part::Else => None,
            Part::Head => labelled(at),
            // A list under it is something else.
            Part::Status => tasks::boxed(at).is_none().then(|| labelled(at).unwrap_or_else(|| bare(at))),
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

/// `Status: x`, `**Status:** x`; where it is a status, also `- **Status**: x` and `> Status: x`.
fn labelled(line: &Line<'_>) -> Option<Spot> {
    let rest = line.text.trim_start_matches(['>', '-', '*', '_', ' ', '\t']);
    let word = rest.get(..6).filter(|word| word.eq_ignore_ascii_case("status"))?;
    let behind = rest[word.len()..].trim_start_matches(MARKS).strip_prefix(':')?;
    let spot = spot(line, line.text.len() - behind.len());
    // A list has fields of other things, too: `- Status: one of open, held`.
    let item = line.text.trim_start();
    let is_item =
        item.starts_with('>') || ["- ", "-\t", "* ", "*\t"].iter().any(|mark| item.starts_with(mark));
    (!is_item || spot.is_known()).then_some(spot)
}

/// The first line under `Status`, which may be an item.
fn bare(line: &Line<'_>) -> Spot {
    let item = line.text.trim_start_matches(['>', '-', '+', ' ', '\t']);
    let known = Some(spot(line, line.text.len() - item.len())).filter(Spot::is_known);
    known.unwrap_or_else(|| {
        let end = line.start + line.text.len();
        Spot { line: self::line(line.text.trim().to_string(), line.number, Place::Body), bytes: end..end }
    })
}

/// Around a status.
const QUOTES: [char; 7] = [' ', '\t', '*', '_', '`', '"', '\''];

/// The status in what a line has from a byte on. What follows its word is a remark, and no part of it.
fn spot(line: &Line<'_>, from: usize) -> Spot {
    let value = &line.text[from..];
    let (said, within) = match word(value) {
        Some(within) => (value[within.clone()].to_string(), within),
        None => {
            let value = value.split("<!--").next().unwrap_or(value);
            let said = value.trim_matches(QUOTES);
            // Nothing but the end of an emphasis: `**Status:**`.
            let end = value.trim_end_matches([' ', '\t']).len();
            let nothing = value.chars().all(|c| matches!(c, ' ' | '\t' | '*' | '_'));
            let said = if nothing {
                ""
            } else if said.is_empty() {
                value.trim()
            } else {
                said
            };
            (said.to_string(), end..end)
        }
    };
    let start = line.start + from;
    let bytes = start + within.start..start + within.end;
    Spot { line: self::line(said, line.number, Place::Body), bytes }
}

/// Where the longest word for a status stands that a value begins with, quotes and emphasis aside.
pub(super) fn word(value: &str) -> Option<Range<usize>> {
    const WORDS: [&str; 9] = [
        "ready-for-dev",
        "in-progress",
        "in-review",
        "backlog",
        "drafted",
        "blocked",
        "review",
        "draft",
        "done",
    ];
    let rest = value.trim_start_matches(QUOTES);
    let start = value.len() - rest.len();
    let same = |(one, other): (u8, u8)| match one {
        b'-' => matches!(other, b'-' | b'_' | b' '),
        _ => other.eq_ignore_ascii_case(&one),
    };
    let begins = |word: &&&str| {
        let said = rest.as_bytes().get(..word.len());
        said.is_some_and(|said| word.bytes().zip(said.iter().copied()).all(same)) && ends(&rest[word.len()..])
    };
    // The first is the longest.
    let found = WORDS.iter().find(begins)?;
    Some(start..start + found.len())
}

/// A word that goes on is another word: `done-ish`, `reviewed`.
fn ends(rest: &str) -> bool {
    let mut next = rest.chars();
    match next.next() {
        Some('-' | '_') => !next.next().is_some_and(char::is_alphanumeric),
        other => !other.is_some_and(char::is_alphanumeric),
    }
}
