//! A text as a reader sees it: white space folded, typography as it is typed, Markdown markers left out.
//!
//! Agents reflow what they quote. Two texts that fold to the same text say the same; nothing here guesses. Texts that
//! differ in a word are compared in [`super::near_match`].

use alloc::{string::String, vec::Vec};

use tribunal_engine::text::plain_char;

/// What every mask is folded to: a secret may be masked for one reason in the text and for another in a quote.
pub(super) const FOLDED_MASK: &str = "[masked]";

/// Whether markers at the start of lines are dropped: a quote of one list item has none, a reflowed list has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineMarkers {
    Dropped,
    Kept,
}

/// A folded text that knows which line each byte came from.
#[derive(Clone, Debug, Default)]
pub(super) struct FoldedText {
    pub folded_text: String,
    /// The offset at which the words of each line begin, the first line first.
    line_starts: Vec<usize>,
}

impl FoldedText {
    pub fn new(text: &str, markers: LineMarkers) -> FoldedText {
        let mut folded = FoldedText::default();
        for line_text in text.lines() {
            let line_text = if markers == LineMarkers::Dropped { strip_line_markers(line_text) } else { line_text };
            let length_before = folded.folded_text.len();
            for word in line_text.split_whitespace() {
                folded.push_word(word);
            }
            // The blank before the first word belongs to the line before.
            let has_words = folded.folded_text.len() > length_before;
            folded.line_starts.push(if has_words && length_before > 0 { length_before + 1 } else { length_before });
        }
        folded
    }

    fn push_word(&mut self, word: &str) {
        let length_before = self.folded_text.len();
        if length_before > 0 {
            self.folded_text.push(' ');
        }
        let length_with_blank = self.folded_text.len();
        push_plain_word(&mut self.folded_text, word);
        if self.folded_text.len() == length_with_blank {
            // The word was markup only, so the blank before it is removed again.
            self.folded_text.truncate(length_before);
        }
    }

    /// Returns the line, from 1, that this byte came from.
    pub fn line_at(&self, offset: usize) -> u32 {
        // A line without words starts where the words before it end, so it is never the last start at or before a word.
        (self.line_starts.partition_point(|start| *start <= offset) as u32).max(1)
    }

    /// Returns the bytes of these lines, both counted from 1 and both included.
    pub fn line_byte_range(&self, first_line: u32, last_line: u32) -> core::ops::Range<usize> {
        let start_of_line = |line: u32| self.line_starts.get(line as usize).copied().unwrap_or(self.folded_text.len());
        // Lines behind the end give an empty range instead of a panic.
        let start_byte = start_of_line(first_line.saturating_sub(1)).min(self.folded_text.len());
        start_byte..start_of_line(last_line).clamp(start_byte, self.folded_text.len())
    }
}

/// Strips what Markdown puts before the words of a line: `>`, `-`, `*`, `+`, `1.`, `[ ]`, `#`.
pub(super) fn strip_line_markers(line: &str) -> &str {
    let mut remainder = line.trim_start();
    loop {
        let stripped = strip_one_marker(remainder);
        // Markers can be nested, such as `> - [x]`, so stripping continues until nothing changes.
        if stripped.len() == remainder.len() {
            return remainder;
        }
        remainder = stripped.trim_start();
    }
}

fn strip_one_marker(line_text: &str) -> &str {
    if let Some(remainder) = line_text.strip_prefix('>') {
        return remainder;
    }
    let (marker, remainder) = line_text.split_once([' ', '\t']).unwrap_or((line_text, ""));
    // At most three digits: `2026.` is a year at the end of a sentence.
    let is_numbered = marker
        .strip_suffix(['.', ')'])
        .is_some_and(|digits| (1..=3).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit()));
    let is_heading = (1..=6).contains(&marker.len()) && marker.bytes().all(|byte| byte == b'#');
    if is_numbered || is_heading || ["-", "*", "+", "•"].contains(&marker) {
        return remainder;
    }
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|checkbox| line_text.strip_prefix(checkbox)).unwrap_or(line_text)
}

/// Appends one word without emphasis, back ticks and invisible characters, and with plain quotes, dashes and dots.
fn push_plain_word(folded: &mut String, word: &str) {
    let mut last_character = ' ';
    let mut remainder = word;
    while let Some(character) = remainder.chars().next() {
        if let Some(masked_and_tail) = remainder.strip_prefix("[masked:").and_then(|kind| kind.split_once(']')) {
            folded.push_str(FOLDED_MASK);
            (remainder, last_character) = (masked_and_tail.1, ']');
            continue;
        }
        let star_count = remainder.len() - remainder.trim_start_matches('*').len();
        if star_count > 0 {
            let character_after = remainder[star_count..].trim_start_matches('`').chars().next().unwrap_or(' ');
            // Emphasis is at one side of a word; between two words, or alone, a star is arithmetic.
            if last_character.is_alphanumeric() == character_after.is_alphanumeric() {
                folded.push_str(&remainder[..star_count]);
                last_character = '*';
            }
            remainder = &remainder[star_count..];
            continue;
        }
        remainder = &remainder[character.len_utf8()..];
        match character {
            '`' | '\u{200b}' | '\u{feff}' | '\u{ad}' => continue,
            '…' => folded.push_str("..."),
            // A long dash is typeset without blanks around it, but typed with them.
            '—' | '―' if !last_character.is_whitespace() && !remainder.is_empty() => folded.push_str(" - "),
            // `--` is a typed dash: its first `-` was pushed already.
            '-' if word == "--" && remainder.is_empty() => {}
            plain => folded.push(plain_char(plain)),
        }
        last_character = character;
    }
}

/// Whether these bytes are not part of something longer: `users can` is not found in `users cannot`, nor `1` in `1.5`.
pub(super) fn is_whole_words(full_text: &str, start: usize, end: usize) -> bool {
    let (before, quote, after) = (&full_text[..start], &full_text[start..end], &full_text[end..]);
    let (Some(first_character), Some(last_character)) = (quote.chars().next(), quote.chars().next_back()) else {
        return false;
    };
    let mut characters_before = before.chars().rev();
    let mut characters_after = after.chars();
    let (nearest_before, second_before) =
        (characters_before.next().unwrap_or(' '), characters_before.next().unwrap_or(' '));
    let (nearest_after, second_after) =
        (characters_after.next().unwrap_or(' '), characters_after.next().unwrap_or(' '));
    let is_decimal_point = |character: char| character == '.' || character == ',';
    let is_cut_left = joins_words(nearest_before, first_character)
        || (first_character.is_ascii_digit() && is_decimal_point(nearest_before) && second_before.is_ascii_digit());
    let is_cut_right = joins_words(last_character, nearest_after)
        || (last_character.is_ascii_digit() && is_decimal_point(nearest_after) && second_after.is_ascii_digit())
        // `can` must not match in `can't`, which says the opposite.
        || (last_character.is_alphabetic() && plain_char(nearest_after) == '\'' && second_after == 't');
    !is_cut_left && !is_cut_right
}

fn joins_words(left_character: char, right_character: char) -> bool {
    // Scripts that are written without blanks have no word boundaries to check.
    let is_spaced_script =
        |character: char| (character.is_alphanumeric() || character == '_') && character < '\u{2e80}';
    is_spaced_script(left_character) && is_spaced_script(right_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold_text(text: &str) -> String {
        FoldedText::new(text, LineMarkers::Dropped).folded_text
    }

    #[test]
    fn typography_and_markup_do_not_matter() {
        assert_eq!(fold_text("  “It’s” –\n\t**bold**, *soft* and **`code`**…"), "\"It's\" - bold, soft and code...");
        assert_eq!(fold_text("> - [x] one\n>   two\n1. three\n## Four"), "one two three Four");
        assert_eq!(fold_text("a—b -- c"), "a - b - c");
        assert_eq!(fold_text("key = [masked:github] [masked:x y]"), "key = [masked] [masked:x y]");
    }

    #[test]
    fn what_carries_meaning_stays() {
        for text in ["2**3", "a * b", "a - b", "x > y", "--flag", "i--", "1.5 s", "snake_case", "__init__", "-1"] {
            assert_eq!(fold_text(text), text);
        }
    }

    #[test]
    fn a_folded_byte_knows_its_line() {
        let folded = FoldedText::new("\none\n\n\n- two three\n\nfour\n", LineMarkers::Dropped);
        assert_eq!(folded.folded_text, "one two three four");
        let line_of_word = |word: &str| folded.line_at(folded.folded_text.find(word).unwrap());
        assert_eq!(
            (line_of_word("one"), line_of_word("two"), line_of_word("three"), line_of_word("four")),
            (2, 5, 5, 7)
        );
        assert_eq!(&folded.folded_text[folded.line_byte_range(5, 5)], "two three");
        assert_eq!(folded.folded_text[folded.line_byte_range(3, 7)].trim(), "two three four");
        assert_eq!(folded.line_byte_range(90, 99).len(), 0);
    }

    #[test]
    fn a_piece_of_a_word_or_number_does_not_stand_alone() {
        let is_alone = |text: &str, quote: &str| {
            let start = text.find(quote).unwrap();
            is_whole_words(text, start, start + quote.len())
        };
        assert!(is_alone("users can, too", "users can") && is_alone("(a) b", "a") && is_alone("数据库", "据"));
        assert!(!is_alone("users cannot", "users can") && !is_alone("users can't", "users can"));
        assert!(!is_alone("flaw 12", "flaw 1") && !is_alone("1.5 s", "1") && !is_alone("0.5 s", "5 s"));
        assert!(!is_alone("get_user", "get"));
    }
}
