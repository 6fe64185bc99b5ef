//! The status of a story: a line `Status: review` above the first section, as BMAD's template has it, the text under a
//! heading `Status`, or `status:` in the front matter, as specs of late eras have it. `Status:` anywhere else is about
//! something else.

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

/// The status and its place. Where both body and front matter have one, this is the body's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusLine {
    /// The status as it is written, without emphasis.
    pub said: String,
    /// The state; `None` if the written word is no state of a story.
    pub status: Option<StoryStatus>,
    pub line: usize,
    pub place: Place,
    /// The meaning of a spec's status, which also knows `draft` and `blocked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecStatus>,
}

/// Where a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On a line of its own.
    Body,
    /// In the front matter.
    Front,
}

/// A status in the body with the bytes to replace.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub line: StatusLine,
    /// The bytes of the status word; empty where nothing is written, or nothing that is a status.
    pub bytes: Range<usize>,
}

impl Spot {
    /// Whether the text is a status of a story or of a spec.
    pub fn is_known(&self) -> bool {
        self.line.status.is_some() || self.line.spec.is_some()
    }
}

/// Finds the status that counts, and reports statuses that are missing, unknown or contradict each other.
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
    // The same status in two spellings is no contradiction.
    if let (Some(body), Some(front)) = (&first, &front)
        && meaning(body) != meaning(front)
    {
        let what =
            format!("the body says {:?} on line {}, the front matter {:?}", body.said, body.line, front.said);
        let differs = Problem::warning(rules::STORY_STATUS_DIFFERS, path, what).at(front.line);
        problems.push(differs.why("the body's counts").todo("make them the same"));
    }
    // The body wins: that is the line that the story workflows of BMAD read and write.
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
    // The state `backlog` of a board is `draft` in a spec.
    let status = line.status.or((line.spec == Some(SpecStatus::Draft)).then_some(StoryStatus::Backlog));
    // Unknown words are compared as they are written.
    (status, status.is_none().then_some(line.said.as_str()))
}

/// The status in the front matter; its bytes count from the start of the front matter.
pub(super) fn in_front(front: &Node) -> Option<Spot> {
    let node = front.get("status")?;
    let said = node.text().unwrap_or_default().trim();
    let said = word(said).map_or(said, |within| &said[within]).to_string();
    let bytes = node.span.clone().unwrap_or_default();
    Some(Spot { line: line(said, node.line + 1, Place::Front), bytes })
}

/// A status line with everything that its text can mean.
fn line(said: String, line: usize, place: Place) -> StatusLine {
    StatusLine { status: StoryStatus::parse(&said), spec: SpecStatus::parse(&said), said, line, place }
}

/// Every status of the body: above the first heading behind the title, and under a heading `Status` that is in no other
/// section. A `Status:` further down is about something else.
pub(super) fn in_body(page: &Page<'_>) -> Vec<Spot> {
    let mut found = Vec::new();
    let mut here = Part::Head;
    let mut is_first = true;
    // The level of the section that contains the current lines.
    let mut outer = None;
    for at in &page.lines {
        if let Some((level, title)) = at.heading() {
            // A heading `Status` below another section describes that section, an API for instance.
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
            // A checklist under the heading is not a status.
            Part::Status => tasks::boxed(at).is_none().then(|| labelled(at).unwrap_or_else(|| bare(at))),
        };
        // Only the first line below the heading is the status; the lines after it explain.
        if here == Part::Status {
            here = Part::Else;
        }
        found.extend(spot);
    }
    found
}

/// Which part of the body a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// Under a heading `Status`, before its first line.
    Status,
    Else,
}

const MARKS: [char; 4] = ['*', '_', '`', ' '];

/// Parses `Status: x` and `**Status:** x`; if the value is a status, also `- **Status**: x` and `> Status: x`.
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

/// The status on the first line under `Status`, which may be a list item.
fn bare(line: &Line<'_>) -> Spot {
    let item = line.text.trim_start_matches(['>', '-', '+', ' ', '\t']);
    let known = Some(spot(line, line.text.len() - item.len())).filter(Spot::is_known);
    // A sentence is kept as it is, without bytes to replace: an edit must not overwrite it.
    known.unwrap_or_else(|| {
        let end = line.start + line.text.len();
        Spot { line: self::line(line.text.trim().to_string(), line.number, Place::Body), bytes: end..end }
    })
}

/// Characters that may surround a status.
const QUOTES: [char; 7] = [' ', '\t', '*', '_', '`', '"', '\''];

/// The status in a line from a byte on. The text behind its word is a remark and no part of it.
fn spot(line: &Line<'_>, from: usize) -> Spot {
    let value = &line.text[from..];
    let (said, within) = match word(value) {
        Some(within) => (value[within.clone()].to_string(), within),
        None => {
            // A comment behind the label is no status.
            let value = value.split("<!--").next().unwrap_or(value);
            let said = value.trim_matches(QUOTES);
            // Nothing but the end of an emphasis is left: `**Status:**`.
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

/// The range of the longest status word at the start of a value, quotes and emphasis aside.
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
    // `in-progress` is also written `in progress` and `in_progress`.
    let same = |(one, other): (u8, u8)| match one {
        b'-' => matches!(other, b'-' | b'_' | b' '),
        _ => other.eq_ignore_ascii_case(&one),
    };
    let begins = |word: &&&str| {
        let said = rest.as_bytes().get(..word.len());
        said.is_some_and(|said| word.bytes().zip(said.iter().copied()).all(same)) && ends(&rest[word.len()..])
    };
    // The list is sorted by length, so the first match is the longest.
    let found = WORDS.iter().find(begins)?;
    Some(start..start + found.len())
}

/// Whether a word ends here: `done-ish` and `reviewed` are other words.
fn ends(rest: &str) -> bool {
    let mut next = rest.chars();
    match next.next() {
        Some('-' | '_') => !next.next().is_some_and(char::is_alphanumeric),
        other => !other.is_some_and(char::is_alphanumeric),
    }
}
