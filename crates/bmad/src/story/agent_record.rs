//! What agents write into a story while they work on it: the list of files, what a review left to do, its outcome.

use super::{
    FollowUp, FollowUpKind, LocatedText, ReviewDialect,
    tasks::{CheckboxItem, parse_checkbox},
};
use crate::{
    markdown::{MarkdownLine, MarkdownPage, MarkdownSection, normalize_title},
    verdict::CodeReviewVerdict,
};

/// The section `File List`, at any place.
pub(super) fn find_file_section<'t>(markdown: &MarkdownPage<'t>) -> Option<MarkdownSection<'t>> {
    markdown.find_section(|title| title == "file list" || title.starts_with("file list "))
}

/// The paths under `File List`, each once.
pub(super) fn read_file_list(markdown: &MarkdownPage<'_>) -> Vec<LocatedText> {
    let Some(section) = find_file_section(markdown) else { return Vec::new() };
    let mut seen_paths = std::collections::BTreeSet::new();
    let lines = markdown.lines[section.line_range].iter();
    let listed_files =
        lines.filter_map(|line| Some(LocatedText { text: parse_file_line(line)?.to_string(), line: line.number }));
    listed_files.filter(|listed_file| seen_paths.insert(listed_file.text.clone())).collect()
}

/// Whether a line of the list consists of this path only.
pub(super) fn is_only_path(markdown_line: &MarkdownLine<'_>, file_path: &str) -> bool {
    markdown_line.is_prose()
        && strip_list_mark(markdown_line.text.trim()).trim_matches(['*', '_', '`', '"', '\'', ' ']) == file_path
}

/// The path in a line of the list: `- src/a.rs`, `- **New:** src/a.rs - what it is`, and `` - `src/a.rs` (new) ``.
pub(super) fn parse_file_line<'t>(markdown_line: &MarkdownLine<'t>) -> Option<&'t str> {
    if !markdown_line.is_prose() || markdown_line.heading().is_some() {
        return None;
    }
    find_path(markdown_line.text)
}

/// The path in a line's text.
pub(super) fn find_path(line_text: &str) -> Option<&str> {
    let item_text = strip_list_mark(line_text.trim());
    // A path in backticks is taken as it is: only there can it contain spaces.
    if let Some((_, after_quote)) = item_text.split_once('`')
        && let Some((quoted_path, _)) = after_quote.split_once('`')
    {
        let quoted_path = quoted_path.trim();
        return (!quoted_path.is_empty() && !quoted_path.contains("://")).then_some(quoted_path);
    }
    // In `**New:** a`, `Modified: a` and `[NEW] a` the words before the path say what happened to it.
    const AROUND: [char; 11] = ['*', '_', ',', ';', ':', '(', ')', '[', ']', '"', '\''];
    let candidate_words = item_text.split_whitespace().map(|candidate| candidate.trim_matches(AROUND));
    let mut candidate_words = candidate_words.filter(|candidate| !candidate.is_empty() && !is_change_word(candidate));
    candidate_words.next().filter(|candidate| looks_like_path(candidate))
}

fn is_change_word(candidate: &str) -> bool {
    const CHANGE_WORDS: [&str; 12] = [
        "new", "added", "add", "created", "create", "modified", "modify", "updated", "update", "deleted", "removed",
        "renamed",
    ];
    CHANGE_WORDS.iter().any(|change_word| candidate.eq_ignore_ascii_case(change_word))
}

/// The text without its bullet or number.
fn strip_list_mark(line_text: &str) -> &str {
    let after_digits = line_text.trim_start_matches(|character: char| character.is_ascii_digit());
    let list_marks: &[char] = if after_digits.len() < line_text.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let item_text = after_digits.strip_prefix(list_marks).filter(|item_text| item_text.starts_with([' ', '\t']));
    item_text.unwrap_or(line_text).trim_start()
}

/// Whether a word has a directory or an extension, and is neither an address nor the last word of a sentence.
fn looks_like_path(candidate: &str) -> bool {
    let file_name = candidate.rsplit('/').next().unwrap_or(candidate);
    // An extension is short, so that two sentences without a space between them are no path.
    let has_extension = file_name.rsplit_once('.').is_some_and(|(_, extension)| {
        !extension.is_empty()
            && extension.len() <= 12
            && extension.chars().all(|character| character.is_alphanumeric() || character == '_' || character == '-')
    });
    let has_letter = candidate.chars().any(char::is_alphanumeric);
    has_letter
        && !candidate.contains("://")
        && (has_extension || candidate.contains('/') || FILES_WITHOUT_EXTENSION.contains(&candidate))
}

/// Names of files that have no extension.
const FILES_WITHOUT_EXTENSION: [&str; 20] = [
    "Makefile",
    "GNUmakefile",
    "makefile",
    "Dockerfile",
    "Containerfile",
    "Procfile",
    "Gemfile",
    "Rakefile",
    "Justfile",
    "justfile",
    "Jenkinsfile",
    "Vagrantfile",
    "Brewfile",
    "Podfile",
    "Fastfile",
    "Caddyfile",
    "LICENSE",
    "NOTICE",
    "CODEOWNERS",
    "CHANGELOG",
];

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
