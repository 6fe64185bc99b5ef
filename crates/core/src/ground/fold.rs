//! A text as a reader sees it: white space folded, typography as it is typed, Markdown markers left out.
//!
//! Agents reflow what they quote. Two texts that fold to the same text say the same; nothing here guesses. Texts that
//! differ in a word are compared in [`super::near_match`].

use alloc::{string::String, vec::Vec};

use crate::text::plain_char;

/// What every mask is folded to: a secret may be masked for one reason in the text and for another in a quote.
pub(super) const MASK: &str = "[masked]";

/// Whether markers at the start of lines are dropped: a quote of one list item has none, a reflowed list has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markers {
    Dropped,
    Kept,
}

/// A folded text that knows which line each byte came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Folded {
    pub text: String,
    /// The offset at which the words of each line begin, the first line first.
    starts: Vec<usize>,
}

impl Folded {
    pub fn new(text: &str, markers: Markers) -> Folded {
        let mut folded = Folded::default();
        for line in text.lines() {
            let line = if markers == Markers::Dropped { without_markers(line) } else { line };
            let before = folded.text.len();
            for word in line.split_whitespace() {
                folded.push(word);
            }
            // The blank before the first word belongs to the line before.
            let grown = folded.text.len() > before;
            folded.starts.push(if grown && before > 0 { before + 1 } else { before });
        }
        folded
    }

    fn push(&mut self, word: &str) {
        let length = self.text.len();
        if length > 0 {
            self.text.push(' ');
        }
        let before = self.text.len();
        plain_word(&mut self.text, word);
        if self.text.len() == before {
            // The word was markup only, so the blank before it is removed again.
            self.text.truncate(length);
        }
    }

    /// Returns the line, from 1, that this byte came from.
    pub fn line(&self, at: usize) -> u32 {
        // A line without words starts where the words before it end, so it is never the last start at or before a word.
        (self.starts.partition_point(|start| *start <= at) as u32).max(1)
    }

    /// Returns the bytes of these lines, both counted from 1 and both included.
    pub fn range(&self, first: u32, last: u32) -> core::ops::Range<usize> {
        let start = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len());
        // Lines behind the end give an empty range instead of a panic.
        let from = start(first.saturating_sub(1)).min(self.text.len());
        from..start(last).clamp(from, self.text.len())
    }
}

/// Strips what Markdown puts before the words of a line: `>`, `-`, `*`, `+`, `1.`, `[ ]`, `#`.
pub(super) fn without_markers(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let next = without_marker(rest);
        // Markers can be nested, such as `> - [x]`, so stripping continues until nothing changes.
        if next.len() == rest.len() {
            return rest;
        }
        rest = next.trim_start();
    }
}

fn without_marker(line: &str) -> &str {
    if let Some(rest) = line.strip_prefix('>') {
        return rest;
    }
    let (marker, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    // At most three digits: `2026.` is a year at the end of a sentence.
    let numbered = marker.strip_suffix(['.', ')']).is_some_and(|number| {
        (1..=3).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    let heading = (1..=6).contains(&marker.len()) && marker.bytes().all(|byte| byte == b'#');
    if numbered || heading || ["-", "*", "+", "•"].contains(&marker) {
        return rest;
    }
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|tick| line.strip_prefix(tick)).unwrap_or(line)
}

/// Appends one word without emphasis, back ticks and invisible characters, and with plain quotes, dashes and dots.
fn plain_word(out: &mut String, word: &str) {
    let mut last = ' ';
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        if let Some(mask) = rest.strip_prefix("[masked:").and_then(|kind| kind.split_once(']')) {
            out.push_str(MASK);
            (rest, last) = (mask.1, ']');
            continue;
        }
        let stars = rest.len() - rest.trim_start_matches('*').len();
        if stars > 0 {
            let after = rest[stars..].trim_start_matches('`').chars().next().unwrap_or(' ');
            // Emphasis is at one side of a word; between two words, or alone, a star is arithmetic.
            if last.is_alphanumeric() == after.is_alphanumeric() {
                out.push_str(&rest[..stars]);
                last = '*';
            }
            rest = &rest[stars..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '`' | '\u{200b}' | '\u{feff}' | '\u{ad}' => continue,
            '…' => out.push_str("..."),
            // Typeset without blanks between words, but typed with them.
            '—' | '―' if !last.is_whitespace() && !rest.is_empty() => out.push_str(" - "),
            // `--` is a typed dash: its first `-` was pushed already.
            '-' if word == "--" && rest.is_empty() => {}
            other => out.push(plain_char(other)),
        }
        last = c;
    }
}

/// Whether these bytes are not part of something longer: `users can` is not found in `users cannot`, nor `1` in `1.5`.
pub(super) fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let (before, quote, after) = (&text[..start], &text[start..end], &text[end..]);
    let (Some(first), Some(last)) = (quote.chars().next(), quote.chars().next_back()) else { return false };
    let mut left = before.chars().rev();
    let mut right = after.chars();
    let (l1, l2) = (left.next().unwrap_or(' '), left.next().unwrap_or(' '));
    let (r1, r2) = (right.next().unwrap_or(' '), right.next().unwrap_or(' '));
    let decimal = |c: char| c == '.' || c == ',';
    let cut_left = is_joined(l1, first) || (first.is_ascii_digit() && decimal(l1) && l2.is_ascii_digit());
    let cut_right = is_joined(last, r1)
        || (last.is_ascii_digit() && decimal(r1) && r2.is_ascii_digit())
        // `can` must not match in `can't`, which says the opposite.
        || (last.is_alphabetic() && plain_char(r1) == '\'' && r2 == 't');
    !cut_left && !cut_right
}

fn is_joined(one: char, other: char) -> bool {
    // Scripts that are written without blanks have no word boundaries to check.
    let spaced = |c: char| (c.is_alphanumeric() || c == '_') && c < '\u{2e80}';
    spaced(one) && spaced(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> String {
        Folded::new(text, Markers::Dropped).text
    }

    #[test]
    fn typography_and_markup_do_not_matter() {
        assert_eq!(
            fold("  “It’s” –\n\t**bold**, *soft* and **`code`**…"),
            "\"It's\" - bold, soft and code..."
        );
        assert_eq!(fold("> - [x] one\n>   two\n1. three\n## Four"), "one two three Four");
        assert_eq!(fold("a—b -- c"), "a - b - c");
        assert_eq!(fold("key = [masked:github] [masked:x y]"), "key = [masked] [masked:x y]");
    }

    #[test]
    fn what_carries_meaning_stays() {
        for text in
            ["2**3", "a * b", "a - b", "x > y", "--flag", "i--", "1.5 s", "snake_case", "__init__", "-1"]
        {
            assert_eq!(fold(text), text);
        }
    }

    #[test]
    fn a_folded_byte_knows_its_line() {
        let folded = Folded::new("\none\n\n\n- two three\n\nfour\n", Markers::Dropped);
        assert_eq!(folded.text, "one two three four");
        let line = |word: &str| folded.line(folded.text.find(word).unwrap());
        assert_eq!((line("one"), line("two"), line("three"), line("four")), (2, 5, 5, 7));
        assert_eq!(&folded.text[folded.range(5, 5)], "two three");
        assert_eq!(folded.text[folded.range(3, 7)].trim(), "two three four");
        assert_eq!(folded.range(90, 99).len(), 0);
    }

    #[test]
    fn a_piece_of_a_word_or_number_does_not_stand_alone() {
        let alone = |text: &str, quote: &str| {
            let start = text.find(quote).unwrap();
            stands_alone(text, start, start + quote.len())
        };
        assert!(alone("users can, too", "users can") && alone("(a) b", "a") && alone("数据库", "据"));
        assert!(!alone("users cannot", "users can") && !alone("users can't", "users can"));
        assert!(!alone("flaw 12", "flaw 1") && !alone("1.5 s", "1") && !alone("0.5 s", "5 s"));
        assert!(!alone("get_user", "get"));
    }
}
