//! What agents write into a story while they work on it: the list of files, what a review left to do, its outcome.

use super::{
    Dialect, FollowUp, FollowUpKind, Said,
    tasks::{Boxed, boxed},
};
use crate::{
    page::{Line, Page, Section, plain},
    verdict::CodeReview,
};

/// The section `File List`, at any place.
pub(super) fn file_section<'t>(page: &Page<'t>) -> Option<Section<'t>> {
    page.section(|title| title == "file list" || title.starts_with("file list "))
}

/// The paths under `File List`, each once.
pub(super) fn files(page: &Page<'_>) -> Vec<Said> {
    let Some(section) = file_section(page) else { return Vec::new() };
    let mut seen = std::collections::BTreeSet::new();
    let lines = page.lines[section.lines].iter();
    let paths = lines.filter_map(|line| Some(Said { text: file_of(line)?.to_string(), line: line.number }));
    paths.filter(|said| seen.insert(said.text.clone())).collect()
}

/// Whether a line of the list consists of this path only.
pub(super) fn names(line: &Line<'_>, file: &str) -> bool {
    line.is_prose() && item_of(line.text.trim()).trim_matches(['*', '_', '`', '"', '\'', ' ']) == file
}

/// The path in a line of the list: `- src/a.rs`, `- **New:** src/a.rs - what it is`, and `` - `src/a.rs` (new) ``.
pub(super) fn file_of<'t>(line: &Line<'t>) -> Option<&'t str> {
    if !line.is_prose() || line.heading().is_some() {
        return None;
    }
    bare_path(line.text)
}

/// The path in a line's text.
pub(super) fn bare_path(text: &str) -> Option<&str> {
    let item = item_of(text.trim());
    // A path in backticks is taken as it is: only there can it contain spaces.
    if let Some((_, rest)) = item.split_once('`')
        && let Some((quoted, _)) = rest.split_once('`')
    {
        let quoted = quoted.trim();
        return (!quoted.is_empty() && !quoted.contains("://")).then_some(quoted);
    }
    // In `**New:** a`, `Modified: a` and `[NEW] a` the words before the path say what happened to it.
    const AROUND: [char; 11] = ['*', '_', ',', ';', ':', '(', ')', '[', ']', '"', '\''];
    let words = item.split_whitespace().map(|word| word.trim_matches(AROUND));
    let mut words = words.filter(|word| !word.is_empty() && !is_deed(word));
    words.next().filter(|word| is_path(word))
}

fn is_deed(word: &str) -> bool {
    const DEEDS: [&str; 12] = [
        "new", "added", "add", "created", "create", "modified", "modify", "updated", "update", "deleted",
        "removed", "renamed",
    ];
    DEEDS.iter().any(|deed| word.eq_ignore_ascii_case(deed))
}

/// The text without its bullet or number.
fn item_of(text: &str) -> &str {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let mark: &[char] = if digits.len() < text.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let rest = digits.strip_prefix(mark).filter(|rest| rest.starts_with([' ', '\t']));
    rest.unwrap_or(text).trim_start()
}

/// Whether a word has a directory or an extension, and is neither an address nor the last word of a sentence.
fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    // An extension is short, so that two sentences without a space between them are no path.
    let ends = name.rsplit_once('.').is_some_and(|(_, end)| {
        !end.is_empty() && end.len() <= 12 && end.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    });
    let has_letter = word.chars().any(char::is_alphanumeric);
    has_letter && !word.contains("://") && (ends || word.contains('/') || NAMES.contains(&word))
}

/// Names of files that have no extension.
const NAMES: [&str; 20] = [
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
fn is_place(said: &str) -> bool {
    let (file, line) = said.split_once(':').map_or((said, None), |(file, line)| (file, Some(line)));
    let numbered = line.is_some_and(|line| {
        let digits = |c: char| c.is_ascii_digit() || matches!(c, '-' | ',' | ':');
        line.starts_with(|c: char| c.is_ascii_digit()) && line.chars().all(digits)
    });
    let is_named = file.chars().any(char::is_alphanumeric) && file.trim() == file;
    let is_word = !said.contains(char::is_whitespace);
    // A line number is proof enough for any name; without one the name itself must look like a path.
    match numbered {
        true => is_named && (is_word || is_path(file)),
        false => is_word && is_path(file),
    }
}

/// What a review left to do, in both dialects, at any place; also untagged items in a review's own sections.
pub(super) fn follow_ups(page: &Page<'_>) -> Vec<FollowUp> {
    let mut found: Vec<FollowUp> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    // The open headings with their levels, and the dialect that applies below each.
    let mut above: Vec<(usize, Option<Dialect>)> = Vec::new();
    for line in &page.lines {
        if let Some((level, title)) = line.heading() {
            while above.last().is_some_and(|(other, _)| *other >= level) {
                above.pop();
            }
            let inherited = above.last().and_then(|(_, dialect)| *dialect);
            above.push((level, dialect_of(title).or(inherited)));
            continue;
        }
        let section = above.last().and_then(|(_, dialect)| *dialect);
        let Some(item) = boxed(line) else { continue };
        let read = tagged(item.text).or_else(|| section.map(|dialect| parts(dialect, item.text)));
        let Some(read) = read else { continue };
        let follow_up = read.whole(&item);
        // A review's own list of action items repeats the items among the tasks.
        if seen.insert((follow_up.text.clone(), follow_up.place.clone())) {
            found.push(follow_up);
        }
    }
    found
}

/// The lines of an item: its own, and those where a review repeats it.
pub(super) fn lines_of(page: &Page<'_>, item: &FollowUp) -> Vec<usize> {
    let boxes = page.lines.iter().filter_map(boxed);
    let same = boxes.filter(|found| {
        let read = tagged(found.text).unwrap_or_else(|| parts(item.dialect, found.text));
        read.text == item.text && read.place == item.place && (found.line == item.line || read.kind.is_some())
    });
    same.map(|found| found.line).collect()
}

/// Parses a single line as an item, to check that it can be read back.
pub(super) fn item(line: &str) -> Option<FollowUp> {
    let page = Page::of(line);
    let found = boxed(page.lines.first()?).filter(|_| page.lines.len() == 1)?;
    tagged(found.text).map(|read| read.whole(&found))
}

/// The dialect of a section with this title.
fn dialect_of(title: &str) -> Option<Dialect> {
    let title = plain(title);
    if title.starts_with("review finding") {
        Some(Dialect::Findings)
    } else if title.starts_with("review follow") || title.starts_with("senior developer review") {
        Some(Dialect::AiReview)
    } else {
        None
    }
}

/// The parsed text of an item.
#[derive(Clone, Debug)]
pub(super) struct Read {
    dialect: Dialect,
    kind: Option<FollowUpKind>,
    text: String,
    place: Option<String>,
}

impl Read {
    fn whole(self, item: &Boxed<'_>) -> FollowUp {
        let Read { dialect, kind, text, place } = self;
        FollowUp { dialect, done: item.done, kind, text, place, line: item.line }
    }
}

/// Parses `[AI-Review][High] …` or `[Review][Patch] …`; `None` if the text has no such tag.
pub(super) fn tagged(text: &str) -> Option<Read> {
    // The tags may be emphasized: `**[AI-Review][High]** …`.
    let (tag, rest) = tag(text.trim_start_matches(['*', '_', ' ']))?;
    let dialect = match tag.to_ascii_lowercase().replace([' ', '_'], "-").as_str() {
        "ai-review" => Dialect::AiReview,
        "review" => Dialect::Findings,
        _ => return None,
    };
    Some(parts(dialect, rest))
}

fn parts(dialect: Dialect, text: &str) -> Read {
    let (kind, rest) = match tag(text.trim_start_matches(['*', '_', ' '])) {
        // A link or a place in brackets is no kind.
        Some((word, rest)) if !rest.starts_with('(') && !is_place(word) => {
            (Some(FollowUpKind::parse(word)), rest)
        }
        _ => (None, text),
    };
    let rest = rest.trim_start_matches(['*', '_', ':', ' ']).trim();
    match place(rest) {
        Some((place, without)) => Read { dialect, kind, text: without, place: Some(place) },
        None => Read { dialect, kind, text: rest.to_string(), place: None },
    }
}

/// Splits `[word] rest`; a long text in brackets is no tag.
fn tag(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.strip_prefix('[')?.split_once(']')?;
    (!word.trim().is_empty() && word.len() <= 40).then(|| (word.trim(), rest))
}

/// The last `[file:line]` of a text, and the text without it.
fn place(text: &str) -> Option<(String, String)> {
    let open = text.rfind('[')?;
    let (inside, behind) = text[open + 1..].split_once(']')?;
    let said = inside.trim().trim_matches('`');
    let said = said.strip_prefix("file:").unwrap_or(said).trim();
    // `[x](y)` is a link, and its brackets are no place.
    if behind.starts_with('(') || !is_place(said) {
        return None;
    }
    let without = format!("{} {}", text[..open].trim_end(), behind.trim_start());
    Some((said.to_string(), without.trim().to_string()))
}

/// The outcome of the last review in the file.
pub(super) fn outcome(page: &Page<'_>) -> Option<Said> {
    let sections = page.sections();
    let reviews =
        sections.iter().filter(|section| plain(section.title).starts_with("senior developer review"));
    reviews.rev().find_map(|section| outcome_in(&page.lines[section.lines.clone()]))
}

fn outcome_in(lines: &[Line<'_>]) -> Option<Said> {
    let mut under = false;
    let mut last = None;
    for line in lines.iter().filter(|line| line.is_prose() && !line.is_blank()) {
        if let Some((_, title)) = line.heading() {
            under = is_outcome(&plain(title));
            continue;
        }
        let text = line.text.trim().trim_start_matches(['-', '*', '+', '_', ' ', '>']);
        let value = match text.split_once(':') {
            Some((label, value)) if is_outcome(&plain(label)) => Some(value),
            _ if under => Some(text),
            _ => None,
        };
        // Only the line right below the heading can state the outcome.
        under = false;
        let Some(value) = value else { continue };
        let said = value.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`'));
        // A template lists all outcomes; the parser accepts only a single one.
        if CodeReview::parse(said).is_some() {
            last = Some(Said { text: said.to_string(), line: line.number });
        }
    }
    last
}

fn is_outcome(label: &str) -> bool {
    matches!(label, "outcome" | "review outcome" | "verdict" | "decision" | "review decision")
}
