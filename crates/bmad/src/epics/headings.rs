//! The headings of epics and stories, as BMAD's planner matches them.

use crate::{
    epic_id::EpicId,
    keys::{StoryNumber, parse_lettered_number},
    markdown::MarkdownLine,
};

/// A heading that means something to the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EpicsHeading<'t> {
    Epic(EpicId, &'t str),
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

/// Headings about an epic that do not begin it: `Epic 1 Summary`.
const ASIDE_WORDS: [&str; 16] = [
    "summary",
    "overview",
    "stories",
    "story",
    "dependencies",
    "retrospective",
    "status",
    "details",
    "breakdown",
    "notes",
    "completion",
    "acceptance",
    "goals",
    "risks",
    "implementation",
    "scope",
];

fn parse_epic_heading(after_word: &str) -> Option<EpicsHeading<'_>> {
    let (number_text, after_number) = split_number(after_word);
    let is_number = number_text.split('.').all(|part| parse_lettered_number(&part.to_ascii_lowercase()).is_some());
    let epic = EpicId::parse(number_text).filter(|_| is_number)?;
    let first_word = after_number.trim_start().split(|character: char| !character.is_alphanumeric()).next();
    let is_aside = first_word.is_some_and(|word| ASIDE_WORDS.contains(&word.to_lowercase().as_str()));
    (!is_aside).then(|| EpicsHeading::Epic(epic, clean_title(after_number)))
}

fn parse_story_heading(after_word: &str) -> Option<EpicsHeading<'_>> {
    let (number_text, after_number) = split_number(after_word);
    // A split story has a letter behind its number: `1.2a`.
    let story_number = StoryNumber::parse(&number_text.to_ascii_lowercase())?;
    Some(EpicsHeading::Story(story_number, clean_title(after_number)))
}

/// Splits `1.2a: Title` behind the number.
fn split_number(text: &str) -> (&str, &str) {
    let starts_with_digit = text.starts_with(|character: char| character.is_ascii_digit());
    let number_end = text
        .find(|character: char| !(character.is_ascii_alphanumeric() || character == '.'))
        .filter(|_| starts_with_digit)
        .unwrap_or(if starts_with_digit { text.len() } else { 0 });
    let number_text = text[..number_end].trim_end_matches('.');
    (number_text, &text[number_text.len()..])
}

fn clean_title(raw_title: &str) -> &str {
    let bare_title = raw_title.trim().trim_end_matches('#').trim_end();
    let bare_title = bare_title.trim_start_matches([':', '-', '–', '—', '*', '_', ' ', '\t']);
    bare_title.trim_end_matches(['*', '_', ' '])
}
