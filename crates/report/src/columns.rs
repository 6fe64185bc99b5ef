//! Text as a terminal shows it: which characters may reach one at all, and how many columns they take.
//!
//! Agents, documents and file names are strangers. What they write may neither steer a terminal (escape sequences, which
//! are made of control characters) nor make a line read differently from what it says (bidi overrides, invisible
//! characters).

use tribunal_core::text::fold_line;
use unicode_width::UnicodeWidthChar;

/// More marks than this on one letter are no language, but they do spill over the lines around it.
const MARKS: usize = 4;

/// One line of what a stranger wrote, fit for any screen.
pub(crate) fn clean(text: &str) -> String {
    // Blanks control the line, too: they are folded, not dropped. First away with what nobody sees, or a word of it would
    // leave two blanks behind.
    let visible: String = text.chars().filter(|c| c.is_whitespace() || may_show(*c)).collect();
    let mut marks = 0;
    let few_marks = |c: &char| {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MARKS
    };
    fold_line(&visible).chars().filter(few_marks).collect()
}

/// Neither a control character nor one that only formats: joiners, bidi marks, selectors, tags.
pub(crate) fn may_show(c: char) -> bool {
    let formats = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}');
    !c.is_control() && !formats
}

/// Columns a text takes. Wide characters take two, marks on others none.
pub(crate) fn width(text: &str) -> usize {
    // Character by character: most terminals count like this, and none takes more columns than this says.
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// As much of `text` as fits into `limit` columns, with a mark where something was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
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
