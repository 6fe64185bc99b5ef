//! The acceptance criteria of a story: BMAD's template numbers them under `## Acceptance Criteria`; users and agents also
//! write them as bullets, under headings of their own or as bare Given/When/Then.
//!
//! The reader is lenient: the section itself shows what begins a criterion, and every other line belongs to the criterion
//! before it. Nothing of the section is lost but comments, and a number that the story gives is the number of the criterion.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Kind, Line, Page, plain};

/// The texts of a story's acceptance criteria in their order; empty if it has none.
pub fn criteria(text: &str) -> Vec<String> {
    found(&Page::of(text)).into_iter().map(|criterion| criterion.text).collect()
}

/// One acceptance criterion with its line and number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Criterion {
    /// The number that it gives itself (`3. …`, `AC3: …`), otherwise its position in the list.
    pub number: u32,
    pub text: String,
    pub line: usize,
}

/// The criteria of a story.
pub(super) fn found(page: &Page<'_>) -> Vec<Criterion> {
    section(page).map(|range| among(&page.lines[range])).unwrap_or_default()
}

/// The criteria in lines that hold nothing else. Comments come from the template and are left out.
pub(crate) fn among(lines: &[Line<'_>]) -> Vec<Criterion> {
    // Code is kept: a criterion may show an example.
    let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.kind != Kind::Comment).collect();
    let starts = starts(&lines);
    let mut found: Vec<Growing> = Vec::new();
    // Lines before the first criterion introduce it.
    let mut before = Growing::default();
    for (line, start) in lines.iter().zip(starts) {
        let own = unmarked(line.text, found.len() + 1);
        // `- When …` begins a list item, but it continues the criterion whose `Given` came before.
        let goes_on =
            keyword(&own) == Some(Keyword::Later) && found.last().is_some_and(|last| last.has_steps);
        match found.last_mut() {
            _ if start && !goes_on => {
                let mut criterion = std::mem::take(&mut before);
                (criterion.number, criterion.line) = (given(line.text), line.number);
                criterion.push(own);
                found.push(criterion);
            }
            Some(last) => last.push(if start { own } else { line.text.to_string() }),
            None => before.push(line.text.to_string()),
        }
    }
    // A section without any recognizable start is one criterion.
    if found.is_empty() {
        before.line = lines.iter().find(|line| !line.is_blank()).map_or(1, |line| line.number);
        found.push(before);
    }
    let whole = found.into_iter().map(|Growing { number, line, lines, .. }| (number, lines.join("\n"), line));
    let full = whole.map(|(number, text, line)| (number, text.trim().to_string(), line));
    // Positions are counted after empty criteria are removed.
    full.filter(|(_, text, _)| !text.is_empty())
        .zip(1u32..)
        .map(|((number, text, line), place)| Criterion { number: number.unwrap_or(place), text, line })
        .collect()
}

/// A criterion whose end is not yet known.
#[derive(Default)]
struct Growing {
    number: Option<u32>,
    line: usize,
    lines: Vec<String>,
    /// Whether one of its lines is a step of Given/When/Then, so that later steps belong to it.
    has_steps: bool,
}

impl Growing {
    fn push(&mut self, line: String) {
        self.has_steps |= keyword(&line).is_some();
        self.lines.push(line);
    }
}

/// The number that a criterion gives itself.
fn given(line: &str) -> Option<u32> {
    let digits = match number(line) {
        Some((number, _)) => return u32::try_from(number).ok(),
        None => labelled(line)?,
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Whether a file is a story: named like one (`1-2-log-in.md`) or with a section `Story`, and with acceptance criteria.
pub fn is_story(path: &str, text: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if !name.to_ascii_lowercase().ends_with(".md") {
        return false;
    }
    let page = Page::of(text);
    (has_key(name)
        || page
            .lines
            .iter()
            .any(|line| line.heading().is_some_and(|(level, title)| is_story_title(level, title))))
        && !found(&page).is_empty()
}

fn is_story_title(level: usize, title: &str) -> bool {
    level == 2 && plain(title) == "story"
}

/// Whether a file's name begins with a story key: `1-2-slug`, `2-6a-slug`, `story-…`.
fn has_key(name: &str) -> bool {
    if name.to_ascii_lowercase().starts_with("story-") {
        return true;
    }
    let mut parts = name.splitn(3, '-');
    let number = |part: Option<&str>, letter: bool| {
        part.is_some_and(|part| {
            let digits = part.trim_start_matches(|c: char| c.is_ascii_digit());
            digits.len() < part.len() && (digits.is_empty() || (letter && digits.len() == 1))
        })
    };
    number(parts.next(), false) && number(parts.next(), true) && parts.next().is_some()
}

/// The lines under `Acceptance Criteria`, up to the next heading that is not below it.
pub(super) fn section(page: &Page<'_>) -> Option<Range<usize>> {
    let lines = &page.lines;
    let at = lines.iter().position(|line| line.heading().is_some_and(|(_, title)| is_ours(title)));
    let level = at.and_then(|at| lines[at].heading()).map_or(6, |(level, _)| level);
    // Epics have the words in bold instead of a heading, and so do some stories.
    let at = at.or_else(|| lines.iter().position(is_label))?;
    let inside = |line: &Line<'_>| line.heading().is_none_or(|(other, _)| other > level);
    // Deeper headings belong to the section: each may be a criterion.
    let end = lines[at + 1..].iter().position(|line| !inside(line)).map_or(lines.len(), |end| at + 1 + end);
    Some(at + 1..end)
}

/// Whether a line is a label in bold: `**Acceptance Criteria:**`.
pub(crate) fn is_label(line: &Line<'_>) -> bool {
    line.is_prose() && line.text.trim().starts_with("**") && is_ours(line.text)
}

/// Whether a title is `Acceptance Criteria`, `3. acceptance criteria (BDD):` or `**Acceptance Criteria:**`.
pub(crate) fn is_ours(title: &str) -> bool {
    plain(title)
        .trim_start_matches(|c: char| c.is_ascii_digit() || ". ".contains(c))
        .starts_with("acceptance criteri")
}

/// A rule that decides whether a line begins a criterion, by its index and its text.
type Way<'w> = &'w dyn Fn(usize, &Line<'_>) -> bool;

/// Which lines begin a criterion.
fn starts(lines: &[&Line<'_>]) -> Vec<bool> {
    let after_blank = |index: usize| index == 0 || lines[index - 1].is_blank();
    // The rules go from the most specific to the least: the first one that matches any line is what the author used.
    let ways: [Way<'_>; 6] = [
        &|_, line| is_labelled(line.text),
        &|_, line| number(line.text).is_some(),
        &|_, line| line.heading().is_some(),
        &|_, line| bullet(line.text).is_some(),
        &|_, line| keyword(line.text) == Some(Keyword::Given),
        &|index, line| after_blank(index) && !line.is_blank(),
    ];
    for way in ways {
        let found: Vec<bool> =
            lines.iter().enumerate().map(|(index, line)| line.is_prose() && way(index, line)).collect();
        if found.contains(&true) {
            return found;
        }
    }
    vec![false; lines.len()]
}

/// Whether a line has a label such as `AC1: …`, `### AC 2` or `- **AC-3** …`, and is not deeper in a list.
fn is_labelled(line: &str) -> bool {
    labelled(line).is_some()
}

/// The text from the label's number on.
fn labelled(line: &str) -> Option<&str> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let rest = line.trim_start_matches('#');
    // Only a heading may have spaces before the label; an indented label is part of a list item.
    let rest = if rest.len() < line.len() { rest.trim_start() } else { rest };
    let rest = bullet(rest).unwrap_or(rest).trim_start_matches(['*', '_', '[', ' ']);
    let label = rest.strip_prefix("AC").or_else(|| rest.strip_prefix("ac"))?;
    Some(label.trim_start_matches(['-', '#', ' ']))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The number and the text of `1. …` or `2) …`.
fn number(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    let item = rest.strip_prefix(['.', ')']).filter(|item| item.starts_with([' ', '\t']))?;
    Some((line[..digits].parse().ok()?, item.trim_start()))
}

/// The text of `- …`, `* …` or `+ …` without indentation.
fn bullet(line: &str) -> Option<&str> {
    line.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim_start)
}

/// A line without its mark; a number stays if it differs from the one that the criterion gets.
fn unmarked(line: &str, next: usize) -> String {
    match number(line) {
        Some((number, rest)) if number == next => rest.to_string(),
        Some(_) => line.to_string(),
        None => bullet(line).unwrap_or(line).to_string(),
    }
}

/// The keywords of Given/When/Then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    Given,
    Later,
}

/// The keyword with which a step of Given/When/Then begins.
fn keyword(line: &str) -> Option<Keyword> {
    let line = bullet(line).or(number(line).map(|(_, rest)| rest)).unwrap_or(line);
    let word: String =
        line.trim_start_matches(['*', '_', ' ']).chars().take_while(|c| c.is_alphabetic()).collect();
    match word.to_lowercase().as_str() {
        "given" => Some(Keyword::Given),
        "when" | "then" | "and" | "but" => Some(Keyword::Later),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn under(section: &str) -> Vec<String> {
        criteria(&format!(
            "# Story 1.2: Log in\n\nStatus: review\n\n## Acceptance Criteria\n\n{section}\n\n## Tasks\n\n1. no\n"
        ))
    }

    #[test]
    fn the_template_s_numbers_are_the_criteria() {
        assert_eq!(
            under("1. It starts.\n2. It stops,\n   at once.\n   - also twice\n\n3. It ends."),
            ["It starts.", "It stops,\n   at once.\n   - also twice", "It ends."]
        );
    }

    #[test]
    fn bullets_and_ticks_are_criteria_where_there_are_no_numbers() {
        assert_eq!(under("- [ ] one\n  - a\n- [x] two\n* three"), ["[ ] one\n  - a", "[x] two", "three"]);
    }

    #[test]
    fn steps_of_given_when_then_stay_together() {
        let steps = "**Given** a user\n**When** she logs in\n**Then** she is in\n\n**Given** none\n**Then** nobody is";
        assert_eq!(under(steps).len(), 2);
        assert_eq!(
            under("- Given a\n- When b\n- Then c\n- And d\n- Given e\n- Then f"),
            ["Given a\nWhen b\nThen c\nAnd d", "Given e\nThen f"]
        );
        assert_eq!(under("1. Given a\n   When b\n2. Given c\n   Then d").len(), 2);
    }

    #[test]
    fn labels_and_headings_of_their_own_are_understood() {
        let labelled = "### AC1: in\n\n- Given a\n- Then b\n\n### AC2: out\n\n1. x\n2. y";
        assert_eq!(under(labelled), ["### AC1: in\n\n- Given a\n- Then b", "### AC2: out\n\n1. x\n2. y"]);
        assert_eq!(under("**AC-1** a\n\n**AC-2** b"), ["**AC-1** a", "**AC-2** b"]);
        assert_eq!(under("### In\nx\n### Out\ny"), ["### In\nx", "### Out\ny"]);
    }

    #[test]
    fn what_introduces_the_list_does_not_move_its_numbers() {
        assert_eq!(under("All of these hold:\n\n1. a\n2. b"), ["All of these hold:\n\na", "b"]);
        assert_eq!(under("3. c\n4. d"), ["3. c", "4. d"]);
        assert_eq!(under("Just this.\nReally.\n\nAnd that."), ["Just this.\nReally.", "And that."]);
    }

    #[test]
    fn code_and_front_matter_start_nothing() {
        assert_eq!(under("1. a\n```\n## Not a heading\n2. no\n```\n2. b").len(), 2);
        assert_eq!(criteria("---\n# Acceptance Criteria\nx: 1\n---\n# Story\n"), Vec::<String>::new());
        assert_eq!(criteria("## Acceptance Criteria\n\n## Tasks\n"), Vec::<String>::new());
        assert_eq!(
            criteria("### Story 1.1\n\n**Acceptance Criteria:**\n\n**Given** a\n**Then** b\n"),
            ["**Given** a\n**Then** b"]
        );
    }

    #[test]
    fn stories_are_known_by_their_name_or_their_section_and_by_their_criteria() {
        let with = "## Acceptance Criteria\n1. a\n";
        assert!(
            is_story("x/1-2-log-in.md", with)
                && is_story("2-6a-x.md", with)
                && is_story("story-1.2.md", with)
        );
        assert!(is_story("docs/login.md", &format!("## Story\nAs a user\n{with}")));
        for (path, text) in
            [("1-2-log-in.md", "# x"), ("docs/login.md", with), ("1-2-x.rs", with), ("1-x-y.md", with)]
        {
            assert!(!is_story(path, text), "{path}");
        }
    }

    fn letters(text: &str) -> String {
        text.chars().filter(|c| c.is_alphabetic()).collect()
    }

    const STARTS: &str = "(|[0-9]{1,2}[.)] |[-*+] |  - |AC[0-9]: |### |Given |When |```|\\*\\*Then\\*\\* )";

    proptest! {
        #[test]
        fn nothing_of_the_section_is_lost(
            lines in prop::collection::vec(format!("{STARTS}[a-zäß ]{{0,12}}").as_str(), 0..20)
        ) {
            let section = lines.join("\n");
            let all: String = criteria(&format!("## Acceptance Criteria\n{section}")).concat();
            prop_assert_eq!(letters(&all), letters(&section));
        }

        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s).{0,200}") {
            let _ = criteria(&text);
            let _ = criteria(&format!("# acceptance criteria\n{text}"));
            let _ = is_story(&text, &text);
        }
    }
}
