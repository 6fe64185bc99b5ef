//! Reads a board although single lines of it are no valid YAML.
//!
//! A path such as `{project-root}/x` without quotes, or a colon in a remark, must not hide all stories. Such a line, and the
//! second of two lines with the same key, is replaced with a comment of the same length, so that every other byte keeps its
//! place, and it is reported.

use super::Board;
use crate::{
    problem::FileProblem,
    yaml::{self, YamlError, YamlErrorKind, YamlNode},
};

/// A board that needs more lines left out than this is broken.
const MAX_OMITTED_LINES: usize = 20;
/// The parser may notice a mistake only on a later line.
const MAX_LINES_BACK: usize = 3;

/// The tree of a board, and what had to be left out for it.
pub(super) struct TolerantTree {
    pub root_node: YamlNode,
    pub omitted: Vec<OmittedLine>,
}

/// A line that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OmittedLine {
    pub line: usize,
    pub error: YamlError,
    pub text: String,
}

impl OmittedLine {
    /// Whether the line is among the entries of a board.
    pub fn is_entry(&self, board: &Board) -> bool {
        let first_entry = board.entries.first().map_or(usize::MAX, |entry| entry.line);
        self.line >= first_entry && self.text.starts_with([' ', '\t'])
    }

    /// The key, without quotes.
    pub fn written_key(&self) -> &str {
        self.text.split(':').next().unwrap_or_default().trim().trim_matches(['"', '\''])
    }

    /// The state, without quotes and a comment.
    pub fn written_state(&self) -> &str {
        let state_text = self.text.split_once(':').map_or("", |(_, state_text)| state_text);
        state_text.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\''])
    }
}

/// The problem of a merge conflict, which git leaves when two changes touch the same lines.
pub(super) fn find_merge_conflict(board_path: &str, board_text: &str) -> Option<FileProblem> {
    let line_number = 1 + board_text.lines().position(|line_number| line_number.starts_with("<<<<<<< "))?;
    let problem =
        FileProblem::error("board-conflict", board_path, "unresolved merge conflict").at_line(line_number).at_column(1);
    Some(problem.with_advice("resolve the conflict (Tribunal did not change the file)"))
}

/// Parses a board and leaves out the lines that keep it from being read. Returns the first error if that does not help.
pub(super) fn parse_tolerantly(board_text: &str) -> Result<TolerantTree, YamlError> {
    let mut readable_text = board_text.to_string();
    let mut omitted: Vec<OmittedLine> = Vec::new();
    let mut first_error = None;
    loop {
        let error = match yaml::parse_yaml(&readable_text) {
            Ok(root_node) => return Ok(TolerantTree { root_node, omitted }),
            Err(error) => error,
        };
        let next_step = match omitted.len() < MAX_OMITTED_LINES && error.kind != YamlErrorKind::SecondDocument {
            true => omit_line(&readable_text, &error),
            false => None,
        };
        let first_error = first_error.get_or_insert_with(|| error.clone());
        let Some((new_text, line)) = next_step else { return Err(first_error.clone()) };
        let text = split_lines(&readable_text).get(line - 1).map_or("", |text| text.trim_end()).to_string();
        omitted.push(OmittedLine { line, error, text });
        readable_text = new_text;
    }
}

/// Leaves out the line that causes an error: the one behind whose omission the parser gets further.
fn omit_line(board_text: &str, error: &YamlError) -> Option<(String, usize)> {
    let error_line = error.line?;
    let mut candidates: Vec<usize> = match error.kind {
        YamlErrorKind::DuplicateKey => vec![error_line],
        _ => (error_line.saturating_sub(MAX_LINES_BACK)..=error_line + 1).rev().collect(),
    };
    let lines = split_lines(board_text);
    let line_text = |line: usize| line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or_default();
    // A tab in front of a line and a bracket that is never closed are mistakes wherever the parser notices them.
    if error.kind == YamlErrorKind::Syntax {
        candidates.sort_by_key(|line| !has_tab(line_text(*line)));
        let unclosed = (1..=lines.len().min(error_line)).filter(|line| has_unclosed_bracket(line_text(*line)));
        candidates.splice(0..0, unclosed);
        // The line behind the error is only left out for its tab.
        candidates.retain(|line| *line <= error_line || has_tab(line_text(*line)));
    }
    candidates.into_iter().filter(|line| *line > 0).find_map(|line| {
        let new_text = comment_out(board_text, line)?;
        let gets_further = match yaml::parse_yaml(&new_text) {
            Ok(_) => true,
            Err(next_error) => next_error.line.is_some_and(|next_line| next_line > error_line),
        };
        gets_further.then_some((new_text, line))
    })
}

/// Whether a line is indented with a tab.
fn has_tab(text_line: &str) -> bool {
    text_line.chars().take_while(|character| character.is_whitespace()).any(|character| character == '\t')
}

/// Whether a value begins with a bracket that its line does not close.
fn has_unclosed_bracket(text_line: &str) -> bool {
    let value = text_line.split_once(": ").map_or("", |(_, value)| value.trim());
    match value.chars().next() {
        Some('{') => !value.contains('}'),
        Some('[') => !value.contains(']'),
        _ => false,
    }
}

/// Replaces a line with a comment of the same length; `None` if it is none that holds a value.
fn comment_out(board_text: &str, line: usize) -> Option<String> {
    let mut new_text = String::with_capacity(board_text.len());
    let mut was_replaced = false;
    for (index, text_line) in split_lines(board_text).into_iter().enumerate() {
        let content = text_line.trim_end_matches(['\n', '\r']);
        let is_value = !content.trim().is_empty() && !content.trim_start().starts_with('#');
        if index + 1 == line && is_value {
            new_text.push('#');
            new_text.push_str(&" ".repeat(content.len() - 1));
            new_text.push_str(&text_line[content.len()..]);
            was_replaced = true;
        } else {
            new_text.push_str(text_line);
        }
    }
    was_replaced.then_some(new_text)
}

/// The lines of a text with their ends. In YAML a lone carriage return ends a line, too.
fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut line_start = 0;
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let is_end = *byte == b'\n' || *byte == b'\r' && bytes.get(index + 1) != Some(&b'\n');
        if is_end {
            lines.push(&text[line_start..=index]);
            line_start = index + 1;
        }
    }
    lines.push(&text[line_start..]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn omitted_lines(board_text: &str) -> Option<Vec<usize>> {
        let tree = parse_tolerantly(board_text).ok()?;
        Some(tree.omitted.iter().map(|omitted| omitted.line).collect())
    }

    #[test]
    fn a_broken_line_is_left_out_and_the_rest_keeps_its_place() {
        let board_text =
            "project: x\nstory_location: {project-root}/out\nnote: see: this\ndevelopment_status:\n  epic-1: done\n";
        assert_eq!(omitted_lines(board_text), Some(vec![2, 3]));
        let tree = parse_tolerantly(board_text).map(|tree| tree.root_node).ok();
        let state_node = tree.as_ref().and_then(|root| root.get("development_status")?.get("epic-1"));
        let state_span = state_node.and_then(|node| node.span.clone());
        assert_eq!(state_span.and_then(|span| board_text.get(span)), Some("done"));
    }

    #[test]
    fn only_the_line_with_the_mistake_is_left_out() {
        for (board_text, expected) in [
            ("development_status:\n  1-1-a: done\n\t1-2-b: done\n  1-3-c: done\n", vec![3]),
            ("development_status:\n  1-1-a: done\n  \t1-2-b: done\n  1-3-c: done\n", vec![3]),
            ("project: {x\ndevelopment_status:\n  1-1-a: done\n  1-2-b: done\n", vec![1]),
            ("project: x\ntags: [a, b\ndevelopment_status:\n  1-1-a: done\n", vec![2]),
            ("project: x\n  note: y\ndevelopment_status:\n  1-1-a: done\n", vec![2]),
        ] {
            assert_eq!(omitted_lines(board_text), Some(expected), "{board_text}");
        }
    }

    #[test]
    fn the_second_of_two_equal_keys_is_left_out() {
        assert_eq!(omitted_lines("development_status:\n  1-1-a: done\n  1-1-a: review\n"), Some(vec![3]));
    }

    #[test]
    fn a_text_that_is_no_yaml_at_all_stays_an_error() {
        assert_eq!(omitted_lines("\t{[\n".repeat(40).as_str()), None);
        assert_eq!(omitted_lines("a: 1\n---\nb: 2\n"), None);
    }
}
