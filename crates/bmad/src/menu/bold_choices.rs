//! Choices by name, as BMAD writes them since 6.11: a list whose items begin with a choice in bold, at the end of a message.
//!
//! Summaries look alike (`- **Tests** — 12 pass`), so a list only counts if a line asks for a choice, or if its names are
//! actions and one of them decides how to go on.

use super::{
    MenuChoice,
    group::{CandidateLayout, MenuCandidate, find_lead, is_placeholder, make_choice},
    line_scan,
    numbered::{self, asks_for_choice},
};
use crate::markdown::{MarkdownLine, MarkdownPage};

/// A list with more items is something else.
const MAX_CHOICES: usize = 8;
/// How many words the name of a choice has at most.
const MAX_NAME_WORDS: usize = 6;
/// How many lines with text may follow: a note or a question.
const MAX_LINES_AFTER: usize = 2;
/// How far the line that asks may be above the list.
const LINES_ABOVE: usize = 4;

/// First words of choices that decide how to go on; a list of actions has at least one.
const DECIDING_WORDS: [&str; 19] = [
    "approve", "accept", "confirm", "continue", "proceed", "keep", "skip", "stop", "cancel", "edit", "new", "yes",
    "no", "leave", "reject", "revise", "resume", "discard", "finish",
];
/// First words of choices that are actions, too, but also begin the items of summaries.
const ACTION_WORDS: [&str; 22] = [
    "apply", "review", "split", "fix", "walk", "commit", "start", "retry", "show", "open", "run", "defer", "abort",
    "merge", "rework", "adjust", "go", "save", "explain", "discuss", "exit", "done",
];

/// The list of named choices at the end of a page, if there is one.
pub(super) fn find_choices(markdown: &MarkdownPage<'_>) -> Option<MenuCandidate> {
    let mut options: Vec<MenuChoice> = Vec::new();
    let (mut first_index, mut last_index) = (0, 0);
    let mut lines_after = 0;
    // The search goes from the end upwards, and stops at the first line that belongs to no list.
    for (line_index, line) in markdown.lines.iter().enumerate().rev() {
        if line.is_blank() {
            continue;
        }
        match parse_choice(line) {
            Some(choice) => {
                if options.is_empty() {
                    last_index = line_index;
                }
                first_index = line_index;
                options.push(choice);
            }
            None if options.is_empty() => {
                lines_after += 1;
                if lines_after > MAX_LINES_AFTER {
                    return None;
                }
            }
            // The description of a choice may be longer than one line.
            None if line.text.starts_with("  ") && !is_list_item(line.text) => {}
            None => break,
        }
        if options.len() > MAX_CHOICES {
            return None;
        }
    }
    options.reverse();
    let mut candidate = MenuCandidate {
        layout: CandidateLayout::Named,
        options,
        first_index,
        last_index,
        lead_text: find_lead(markdown, first_index, ""),
        refusals: Vec::new(),
    };
    if candidate.options.len() < 2 || !(has_question(markdown, &candidate) || are_actions(&candidate.options)) {
        return None;
    }
    if is_placeholder(&candidate) {
        candidate.refusals.push(super::MenuRefusal::Placeholder);
    }
    Some(candidate)
}

/// Whether the names are actions, one of which decides how to go on.
pub(super) fn are_actions(options: &[MenuChoice]) -> bool {
    let first_word = |option: &MenuChoice| {
        let label_words = option.label.split(|character: char| !character.is_alphanumeric());
        label_words.take(1).collect::<String>().to_lowercase()
    };
    let decides = |option: &MenuChoice| DECIDING_WORDS.contains(&first_word(option).as_str());
    options.iter().any(decides)
        && options.iter().all(|option| decides(option) || ACTION_WORDS.contains(&first_word(option).as_str()))
}

/// Whether an item begins with a name in bold.
pub(super) fn has_bold_name(line_text: &str) -> bool {
    let item_text = line_text.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
    let item_text = item_text.trim_start_matches(['-', '*', '+', '•', '.', ')']).trim_start();
    split_bold_name(&format!("- {item_text}")).is_some() || split_bold_name(line_text).is_some()
}

fn has_question(markdown: &MarkdownPage<'_>, candidate: &MenuCandidate) -> bool {
    let first_above = candidate.first_index.saturating_sub(LINES_ABOVE);
    let lines_above = markdown.lines.get(first_above..candidate.first_index).unwrap_or_default();
    let lines_below = markdown.lines.get(candidate.last_index + 1..).unwrap_or_default();
    let line_above = lines_above.iter().rev().find(|line| !line.is_blank());
    line_above.into_iter().chain(lines_below).any(|line| line.heading().is_none() && asks_for_choice(line.text))
}

/// Parses `- **Approve and continue** — approve the spec`.
fn parse_choice(line: &MarkdownLine<'_>) -> Option<MenuChoice> {
    let (name, after_name) = split_bold_name(line.text)?;
    // Keys in brackets make it another menu.
    let has_key = !line_scan::find_marks(line.text, 1).is_empty();
    let is_short = (1..=MAX_NAME_WORDS).contains(&name.split_whitespace().count());
    // `- **Files:** a.rs` names a field.
    let is_field = name.ends_with(':') || after_name.starts_with(':');
    if has_key || !is_short || is_field || numbered::is_numbered_item(line.text) {
        return None;
    }
    let about = after_name.trim_start_matches(|character: char| !character.is_alphanumeric() && character != '`');
    Some(make_choice(name, name.to_string(), about.trim_end().to_string(), line.number))
}

/// The name in bold at the start of a list item, and the text behind it.
fn split_bold_name(line_text: &str) -> Option<(&str, &str)> {
    let item_text = line_text.trim_start();
    let after_bullet = ["- ", "* ", "+ ", "• "].iter().find_map(|bullet| item_text.strip_prefix(bullet))?;
    let (name, after_name) = after_bullet.trim_start().strip_prefix("**")?.split_once("**")?;
    (!name.is_empty() && name == name.trim()).then_some((name, after_name.trim_start()))
}

fn is_list_item(line_text: &str) -> bool {
    line_text.trim_start().starts_with(['-', '*', '+', '•']) || numbered::is_numbered_item(line_text)
}
