//! What agents write into a story while they work on it: what a review left to do, its outcome. The list of files is in
//! [`super::file_list`].

use super::{
    FollowUp, FollowUpKind, LocatedText, ReviewDialect,
    file_list::looks_like_path,
    tasks::{CheckboxItem, parse_checkbox},
};
use crate::{
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
    verdict::CodeReviewVerdict,
};

/// Whether a text is `file:line` with any file name, or a path without a line. A name with a space must be a path.
fn is_code_location(location_text: &str) -> bool {
    let (file_part, line_part) = location_text
        .split_once(':')
        .map_or((location_text, None), |(file_part, line_part)| (file_part, Some(line_part)));
    let has_line_numbers = line_part.is_some_and(|line_part| {
        let is_line_character = |character: char| character.is_ascii_digit() || matches!(character, '-' | ',' | ':');
        line_part.starts_with(|character: char| character.is_ascii_digit()) && line_part.chars().all(is_line_character)
    });
    let is_named = file_part.chars().any(char::is_alphanumeric) && file_part.trim() == file_part;
    let is_single_word = !location_text.contains(char::is_whitespace);
    // A line number is proof enough for any name; without one the name itself must look like a path.
    match has_line_numbers {
        true => is_named && (is_single_word || looks_like_path(file_part)),
        false => is_single_word && looks_like_path(file_part),
    }
}

/// What a review left to do, in both dialects, at any place; also untagged items in a review's own sections.
pub(super) fn read_follow_ups(markdown: &MarkdownPage<'_>) -> Vec<FollowUp> {
    let mut found_items: Vec<FollowUp> = Vec::new();
    let mut seen_items = std::collections::BTreeSet::new();
    // The open headings with their levels, and the dialect that applies below each.
    let mut open_sections: Vec<(usize, Option<ReviewDialect>)> = Vec::new();
    for line in &markdown.lines {
        if let Some((level, title)) = line.heading() {
            while open_sections.last().is_some_and(|(open_level, _)| *open_level >= level) {
                open_sections.pop();
            }
            let inherited = open_sections.last().and_then(|(_, dialect)| *dialect);
            open_sections.push((level, dialect_from_title(title).or(inherited)));
            continue;
        }
        let section_dialect = open_sections.last().and_then(|(_, dialect)| *dialect);
        let Some(checkbox_item) = parse_checkbox(line) else { continue };
        let parsed_item = parse_tagged(checkbox_item.text)
            .or_else(|| section_dialect.map(|dialect| parse_follow_up(dialect, checkbox_item.text)));
        let Some(parsed_item) = parsed_item else { continue };
        let follow_up = parsed_item.into_follow_up(&checkbox_item);
        // A review's own list of action items repeats the items among the tasks.
        if seen_items.insert((follow_up.text.clone(), follow_up.place.clone())) {
            found_items.push(follow_up);
        }
    }
    found_items
}

/// The lines of an item: its own, and those where a review repeats it.
pub(super) fn find_repeated_lines(markdown: &MarkdownPage<'_>, follow_up: &FollowUp) -> Vec<usize> {
    let checkbox_items = markdown.lines.iter().filter_map(parse_checkbox);
    let repetitions = checkbox_items.filter(|checkbox_item| {
        let parsed_item =
            parse_tagged(checkbox_item.text).unwrap_or_else(|| parse_follow_up(follow_up.dialect, checkbox_item.text));
        parsed_item.text == follow_up.text
            && parsed_item.place == follow_up.place
            && (checkbox_item.line == follow_up.line || parsed_item.kind.is_some())
    });
    repetitions.map(|checkbox_item| checkbox_item.line).collect()
}

/// Parses a single line as an item, to check that it can be read back.
pub(super) fn parse_follow_up_line(line_text: &str) -> Option<FollowUp> {
    let markdown = MarkdownPage::parse(line_text);
    let checkbox_item = parse_checkbox(markdown.lines.first()?).filter(|_| markdown.lines.len() == 1)?;
    parse_tagged(checkbox_item.text).map(|parsed_item| parsed_item.into_follow_up(&checkbox_item))
}

/// The dialect of a section with this title.
fn dialect_from_title(title: &str) -> Option<ReviewDialect> {
    let title = normalize_title(title);
    if title.starts_with("review finding") {
        Some(ReviewDialect::Findings)
    } else if title.starts_with("review follow") || title.starts_with("senior developer review") {
        Some(ReviewDialect::AiReview)
    } else {
        None
    }
}

/// The parsed text of an item.
#[derive(Clone, Debug)]
pub(super) struct ParsedFollowUp {
    dialect: ReviewDialect,
    kind: Option<FollowUpKind>,
    text: String,
    place: Option<String>,
}

impl ParsedFollowUp {
    fn into_follow_up(self, checkbox_item: &CheckboxItem<'_>) -> FollowUp {
        let ParsedFollowUp { dialect, kind, text, place } = self;
        FollowUp { dialect, done: checkbox_item.done, kind, text, place, line: checkbox_item.line }
    }
}

/// Parses `[AI-Review][High] …` or `[Review][Patch] …`; `None` if the text has no such tag.
pub(super) fn parse_tagged(item_text: &str) -> Option<ParsedFollowUp> {
    // The tags may be emphasized: `**[AI-Review][High]** …`.
    let (review_tag, after_tag) = split_tag(item_text.trim_start_matches(['*', '_', ' ']))?;
    let dialect = match review_tag.to_ascii_lowercase().replace([' ', '_'], "-").as_str() {
        "ai-review" => ReviewDialect::AiReview,
        "review" => ReviewDialect::Findings,
        _ => return None,
    };
    Some(parse_follow_up(dialect, after_tag))
}

fn parse_follow_up(dialect: ReviewDialect, item_text: &str) -> ParsedFollowUp {
    let (kind, after_tag) = match split_tag(item_text.trim_start_matches(['*', '_', ' '])) {
        // A link or a place in brackets is no kind.
        Some((kind_text, after_tag)) if !after_tag.starts_with('(') && !is_code_location(kind_text) => {
            (Some(FollowUpKind::parse(kind_text)), after_tag)
        }
        _ => (None, item_text),
    };
    let after_tag = after_tag.trim_start_matches(['*', '_', ':', ' ']).trim();
    match split_location(after_tag) {
        Some((code_location, text_without_location)) => {
            ParsedFollowUp { dialect, kind, text: text_without_location, place: Some(code_location) }
        }
        None => ParsedFollowUp { dialect, kind, text: after_tag.to_string(), place: None },
    }
}

/// Splits `[word] rest`; a long text in brackets is no tag.
fn split_tag(item_text: &str) -> Option<(&str, &str)> {
    let (tag_text, after_tag) = item_text.strip_prefix('[')?.split_once(']')?;
    (!tag_text.trim().is_empty() && tag_text.len() <= 40).then(|| (tag_text.trim(), after_tag))
}

/// The last `[file:line]` of a text, and the text without it.
fn split_location(item_text: &str) -> Option<(String, String)> {
    let bracket_start = item_text.rfind('[')?;
    let (bracketed, after_bracket) = item_text[bracket_start + 1..].split_once(']')?;
    let location_text = bracketed.trim().trim_matches('`');
    let location_text = location_text.strip_prefix("file:").unwrap_or(location_text).trim();
    // `[x](y)` is a link, and its brackets are no place.
    if after_bracket.starts_with('(') || !is_code_location(location_text) {
        return None;
    }
    let text_without_location = format!("{} {}", item_text[..bracket_start].trim_end(), after_bracket.trim_start());
    Some((location_text.to_string(), text_without_location.trim().to_string()))
}

/// The outcome of the last review in the file.
pub(super) fn read_outcome(markdown: &MarkdownPage<'_>) -> Option<LocatedText> {
    let sections = markdown.sections();
    let review_sections =
        sections.iter().filter(|section| normalize_title(section.title).starts_with("senior developer review"));
    review_sections.rev().find_map(|section| find_outcome(&markdown.lines[section.line_range.clone()]))
}

fn find_outcome(lines: &[MarkdownLine<'_>]) -> Option<LocatedText> {
    let mut below_heading = false;
    let mut last_outcome = None;
    for line in lines.iter().filter(|line| line.is_prose() && !line.is_blank()) {
        if let Some((_, title)) = line.heading() {
            below_heading = is_outcome_label(&normalize_title(title));
            continue;
        }
        let line_text = line.text.trim().trim_start_matches(['-', '*', '+', '_', ' ', '>']);
        let stated_value = match line_text.split_once(':') {
            Some((label, stated_value)) if is_outcome_label(&normalize_title(label)) => Some(stated_value),
            _ if below_heading => Some(line_text),
            _ => None,
        };
        // Only the line right below the heading can state the outcome.
        below_heading = false;
        let Some(stated_value) = stated_value else { continue };
        let outcome_text = stated_value
            .trim_matches(|character: char| character.is_whitespace() || matches!(character, '*' | '_' | '`'));
        // A template lists all outcomes; the parser accepts only a single one.
        if CodeReviewVerdict::parse(outcome_text).is_some() {
            last_outcome = Some(LocatedText { text: outcome_text.to_string(), line: line.number });
        }
    }
    last_outcome
}

fn is_outcome_label(label: &str) -> bool {
    matches!(label, "outcome" | "review outcome" | "verdict" | "decision" | "review decision")
}
