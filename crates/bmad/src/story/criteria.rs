//! The acceptance criteria of a story: BMAD's template numbers them under `## Acceptance Criteria`; users and agents also
//! write them as bullets, under headings of their own or as bare Given/When/Then.
//!
//! The reader is lenient: the section itself shows what begins a criterion, and every other line belongs to the criterion
//! before it. Nothing of the section is lost but comments, and a number that the story gives is the number of the criterion.

use std::{collections::BTreeSet, ops::Range};

use tribunal_json::{Serialize, schemars};

use super::tasks;
use crate::markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage, MarkdownSection, normalize_title};

/// The texts of a story's acceptance criteria in their order; empty if it has none.
pub fn read_criteria(story_text: &str) -> Vec<String> {
    find_criteria(&MarkdownPage::parse(story_text)).into_iter().map(|criterion| criterion.text).collect()
}

/// One acceptance criterion with its line and number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Criterion {
    /// The number that it gives itself (`3. …`, `AC3: …`), otherwise its position in the list.
    pub number: u32,
    pub text: String,
    pub line: usize,
}

/// The criteria of a story. Several sections are one list.
pub(super) fn find_criteria(markdown: &MarkdownPage<'_>) -> Vec<Criterion> {
    let mut criteria: Vec<Criterion> = Vec::new();
    for line_range in find_criteria_sections(markdown) {
        let mut section_criteria = criteria_in_lines(&markdown.lines[line_range]);
        // A later section without numbers of its own goes on counting.
        let known_numbers: BTreeSet<u32> = criteria.iter().map(|criterion| criterion.number).collect();
        let mut next_number = known_numbers.last().map_or(1, |last_number| last_number.saturating_add(1));
        for criterion in section_criteria.iter_mut().filter(|criterion| known_numbers.contains(&criterion.number)) {
            criterion.number = next_number;
            next_number = next_number.saturating_add(1);
        }
        criteria.append(&mut section_criteria);
    }
    criteria
}

/// The criteria in lines that hold nothing else. Comments come from the template and are left out.
pub(crate) fn criteria_in_lines(lines: &[MarkdownLine<'_>]) -> Vec<Criterion> {
    // Code is kept: a criterion may show an example.
    let lines: Vec<&MarkdownLine<'_>> = lines.iter().filter(|line| line.kind != MarkdownLineKind::Comment).collect();
    let line_starts = find_starts(&lines);
    let mut open_criteria: Vec<OpenCriterion> = Vec::new();
    // Lines before the first criterion introduce it.
    let mut introduction = OpenCriterion::default();
    for (line, is_start) in lines.iter().zip(line_starts) {
        let unmarked_text = strip_mark(line.text, open_criteria.len() + 1);
        // `- When …` begins a list item, but it continues the criterion whose `Given` came before. A number always begins one.
        let continues_previous = parse_keyword(&unmarked_text) == Some(StepKeyword::WhenThenAndBut)
            && own_number(line.text).is_none()
            && open_criteria.last().is_some_and(|last_criterion| last_criterion.has_steps);
        match open_criteria.last_mut() {
            _ if is_start && !continues_previous => {
                let mut criterion = std::mem::take(&mut introduction);
                (criterion.own_number, criterion.line_number) = (own_number(line.text), line.number);
                criterion.push_line(unmarked_text);
                open_criteria.push(criterion);
            }
            Some(last_criterion) => {
                last_criterion.push_line(if is_start { unmarked_text } else { line.text.to_string() })
            }
            None => introduction.push_line(line.text.to_string()),
        }
    }
    // A section without any recognizable start is one criterion.
    if open_criteria.is_empty() {
        introduction.line_number = lines.iter().find(|line| !line.is_blank()).map_or(1, |line| line.number);
        open_criteria.push(introduction);
    }
    let joined_criteria = open_criteria.into_iter().map(
        |OpenCriterion { own_number: given_number, line_number: line, text_lines, .. }| {
            (given_number, text_lines.join("\n"), line)
        },
    );
    let trimmed_criteria = joined_criteria
        .map(|(given_number, criterion_text, line)| (given_number, criterion_text.trim().to_string(), line));
    // Positions are counted after empty criteria are removed.
    trimmed_criteria
        .filter(|(_, criterion_text, _)| !criterion_text.is_empty() && !is_placeholder(criterion_text))
        .zip(1u32..)
        .map(|((given_number, criterion_text, line), position)| Criterion {
            number: given_number.unwrap_or(position),
            text: criterion_text,
            line,
        })
        .collect()
}

/// A criterion whose end is not yet known.
#[derive(Default)]
struct OpenCriterion {
    own_number: Option<u32>,
    line_number: usize,
    text_lines: Vec<String>,
    /// Whether one of its lines is a step of Given/When/Then, so that later steps belong to it.
    has_steps: bool,
}

impl OpenCriterion {
    fn push_line(&mut self, line_text: String) {
        self.has_steps |= parse_keyword(&line_text).is_some();
        self.text_lines.push(line_text);
    }
}

/// The number that a criterion gives itself.
fn own_number(line_text: &str) -> Option<u32> {
    let label_digits = match parse_number(line_text) {
        Some((item_number, _)) => return u32::try_from(item_number).ok(),
        None => parse_label(line_text)?,
    };
    let digits_end = label_digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(label_digits.len());
    label_digits[..digits_end].parse().ok()
}

/// Whether a file is a story: named like one (`1-2-log-in.md`) or with a section `Story`, and with acceptance criteria.
pub fn is_story_file(file_path: &str, file_text: &str) -> bool {
    let file_name = file_path.rsplit('/').next().unwrap_or(file_path);
    if !file_name.to_ascii_lowercase().ends_with(".md") {
        return false;
    }
    let markdown = MarkdownPage::parse(file_text);
    (has_story_key(file_name)
        || markdown
            .lines
            .iter()
            .any(|line| line.heading().is_some_and(|(level, title)| is_story_section(level, title))))
        && !find_criteria(&markdown).is_empty()
}

fn is_story_section(level: usize, title: &str) -> bool {
    level == 2 && normalize_title(title) == "story"
}

/// Whether a file's name begins with a story key: `1-2-slug`, `2-6a-slug`, `story-…`.
fn has_story_key(file_name: &str) -> bool {
    if file_name.to_ascii_lowercase().starts_with("story-") {
        return true;
    }
    let mut name_parts = file_name.splitn(3, '-');
    let is_number = |name_part: Option<&str>, allows_letter: bool| {
        name_part.is_some_and(|name_part| {
            let after_digits = name_part.trim_start_matches(|character: char| character.is_ascii_digit());
            after_digits.len() < name_part.len()
                && (after_digits.is_empty() || (allows_letter && after_digits.len() == 1))
        })
    };
    is_number(name_parts.next(), false) && is_number(name_parts.next(), true) && name_parts.next().is_some()
}

/// The lines under each heading `Acceptance Criteria`, up to the next heading that is not below it. Without such a heading, a
/// section in another language between the story and its tasks is taken.
fn find_criteria_sections(markdown: &MarkdownPage<'_>) -> Vec<Range<usize>> {
    let mut line_ranges: Vec<Range<usize>> = Vec::new();
    for section in markdown.sections().into_iter().filter(|section| is_criteria_title(section.title)) {
        // A part of a section that is taken already adds nothing.
        if line_ranges.last().is_none_or(|last_range| section.heading_index >= last_range.end) {
            line_ranges.push(section.line_range);
        }
    }
    if !line_ranges.is_empty() {
        return line_ranges;
    }
    // Epics have the words in bold instead of a heading, and so do some stories.
    let lines = &markdown.lines;
    match lines.iter().position(is_criteria_label) {
        Some(label_index) => {
            let next_heading = lines[label_index + 1..].iter().position(|line| line.heading().is_some());
            let section_end = next_heading.map_or(lines.len(), |line_offset| label_index + 1 + line_offset);
            line_ranges.push(label_index + 1..section_end);
        }
        None => line_ranges.extend(find_section_by_place(markdown)),
    }
    line_ranges
}

/// The criteria under a heading whose language is not known: the section before the tasks, if it has numbered items.
fn find_section_by_place(markdown: &MarkdownPage<'_>) -> Option<Range<usize>> {
    // The title of the document is above everything.
    let is_part = |section: &MarkdownSection<'_>| {
        markdown.lines[section.heading_index].heading().is_some_and(|(level, _)| level > 1)
    };
    let sections: Vec<MarkdownSection<'_>> = markdown.sections().into_iter().filter(is_part).collect();
    let is_task_section = |section: &MarkdownSection<'_>| {
        markdown.lines[section.line_range.clone()].iter().any(|line| tasks::parse_checkbox(line).is_some())
    };
    let tasks_position = sections.iter().position(is_task_section)?;
    let is_foreign = |title: &str| title.chars().any(|character| character.is_alphabetic() && !character.is_ascii());
    let has_numbers = |section: &MarkdownSection<'_>| {
        let lines = &markdown.lines[section.line_range.clone()];
        lines.iter().any(|line| line.is_prose() && (parse_number(line.text).is_some() || has_label(line.text)))
    };
    let mut candidates = sections[..tasks_position].iter().skip(1).rev();
    candidates
        .find(|section| is_foreign(section.title) && has_numbers(section))
        .map(|section| section.line_range.clone())
}

/// Whether a line is a label in bold: `**Acceptance Criteria:**`.
pub(crate) fn is_criteria_label(markdown_line: &MarkdownLine<'_>) -> bool {
    markdown_line.is_prose() && markdown_line.text.trim().starts_with("**") && is_criteria_title(markdown_line.text)
}

/// Whether a title is `Acceptance Criteria`, also among other words, in other languages and with marks around it.
pub(crate) fn is_criteria_title(title: &str) -> bool {
    const CRITERIA_WORDS: [&str; 14] = [
        "acceptance criteri",
        "验收标准",
        "验收条件",
        "驗收標準",
        "受け入れ基準",
        "受入基準",
        "受入条件",
        "critères d'acceptation",
        "critères d’acceptation",
        "criterios de aceptación",
        "critérios de aceitação",
        "akzeptanzkriterien",
        "критерии прием",
        "критерии приём",
    ];
    // What is about the criteria is not the list of them.
    const OTHER_WORDS: [&str; 10] = [
        "validation",
        "verification",
        "coverage",
        "traceability",
        "checklist",
        "mapping",
        "evidence",
        "review",
        "status",
        "compliance",
    ];
    let title = normalize_title(title);
    CRITERIA_WORDS.iter().any(|words| title.contains(words)) && !OTHER_WORDS.iter().any(|word| title.contains(word))
}

/// A rule that decides whether a line begins a criterion, by its index and its text.
type StartRule<'w> = &'w dyn Fn(usize, &MarkdownLine<'_>) -> bool;

/// Which lines begin a criterion.
fn find_starts(lines: &[&MarkdownLine<'_>]) -> Vec<bool> {
    let labelled_starts = find_labelled_starts(lines);
    if labelled_starts.contains(&true) {
        return labelled_starts;
    }
    let after_blank = |index: usize| index == 0 || lines[index - 1].is_blank();
    // Steps without bullets are the author's own form; bullets below them are details.
    let first_line = lines.iter().find(|line| line.is_prose() && !line.is_blank());
    let is_bare_scenario = first_line
        .is_some_and(|line| strip_bullet(line.text).is_none() && parse_keyword(line.text) == Some(StepKeyword::Given));
    // One letter alone may begin a sentence.
    let has_letters = lines.iter().filter(|line| line.is_prose() && strip_letter(line.text).is_some()).count() > 1;
    let is_table = first_line.is_some_and(|line| line.text.starts_with('|'));
    let table_rows: BTreeSet<usize> = find_table_rows(lines);
    // The rules go from the most specific to the least: the first one that matches any line is what the author used.
    let start_rules: [StartRule<'_>; 7] = [
        &|_, line| line.heading().is_some(),
        &|_, line| has_letters && strip_letter(line.text).is_some(),
        &|_, line| is_bare_scenario && parse_keyword(line.text) == Some(StepKeyword::Given),
        &|_, line| strip_bullet(line.text).is_some(),
        // The rows of a table without a column for numbers; the first two are its head.
        &|index, line| is_table && line.text.starts_with('|') && table_rows.contains(&index),
        &|_, line| parse_keyword(line.text) == Some(StepKeyword::Given),
        &|index, line| after_blank(index) && !line.is_blank(),
    ];
    for start_rule in start_rules {
        let line_starts: Vec<bool> =
            lines.iter().enumerate().map(|(index, line)| line.is_prose() && start_rule(index, line)).collect();
        if line_starts.contains(&true) {
            return line_starts;
        }
    }
    // Only code is left: scenarios of a test language.
    let is_scenario = |line: &&&MarkdownLine<'_>| line.text.trim_start().starts_with("Scenario");
    lines.iter().map(|line| is_scenario(&line)).collect()
}

/// The indexes of the rows of tables that hold content: those behind `|---|---|`.
fn find_table_rows(lines: &[&MarkdownLine<'_>]) -> BTreeSet<usize> {
    let is_rule = |line: &MarkdownLine<'_>| {
        line.text.starts_with('|') && line.text.contains("--") && !line.text.contains(char::is_alphanumeric)
    };
    let mut is_body = false;
    let mut table_rows = BTreeSet::new();
    for (index, line) in lines.iter().enumerate() {
        let is_row = line.text.starts_with('|');
        if is_row && is_body {
            table_rows.insert(index);
        }
        is_body = is_row && (is_body || is_rule(line));
    }
    table_rows
}

/// The lines that begin a criterion by a label (`AC1`) or a number. Numbers below a label are parts of its criterion, and so are
/// its own parts: `AC1.1` below `AC1`.
fn find_labelled_starts(lines: &[&MarkdownLine<'_>]) -> Vec<bool> {
    let mut last_label: Option<String> = None;
    let mut is_start = |line: &MarkdownLine<'_>| {
        if !line.is_prose() {
            return false;
        }
        match parse_label(line.text).map(label_id) {
            Some(label) => {
                let is_part = last_label.as_ref().is_some_and(|last_label| {
                    label.len() > last_label.len()
                        && label.starts_with(last_label.as_str())
                        && !label[last_label.len()..].starts_with(|character: char| character.is_ascii_digit())
                });
                if !is_part {
                    last_label = Some(label);
                }
                !is_part
            }
            None => last_label.is_none() && parse_number(line.text).is_some(),
        }
    };
    lines.iter().map(|line| is_start(line)).collect()
}

/// The id of a label: `AC1.1a` of `AC1.1a: …`.
fn label_id(label_text: &str) -> String {
    let id_end = label_text
        .find(|character: char| !(character.is_ascii_alphanumeric() || matches!(character, '.' | '-')))
        .unwrap_or(label_text.len());
    label_text[..id_end].trim_end_matches(['.', '-']).to_ascii_lowercase()
}

/// Whether a line has a label such as `AC1: …`, `### AC 2` or `- **AC-3** …`, and is not deeper in a list.
fn has_label(line_text: &str) -> bool {
    parse_label(line_text).is_some()
}

/// The text from the label's number on, or from its words: `1`, `ARCH-LOC-1`.
fn parse_label(line_text: &str) -> Option<&str> {
    if line_text.starts_with([' ', '\t']) {
        return None;
    }
    let unmarked_text = line_text.trim_start_matches(['#', '>', '|']);
    // Only a heading, a quote or a row may have spaces before the label; an indented label is part of a list item.
    let unmarked_text = if unmarked_text.len() < line_text.len() { unmarked_text.trim_start() } else { unmarked_text };
    let unmarked_text = strip_box(strip_bullet(unmarked_text).unwrap_or(unmarked_text));
    // `✅ AC1` and `**AC1**` are labels, too.
    let unmarked_text = unmarked_text.trim_start_matches(|character: char| !character.is_alphanumeric());
    let after_label =
        unmarked_text.get(..2).filter(|word| word.eq_ignore_ascii_case("ac")).map(|_| &unmarked_text[2..])?;
    let label_text = after_label.trim_start_matches(['-', '#', ' ', '_']);
    let id_words =
        label_text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-')).next()?;
    let is_numbered = label_text.starts_with(|character: char| character.is_ascii_digit());
    // `AC-ARCH-LOC-1` has words between the label and its number.
    let is_worded = after_label.starts_with('-')
        && id_words
            .rsplit('-')
            .next()
            .is_some_and(|last| last.starts_with(|character: char| character.is_ascii_digit()))
        && id_words.chars().all(|character| !character.is_ascii_lowercase());
    (is_numbered || is_worded).then_some(label_text)
}

/// The text without a box in front of it.
fn strip_box(item_text: &str) -> &str {
    let after_bracket = item_text.strip_prefix('[').and_then(|text| text.split_once(']'));
    after_bracket.filter(|(content, _)| content.chars().count() <= 1).map_or(item_text, |(_, text)| text.trim_start())
}

/// The number and the text of `1. …`, `2) …`, `(3) …`, `**4.** …`, `5、…`, `⑥ …`, `> 7. …` or `| 8 | … |`.
fn parse_number(line_text: &str) -> Option<(usize, &str)> {
    if let Some(row_text) = line_text.strip_prefix('|') {
        let (first_cell, other_cells) = row_text.split_once('|')?;
        return Some((first_cell.trim().trim_matches('*').parse().ok()?, other_cells.trim()));
    }
    let line_text = line_text.strip_prefix("> ").unwrap_or(line_text).trim_start_matches('*');
    if let Some(circled_number) = line_text.chars().next().and_then(parse_circled) {
        return Some((
            circled_number,
            line_text.trim_start_matches(|character: char| parse_circled(character).is_some()).trim_start(),
        ));
    }
    let opened_text = line_text.strip_prefix(['(', '（']);
    let number_text = opened_text.unwrap_or(line_text);
    let after_digits = number_text.trim_start_matches(|character: char| character.is_ascii_digit());
    let digit_count = number_text.len() - after_digits.len();
    let number = number_text[..digit_count].parse().ok()?;
    // Texts in Chinese and Japanese have no space behind these marks.
    if let Some(item_text) = after_digits.strip_prefix(['、', '．', '）']) {
        return Some((number, item_text.trim_start()));
    }
    let end_marks: &[char] = if opened_text.is_some() { &[')'] } else { &['.', ')'] };
    let item_text = after_digits.strip_prefix(end_marks)?;
    let item_text = item_text.strip_prefix("**").unwrap_or(item_text);
    item_text.starts_with([' ', '\t']).then(|| (number, item_text.trim_start()))
}

/// The value of `①` to `⑳`.
fn parse_circled(character: char) -> Option<usize> {
    let offset = u32::from(character).checked_sub(u32::from('①'))?;
    (offset < 20).then_some(offset as usize + 1)
}

/// The text of `a) …`, `(b) …`, `C. …` and `iv. …`.
fn strip_letter(line_text: &str) -> Option<&str> {
    let opened_text = line_text.strip_prefix('(');
    let lettered_text = opened_text.unwrap_or(line_text);
    let letter_count = lettered_text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let letters = lettered_text[..letter_count].to_ascii_lowercase();
    let is_roman = letters.chars().all(|letter| "ivx".contains(letter)) && letter_count <= 4;
    let end_marks: &[char] = if opened_text.is_some() { &[')'] } else { &['.', ')'] };
    let item_text = lettered_text[letter_count..].strip_prefix(end_marks)?;
    (letter_count > 0 && (letter_count == 1 || is_roman) && item_text.starts_with([' ', '\t']))
        .then(|| item_text.trim_start())
}

/// The text of `- …`, `* …` or `+ …` without indentation.
fn strip_bullet(line_text: &str) -> Option<&str> {
    line_text
        .strip_prefix(['-', '*', '+'])
        .filter(|bullet_text| bullet_text.starts_with([' ', '\t']))
        .map(str::trim_start)
}

/// A line without its mark; a number stays if it differs from the position of the criterion.
fn strip_mark(line_text: &str, next_number: usize) -> String {
    match parse_number(line_text) {
        Some((item_number, item_text)) if item_number == next_number => item_text.to_string(),
        Some(_) => line_text.to_string(),
        None => strip_bullet(line_text).or_else(|| strip_letter(line_text)).unwrap_or(line_text).to_string(),
    }
}

/// Whether a text says that there is no criterion yet.
fn is_placeholder(criterion_text: &str) -> bool {
    let bare_text = criterion_text.trim_matches(|character: char| !character.is_alphanumeric()).to_lowercase();
    ["none", "tbd", "todo", "n/a", "to be defined", "to be determined", "none yet"].contains(&bare_text.as_str())
}

/// The keywords of Given/When/Then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKeyword {
    Given,
    WhenThenAndBut,
}

/// The keyword with which a step of Given/When/Then begins.
fn parse_keyword(line_text: &str) -> Option<StepKeyword> {
    let line_text =
        strip_bullet(line_text).or(parse_number(line_text).map(|(_, item_text)| item_text)).unwrap_or(line_text);
    let first_word: String = line_text
        .trim_start_matches(['*', '_', ' '])
        .chars()
        .take_while(|character| character.is_alphabetic())
        .collect();
    match first_word.to_lowercase().as_str() {
        "given" => Some(StepKeyword::Given),
        "when" | "then" | "and" | "but" => Some(StepKeyword::WhenThenAndBut),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn criteria_of_section(section: &str) -> Vec<String> {
        read_criteria(&format!(
            "# Story 1.2: Log in\n\nStatus: review\n\n## Acceptance Criteria\n\n{section}\n\n## Tasks\n\n1. no\n"
        ))
    }

    #[test]
    fn the_numbered_items_of_the_template_are_the_criteria() {
        assert_eq!(
            criteria_of_section("1. It starts.\n2. It stops,\n   at once.\n   - also twice\n\n3. It ends."),
            ["It starts.", "It stops,\n   at once.\n   - also twice", "It ends."]
        );
    }

    #[test]
    fn letters_circles_and_rows_begin_criteria() {
        for section in [
            "(1) one\n(2) two",
            "**1.** one\n**2.** two",
            "1、one\n2、two",
            "① one\n② two",
            "a) one\nb) two",
            "(a) one\n(b) two",
            "A. one\nB. two",
            "i. one\nii. two",
        ] {
            assert_eq!(criteria_of_section(section), ["one", "two"], "{section}");
        }
        let rows = "| Criterion | Test |\n|---|---|\n| It logs in | a |\n| It logs out | b |";
        assert_eq!(criteria_of_section(rows).len(), 2, "{:?}", criteria_of_section(rows));
        assert_eq!(criteria_of_section("A. One letter alone is a sentence.\nIt goes on.").len(), 1);
        for placeholder in ["TBD", "None", "- n/a", "_To be defined._"] {
            assert_eq!(criteria_of_section(placeholder), [""; 0], "{placeholder}");
        }
    }

    #[test]
    fn bullets_and_ticks_are_criteria_where_there_are_no_numbers() {
        assert_eq!(criteria_of_section("- [ ] one\n  - a\n- [x] two\n* three"), ["[ ] one\n  - a", "[x] two", "three"]);
    }

    #[test]
    fn steps_of_given_when_then_stay_together() {
        let steps = "**Given** a user\n**When** she logs in\n**Then** she is in\n\n**Given** none\n**Then** nobody is";
        assert_eq!(criteria_of_section(steps).len(), 2);
        assert_eq!(
            criteria_of_section("- Given a\n- When b\n- Then c\n- And d\n- Given e\n- Then f"),
            ["Given a\nWhen b\nThen c\nAnd d", "Given e\nThen f"]
        );
        assert_eq!(criteria_of_section("1. Given a\n   When b\n2. Given c\n   Then d").len(), 2);
    }

    #[test]
    fn labels_and_separate_headings_are_understood() {
        let labelled_section = "### AC1: in\n\n- Given a\n- Then b\n\n### AC2: out\n\n1. x\n2. y";
        assert_eq!(
            criteria_of_section(labelled_section),
            ["### AC1: in\n\n- Given a\n- Then b", "### AC2: out\n\n1. x\n2. y"]
        );
        assert_eq!(criteria_of_section("**AC-1** a\n\n**AC-2** b"), ["**AC-1** a", "**AC-2** b"]);
        assert_eq!(criteria_of_section("### In\nx\n### Out\ny"), ["### In\nx", "### Out\ny"]);
    }

    #[test]
    fn an_explicit_number_always_begins_a_criterion() {
        assert_eq!(criteria_of_section("1. **Given** a\n   **Then** b\n2. **And** c\n3. **And** d").len(), 3);
        assert_eq!(criteria_of_section("- [x] **AC-1:** a\n- [ ] **AC-2:** b\n  - detail").len(), 2);
        assert_eq!(criteria_of_section("| # | Criterion |\n|---|---|\n| 1 | a |\n| 2 | b |").len(), 2);
        assert_eq!(criteria_of_section("- **AC-ARCH-LOC-1:** a\n- **AC-ARCH-LOC-2:** b").len(), 2);
    }

    #[test]
    fn parts_of_a_criterion_are_no_criteria() {
        assert_eq!(criteria_of_section("### AC1 x\n\n- **AC1.1** a\n- **AC1.2** b\n\n### AC2 y\n\n1. c").len(), 2);
        assert_eq!(criteria_of_section("**AC1** x\n- **AC1a:** a\n- **AC1b:** b\n\n**AC2** y").len(), 2);
        let scenario = "**Given** a\n\n**Then** b:\n- c\n- d\n\n**And** e";
        assert_eq!(criteria_of_section(scenario).len(), 1);
    }

    #[test]
    fn headings_of_other_languages_and_with_marks_are_understood() {
        for heading in [
            "✅ Acceptance Criteria",
            "Functional Acceptance Criteria",
            "验收标准（Acceptance Criteria）",
            "Critères d'acceptation",
            "Criterios de aceptación",
            "Akzeptanzkriterien",
            "Критерии приёмки",
            "Critérios de Aceitação",
            "受け入れ基準",
        ] {
            assert_eq!(read_criteria(&format!("# S\n\n## {heading}\n\n1. a\n2. b\n")).len(), 2, "{heading}");
        }
        let by_place = "# S\n\n## Història\n\nx\n\n## Condicions d’acceptació\n\n1. a\n2. b\n\n## Tasques\n\n- [ ] t\n";
        assert_eq!(read_criteria(by_place).len(), 2);
        let two_sections = "## Functional Acceptance Criteria\n1. a\n## Architectural Acceptance Criteria\n- b\n- c\n";
        assert_eq!(read_criteria(two_sections).len(), 3);
        assert_eq!(read_criteria("## Acceptance Criteria Validation\n1. a\n"), Vec::<String>::new());
        let gherkin =
            "## Acceptance Criteria\n\n```gherkin\nFeature: x\n  Scenario: a\n    Given b\n  Scenario: c\n```\n";
        assert_eq!(read_criteria(gherkin).len(), 2);
    }

    #[test]
    fn an_introduction_does_not_shift_the_numbers() {
        assert_eq!(criteria_of_section("All of these hold:\n\n1. a\n2. b"), ["All of these hold:\n\na", "b"]);
        assert_eq!(criteria_of_section("3. c\n4. d"), ["3. c", "4. d"]);
        assert_eq!(criteria_of_section("Just this.\nReally.\n\nAnd that."), ["Just this.\nReally.", "And that."]);
    }

    #[test]
    fn code_and_front_matter_start_nothing() {
        assert_eq!(criteria_of_section("1. a\n```\n## Not a heading\n2. no\n```\n2. b").len(), 2);
        assert_eq!(read_criteria("---\n# Acceptance Criteria\nx: 1\n---\n# Story\n"), Vec::<String>::new());
        assert_eq!(read_criteria("## Acceptance Criteria\n\n## Tasks\n"), Vec::<String>::new());
        assert_eq!(
            read_criteria("### Story 1.1\n\n**Acceptance Criteria:**\n\n**Given** a\n**Then** b\n"),
            ["**Given** a\n**Then** b"]
        );
    }

    #[test]
    fn stories_are_known_by_their_name_or_their_section_and_by_their_criteria() {
        let with_criteria = "## Acceptance Criteria\n1. a\n";
        assert!(
            is_story_file("x/1-2-log-in.md", with_criteria)
                && is_story_file("2-6a-x.md", with_criteria)
                && is_story_file("story-1.2.md", with_criteria)
        );
        assert!(is_story_file("docs/login.md", &format!("## Story\nAs a user\n{with_criteria}")));
        for (path, text) in [
            ("1-2-log-in.md", "# x"),
            ("docs/login.md", with_criteria),
            ("1-2-x.rs", with_criteria),
            ("1-x-y.md", with_criteria),
        ] {
            assert!(!is_story_file(path, text), "{path}");
        }
    }

    fn only_letters(any_text: &str) -> String {
        any_text.chars().filter(|character| character.is_alphabetic()).collect()
    }

    const STARTS: &str = "(|[0-9]{1,2}[.)] |[-*+] |  - |AC[0-9]: |### |Given |When |```|\\*\\*Then\\*\\* )";

    proptest! {
        #[test]
        fn nothing_of_the_section_is_lost(
            lines in prop::collection::vec(format!("{STARTS}[a-zäß ]{{0,12}}").as_str(), 0..20)
        ) {
            let section = lines.join("\n");
            let all: String = read_criteria(&format!("## Acceptance Criteria\n{section}")).concat();
            prop_assert_eq!(only_letters(&all), only_letters(&section));
        }

        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s).{0,200}") {
            let _ = read_criteria(&text);
            let _ = read_criteria(&format!("# acceptance criteria\n{text}"));
            let _ = is_story_file(&text, &text);
        }
    }
}
