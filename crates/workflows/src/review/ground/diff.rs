//! Which lines a change touched, and whether a place belongs to them.
//!
//! An issue that existed before the change is deferred, not fixed here. The caller provides the unified diff of the change;
//! this module never runs git.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::findings::finding::FindingPlace;

/// How many lines around a changed one still belong to the change: a fault often shows next to its cause.
pub const CONTEXT_LINES: u32 = 3;
/// The shortest symbol that counts: shorter names occur everywhere.
const MIN_SYMBOL_CHARS: usize = 4;

/// The lines of one file that a change touched, with their numbers after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedLines {
    pub file_path: String,
    /// First and last line of each range, in order. For removed lines these are the two lines around the gap.
    pub line_ranges: Vec<(u32, u32)>,
    /// Symbols that the touched lines define: code that uses them belongs to the change.
    pub symbols: Vec<String>,
}

/// The lines that a change removed from one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedLines {
    /// The removed lines as one text.
    pub removed_text: String,
    /// For each removed line the line number after the change at which it was.
    pub original_lines: Vec<u32>,
}

/// What a diff says about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffedFile {
    pub touched: TouchedLines,
    pub removed: RemovedLines,
}

/// Whether a place belongs to the change.
pub fn is_place_touched(place: &FindingPlace, touched_files: &[TouchedLines]) -> bool {
    let line_ranges = touched_files
        .iter()
        .filter(|touched_file| touched_file.file_path == place.file)
        .flat_map(|touched_file| &touched_file.line_ranges);
    line_ranges.into_iter().any(|(first_line, last_line)| {
        place.line <= last_line.saturating_add(CONTEXT_LINES)
            && first_line.saturating_sub(CONTEXT_LINES) <= place.end_line
    })
}

/// Parses a unified diff. Outside of hunks, lines that are no header are ignored.
pub fn parse_diff(diff: &str) -> Vec<DiffedFile> {
    let mut file_diffs: Vec<DiffedFile> = Vec::new();
    // The number of the next line after the change, and how many old and new lines of the hunk are still to come.
    let (mut line_number, mut old_remaining, mut new_remaining) = (0_u32, 0_u32, 0_u32);
    let mut old_name = String::new();
    for diff_line in diff.lines() {
        // Headers are recognized only between hunks: inside a hunk `--- x` is a removed line.
        if old_remaining == 0 && new_remaining == 0 {
            if let Some(header_name) = diff_line.strip_prefix("--- ") {
                old_name = strip_diff_prefix(header_name, "a/");
            } else if let Some(header_name) = diff_line.strip_prefix("+++ ") {
                let new_name = strip_diff_prefix(header_name, "b/");
                // A deleted file keeps its old name.
                let file_path = if new_name == "/dev/null" { old_name.clone() } else { new_name };
                file_diffs.push(DiffedFile {
                    touched: TouchedLines { file_path, ..TouchedLines::default() },
                    ..DiffedFile::default()
                });
            } else if let Some(hunk_header) = parse_hunk_header(diff_line) {
                (line_number, old_remaining, new_remaining) = hunk_header;
            }
            continue;
        }
        match diff_line.as_bytes().first() {
            Some(b'+') => {
                add_touched_lines(&mut file_diffs, line_number, line_number);
                add_defined_symbols(&mut file_diffs, diff_line);
                (line_number, new_remaining) = (line_number + 1, new_remaining.saturating_sub(1));
            }
            Some(b'-') => {
                // A removed line has no number in the new file, so the lines around the gap are touched.
                add_touched_lines(&mut file_diffs, line_number.saturating_sub(1).max(1), line_number.max(1));
                add_defined_symbols(&mut file_diffs, diff_line);
                if let Some(file_diff) = file_diffs.last_mut() {
                    file_diff.removed.removed_text.push_str(&diff_line[1..]);
                    file_diff.removed.removed_text.push('\n');
                    file_diff.removed.original_lines.push(line_number.max(1));
                }
                old_remaining = old_remaining.saturating_sub(1);
            }
            // `\ No newline at end of file` belongs to neither side.
            Some(b'\\') => {}
            _ => {
                (line_number, old_remaining, new_remaining) =
                    (line_number + 1, old_remaining.saturating_sub(1), new_remaining.saturating_sub(1))
            }
        }
    }
    file_diffs
}

fn strip_diff_prefix(header_name: &str, prefix: &str) -> String {
    // Some tools append a tab and a timestamp to the name.
    let header_name = header_name.split('\t').next().unwrap_or(header_name);
    header_name.strip_prefix(prefix).unwrap_or(header_name).to_string()
}

fn add_touched_lines(file_diffs: &mut [DiffedFile], first_line: u32, last_line: u32) {
    let Some(file_diff) = file_diffs.last_mut() else { return };
    let line_ranges = &mut file_diff.touched.line_ranges;
    match line_ranges.last_mut() {
        // Adjacent lines extend the last range.
        Some((_, range_end)) if first_line <= *range_end + 1 => *range_end = last_line.max(*range_end),
        _ => line_ranges.push((first_line, last_line)),
    }
}

/// Keywords that begin a definition in common languages.
const DEFINITION_KEYWORDS: [&str; 12] =
    ["fn", "def", "class", "struct", "enum", "trait", "interface", "type", "func", "function", "const", "static"];

/// Adds the symbols that a changed line defines: the names behind keywords such as `fn`.
fn add_defined_symbols(file_diffs: &mut [DiffedFile], diff_line: &str) {
    let Some(file_diff) = file_diffs.last_mut() else { return };
    let mut tokens = diff_line[1..].split_whitespace();
    while let Some(token) = tokens.next() {
        if !DEFINITION_KEYWORDS.contains(&token) {
            continue;
        }
        let symbol = tokens.next().unwrap_or_default();
        let symbol: String =
            symbol.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
        let symbols = &mut file_diff.touched.symbols;
        if symbol.chars().count() >= MIN_SYMBOL_CHARS && !symbols.contains(&symbol) {
            symbols.push(symbol);
        }
    }
}

/// Parses `@@ -12,3 +14,5 @@` into the first new line, the old and the new length.
fn parse_hunk_header(diff_line: &str) -> Option<(u32, u32, u32)> {
    let mut fields = diff_line.strip_prefix("@@ -")?.split(' ');
    let parse_range = |range_text: &str| -> Option<(u32, u32)> {
        let (start_text, length_text) = range_text.split_once(',').unwrap_or((range_text, "1"));
        Some((start_text.parse().ok()?, length_text.parse().ok()?))
    };
    let (_, old_length) = parse_range(fields.next()?)?;
    let (new_start, new_length) = parse_range(fields.next()?.strip_prefix('+')?)?;
    // A hunk without new lines names the line before the gap.
    Some((if new_length == 0 { new_start + 1 } else { new_start }, old_length, new_length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -10,3 +10,5 @@ fn a() {\n \
                        one\n-two\n+TWO\n+2\n three\n+++ odd\n@@ -40,2 +42,0 @@\n-x\n-- y\n--- a/b.md\n+++ b/b.md\n@@ -1 +1 @@\n-a\n\\ No \
                        newline at end of file\n+b\n";

    #[test]
    fn a_diff_says_which_lines_it_touched() {
        let touched: Vec<(String, Vec<(u32, u32)>)> = parse_diff(DIFF)
            .into_iter()
            .map(|file_diff| (file_diff.touched.file_path, file_diff.touched.line_ranges))
            .collect();
        let expected = [
            ("src/a.rs".to_string(), alloc::vec![(10, 12), (14, 14), (42, 43)]),
            ("b.md".to_string(), alloc::vec![(1, 1)]),
        ];
        assert_eq!(touched, expected);
    }

    #[test]
    fn a_place_belongs_to_a_change_within_a_few_lines() {
        let touched =
            [TouchedLines { file_path: "a.rs".into(), line_ranges: alloc::vec![(10, 12)], ..TouchedLines::default() }];
        let touches = |file: &str, line: u32, end_line: u32| {
            is_place_touched(&FindingPlace { file: file.into(), line, end_line, section: String::new() }, &touched)
        };
        assert!(touches("a.rs", 11, 11) && touches("a.rs", 7, 7) && touches("a.rs", 15, 20) && touches("a.rs", 1, 90));
        assert!(!touches("a.rs", 6, 6) && !touches("a.rs", 16, 16) && !touches("b.rs", 11, 11));
    }
}
