//! The tasks of a story: list items with a box, `- [ ] …`, nested by their indentation. An item without a box is not a task,
//! and neither are boxes in code, in a comment, or in what a review left to do.

use tribunal_json::{Serialize, schemars};

use super::{agent_record, criteria};
use crate::markdown::{MarkdownLine, MarkdownPage, normalize_title};

/// A task, identified by its position: `2.1` is the first subtask of the second task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StoryTask {
    pub id: String,
    pub text: String,
    pub done: bool,
    pub line: usize,
    /// The acceptance criteria that it is for: `(AC: 1, 2)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subtasks: Vec<StoryTask>,
}

/// A list item with a box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckboxItem<'t> {
    /// The indentation in columns; a tab goes to the next multiple of four.
    pub indent: usize,
    pub done: bool,
    /// The byte range of the box's content in the file; empty where the box is written `[]`.
    pub box_range: (usize, usize),
    pub text: &'t str,
    pub line: usize,
}

/// Deeper tasks are read as if they were at this depth, which bounds the recursion.
const MAX_DEPTH: usize = 8;

/// Reads the tasks of a story as a tree.
pub(super) fn read_tasks(markdown: &MarkdownPage<'_>) -> Vec<StoryTask> {
    let mut task_tree = TaskTree::default();
    for (heading_group, checkbox_item) in find_task_items(markdown) {
        task_tree.add_item(heading_group, &checkbox_item);
    }
    task_tree.into_tasks()
}

/// Every task item in order, with the number of the heading that it is under.
pub(super) fn find_task_items<'t>(markdown: &MarkdownPage<'t>) -> Vec<(usize, CheckboxItem<'t>)> {
    let sections = markdown.sections();
    // A story without a section for tasks may have them anywhere; with one, only there.
    let in_section = sections.iter().any(|section| is_tasks_title(section.title));
    let mut task_items = Vec::new();
    let mut heading_group = 0;
    // The levels of the open headings, and whether tasks are expected below each.
    let mut open_sections: Vec<(usize, bool)> = Vec::new();
    let mut is_criteria = false;
    for line in &markdown.lines {
        if let Some((level, title)) = line.heading() {
            heading_group += 1;
            is_criteria = false;
            while open_sections.last().is_some_and(|(open_level, _)| *open_level >= level) {
                open_sections.pop();
            }
            // A subheading inherits from the heading above it, unless its title says something else.
            let inherits_tasks = open_sections.last().map_or(!in_section, |(_, holds_tasks)| *holds_tasks);
            let is_task_section = if is_tasks_title(title) { true } else { inherits_tasks && !is_other_title(title) };
            open_sections.push((level, is_task_section));
            continue;
        }
        // Late specs label the criteria in bold within the section for tasks; the boxes below are criteria.
        is_criteria |= criteria::is_criteria_label(line);
        let is_wanted = open_sections.last().map_or(!in_section, |(_, holds_tasks)| *holds_tasks) && !is_criteria;
        if let Some(checkbox_item) = parse_checkbox(line)
            .filter(|checkbox_item| is_wanted && agent_record::parse_tagged(checkbox_item.text).is_none())
        {
            task_items.push((heading_group, checkbox_item));
        }
    }
    task_items
}

/// Whether a title is one of `Tasks / Subtasks`, `Tasks`, `3. Tasks & Acceptance`.
pub(super) fn is_tasks_title(title: &str) -> bool {
    let title = normalize_title(title);
    title == "tasks"
        || ["tasks ", "tasks/", "tasks:", "tasks&"].iter().any(|title_start| title.starts_with(title_start))
}

/// Whether a title names a section whose boxes are not tasks.
fn is_other_title(title: &str) -> bool {
    let title = normalize_title(title);
    const OTHER_TITLES: [&str; 10] = [
        "acceptance criteri",
        "review follow",
        "review finding",
        "senior developer review",
        "definition of done",
        "action items",
        "dev notes",
        "change log",
        "operator action",
        "operator confirmation",
    ];
    OTHER_TITLES.iter().any(|title_start| title.starts_with(title_start)) || title.ends_with("checklist")
}

/// Parses a list item with a box: `- [ ] x`, `* [x] x`, `+ [X] x`, `1. [ ] x`, `2) [] x`, `- [~] x`. A box holds one
/// character or none.
pub(crate) fn parse_checkbox<'t>(markdown_line: &MarkdownLine<'t>) -> Option<CheckboxItem<'t>> {
    if !markdown_line.is_prose() {
        return None;
    }
    let item_text = markdown_line.text.trim_start_matches([' ', '\t']);
    let indent = count_indent(markdown_line.text);
    // A numbered item has digits and then a dot or a parenthesis; a bullet has neither.
    let after_digits = item_text.trim_start_matches(|character: char| character.is_ascii_digit());
    let list_marks: &[char] = if after_digits.len() < item_text.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let after_mark = after_digits.strip_prefix(list_marks).filter(|after_mark| after_mark.starts_with([' ', '\t']))?;
    let after_bracket = after_mark.trim_start_matches([' ', '\t']).strip_prefix('[')?;
    let (box_content, after_box) = after_bracket.split_once(']')?;
    // The marks `[~]`, `[-]` and `[/]` have many meanings, but the item is a task, and it is not done.
    let mut box_characters = box_content.chars();
    let done = match (box_characters.next(), box_characters.next()) {
        (Some('x' | 'X' | '✓' | '✔' | '✅'), None) => true,
        (Some('['), _) | (_, Some(_)) => return None,
        _ => false,
    };
    // `[x](y)` is a link, not a box. Some agents leave out the space behind the box.
    if after_box.starts_with(['(', '[', ':']) {
        return None;
    }
    let box_start = markdown_line.start_offset + (markdown_line.text.len() - after_bracket.len());
    Some(CheckboxItem {
        indent,
        done,
        box_range: (box_start, box_start + box_content.len()),
        text: after_box.trim(),
        line: markdown_line.number,
    })
}

/// The indentation of a line in columns; a tab goes to the next multiple of four.
pub(crate) fn count_indent(line_text: &str) -> usize {
    let white_bytes = line_text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    white_bytes.fold(0, |column, byte| if byte == b'\t' { (column / 4 + 1) * 4 } else { column + 1 })
}

/// The tree of tasks while it is read.
#[derive(Default)]
struct TaskTree {
    heading_group: usize,
    top_level_tasks: Vec<StoryTask>,
    /// The task that is open at each depth, with its indentation.
    open_tasks: Vec<(usize, StoryTask)>,
}

impl TaskTree {
    fn add_item(&mut self, heading_group: usize, checkbox_item: &CheckboxItem<'_>) {
        // A new heading ends all open tasks: indentation under different headings cannot be compared.
        while self
            .open_tasks
            .last()
            .is_some_and(|(indent, _)| heading_group != self.heading_group || *indent >= checkbox_item.indent)
        {
            self.close_task();
        }
        if self.open_tasks.len() >= MAX_DEPTH {
            self.close_task();
        }
        self.heading_group = heading_group;
        let position =
            self.open_tasks.last().map_or(self.top_level_tasks.len(), |(_, parent)| parent.subtasks.len()) + 1;
        let task_id = match self.open_tasks.last() {
            Some((_, parent)) => format!("{}.{position}", parent.id),
            None => position.to_string(),
        };
        let task = StoryTask {
            id: task_id,
            text: checkbox_item.text.to_string(),
            done: checkbox_item.done,
            line: checkbox_item.line,
            criteria: parse_criteria_refs(checkbox_item.text),
            subtasks: Vec::new(),
        };
        self.open_tasks.push((checkbox_item.indent, task));
    }

    fn close_task(&mut self) {
        let Some((_, task)) = self.open_tasks.pop() else { return };
        match self.open_tasks.last_mut() {
            Some((_, parent)) => parent.subtasks.push(task),
            None => self.top_level_tasks.push(task),
        }
    }

    fn into_tasks(mut self) -> Vec<StoryTask> {
        while !self.open_tasks.is_empty() {
            self.close_task();
        }
        self.top_level_tasks
    }
}

/// Visits every task, each before its subtasks.
pub(super) fn visit_tasks<'t>(tasks: &'t [StoryTask], visitor: &mut dyn FnMut(&'t StoryTask)) {
    for task in tasks {
        visitor(task);
        visit_tasks(&task.subtasks, visitor);
    }
}

/// Like [`visit_tasks`], for changing them.
pub(super) fn visit_tasks_mut(tasks: &mut [StoryTask], visitor: &mut dyn FnMut(&mut StoryTask)) {
    for task in tasks {
        visitor(task);
        visit_tasks_mut(&mut task.subtasks, visitor);
    }
}

/// The criteria in `(AC: 1, 2)`, `(AC: #1, #3)`, `(ACs 1-3)` or `(AC1, AC2)`.
fn parse_criteria_refs(task_text: &str) -> Vec<u32> {
    let mut criteria_numbers = Vec::new();
    // The limit bounds the time for long lines.
    for parenthesized in task_text.split('(').skip(1).take(20) {
        let in_parentheses = parenthesized.split(')').next().unwrap_or(parenthesized).trim_start();
        let Some(after_label) = in_parentheses
            .get(..2)
            .filter(|first_letters| first_letters.eq_ignore_ascii_case("ac"))
            .map(|_| &in_parentheses[2..])
        else {
            continue;
        };
        let after_label = after_label.strip_prefix(['s', 'S']).unwrap_or(after_label);
        // `(Account 7)` begins with the same letters.
        if after_label.starts_with(|character: char| character.is_alphabetic()) {
            continue;
        }
        for criterion_number in parse_number_ranges(after_label) {
            if !criteria_numbers.contains(&criterion_number) && criteria_numbers.len() < MAX_CRITERIA {
                criteria_numbers.push(criterion_number);
            }
        }
    }
    criteria_numbers
}

/// The greatest number of criteria that one task can name; further ones are ignored.
const MAX_CRITERIA: usize = 100;

/// The numbers of `1, 3-5 and 7`: 1, 3, 4, 5, 7.
fn parse_number_ranges(numbers_text: &str) -> Vec<u32> {
    let mut parsed_numbers: Vec<u32> = Vec::new();
    let mut remaining_text = numbers_text;
    let mut previous_number: Option<u32> = None;
    while let Some(digit_start) = remaining_text
        .find(|character: char| character.is_ascii_digit())
        .filter(|_| parsed_numbers.len() < MAX_CRITERIA)
    {
        let separator: String = remaining_text[..digit_start]
            .chars()
            .filter(|character| !matches!(character, ' ' | '#' | 'A' | 'C'))
            .collect();
        let digits_text = &remaining_text[digit_start..];
        let digits_end = digits_text.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits_text.len());
        let Ok(parsed_number) = digits_text[..digits_end].parse::<u32>() else { return parsed_numbers };
        match previous_number {
            // A range is only expanded if it is short, since `1-4000000000` would fill the memory.
            Some(range_start)
                if matches!(separator.as_str(), "-" | "–" | "to")
                    && parsed_number > range_start
                    && parsed_number - range_start < 100 =>
            {
                parsed_numbers.extend(range_start + 1..=parsed_number);
            }
            _ => parsed_numbers.push(parsed_number),
        }
        previous_number = Some(parsed_number);
        remaining_text = &digits_text[digits_end..];
    }
    parsed_numbers
}
