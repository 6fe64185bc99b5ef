//! Escapes untrusted text for Markdown, so that it can be read and does nothing.
//!
//! The text can neither end what it is placed in (a cell, a quote, a `<details>`) nor begin anything: no markup, no HTML, no
//! image, no link, no formula. On a forge it cannot mention a user (`@name`), refer to an issue (`#1`, `GH-1`) or become a link
//! by looking like one. Forges search the rendered text for those, where a backslash is gone, so a zero-width space is put
//! into them, written as an entity.

use crate::{clean, clean_block};

/// A zero-width space, as an entity that is visible in the source.
const NO_WIDTH: &str = "&#8203;";

/// Escapes text to one line that is safe anywhere in a line, and at its start.
pub(super) fn prose(text: &str) -> String {
    let line = clean(text);
    let mut out = String::with_capacity(line.len());
    // Some characters mean something only where a line begins.
    let marks = opening(&line);
    for (at, c) in line.char_indices() {
        let (before, after) = (&line[..at], &line[at + c.len_utf8()..]);
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' => out.push_str("&#124;"),
            '\\' => out.push_str("&#92;"),
            '$' => out.push_str("&#36;"),
            // These have a meaning anywhere in a line, and a backslash takes it away.
            '`' | '*' | '_' | '[' | ']' | '~' => out.extend(['\\', c]),
            _ => {
                out.extend((marks == Some(at)).then_some('\\'));
                out.push(c);
                out.push_str(if calls(before, c, after) { NO_WIDTH } else { "" });
            }
        }
    }
    out
}

/// The offset of the character that would turn the line into a heading, a rule, a list item or a definition.
fn opening(line: &str) -> Option<usize> {
    if line.starts_with(['#', '-', '+', '=', ':']) {
        return Some(0);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let counts = digits > 0 && line[digits..].starts_with(['.', ')']);
    // `99.9` is a number, not the start of a list.
    (counts && !line[digits + 1..].starts_with(|c: char| c != ' ')).then_some(digits)
}

/// Returns whether a forge would see a mention, an issue or a link that begins at this character.
fn calls(before: &str, c: char, after: &str) -> bool {
    let behind = |word: &str| {
        // `get` fails in the middle of a character, which cannot be one of these ASCII prefixes.
        before
            .get(before.len().saturating_sub(word.len())..)
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    match c {
        '@' => true,
        // A lone `#` is harmless, and so is the one in `C#`.
        '#' => after.starts_with(char::is_alphanumeric),
        ':' => after.starts_with('/'),
        'w' | 'W' => behind("ww") && after.starts_with('.'),
        '-' => behind("gh") && after.starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    }
}

/// Escapes text as inline code. The HTML element is used because text in backticks cannot be escaped.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", prose(text))
}

/// Puts a text of several lines between fences that nothing in it can close.
pub(super) fn fenced(text: &str) -> String {
    let text = clean_block(text);
    // A fence is closed by a run of backticks at least as long as itself; the shortest fence has three.
    let mut longest = 2;
    for run in text.split(|c| c != '`') {
        longest = longest.max(run.len());
    }
    let fence = "`".repeat(longest + 1);
    let lines: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{fence}text\n{lines}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_shown_and_not_obeyed() {
        for (text, inert) in [
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
            assert_eq!(prose(text), inert);
        }
    }

    #[test]
    fn nobody_is_called_and_nothing_is_linked() {
        for (text, inert) in [
            ("ask @octocat", "ask @&#8203;octocat"),
            ("me@example.org", "me@&#8203;example.org"),
            ("closes #12, GH-3, gh-x", "closes #&#8203;12, GH-&#8203;3, gh-x"),
            ("see https://a.example", "see https:&#8203;//a.example"),
            ("see WWW.a.example", "see WWW&#8203;.a.example"),
            ("#12 first", r"\#&#8203;12 first"),
            ("C# and a # alone", "C# and a # alone"),
        ] {
            assert_eq!(prose(text), inert);
        }
    }

    #[test]
    fn a_fence_is_longer_than_all_that_stand_in_it() {
        assert_eq!(fenced("a\n```\n`````x"), "``````text\na\n```\n`````x\n``````\n");
        assert_eq!(fenced("over\rwritten"), "```text\nover\\rwritten\n```\n");
    }
}
