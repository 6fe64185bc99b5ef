//! Text as a terminal shows it: which characters may reach a terminal at all, and how many columns they take.
//!
//! Text of agents, documents and file names is not trusted. It must neither control a terminal (with escape sequences, which
//! are made of control characters) nor make a line read differently from what it says (with bidi overrides and invisible
//! characters).
//!
//! There are four functions for four uses: [`clean_line`] for a line to be read, [`clean_block`] for a text to be read,
//! [`escape_line`] for names and commands that are typed or run, and [`escape_json`] for programs.

use std::{borrow::Cow, fmt::Write};

use tribunal_engine::text::sanitize_to_line;
use unicode_width::UnicodeWidthChar;

/// More combining marks than this on one letter are not part of any language, but they spill over the lines around it.
const MAX_COMBINING_MARKS: usize = 4;

/// Turns untrusted text into one line that is safe on any screen.
pub fn clean_line(untrusted_text: &str) -> String {
    // Line breaks and tabs are folded into blanks, not dropped. Invisible characters have to go first, or a word made of
    // them would leave two blanks behind.
    let visible: String =
        untrusted_text.chars().filter(|character| character.is_whitespace() || is_displayable(*character)).collect();
    let mut mark_count = 0;
    // Characters of width zero that pass the first filter are combining marks.
    let is_within_limit = |character: &char| {
        mark_count = if character.width() == Some(0) { mark_count + 1 } else { 0 };
        mark_count <= MAX_COMBINING_MARKS
    };
    sanitize_to_line(&visible).chars().filter(is_within_limit).collect()
}

/// Makes a text of several lines safe: line ends and tabs stay, and every other unsafe character is shown by its number.
pub fn clean_block(untrusted_text: &str) -> String {
    let mut remaining_chars = untrusted_text.chars().peekable();
    let mut cleaned = String::new();
    while let Some(character) = remaining_chars.next() {
        // A carriage return by itself would let a line overwrite its own beginning.
        let ends_line = character == '\n' || (character == '\r' && remaining_chars.peek() == Some(&'\n'));
        // Variation selectors only choose how the character before them is drawn; an emoji may end with one.
        let is_variation_selector = matches!(character, '\u{fe0e}' | '\u{fe0f}');
        if ends_line || is_variation_selector || character == '\t' || is_displayable(character) {
            cleaned.push(character);
        } else {
            cleaned.extend(character.escape_default());
        }
    }
    cleaned
}

/// Makes one line safe without dropping anything: unsafe characters and all blanks but the plain one appear by number.
pub fn escape_line(untrusted_text: &str) -> String {
    let is_plain = |character: char| character == ' ' || (is_displayable(character) && !character.is_whitespace());
    let mut escaped_text = String::new();
    for character in untrusted_text.chars() {
        if is_plain(character) { escaped_text.push(character) } else { escaped_text.extend(character.escape_default()) }
    }
    escaped_text
}

/// Escapes unsafe characters inside JSON by their numbers; the value stays the same. Outside of strings there are only our own
/// line ends.
pub fn escape_json(json_text: &str) -> Cow<'_, str> {
    let is_plain = |character: char| character == '\n' || is_displayable(character);
    // Almost all documents are harmless; they are returned without a copy.
    if json_text.chars().all(is_plain) {
        return Cow::Borrowed(json_text);
    }
    let mut escaped_text = String::new();
    for character in json_text.chars() {
        if is_plain(character) {
            escaped_text.push(character);
        } else {
            // JSON escapes characters beyond the basic plane as two surrogates.
            for utf16_unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped_text, "\\u{utf16_unit:04x}");
            }
        }
    }
    Cow::Owned(escaped_text)
}

/// Returns whether a character is neither a control character nor one that only formats or fills: joiners, bidi marks,
/// selectors, tags, empty letters.
pub(crate) fn is_displayable(character: char) -> bool {
    // The list covers the default-ignorable characters of Unicode, interlinear annotations and musical format controls.
    let is_format_character = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    !character.is_control() && !is_format_character
}

/// The number of columns that a text takes. Wide characters take two columns, combining marks none.
pub(crate) fn display_width(shown_text: &str) -> usize {
    // The widths are added up character by character, as most terminals do.
    shown_text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// The width of a line that we painted; our own colour codes take no columns.
pub(crate) fn painted_width(painted_line: &str) -> usize {
    let mut escape_parts = painted_line.split('\x1b');
    let first_width = escape_parts.next().map_or(0, display_width);
    first_width
        + escape_parts
            .map(|escape_part| escape_part.split_once('m').map_or(0, |(_, visible_text)| display_width(visible_text)))
            .sum::<usize>()
}

/// Cuts a line that we painted like [`truncate_to_width`]. All colour codes stay, so that no colour runs into the next line.
pub(crate) fn truncate_painted(painted_line: &str, max_columns: usize) -> String {
    if painted_width(painted_line) <= max_columns {
        return painted_line.to_string();
    }
    let mut cut_line = String::new();
    let mut used_columns = 0;
    let mut is_cut = false;
    for (part_index, painted_part) in painted_line.split('\x1b').enumerate() {
        let visible_text = match painted_part.split_once('m') {
            Some((colour_code, visible_text)) if part_index > 0 => {
                cut_line.push_str(&format!("\x1b{colour_code}m"));
                visible_text
            }
            _ => painted_part,
        };
        for character in visible_text.chars() {
            if is_cut {
                break;
            }
            used_columns += character.width().unwrap_or(0);
            // The last column is reserved for the ellipsis.
            is_cut = used_columns >= max_columns;
            match is_cut {
                true if max_columns > 0 => cut_line.push('…'),
                true => {}
                false => cut_line.push(character),
            }
        }
    }
    cut_line
}

/// Returns as much of `full_text` as fits into `max_columns` columns, with an ellipsis where something was cut. The cut is
/// between two words if that keeps most of the text.
pub(crate) fn truncate_to_width(full_text: &str, max_columns: usize) -> String {
    if display_width(full_text) <= max_columns {
        return full_text.to_string();
    }
    let mut kept_text = String::new();
    let mut used_columns = 0;
    for character in full_text.chars() {
        used_columns += character.width().unwrap_or(0);
        // The last column is reserved for the ellipsis.
        if used_columns >= max_columns {
            break;
        }
        kept_text.push(character);
    }
    let is_inside_word = !full_text[kept_text.len()..].starts_with(' ');
    if let Some(word_start) = kept_text.rfind(' ')
        && is_inside_word
        && display_width(&kept_text[..word_start]) * 2 >= max_columns
    {
        kept_text.truncate(word_start);
    }
    kept_text.truncate(kept_text.trim_end().len());
    if max_columns > 0 {
        kept_text.push('…');
    }
    kept_text
}

/// Cuts a path at its start, between two names if possible: the end tells most. Any other text is cut at its end.
pub(crate) fn truncate_path(full_path: &str, max_columns: usize) -> String {
    if display_width(full_path) <= max_columns || full_path.contains(' ') {
        return truncate_to_width(full_path, max_columns);
    }
    let path_ends = full_path.match_indices('/').map(|(slash_offset, _)| &full_path[slash_offset..]);
    // One column goes to the ellipsis.
    match path_ends.into_iter().find(|path_end| display_width(path_end) < max_columns) {
        Some(path_end) => format!("…{path_end}"),
        None => truncate_to_width(full_path.rsplit('/').next().unwrap_or(full_path), max_columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        assert_eq!(clean_line("a\x1b[2J\x1b]0;title\x07b"), "a[2J]0;titleb");
        assert_eq!(clean_line("over\rwritten\nline\ttwo"), "over written line two");
        assert_eq!(clean_line("c1 \u{9b}31m\u{90}x\u{9c}"), "c1 31mx");
        assert_eq!(clean_line("\u{202e}txt.exe\u{202c} \u{2066}x\u{2069}\u{200f}"), "txt.exe x");
        assert_eq!(clean_line("a\u{200b}b\u{feff}c\u{e0041}"), "abc");
        assert_eq!(clean_line("\u{202e}\ta \u{200b} b\u{2028}c"), "a b c");
    }

    /// One character of every class that must not pass, apart from line ends and tabs.
    const HOSTILE_CHARACTERS: &str = "\x1b\x07\x7f\u{85}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{180b}\u{200b}\u{200f}\u{2028}\u{2029}\u{202e}\
                           \u{2060}\u{2066}\u{3164}\u{fe00}\u{feff}\u{fff9}\u{1d173}\u{e0001}\u{e0041}\u{e01ef}";

    #[test]
    fn a_block_keeps_its_lines_and_escapes_what_it_does_not_show() {
        assert_eq!(clean_block("a\tb\r\n\n  c\n"), "a\tb\r\n\n  c\n");
        assert_eq!(clean_block("over\rwritten\x1b[2J\u{9b}31m"), "over\\rwritten\\u{1b}[2J\\u{9b}31m");
        assert_eq!(clean_block("\u{202e}txt.exe ⚠\u{fe0f}"), "\\u{202e}txt.exe ⚠\u{fe0f}");
        assert!(clean_block(HOSTILE_CHARACTERS).is_ascii() && clean_line(HOSTILE_CHARACTERS).is_empty());
    }

    #[test]
    fn names_and_commands_are_escaped_but_never_shortened() {
        assert_eq!(escape_line("a 'b' \\ é 審"), "a 'b' \\ é 審");
        assert_eq!(escape_line("a\tb\nc\u{a0}d\u{3000}\u{fe0f}"), "a\\tb\\nc\\u{a0}d\\u{3000}\\u{fe0f}");
        assert!(escape_line(HOSTILE_CHARACTERS).is_ascii());
    }

    #[test]
    fn escaped_json_has_the_same_value_and_no_control_characters() {
        for original_text in [HOSTILE_CHARACTERS, "plain\n\ttext é \"quoted\" \\u0041", ""] {
            let json_text = serde_json::to_string_pretty(&serde_json::json!({ "text": original_text })).unwrap();
            let escaped_text = escape_json(&json_text);
            assert!(escaped_text.chars().all(|c| c == '\n' || is_displayable(c)), "{escaped_text}");
            let parsed_value: serde_json::Value = serde_json::from_str(&escaped_text).unwrap();
            assert_eq!(parsed_value["text"], original_text);
        }
    }

    #[test]
    fn letters_keep_a_few_combining_marks() {
        assert_eq!(clean_line("e\u{301}a\u{308}"), "e\u{301}a\u{308}");
        let stacked_marks = format!("x{}y", "\u{301}".repeat(500));
        assert_eq!(clean_line(&stacked_marks).chars().count(), 2 + MAX_COMBINING_MARKS);
    }

    #[test]
    fn widths_are_counted_in_columns_not_characters() {
        assert_eq!(
            (display_width("abc"), display_width("審査"), display_width("🦀"), display_width("e\u{301}")),
            (3, 4, 2, 1)
        );
        assert_eq!(truncate_to_width("審査中です", 7), "審査中…");
        assert_eq!(truncate_to_width("審査中です", 6), "審査…");
        assert_eq!(truncate_to_width("審査", 4), "審査");
        assert_eq!((truncate_to_width("abc", 1), truncate_to_width("abc", 0)), ("…".to_string(), String::new()));
    }

    #[test]
    fn text_is_cut_between_words_and_a_path_between_names() {
        assert_eq!(truncate_to_width("one two three four", 12), "one two…");
        assert_eq!(truncate_to_width("one two three four", 14), "one two three…");
        assert_eq!(truncate_to_width("a considerable word", 10), "a conside…");
        assert_eq!(truncate_path("docs/planning/prd.md", 20), "docs/planning/prd.md");
        assert_eq!(truncate_path("docs/planning/prd.md", 17), "…/planning/prd.md");
        assert_eq!(truncate_path("docs/planning/prd.md", 16), "…/prd.md");
        assert_eq!(truncate_path("docs/planning-artifacts.md", 8), "plannin…");
        assert_eq!(truncate_path("docs/prd.md § Goals", 12), "docs/prd.md…");
    }
}
