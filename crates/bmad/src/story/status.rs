//! The status of a story: a line `Status: review` above the first section, as BMAD's template has it, the text under a
//! heading `Status`, or `status:` in the front matter, as specs of late eras have it. `Status:` anywhere else is about
//! something else.

use std::ops::Range;

use tribunal_json::{Serialize, schemars};

use super::tasks;
use crate::{
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
    problem::{FileProblem, rules},
    specs::SpecStatus,
    states::{ParkedState, StateMeaning, StoryStatus, find_state_word},
    yaml::YamlNode,
};

/// The status and its place. Where both body and front matter have one, this is the body's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StoryStatusLine {
    /// The status as it is written, without emphasis.
    pub said: String,
    /// The state; `None` if the written word is no state of a story.
    pub status: Option<StoryStatus>,
    pub line: usize,
    pub place: StatusPlace,
    /// Why nothing is done about the story, if the written word says that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedState>,
    /// The meaning of a spec's status, which also knows `draft` and `blocked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecStatus>,
}

/// Where a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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
        let StoryStatusLine { status, spec, parked, .. } = &self.status_line;
        status.is_some() || spec.is_some() || parked.is_some()
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
        Some(status_line)
            if status_line.status.is_none() && status_line.spec.is_none() && status_line.parked.is_none() =>
        {
            let message = if status_line.said.is_empty() {
                "the status is empty".to_string()
            } else {
                format!("unknown story status {:?}", status_line.said)
            };
            problems.push(
                FileProblem::warning("story-status-unknown", story_path, message)
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
    let status_entry = front_matter.entries().iter().find(|entry| entry.key.eq_ignore_ascii_case("status"))?;
    let status_node = &status_entry.value;
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
    let is_word = find_status_word(&status_text).is_some();
    StoryStatusLine {
        status: StoryStatus::parse(&status_text).filter(|_| is_word),
        parked: match StateMeaning::parse(&status_text).filter(|_| is_word) {
            Some(StateMeaning::Parked(parked_state)) => Some(parked_state),
            _ => None,
        },
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
            // `## Status: done` has the status in the heading itself.
            if level == 2
                && outer_level.is_none_or(|outer_level| level <= outer_level)
                && let Some(spot) = parse_heading_status(markdown_line, title)
            {
                status_spots.push(spot);
            }
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

/// Parses the heading `## Status: done`.
fn parse_heading_status(markdown_line: &MarkdownLine<'_>, title: &str) -> Option<StatusSpot> {
    let (label, status_text) = title.split_once(':')?;
    let is_status = normalize_title(label) == "status" && !status_text.trim().is_empty();
    let value_start = markdown_line.text.find(':')? + 1;
    is_status.then(|| parse_spot(markdown_line, value_start)).filter(StatusSpot::is_known)
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
    let after_label = strip_status_label(unmarked_text)?;
    let after_colon = after_label.trim_start_matches(EMPHASIS_MARKS).strip_prefix([':', '：'])?;
    let status_spot = parse_spot(markdown_line, markdown_line.text.len() - after_colon.len());
    // A list has fields of other things, too: `- Status: one of open, held`.
    let item_text = markdown_line.text.trim_start();
    let is_item =
        item_text.starts_with('>') || ["- ", "-\t", "* ", "*\t"].iter().any(|mark| item_text.starts_with(mark));
    (!is_item || status_spot.is_known()).then_some(status_spot)
}

/// The text behind `Status`, in the languages that BMAD's users write.
fn strip_status_label(text: &str) -> Option<&str> {
    const STATUS_LABELS: [&str; 7] = ["status", "statut", "estado", "статус", "状态", "状態", "ステータス"];
    STATUS_LABELS.iter().find_map(|label| {
        let label_end = text.char_indices().nth(label.chars().count()).map_or(text.len(), |(index, _)| index);
        (text[..label_end].to_lowercase() == *label).then(|| &text[label_end..])
    })
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
    // BMAD's own words may be followed by a remark; with other words a sentence could be meant.
    const OWN_WORDS: [&str; 8] =
        ["ready-for-dev", "in-progress", "in-review", "backlog", "drafted", "blocked", "review", "done"];
    let is_status = |word_range: &Range<usize>| {
        let word = status_value[word_range.clone()].to_lowercase().replace([' ', '_'], "-");
        let after_word = status_value[word_range.end..].trim_start_matches(['*', '_', '`', ' ']);
        OWN_WORDS.contains(&word.as_str()) || !after_word.starts_with(char::is_alphanumeric)
    };
    let found_word = find_state_word(status_value).map(|(_, word_range)| word_range).filter(is_status);
    found_word.or_else(|| find_draft_word(status_value))
}

/// The range of `draft`, which only specs have as a status.
fn find_draft_word(status_value: &str) -> Option<Range<usize>> {
    const DRAFT_WORD: &str = "draft";
    let unquoted = status_value.trim_start_matches(QUOTE_MARKS);
    let word_start = status_value.len() - unquoted.len();
    let is_draft = unquoted.get(..DRAFT_WORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(DRAFT_WORD));
    let is_whole_word = is_draft && !unquoted[DRAFT_WORD.len()..].starts_with(char::is_alphanumeric);
    is_whole_word.then(|| word_start..word_start + DRAFT_WORD.len())
}
