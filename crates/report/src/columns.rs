//! Text as a terminal shows it: which characters may reach a terminal at all, and how many columns they take.
//!
//! Text of agents, documents and file names is not trusted. It must neither control a terminal (with escape sequences, which
//! are made of control characters) nor make a line read differently from what it says (with bidi overrides and invisible
//! characters).
//!
//! There are four functions for four uses: [`clean_line`] for a line to be read, [`clean_block`] for a text to be read,
//! [`escape_line`] for names and commands that are typed or run, and [`escape_json`] for programs.

use std::{borrow::Cow, fmt::Write};

use tribunal_core::text::fold_line;
use unicode_width::UnicodeWidthChar;

/// More combining marks than this on one letter are not part of any language, but they spill over the lines around it.
const MARKS: usize = 4;

/// Turns untrusted text into one line that is safe on any screen.
pub fn clean(text: &str) -> String {
    // Line breaks and tabs are folded into blanks, not dropped. Invisible characters have to go first, or a word made of
    // them would leave two blanks behind.
    let visible: String = text.chars().filter(|c| c.is_whitespace() || may_show(*c)).collect();
    let mut marks = 0;
    // Characters of width zero that pass the first filter are combining marks.
    let few_marks = |c: &char| {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MARKS
    };
    fold_line(&visible).chars().filter(few_marks).collect()
}

/// Makes a text of several lines safe: line ends and tabs stay, and every other unsafe character is shown by its number.
pub fn clean_block(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut out = String::new();
    while let Some(c) = rest.next() {
        // A carriage return by itself would let a line overwrite its own beginning.
        let ends_line = c == '\n' || (c == '\r' && rest.peek() == Some(&'\n'));
        // Variation selectors only choose how the character before them is drawn. Agents' symbols often end with one.
        let selects = matches!(c, '\u{fe0e}' | '\u{fe0f}');
        if ends_line || selects || c == '\t' || may_show(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

/// Makes one line safe without dropping anything: unsafe characters and all blanks but the plain one appear by number.
pub fn escaped(text: &str) -> String {
    let plain = |c: char| c == ' ' || (may_show(c) && !c.is_whitespace());
    let mut out = String::new();
    for c in text.chars() {
        if plain(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out
}

/// Escapes unsafe characters inside JSON by their numbers; the value stays the same. Outside of strings there are only our own
/// line ends.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let plain = |c: char| c == '\n' || may_show(c);
    // Almost all documents are harmless; they are returned without a copy.
    if json.chars().all(plain) {
        return Cow::Borrowed(json);
    }
    let mut out = String::new();
    for c in json.chars() {
        if plain(c) {
            out.push(c);
        } else {
            // JSON escapes characters beyond the basic plane as two surrogates.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

/// Returns whether a character is neither a control character nor one that only formats or fills: joiners, bidi marks,
/// selectors, tags, empty letters.
pub(crate) fn may_show(c: char) -> bool {
    // The list covers the default-ignorable characters of Unicode, interlinear annotations and musical format controls.
    let formats = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !formats
}

/// The number of columns that a text takes. Wide characters take two columns, combining marks none.
pub(crate) fn width(text: &str) -> usize {
    // The widths are added up character by character. Most terminals count like this, and none takes more columns.
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Returns as much of `full_text` as fits into `max_columns` columns, with an ellipsis where something was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        // The last column is reserved for the ellipsis.
        if used >= limit {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    if limit > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_stranger_writes_steers_the_terminal() {
        assert_eq!(clean("a\x1b[2J\x1b]0;title\x07b"), "a[2J]0;titleb");
        assert_eq!(clean("over\rwritten\nline\ttwo"), "over written line two");
        assert_eq!(clean("c1 \u{9b}31m\u{90}x\u{9c}"), "c1 31mx");
        assert_eq!(clean("\u{202e}txt.exe\u{202c} \u{2066}x\u{2069}\u{200f}"), "txt.exe x");
        assert_eq!(clean("a\u{200b}b\u{feff}c\u{e0041}"), "abc");
        assert_eq!(clean("\u{202e}\ta \u{200b} b\u{2028}c"), "a b c");
    }

    /// One character of every class that must not pass, apart from line ends and tabs.
    const HOSTILE: &str = "\x1b\x07\x7f\u{85}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{180b}\u{200b}\u{200f}\u{2028}\u{2029}\u{202e}\
                           \u{2060}\u{2066}\u{3164}\u{fe00}\u{feff}\u{fff9}\u{1d173}\u{e0001}\u{e0041}\u{e01ef}";

    #[test]
    fn a_block_keeps_its_lines_and_names_what_it_does_not_show() {
        assert_eq!(clean_block("a\tb\r\n\n  c\n"), "a\tb\r\n\n  c\n");
        assert_eq!(clean_block("over\rwritten\x1b[2J\u{9b}31m"), "over\\rwritten\\u{1b}[2J\\u{9b}31m");
        assert_eq!(clean_block("\u{202e}txt.exe ⚠\u{fe0f}"), "\\u{202e}txt.exe ⚠\u{fe0f}");
        assert!(clean_block(HOSTILE).is_ascii() && clean(HOSTILE).is_empty());
    }

    #[test]
    fn what_is_typed_or_run_is_shown_whole() {
        assert_eq!(escaped("a 'b' \\ é 審"), "a 'b' \\ é 審");
        assert_eq!(escaped("a\tb\nc\u{a0}d\u{3000}\u{fe0f}"), "a\\tb\\nc\\u{a0}d\\u{3000}\\u{fe0f}");
        assert!(escaped(HOSTILE).is_ascii());
    }

    #[test]
    fn json_means_the_same_and_steers_nothing() {
        for text in [HOSTILE, "plain\n\ttext é \"quoted\" \\u0041", ""] {
            let json = serde_json::to_string_pretty(&serde_json::json!({ "text": text })).unwrap();
            let safe = escaped_json(&json);
            assert!(safe.chars().all(|c| c == '\n' || may_show(c)), "{safe}");
            let back: serde_json::Value = serde_json::from_str(&safe).unwrap();
            assert_eq!(back["text"], text);
        }
    }

    #[test]
    fn letters_keep_their_marks_but_not_towers_of_them() {
        assert_eq!(clean("e\u{301}a\u{308}"), "e\u{301}a\u{308}");
        let tower = format!("x{}y", "\u{301}".repeat(500));
        assert_eq!(clean(&tower).chars().count(), 2 + MARKS);
    }

    #[test]
    fn columns_are_counted_not_characters() {
        assert_eq!((width("abc"), width("審査"), width("🦀"), width("e\u{301}")), (3, 4, 2, 1));
        assert_eq!(cut("審査中です", 7), "審査中…");
        assert_eq!(cut("審査中です", 6), "審査…");
        assert_eq!(cut("審査", 4), "審査");
        assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".to_string(), String::new()));
    }
}
