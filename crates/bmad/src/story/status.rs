//! The status of a story: a line `Status: review` above the first section, as BMAD's template has it, the text under a
//! heading `Status`, or `status:` in the front matter, as specs of late eras have it. `Status:` anywhere else is about
//! something else.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::tasks;
use crate::{
    keys::StoryStatus,
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
    problem::{FileProblem, rules},
    specs::SpecStatus,
    yaml::YamlNode,
};

/// The status and its place. Where both body and front matter have one, this is the body's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoryStatusLine {
    /// The status as it is written, without emphasis.
    pub said: String,
    /// The state; `None` if the written word is no state of a story.
    pub status: Option<StoryStatus>,
    pub line: usize,
    pub place: StatusPlace,
    /// The meaning of a spec's status, which also knows `draft` and `blocked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecStatus>,
}

/// Where a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatusPlace {
    /// On a line of its own.
    Body,
    /// In the front matter.
    Front,
}

/// A status in the body with the bytes to replace.
#[derive(Clone, Debug)]
pub(super) struct StatusSpot {
    pub status_line: StoryStatusLine,
    /// The bytes of the status word; empty where nothing is written, or nothing that is a status.
    pub byte_range: Range<usize>,
}

impl StatusSpot {
    /// Whether the text is a status of a story or of a spec.
    pub fn is_known(&self) -> bool {
        self.status_line.status.is_some() || self.status_line.spec.is_some()
    }
}

/// Finds the status that counts, and reports statuses that are missing, unknown or contradict each other.
pub(super) fn read_status(
    story_path: &str,
    markdown: &MarkdownPage<'_>,
    front: Option<&YamlNode>,
    problems: &mut Vec<FileProblem>,
) -> Option<StoryStatusLine> {
    let mut body_spots = find_in_body(markdown).into_iter();
    let first_status = body_spots.next().map(|spot| spot.status_line);
    if let (Some(first_status), Some(second_spot)) = (&first_status, body_spots.next()) {
        let message = format!("second status line; the one on line {} is used", first_status.line);
        let problem =
            FileProblem::warning("story-status-twice", story_path, message).at_line(second_spot.status_line.line);
        problems.push(problem.with_advice("remove one of them"));
    }
    let front = front.and_then(find_in_front_matter).map(|spot| spot.status_line);
    // The same status in two spellings is no contradiction.
    if let (Some(body), Some(front)) = (&first_status, &front)
        && comparable_status(body) != comparable_status(front)
    {
        let message =
            format!("the body says {:?} on line {}, but the front matter says {:?}", body.said, body.line, front.said);
        let difference = FileProblem::warning(rules::STORY_STATUS_DIFFERS, story_path, message).at_line(front.line);
        problems.push(difference.with_reason("The body takes precedence.").with_advice("make them match"));
    }
    // The body wins: that is the line that the story workflows of BMAD read and write.
    let effective_status = first_status.or(front);
    match &effective_status {
        None => problems.push(
            FileProblem::warning("story-no-status", story_path, "missing line `Status: …`")
                .with_reason("Only the board says how far along the story is.")
                .with_advice("add `Status: ready-for-dev` below the title"),
        ),
        Some(status_line) if status_line.status.is_none() && status_line.spec.is_none() => {
            let message = if status_line.said.is_empty() {
                "the status is empty".to_string()
            } else {
                format!("unknown story status {:?}", status_line.said)
            };
            problems.push(
                FileProblem::error("story-status-unknown", story_path, message)
                    .at_line(status_line.line)
                    .with_advice("use one of backlog, ready-for-dev, in-progress, review, done"),
            );
        }
        Some(_) => {}
    }
    effective_status
}

fn comparable_status(status_line: &StoryStatusLine) -> (Option<StoryStatus>, Option<&str>) {
    // The state `backlog` of a board is `draft` in a spec.
    let known_status =
        status_line.status.or((status_line.spec == Some(SpecStatus::Draft)).then_some(StoryStatus::Backlog));
    // Unknown words are compared as they are written.
    (known_status, known_status.is_none().then_some(status_line.said.as_str()))
}

/// The status in the front matter; its bytes count from the start of the front matter.
pub(super) fn find_in_front_matter(front_matter: &YamlNode) -> Option<StatusSpot> {
    let status_node = front_matter.get("status")?;
    let status_text = status_node.scalar_text().unwrap_or_default().trim();
    let status_text =
        find_status_word(status_text).map_or(status_text, |word_range| &status_text[word_range]).to_string();
    let byte_range = status_node.span.clone().unwrap_or_default();
    Some(StatusSpot {
        status_line: make_status_line(status_text, status_node.line + 1, StatusPlace::Front),
        byte_range,
    })
}

/// A status line with everything that its text can mean.
fn make_status_line(status_text: String, line_number: usize, place: StatusPlace) -> StoryStatusLine {
    StoryStatusLine {
        status: StoryStatus::parse(&status_text),
        spec: SpecStatus::parse(&status_text),
        said: status_text,
        line: line_number,
        place,
    }
}

/// Every status of the body: above the first heading behind the title, and under a heading `Status` that is in no other
/// section. A `Status:` further down is about something else.
pub(super) fn find_in_body(markdown: &MarkdownPage<'_>) -> Vec<StatusSpot> {
    let mut status_spots = Vec::new();
    let mut current_part = StoryBodyPart::AboveSections;
    let mut is_first_heading = true;
    // The level of the section that contains the current lines.
    let mut outer_level = None;
    for markdown_line in &markdown.lines {
        if let Some((level, title)) = markdown_line.heading() {
            // A heading `Status` below another section describes that section, an API for instance.
            let is_top_section = outer_level.is_none_or(|outer_level| level <= outer_level);
            current_part = match normalize_title(title).as_str() {
                "status" if is_top_section => StoryBodyPart::StatusSection,
                _ if is_first_heading && level == 1 => StoryBodyPart::AboveSections,
                _ => StoryBodyPart::Elsewhere,
            };
            if is_top_section && current_part != StoryBodyPart::AboveSections {
                outer_level = Some(level);
            }
            is_first_heading = false;
            continue;
        }
        if !markdown_line.is_prose() || markdown_line.is_blank() {
            continue;
        }
        let found_spot = match current_part {
            StoryBodyPart::Elsewhere => None,
            StoryBodyPart::AboveSections => parse_labelled(markdown_line),
            // A checklist under the heading is not a status.
            StoryBodyPart::StatusSection => tasks::parse_checkbox(markdown_line)
                .is_none()
                .then(|| parse_labelled(markdown_line).unwrap_or_else(|| parse_unlabelled(markdown_line))),
        };
        // Only the first line below the heading is the status; the lines after it explain.
        if current_part == StoryBodyPart::StatusSection {
            current_part = StoryBodyPart::Elsewhere;
        }
        status_spots.extend(found_spot);
    }
    status_spots
}

/// Which part of the body a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoryBodyPart {
    AboveSections,
    /// Under a heading `Status`, before its first line.
    StatusSection,
    Elsewhere,
}

const EMPHASIS_MARKS: [char; 4] = ['*', '_', '`', ' '];

/// Parses `Status: x` and `**Status:** x`; if the value is a status, also `- **Status**: x` and `> Status: x`.
fn parse_labelled(markdown_line: &MarkdownLine<'_>) -> Option<StatusSpot> {
    let unmarked_text = markdown_line.text.trim_start_matches(['>', '-', '*', '_', ' ', '\t']);
    let label_word = unmarked_text.get(..6).filter(|label_word| label_word.eq_ignore_ascii_case("status"))?;
    let after_colon = unmarked_text[label_word.len()..].trim_start_matches(EMPHASIS_MARKS).strip_prefix(':')?;
    let status_spot = parse_spot(markdown_line, markdown_line.text.len() - after_colon.len());
    // A list has fields of other things, too: `- Status: one of open, held`.
    let item_text = markdown_line.text.trim_start();
    let is_item =
        item_text.starts_with('>') || ["- ", "-\t", "* ", "*\t"].iter().any(|mark| item_text.starts_with(mark));
    (!is_item || status_spot.is_known()).then_some(status_spot)
}

/// The status on the first line under `Status`, which may be a list item.
fn parse_unlabelled(markdown_line: &MarkdownLine<'_>) -> StatusSpot {
    let item_text = markdown_line.text.trim_start_matches(['>', '-', '+', ' ', '\t']);
    let known_spot =
        Some(parse_spot(markdown_line, markdown_line.text.len() - item_text.len())).filter(StatusSpot::is_known);
    // A sentence is kept as it is, without bytes to replace: an edit must not overwrite it.
    known_spot.unwrap_or_else(|| {
        let line_end = markdown_line.start_offset + markdown_line.text.len();
        StatusSpot {
            status_line: self::make_status_line(
                markdown_line.text.trim().to_string(),
                markdown_line.number,
                StatusPlace::Body,
            ),
            byte_range: line_end..line_end,
        }
    })
}

/// Characters that may surround a status.
const QUOTE_MARKS: [char; 7] = [' ', '\t', '*', '_', '`', '"', '\''];

/// The status in a line from a byte on. The text behind its word is a remark and no part of it.
fn parse_spot(markdown_line: &MarkdownLine<'_>, value_start: usize) -> StatusSpot {
    let status_value = &markdown_line.text[value_start..];
    let (status_text, word_range) = match find_status_word(status_value) {
        Some(word_range) => (status_value[word_range.clone()].to_string(), word_range),
        None => {
            // A comment behind the label is no status.
            let status_value = status_value.split("<!--").next().unwrap_or(status_value);
            let status_text = status_value.trim_matches(QUOTE_MARKS);
            let value_end = status_value.trim_end_matches([' ', '\t']).len();
            // Behind the label of `**Status:**` nothing but the end of the emphasis is left.
            let is_only_emphasis = status_value.chars().all(|character| matches!(character, ' ' | '\t' | '*' | '_'));
            let status_text = if is_only_emphasis {
                ""
            } else if status_text.is_empty() {
                status_value.trim()
            } else {
                status_text
            };
            (status_text.to_string(), value_end..value_end)
        }
    };
    let start_offset = markdown_line.start_offset + value_start;
    let byte_range = start_offset + word_range.start..start_offset + word_range.end;
    StatusSpot { status_line: self::make_status_line(status_text, markdown_line.number, StatusPlace::Body), byte_range }
}

/// The range of the longest status word at the start of a value, quotes and emphasis aside.
pub(super) fn find_status_word(status_value: &str) -> Option<Range<usize>> {
    const STATUS_WORDS: [&str; 9] =
        ["ready-for-dev", "in-progress", "in-review", "backlog", "drafted", "blocked", "review", "draft", "done"];
    let unquoted = status_value.trim_start_matches(QUOTE_MARKS);
    let word_start = status_value.len() - unquoted.len();
    // `in-progress` is also written `in progress` and `in_progress`.
    let is_same_byte = |(word_byte, text_byte): (u8, u8)| match word_byte {
        b'-' => matches!(text_byte, b'-' | b'_' | b' '),
        _ => text_byte.eq_ignore_ascii_case(&word_byte),
    };
    let begins_with = |status_word: &&&str| {
        let leading_bytes = unquoted.as_bytes().get(..status_word.len());
        leading_bytes
            .is_some_and(|leading_bytes| status_word.bytes().zip(leading_bytes.iter().copied()).all(is_same_byte))
            && is_word_end(&unquoted[status_word.len()..])
    };
    // The list is sorted by length, so the first match is the longest.
    let matched_word = STATUS_WORDS.iter().find(begins_with)?;
    Some(word_start..word_start + matched_word.len())
}

/// Whether a word ends here: `done-ish` and `reviewed` are other words.
fn is_word_end(after_word: &str) -> bool {
    let mut following = after_word.chars();
    match following.next() {
        Some('-' | '_') => !following.next().is_some_and(char::is_alphanumeric),
        next_character => !next_character.is_some_and(char::is_alphanumeric),
    }
}
