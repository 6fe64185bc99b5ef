//! The headings of epics and stories, as BMAD's planner matches them.

use crate::{keys::StoryNumber, markdown::MarkdownLine};

/// A heading that means something to the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EpicsHeading<'t> {
    Epic(u32, &'t str),
    Story(StoryNumber, &'t str),
    /// The heading begins like one of ours and cannot be read.
    Malformed,
}

/// Parses `## Epic 1: Title` and `### Story 1.2: Title` as BMAD's planner matches them.
pub(super) fn parse_heading<'t>(markdown_line: &MarkdownLine<'t>) -> Option<EpicsHeading<'t>> {
    if !markdown_line.is_prose() {
        return None;
    }
    let heading_text = markdown_line.text.trim_start_matches('#');
    // The planner also accepts `##Epic 5` without a space, which is no heading in Markdown.
    let level = markdown_line.text.len() - heading_text.len();
    if !(1..=6).contains(&level) {
        return None;
    }
    let heading_text = heading_text.trim_start().trim_start_matches(['*', '_']);
    let after_keyword = |keyword: &str| {
        let after_word = heading_text
            .get(..keyword.len())
            .filter(|actual| actual.eq_ignore_ascii_case(keyword))
            .map(|_| &heading_text[keyword.len()..])?;
        after_word.starts_with([' ', '\t']).then(|| after_word.trim_start())
    };
    let (parsed_heading, after_word, allowed_levels) = match (after_keyword("epic"), after_keyword("story")) {
        (Some(after_word), _) => (parse_epic_heading(after_word), after_word, 1..=3),
        // Deeper headings are parts of a story, and the first level is the document's title.
        (_, Some(after_word)) => (parse_story_heading(after_word), after_word, 2..=4),
        _ => return None,
    };
    match parsed_heading {
        Some(parsed_heading) if allowed_levels.contains(&level) => Some(parsed_heading),
        // `Epic List` and `Story points` are ordinary headings; `Epic N:`, `Story 1` and `Story {{N}}.{{M}}` are mistakes.
        _ => {
            let looks_like_slip = after_word
                .starts_with(|character: char| character.is_ascii_digit() || character == '{' || character == '[');
            let looks_like_slip = looks_like_slip
                || after_word.starts_with("N:")
                || after_word.starts_with("X:")
                || after_word.starts_with("N.");
            looks_like_slip.then_some(EpicsHeading::Malformed)
        }
    }
}

fn parse_epic_heading(after_word: &str) -> Option<EpicsHeading<'_>> {
    let (epic_number, after_number) = split_digits(after_word)?;
    (!after_number.starts_with(|character: char| character.is_alphanumeric() || character == '.'))
        .then(|| EpicsHeading::Epic(epic_number, clean_title(after_number)))
}

fn parse_story_heading(after_word: &str) -> Option<EpicsHeading<'_>> {
    let (epic_number, after_epic) = split_digits(after_word)?;
    let (number, after_number) = split_digits(after_epic.strip_prefix('.')?)?;
    let letter =
        after_number.chars().next().filter(char::is_ascii_alphabetic).map(|character| character.to_ascii_lowercase());
    // A split story has a letter behind its number: `1.2a`.
    let after_number = if letter.is_some() { &after_number[1..] } else { after_number };
    let story_number = StoryNumber { epic: epic_number, number, letter };
    (!after_number.starts_with(|character: char| character.is_alphanumeric() || character == '.'))
        .then(|| EpicsHeading::Story(story_number, clean_title(after_number)))
}

fn split_digits(digits_text: &str) -> Option<(u32, &str)> {
    let after_digits = digits_text.trim_start_matches(|character: char| character.is_ascii_digit());
    digits_text[..digits_text.len() - after_digits.len()]
        .parse()
        .ok()
        .map(|parsed_number| (parsed_number, after_digits))
}

fn clean_title(raw_title: &str) -> &str {
    let bare_title = raw_title.trim().trim_end_matches('#').trim_end();
    let bare_title = bare_title.trim_start_matches([':', '-', '–', '—', '*', '_', ' ', '\t']);
    bare_title.trim_end_matches(['*', '_', ' '])
}
