//! Takes off what answers come wrapped in: byte order marks, carriage returns, our own marked blocks, HTML's escapes,
//! code fences. What is left is regions of text, in order, each fenced or not.

use crate::prompt::blocks;

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<'t> {
    pub text: &'t str,
    pub fenced: bool,
    /// The line before it introduces an example.
    pub example: bool,
}

/// The text as its writer meant it.
pub(super) fn undress(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\u{feff}', "");
    // A prompt that comes back is not an answer, whatever stands in the material it carries.
    if blocks::any(&text) {
        text = blocks::without(&text);
    }
    if is_escaped(&text) { unescape(&text) } else { text }
}

/// Whether the whole text went through HTML: its quotation marks did, and no mark of HTML is left bare.
fn is_escaped(text: &str) -> bool {
    let quotes = ["&quot;", "&#34;", "&#x22;", "&#39;", "&#x27;", "&apos;"];
    !text.contains(['<', '"']) && quotes.iter().any(|quote| text.contains(quote))
}

pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.bytes().take(10).position(|b| b == b';').and_then(|end| rest.get(1..end));
        match entity.and_then(|name| character(name).map(|c| (name.len() + 2, c))) {
            Some((length, c)) => {
                out.push(c);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

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

/// An opening fence: how deep it stands, its mark, and how long it is.
#[derive(Clone, Copy)]
struct Fence {
    depth: usize,
    mark: char,
    length: usize,
}

/// Fenced blocks and what stands between them. A fence is closed by one that stands no deeper than it: deeper ones belong
/// to the text inside. One that is never closed ends with the text.
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
            // A fence that names a language opens a block, also where the last one was left open.
            let opens = open.is_none() || fence.is_some_and(|(_, info)| is_language(info));
            open = fence.map(|(fence, _)| fence).filter(|_| opens);
            example = is_example(introduction);
            start = next;
        } else if open.is_none() && !line.trim().is_empty() {
            introduction = line;
        }
        offset = next;
    }
    found.push(Region { text: &text[start..], fenced: open.is_some(), example: open.is_some() && example });
    found.retain(|region| !region.text.trim().is_empty());
    found
}

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

/// `For example:`, `The form:`; not `My findings in the form you asked for:`.
fn is_example(introduction: &str) -> bool {
    let lower = introduction.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
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
