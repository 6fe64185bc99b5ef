//! Numbered lists that a question belongs to are menus, too; a list alone is none. The methods of advanced elicitation are
//! joined with their question here.

use super::{
    MAX_CANDIDATES, MenuChoice, MenuRefusal, bold_choices,
    group::{CandidateLayout, MenuCandidate, find_lead, is_placeholder, make_choice},
    line_scan, push_bounded,
};
use crate::markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage};

/// A list with more items is something else.
const MAX_ITEMS: usize = 12;
/// How many lines a question may be away from its list.
const MAX_DISTANCE: usize = 4;

/// The groups of keys and the numbered lists, in the order of their lines.
pub(super) fn merge_lists(markdown: &MarkdownPage<'_>, key_groups: Vec<MenuCandidate>) -> Vec<MenuCandidate> {
    let mut numbered_lists = find_lists(markdown).into_iter().peekable();
    let mut in_line_order: Vec<MenuCandidate> = Vec::with_capacity(key_groups.len());
    for key_group in key_groups {
        while let Some(numbered_list) =
            numbered_lists.next_if(|numbered_list| numbered_list.first_index < key_group.first_index)
        {
            in_line_order.push(numbered_list);
        }
        in_line_order.push(key_group);
    }
    in_line_order.extend(numbered_lists);
    // Neighbours are merged first, since the question about methods is what makes their list a menu.
    let mut merged: Vec<MenuCandidate> = Vec::with_capacity(in_line_order.len());
    for candidate in in_line_order {
        match merged.last_mut() {
            Some(previous) if belong_together(previous, &candidate) => merge_candidates(previous, candidate),
            _ => merged.push(candidate),
        }
    }
    // A list counts only if a question asks about it, or if it ends the message with actions in bold.
    merged.retain(|candidate| {
        candidate.layout != CandidateLayout::NumberedList
            || is_asked_about(markdown, candidate)
            || ends_with_actions(markdown, candidate)
    });
    merged
}

/// Whether a question for a method and a list of methods belong together.
fn belong_together(previous: &MenuCandidate, following: &MenuCandidate) -> bool {
    let layouts = (previous.layout, following.layout);
    let is_elicitation_pair = matches!(
        layouts,
        (CandidateLayout::Elicitation, CandidateLayout::NumberedList)
            | (CandidateLayout::NumberedList, CandidateLayout::Elicitation)
    );
    is_elicitation_pair && following.first_index <= previous.last_index + MAX_DISTANCE
}

fn merge_candidates(previous: &mut MenuCandidate, mut following: MenuCandidate) {
    // The numbers come first, as they are shown.
    if previous.layout == CandidateLayout::Elicitation {
        std::mem::swap(&mut previous.options, &mut following.options);
        previous.options.append(&mut following.options);
    } else {
        previous.options.append(&mut following.options);
        previous.lead_text = following.lead_text;
    }
    previous.layout = CandidateLayout::Elicitation;
    // The methods in a template are still placeholders, but the question about them is a real one.
    previous.refusals.append(&mut following.refusals);
    previous.refusals.retain(|refusal| *refusal != MenuRefusal::Placeholder);
    previous.last_index = previous.last_index.max(following.last_index);
}

/// Finds the numbered lists of a page, each from 1 without gaps.
fn find_lists(markdown: &MarkdownPage<'_>) -> Vec<MenuCandidate> {
    let mut finished_lists: Vec<MenuCandidate> = Vec::new();
    let mut open_list: Option<MenuCandidate> = None;
    let mut list_kind = MarkdownLineKind::Prose;
    let mut blank_lines = 0;
    for (line_index, line) in markdown.lines.iter().enumerate() {
        let Some((item_number, list_item)) = parse_item(line) else {
            blank_lines = if line.is_blank() { blank_lines + 1 } else { 0 };
            // One blank line may separate items, and an indented line continues one.
            let continues_list = line.is_blank() && blank_lines < 2 || line.text.starts_with("  ");
            if !continues_list {
                keep_list(&mut finished_lists, open_list.take());
            }
            continue;
        };
        blank_lines = 0;
        let next_number = open_list.as_ref().map_or(1, |open_candidate| open_candidate.options.len() + 1);
        // A wrong number or another kind of line ends the list; the line may begin a new one.
        if item_number != next_number || list_kind != line.kind {
            keep_list(&mut finished_lists, open_list.take());
        }
        match &mut open_list {
            Some(open_candidate) => {
                open_candidate.options.push(list_item);
                open_candidate.last_index = line_index;
            }
            None if item_number == 1 => {
                list_kind = line.kind;
                open_list = Some(MenuCandidate {
                    layout: CandidateLayout::NumberedList,
                    options: vec![list_item],
                    first_index: line_index,
                    last_index: line_index,
                    lead_text: find_lead(markdown, line_index, ""),
                    refusals: Vec::new(),
                });
            }
            None => {}
        }
    }
    keep_list(&mut finished_lists, open_list);
    finished_lists
}

fn keep_list(finished_lists: &mut Vec<MenuCandidate>, finished_list: Option<MenuCandidate>) {
    if let Some(mut finished_list) =
        finished_list.filter(|finished_list| (2..=MAX_ITEMS).contains(&finished_list.options.len()))
    {
        if is_placeholder(&finished_list) {
            finished_list.refusals.push(MenuRefusal::Placeholder);
        }
        push_bounded(finished_lists, finished_list, MAX_CANDIDATES);
    }
}

/// Parses an item such as `1. **Fix them** - …` or `2) …`.
fn parse_item(markdown_line: &MarkdownLine<'_>) -> Option<(usize, MenuChoice)> {
    let item_text = markdown_line.text.trim_start().trim_start_matches('>').trim_start().trim_start_matches('*');
    let (number_text, after_number) = item_text.split_once(['.', ')'])?;
    let after_number = after_number.strip_prefix("**").unwrap_or(after_number);
    // A list item with keys in brackets is an option of another menu.
    if number_text.len() > 2 || !after_number.starts_with(' ') || !line_scan::find_marks(after_number, 1).is_empty() {
        return None;
    }
    let parsed_label = line_scan::parse_label(number_text, after_number);
    (!parsed_label.label.is_empty()).then_some(())?;
    Some((
        number_text.parse().ok()?,
        make_choice(number_text, parsed_label.label, parsed_label.about, markdown_line.number),
    ))
}

/// Whether a line is an item such as `1. …`.
pub(super) fn is_numbered_item(line_text: &str) -> bool {
    let without_digits = line_text.trim_start().trim_start_matches(|character: char| character.is_ascii_digit());
    without_digits.len() < line_text.trim_start().len() && without_digits.starts_with(['.', ')'])
}

/// Whether a list is the last text, and all of its items are actions in bold.
fn ends_with_actions(markdown: &MarkdownPage<'_>, numbered_list: &MenuCandidate) -> bool {
    let lines_below = markdown.lines.get(numbered_list.last_index + 1..).unwrap_or_default();
    let item_lines = numbered_list.options.iter().filter_map(|option| markdown.lines.get(option.line.checked_sub(1)?));
    lines_below.iter().all(|line| line.is_blank())
        && item_lines.into_iter().all(|line| bold_choices::has_bold_name(line.text))
        && bold_choices::are_actions(&numbered_list.options)
}

/// Whether a line just above or just below asks for one of the items.
fn is_asked_about(markdown: &MarkdownPage<'_>, numbered_list: &MenuCandidate) -> bool {
    let lines_above = markdown
        .lines
        .get(numbered_list.first_index.saturating_sub(MAX_DISTANCE)..numbered_list.first_index)
        .unwrap_or_default();
    let lines_below = markdown.lines.get(numbered_list.last_index + 1..).unwrap_or_default();
    let lines_above = lines_above.iter().rev().filter(|line| !line.is_blank()).take(1);
    let lines_below = lines_below.iter().take(MAX_DISTANCE).filter(|line| !line.is_blank()).take(2);
    lines_above.chain(lines_below).any(|line| line.heading().is_none() && asks_for_choice(line.text))
}

/// Whether a line asks which one, or prompts to take one. Many lists follow a colon: that alone asks for nothing.
pub(super) fn asks_for_choice(line_text: &str) -> bool {
    const TAKE_WORDS: [&str; 4] = ["choose", "select", "pick", "choice"];
    const WHICH_WORDS: [&str; 5] = ["which", "option", "options", "choices", "prefer"];
    const PHRASES: [&str; 7] = [
        "would you like",
        "what should i",
        "what would you",
        "how would you",
        "how should i",
        "do you want",
        "enter a number",
    ];
    let visible_text = line_text.split("</").next().unwrap_or(line_text);
    if !line_scan::is_prompt(visible_text) {
        return false;
    }
    let lower_case = visible_text.to_lowercase();
    let is_question = visible_text.trim_end().trim_end_matches(line_scan::EMPHASIS_AND_QUOTES).ends_with('?');
    // Words such as `option` only count in a question; `choose` counts in any prompt.
    let mut line_words = lower_case.split(|character: char| !character.is_alphanumeric());
    line_words.any(|line_word| TAKE_WORDS.contains(&line_word) || is_question && WHICH_WORDS.contains(&line_word))
        || PHRASES.iter().any(|phrase| lower_case.contains(phrase))
}
