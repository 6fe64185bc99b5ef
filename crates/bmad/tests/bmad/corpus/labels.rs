//! The labels of the corpus.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

/// What a person reads on a board.
#[derive(Default)]
pub(super) struct BoardLabels {
    lines: Vec<(usize, char, char)>,
    pub next_line: Option<usize>,
    /// Lines that are no valid YAML, or repeat a key.
    broken: BTreeSet<usize>,
}

impl BoardLabels {
    /// The entries as the reader names them: it has fewer states for epics and retrospectives.
    pub fn entries(&self) -> BTreeSet<(usize, char, char)> {
        let is_entry = |(line, kind, _): &&(usize, char, char)| *kind != 'O' && !self.broken.contains(line);
        let fold_state = |(line, kind, state): &(usize, char, char)| {
            let state = match (kind, state) {
                ('E', 'r') => 'b',
                ('E', 'v') => 'i',
                ('R', 'b' | 'r' | 'i' | 'v') => 'o',
                (_, state) => *state,
            };
            (*line, *kind, state)
        };
        self.lines.iter().filter(is_entry).map(fold_state).collect()
    }
}

/// What a person reads in a story. A field is `None` where a person could not tell.
#[derive(Default)]
pub(super) struct StoryLabels {
    pub title_line: Option<usize>,
    pub status_line: Option<usize>,
    pub criteria: Option<BTreeSet<usize>>,
    pub tasks: Option<(usize, usize)>,
    /// The line and the length of each path.
    pub files: Option<BTreeSet<(usize, usize)>>,
}

impl StoryLabels {
    /// Whether the file is a story, and not only a note about one.
    pub fn is_story(&self) -> bool {
        let has_criteria = self.criteria.as_ref().is_some_and(|criteria| !criteria.is_empty());
        has_criteria && self.status_line.is_some()
    }
}

/// Splits a file of labels into its blocks: the path, and the lines below it.
fn split_blocks<'t>(label_text: &'t str, mark: &str) -> Vec<(&'t str, Vec<&'t str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in label_text.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix(mark) {
            Some(path) => blocks.push((path.trim(), Vec::new())),
            None => blocks.last_mut().unwrap().1.push(line.trim()),
        }
    }
    blocks
}

fn parse_numbers(words: &str) -> BTreeSet<usize> {
    words.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

pub(super) fn parse_boards(label_text: &str) -> Vec<(String, BoardLabels)> {
    let parse_block = |lines: Vec<&str>| {
        let mut labels = BoardLabels::default();
        for line in lines {
            match line.split_once(' ') {
                Some(("shape", _)) => {}
                Some(("next", word)) => labels.next_line = word.parse().ok(),
                Some(("broken", words)) => labels.broken = parse_numbers(words),
                Some((line_number, codes)) => {
                    let mut codes = codes.split_whitespace().filter_map(|code| code.chars().next());
                    labels.lines.push((line_number.parse().unwrap(), codes.next().unwrap(), codes.next().unwrap()));
                }
                None => panic!("{line}"),
            }
        }
        labels
    };
    split_blocks(label_text, "board ").into_iter().map(|(path, lines)| (path.to_string(), parse_block(lines))).collect()
}

pub(super) fn parse_stories(label_text: &str) -> Vec<(String, StoryLabels)> {
    let parse_block = |lines: Vec<&str>| {
        let mut labels = StoryLabels::default();
        for line in lines {
            let (field, value) = line.split_once(' ').unwrap_or((line, "-"));
            let is_known = value != "?";
            match field {
                "title" => labels.title_line = value.parse().ok(),
                "status" => labels.status_line = value.split_whitespace().next().and_then(|word| word.parse().ok()),
                "criteria" => labels.criteria = is_known.then(|| parse_numbers(value)),
                "tasks" => {
                    let counts: Vec<usize> = value.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                    labels.tasks = match counts.as_slice() {
                        [total, ticked] => Some((*total, *ticked)),
                        _ => None,
                    };
                }
                "files" => {
                    let parse_pair = |pair: &str| {
                        let (line_number, length) = pair.split_once(':')?;
                        Some((line_number.parse().ok()?, length.parse().ok()?))
                    };
                    labels.files = is_known.then(|| value.split_whitespace().filter_map(parse_pair).collect());
                }
                other => panic!("{other}"),
            }
        }
        labels
    };
    split_blocks(label_text, "story ").into_iter().map(|(path, lines)| (path.to_string(), parse_block(lines))).collect()
}
