//! Escapes untrusted text for Markdown, so that it can be read and does nothing.
//!
//! The text can neither end what it is placed in (a cell, a quote, a `<details>`) nor begin anything: no markup, no HTML, no
//! image, no link, no formula. On a forge it cannot mention a user (`@name`), refer to an issue (`#1`, `GH-1`) or become a link
//! by looking like one. Forges search the rendered text for those, where a backslash is gone, so a zero-width space is put
//! into them, written as an entity.

use crate::{clean_block, clean_line};

/// A zero-width space, as an entity that is visible in the source.
const ZERO_WIDTH_SPACE: &str = "&#8203;";

/// Escapes text to one line that is safe anywhere in a line, and at its start.
pub(crate) fn escape_prose(untrusted_text: &str) -> String {
    let cleaned_line = clean_line(untrusted_text);
    let mut escaped = String::with_capacity(cleaned_line.len());
    // Some characters mean something only where a line begins.
    let block_marker = block_marker_offset(&cleaned_line);
    for (char_offset, character) in cleaned_line.char_indices() {
        let (text_before, text_after) =
            (&cleaned_line[..char_offset], &cleaned_line[char_offset + character.len_utf8()..]);
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '|' => escaped.push_str("&#124;"),
            '\\' => escaped.push_str("&#92;"),
            '$' => escaped.push_str("&#36;"),
            // These have a meaning anywhere in a line, and a backslash takes it away.
            '`' | '*' | '_' | '[' | ']' | '~' => escaped.extend(['\\', character]),
            _ => {
                escaped.extend((block_marker == Some(char_offset)).then_some('\\'));
                escaped.push(character);
                escaped.push_str(if starts_reference(text_before, character, text_after) {
                    ZERO_WIDTH_SPACE
                } else {
                    ""
                });
            }
        }
    }
    escaped
}

/// The offset of the character that would turn the line into a heading, a rule, a list item or a definition.
fn block_marker_offset(prose_line: &str) -> Option<usize> {
    if prose_line.starts_with(['#', '-', '+', '=', ':']) {
        return Some(0);
    }
    let digit_count = prose_line.bytes().take_while(u8::is_ascii_digit).count();
    let is_list_number = digit_count > 0 && prose_line[digit_count..].starts_with(['.', ')']);
    // `99.9` is a number, not the start of a list.
    (is_list_number && !prose_line[digit_count + 1..].starts_with(|character: char| character != ' '))
        .then_some(digit_count)
}

/// Returns whether a forge would see a mention, an issue or a link that begins at this character.
fn starts_reference(text_before: &str, character: char, text_after: &str) -> bool {
    let ends_with = |expected_prefix: &str| {
        // `get` fails in the middle of a character, which cannot be one of these ASCII prefixes.
        text_before
            .get(text_before.len().saturating_sub(expected_prefix.len())..)
            .is_some_and(|prefix_end| prefix_end.eq_ignore_ascii_case(expected_prefix))
    };
    match character {
        '@' => true,
        // A lone `#` is harmless, and so is the one in `C#`.
        '#' => text_after.starts_with(char::is_alphanumeric),
        ':' => text_after.starts_with('/'),
        'w' | 'W' => ends_with("ww") && text_after.starts_with('.'),
        '-' => ends_with("gh") && text_after.starts_with(|character: char| character.is_ascii_digit()),
        _ => false,
    }
}

/// Escapes text as inline code. The HTML element is used because text in backticks cannot be escaped.
pub(crate) fn inline_code(untrusted_text: &str) -> String {
    format!("<code>{}</code>", escape_prose(untrusted_text))
}

/// Puts a text of several lines between fences that nothing in it can close.
pub(crate) fn fenced_block(block_text: &str) -> String {
    let block_text = clean_block(block_text);
    // A fence is closed by a run of backticks at least as long as itself; the shortest fence has three.
    let mut longest_run = 2;
    for backtick_run in block_text.split(|character| character != '`') {
        longest_run = longest_run.max(backtick_run.len());
    }
    let fence = "`".repeat(longest_run + 1);
    let trimmed_lines: String = block_text.lines().map(|block_line| format!("{}\n", block_line.trim_end())).collect();
    format!("{fence}text\n{trimmed_lines}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_as_text() {
        for (hostile_text, escaped) in [
            ("plain words, (round) brackets: a - b.", "plain words, (round) brackets: a - b."),
            ("`a` *b* _c_ ~d~", r"\`a\` \*b\* \_c\_ \~d\~"),
            ("![x](y) <img src=z>", r"!\[x\](y) &lt;img src=z&gt;"),
            ("a | b \\| c", "a &#124; b &#92;&#124; c"),
            ("&lt;b&gt; $x$", "&amp;lt;b&amp;gt; &#36;x&#36;"),
            ("# no heading", r"\# no heading"),
            ("- no item", r"\- no item"),
            (": no definition", r"\: no definition"),
            ("12. no item", r"12\. no item"),
            ("1) no item", r"1\) no item"),
            ("1.", r"1\."),
            ("99.9 % of it", "99.9 % of it"),
            ("two\nlines\r\n# here", "two lines # here"),
        ] {
            assert_eq!(escape_prose(hostile_text), escaped);
        }
    }

    #[test]
    fn no_user_is_mentioned_and_nothing_is_linked() {
        for (hostile_text, escaped) in [
            ("ask @octocat", "ask @&#8203;octocat"),
            ("me@example.org", "me@&#8203;example.org"),
            ("closes #12, GH-3, gh-x", "closes #&#8203;12, GH-&#8203;3, gh-x"),
            ("see https://a.example", "see https:&#8203;//a.example"),
            ("see WWW.a.example", "see WWW&#8203;.a.example"),
            ("#12 first", r"\#&#8203;12 first"),
            ("C# and a # alone", "C# and a # alone"),
        ] {
            assert_eq!(escape_prose(hostile_text), escaped);
        }
    }

    #[test]
    fn a_fence_is_longer_than_any_run_of_backticks_inside() {
        assert_eq!(fenced_block("a\n```\n`````x"), "``````text\na\n```\n`````x\n``````\n");
        assert_eq!(fenced_block("over\rwritten"), "```text\nover\\rwritten\n```\n");
    }
}
