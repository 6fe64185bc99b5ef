//! Removes what answers come wrapped in: byte order marks, carriage returns, our own marked blocks, HTML escapes and
//! code fences. The result is a sequence of text regions, each fenced or not.

use crate::prompt::blocks;

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<'t> {
    pub text: &'t str,
    pub fenced: bool,
    /// Whether the line before it introduces an example.
    pub example: bool,
}

/// Restores the text as its author meant it.
pub(super) fn undress(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\u{feff}', "");
    // An agent may echo its prompt. The marked blocks in it are material under review, and a list in that material is
    // not an answer.
    if blocks::any(&text) {
        text = blocks::without(&text);
    }
    if is_escaped(&text) { unescape(&text) } else { text }
}

/// Whether the whole text was escaped for HTML: its quotation marks were, and no unescaped HTML character is left.
fn is_escaped(text: &str) -> bool {
    let quotes = ["&quot;", "&#34;", "&#x22;", "&#39;", "&#x27;", "&apos;"];
    !text.contains(['<', '"']) && quotes.iter().any(|quote| text.contains(quote))
}

/// Replaces HTML entities by their characters; an unknown entity stays as it is.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // No entity is longer than ten bytes, so that a text full of ampersands is not searched to its end each time.
        let entity = rest.bytes().take(10).position(|b| b == b';').and_then(|end| rest.get(1..end));
        match entity.and_then(|name| character(name).map(|c| (name.len() + 2, c))) {
            Some((length, c)) => {
                out.push(c);
                rest = &rest[length..];
            }
            // A bare `&` is ordinary text.
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Decodes an entity by its name or its number.
fn character(name: &str) -> Option<char> {
    match name {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

/// An opening code fence.
#[derive(Clone, Copy)]
struct Fence {
    depth: usize,
    mark: char,
    length: usize,
}

/// Splits a text into fenced blocks and what is between them. A fence is closed by one that is not indented deeper:
/// deeper fences belong to the text inside. A fence that is never closed ends with the text.
pub(super) fn regions(text: &str) -> Vec<Region<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Fence> = None;
    let (mut start, mut offset) = (0, 0);
    let mut introduction = "";
    let mut example = false;
    for line in text.split_inclusive('\n') {
        let next = offset + line.len();
        let fence = fence(line);
        let turns = match (fence, open) {
            // An inline code span like ```` ```x``` ```` begins like a fence but contains further backticks.
            (Some((_, info)), None) => !info.contains('`'),
            (Some((fence, info)), Some(outer)) => {
                let closes =
                    fence.mark == outer.mark && fence.length >= outer.length && fence.depth <= outer.depth;
                closes && (info.is_empty() || !info.contains('`'))
            }
            (None, _) => false,
        };
        if turns {
            found.push(Region {
                text: &text[start..offset],
                fenced: open.is_some(),
                example: open.is_some() && example,
            });
            // A fence with a language opens a block, even if the previous block was never closed.
            let opens = open.is_none() || fence.is_some_and(|(_, info)| is_language(info));
            open = fence.map(|(fence, _)| fence).filter(|_| opens);
            example = is_example(introduction);
            start = next;
        } else if open.is_none() && !line.trim().is_empty() {
            // The last line of prose before a fence says whether the block is an example.
            introduction = line;
        }
        offset = next;
    }
    found.push(Region { text: &text[start..], fenced: open.is_some(), example: open.is_some() && example });
    found.retain(|region| !region.text.trim().is_empty());
    found
}

/// Parses a line as a fence, with the info string behind it.
fn fence(line: &str) -> Option<(Fence, &str)> {
    let says = line.trim_start();
    let mark = says.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = says.trim_start_matches(mark);
    let length = says.len() - rest.len();
    (length >= 3).then(|| (Fence { depth: line.len() - says.len(), mark, length }, rest.trim()))
}

fn is_language(info: &str) -> bool {
    ["yaml", "yml", "json", "jsonc", "json5"].iter().any(|name| info.eq_ignore_ascii_case(name))
}

/// Whether a line introduces an example: `For example:` or `The form:`, but not `My findings in the form you asked
/// for:`.
fn is_example(introduction: &str) -> bool {
    let lower = introduction.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // Only a short line that ends with such a word is about the form itself.
    let few: Vec<&str> = words.by_ref().take(4).collect();
    let form = few.len() <= 3
        && few.last().is_some_and(|word| matches!(*word, "form" | "format" | "template" | "schema"));
    form || few.iter().copied().chain(words).any(|word| word == "example")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_part_a_text_into_regions() {
        let text = "Hello\n```yaml\na: 1\n  ```\n  inside\n  ```\n```\nFor example:\n~~~~\n```\n~~~\n~~~~\nBye\n```json\n{\n";
        let found: Vec<(bool, bool, &str)> =
            regions(text).iter().map(|region| (region.fenced, region.example, region.text)).collect();
        assert_eq!(
            found,
            [
                (false, false, "Hello\n"),
                (true, false, "a: 1\n  ```\n  inside\n  ```\n"),
                (false, false, "For example:\n"),
                (true, true, "```\n~~~\n"),
                (false, false, "Bye\n"),
                (true, false, "{\n"),
            ]
        );
    }

    #[test]
    fn only_a_text_that_was_escaped_as_a_whole_is_unescaped() {
        assert_eq!(undress("quote: &quot;a &lt; b &amp;&#x26; c&quot;"), "quote: \"a < b && c\"");
        assert_eq!(
            undress("quote: \"write &quot;&lt;b&gt;&quot;\""),
            "quote: \"write &quot;&lt;b&gt;&quot;\""
        );
        assert_eq!(unescape("a & b &unknown; &#xfffffff; &"), "a & b &unknown; &#xfffffff; &");
    }

    #[test]
    fn examples_are_told_from_answers_by_what_introduces_them() {
        for (line, example) in [
            ("The form:", true),
            ("For example:", true),
            ("Requested format:", true),
            ("Here are my findings in the format you asked for:", false),
            ("Mine:", false),
        ] {
            assert_eq!(is_example(line), example, "{line}");
        }
    }
}
