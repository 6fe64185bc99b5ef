//! Which lines a change touched, and whether a place belongs to them.
//!
//! An issue that existed before the change is deferred, not fixed here. The caller provides the unified diff of the change;
//! this module never runs git.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::finding::Place;

/// How many lines around a changed one still belong to the change: a fault often shows next to its cause.
pub const AROUND: u32 = 3;
/// The shortest symbol that counts: shorter names occur everywhere.
const SHORTEST_SYMBOL: usize = 4;

/// The lines of one file that a change touched, with their numbers after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    pub file: String,
    /// First and last line of each range, in order. For removed lines these are the two lines around the gap.
    pub lines: Vec<(u32, u32)>,
    /// Symbols that the touched lines define: code that uses them belongs to the change.
    pub symbols: Vec<String>,
}

/// The lines that a change removed from one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The removed lines as one text.
    pub text: String,
    /// For each removed line the line number after the change at which it was.
    pub lines: Vec<u32>,
}

/// What a diff says about one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFile {
    pub touched: Touched,
    pub removed: Removed,
}

/// Whether a place belongs to the change.
pub fn is_touched(place: &Place, touched: &[Touched]) -> bool {
    let lines = touched.iter().filter(|one| one.file == place.file).flat_map(|one| &one.lines);
    lines.into_iter().any(|(first, last)| {
        place.line <= last.saturating_add(AROUND) && first.saturating_sub(AROUND) <= place.end_line
    })
}

/// Parses a unified diff. Lines that are no header, hunk or changed line are ignored.
pub fn read(diff: &str) -> Vec<InFile> {
    let mut files: Vec<InFile> = Vec::new();
    // The number of the next line, and how many old and new lines of the hunk are still to come.
    let (mut line, mut old, mut new) = (0_u32, 0_u32, 0_u32);
    let mut old_name = String::new();
    for text in diff.lines() {
        // Headers are recognized only between hunks: inside a hunk `--- x` is a removed line.
        if old == 0 && new == 0 {
            if let Some(name) = text.strip_prefix("--- ") {
                old_name = plain_name(name, "a/");
            } else if let Some(name) = text.strip_prefix("+++ ") {
                let new_name = plain_name(name, "b/");
                // A deleted file keeps its old name.
                let file = if new_name == "/dev/null" { old_name.clone() } else { new_name };
                files.push(InFile { touched: Touched { file, ..Touched::default() }, ..InFile::default() });
            } else if let Some(header) = header(text) {
                (line, old, new) = header;
            }
            continue;
        }
        match text.as_bytes().first() {
            Some(b'+') => {
                touch(&mut files, line, line);
                define(&mut files, text);
                (line, new) = (line + 1, new.saturating_sub(1));
            }
            Some(b'-') => {
                // A removed line has no number in the new file, so the lines around the gap are touched.
                touch(&mut files, line.saturating_sub(1).max(1), line.max(1));
                define(&mut files, text);
                if let Some(file) = files.last_mut() {
                    file.removed.text.push_str(&text[1..]);
                    file.removed.text.push('\n');
                    file.removed.lines.push(line.max(1));
                }
                old = old.saturating_sub(1);
            }
            // `\ No newline at end of file` belongs to neither side.
            Some(b'\\') => {}
            _ => (line, old, new) = (line + 1, old.saturating_sub(1), new.saturating_sub(1)),
        }
    }
    files
}

fn plain_name(name: &str, mark: &str) -> String {
    // Some tools append a tab and a timestamp to the name.
    let name = name.split('\t').next().unwrap_or(name);
    name.strip_prefix(mark).unwrap_or(name).to_string()
}

fn touch(files: &mut [InFile], first: u32, last: u32) {
    let Some(file) = files.last_mut() else { return };
    let lines = &mut file.touched.lines;
    match lines.last_mut() {
        // Adjacent lines extend the last range.
        Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
        _ => lines.push((first, last)),
    }
}

/// Keywords that begin a definition in common languages.
const DEFINES: [&str; 12] = [
    "fn",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "func",
    "function",
    "const",
    "static",
];

/// Adds the symbols that a changed line defines: the names behind keywords such as `fn`.
fn define(files: &mut [InFile], line: &str) {
    let Some(file) = files.last_mut() else { return };
    let mut words = line[1..].split_whitespace();
    while let Some(word) = words.next() {
        if !DEFINES.contains(&word) {
            continue;
        }
        let name = words.next().unwrap_or_default();
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // Short names occur everywhere, so they prove no relation.
        let symbols = &mut file.touched.symbols;
        if name.chars().count() >= SHORTEST_SYMBOL && !symbols.contains(&name) {
            symbols.push(name);
        }
    }
}

/// Parses `@@ -12,3 +14,5 @@` into the first new line, the old and the new length.
fn header(text: &str) -> Option<(u32, u32, u32)> {
    let mut words = text.strip_prefix("@@ -")?.split(' ');
    let range = |text: &str| -> Option<(u32, u32)> {
        let (start, length) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, length.parse().ok()?))
    };
    let (_, old) = range(words.next()?)?;
    let (start, new) = range(words.next()?.strip_prefix('+')?)?;
    // A hunk without new lines names the line before the gap.
    Some((if new == 0 { start + 1 } else { start }, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -10,3 +10,5 @@ fn a() {\n \
                        one\n-two\n+TWO\n+2\n three\n+++ odd\n@@ -40,2 +42,0 @@\n-x\n-- y\n--- a/b.md\n+++ b/b.md\n@@ -1 +1 @@\n-a\n\\ No \
                        newline at end of file\n+b\n";

    #[test]
    fn a_diff_says_which_lines_it_touched() {
        let found: Vec<(String, Vec<(u32, u32)>)> =
            read(DIFF).into_iter().map(|one| (one.touched.file, one.touched.lines)).collect();
        let expected = [
            ("src/a.rs".to_string(), alloc::vec![(10, 12), (14, 14), (42, 43)]),
            ("b.md".to_string(), alloc::vec![(1, 1)]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_place_belongs_to_a_change_within_a_few_lines() {
        let touched = [Touched { file: "a.rs".into(), lines: alloc::vec![(10, 12)], ..Touched::default() }];
        let at = |file: &str, line: u32, end_line: u32| {
            is_touched(&Place { file: file.into(), line, end_line, section: String::new() }, &touched)
        };
        assert!(at("a.rs", 11, 11) && at("a.rs", 7, 7) && at("a.rs", 15, 20) && at("a.rs", 1, 90));
        assert!(!at("a.rs", 6, 6) && !at("a.rs", 16, 16) && !at("b.rs", 11, 11));
    }
}
