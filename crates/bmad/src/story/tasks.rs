//! The tasks of a story: list items with a box, `- [ ] …`, nested by their indentation. An item without a box is not a task,
//! and neither are boxes in code, in a comment, or in what a review left to do.

use schemars::JsonSchema;
use serde::Serialize;

use super::{criteria, record};
use crate::page::{Line, Page, plain};

/// A task, identified by its position: `2.1` is the first subtask of the second task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Task {
    pub id: String,
    pub text: String,
    pub done: bool,
    pub line: usize,
    /// The acceptance criteria that it is for: `(AC: 1, 2)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subtasks: Vec<Task>,
}

/// A list item with a box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boxed<'t> {
    /// The indentation in columns; a tab goes to the next multiple of four.
    pub indent: usize,
    pub done: bool,
    /// The byte range of the box's content in the file; empty where the box is written `[]`.
    pub inside: (usize, usize),
    pub text: &'t str,
    pub line: usize,
}

/// Deeper tasks are read as if they were at this depth, which bounds the recursion.
const DEEPEST: usize = 8;

/// Reads the tasks of a story as a tree.
pub(super) fn read(page: &Page<'_>) -> Vec<Task> {
    let mut tree = Tree::default();
    for (group, item) in items(page) {
        tree.add(group, &item);
    }
    tree.finished()
}

/// Every task item in order, with the number of the heading that it is under.
pub(super) fn items<'t>(page: &Page<'t>) -> Vec<(usize, Boxed<'t>)> {
    let sections = page.sections();
    // A story without a section for tasks may have them anywhere; with one, only there.
    let in_section = sections.iter().any(|section| is_tasks(section.title));
    let mut found = Vec::new();
    let mut group = 0;
    // The levels of the open headings, and whether tasks are expected below each.
    let mut above: Vec<(usize, bool)> = Vec::new();
    let mut is_criteria = false;
    for line in &page.lines {
        if let Some((level, title)) = line.heading() {
            group += 1;
            is_criteria = false;
            while above.last().is_some_and(|(other, _)| *other >= level) {
                above.pop();
            }
            // A subheading inherits from the heading above it, unless its title says something else.
            let inherited = above.last().map_or(!in_section, |(_, tasks)| *tasks);
            let own = if is_tasks(title) { true } else { inherited && !is_other(title) };
            above.push((level, own));
            continue;
        }
        // Late specs label the criteria in bold within the section for tasks; the boxes below are criteria.
        is_criteria |= criteria::is_label(line);
        let wanted = above.last().map_or(!in_section, |(_, tasks)| *tasks) && !is_criteria;
        if let Some(item) = boxed(line).filter(|item| wanted && record::tagged(item.text).is_none()) {
            found.push((group, item));
        }
    }
    found
}

/// Whether a title is one of `Tasks / Subtasks`, `Tasks`, `3. Tasks & Acceptance`.
pub(super) fn is_tasks(title: &str) -> bool {
    let title = plain(title);
    title == "tasks" || ["tasks ", "tasks/", "tasks:", "tasks&"].iter().any(|start| title.starts_with(start))
}

/// Whether a title names a section whose boxes are not tasks.
fn is_other(title: &str) -> bool {
    let title = plain(title);
    const STARTS: [&str; 8] = [
        "acceptance criteri",
        "review follow",
        "review finding",
        "senior developer review",
        "definition of done",
        "action items",
        "dev notes",
        "change log",
    ];
    STARTS.iter().any(|start| title.starts_with(start)) || title.ends_with("checklist")
}

/// Parses a list item with a box: `- [ ] x`, `* [x] x`, `+ [X] x`, `1. [ ] x`, `2) [] x`, `- [~] x`. A box holds one
/// character or none.
pub(super) fn boxed<'t>(line: &Line<'t>) -> Option<Boxed<'t>> {
    if !line.is_prose() {
        return None;
    }
    let item = line.text.trim_start_matches([' ', '\t']);
    let indent = line.text[..line.text.len() - item.len()].bytes().fold(0, |column, byte| match byte {
        b'\t' => (column / 4 + 1) * 4,
        _ => column + 1,
    });
    // A numbered item has digits and then a dot or a parenthesis; a bullet has neither.
    let digits = item.trim_start_matches(|c: char| c.is_ascii_digit());
    let mark: &[char] = if digits.len() < item.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let rest = digits.strip_prefix(mark).filter(|rest| rest.starts_with([' ', '\t']))?;
    let rest = rest.trim_start_matches([' ', '\t']).strip_prefix('[')?;
    let (state, behind) = rest.split_once(']')?;
    // The marks `[~]`, `[-]` and `[/]` have many meanings, but the item is a task, and it is not done.
    let mut inside = state.chars();
    let done = match (inside.next(), inside.next()) {
        (Some('x' | 'X' | '✓' | '✔' | '✅'), None) => true,
        (Some('['), _) | (_, Some(_)) => return None,
        _ => false,
    };
    // `[x](y)` is a link, not a box.
    if !(behind.is_empty() || behind.starts_with([' ', '\t'])) {
        return None;
    }
    let at = line.start + (line.text.len() - rest.len());
    Some(Boxed { indent, done, inside: (at, at + state.len()), text: behind.trim(), line: line.number })
}

/// The tree of tasks while it is read.
#[derive(Default)]
struct Tree {
    group: usize,
    roots: Vec<Task>,
    /// The task that is open at each depth, with its indentation.
    open: Vec<(usize, Task)>,
}

impl Tree {
    fn add(&mut self, group: usize, item: &Boxed<'_>) {
        // A new heading ends all open tasks: indentation under different headings cannot be compared.
        while self.open.last().is_some_and(|(indent, _)| group != self.group || *indent >= item.indent) {
            self.close();
        }
        if self.open.len() >= DEEPEST {
            self.close();
        }
        self.group = group;
        let place = self.open.last().map_or(self.roots.len(), |(_, parent)| parent.subtasks.len()) + 1;
        let id = match self.open.last() {
            Some((_, parent)) => format!("{}.{place}", parent.id),
            None => place.to_string(),
        };
        let task = Task {
            id,
            text: item.text.to_string(),
            done: item.done,
            line: item.line,
            criteria: named_criteria(item.text),
            subtasks: Vec::new(),
        };
        self.open.push((item.indent, task));
    }

    fn close(&mut self) {
        let Some((_, task)) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some((_, parent)) => parent.subtasks.push(task),
            None => self.roots.push(task),
        }
    }

    fn finished(mut self) -> Vec<Task> {
        while !self.open.is_empty() {
            self.close();
        }
        self.roots
    }
}

/// Visits every task, each before its subtasks.
pub(super) fn walk<'t>(tasks: &'t [Task], see: &mut dyn FnMut(&'t Task)) {
    for task in tasks {
        see(task);
        walk(&task.subtasks, see);
    }
}

/// Like [`visit_tasks`], for changing them.
pub(super) fn walk_mut(tasks: &mut [Task], see: &mut dyn FnMut(&mut Task)) {
    for task in tasks {
        see(task);
        walk_mut(&mut task.subtasks, see);
    }
}

/// The criteria in `(AC: 1, 2)`, `(AC: #1, #3)`, `(ACs 1-3)` or `(AC1, AC2)`.
fn named_criteria(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    // No task names criteria in more places than this; the limit bounds the time for long lines.
    for group in text.split('(').skip(1).take(20) {
        let inside = group.split(')').next().unwrap_or(group).trim_start();
        let Some(rest) = inside.get(..2).filter(|word| word.eq_ignore_ascii_case("ac")).map(|_| &inside[2..])
        else {
            continue;
        };
        let rest = rest.strip_prefix(['s', 'S']).unwrap_or(rest);
        // `(Account 7)` begins with the same letters.
        if rest.starts_with(|c: char| c.is_alphabetic()) {
            continue;
        }
        for number in numbers(rest) {
            if !found.contains(&number) && found.len() < MOST {
                found.push(number);
            }
        }
    }
    found
}

/// The number of criteria that one task can name.
const MOST: usize = 100;

/// The numbers of `1, 3-5 and 7`: 1, 3, 4, 5, 7.
fn numbers(text: &str) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut rest = text;
    let mut last_end: Option<u32> = None;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()).filter(|_| found.len() < MOST) {
        let between: String = rest[..at].chars().filter(|c| !matches!(c, ' ' | '#' | 'A' | 'C')).collect();
        let digits = &rest[at..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let Ok(number) = digits[..end].parse::<u32>() else { return found };
        match last_end {
            // A range is only expanded if it is short, since `1-4000000000` would fill the memory.
            Some(first)
                if matches!(between.as_str(), "-" | "–" | "to") && number > first && number - first < 100 =>
            {
                found.extend(first + 1..=number);
            }
            _ => found.push(number),
        }
        last_end = Some(number);
        rest = &digits[end..];
    }
    found
}
