//! Removes what answers come wrapped in: byte order marks, carriage returns, our own marked blocks, HTML escapes and
//! code fences. The result is a sequence of text regions, each fenced or not.

use crate::prompt::marked_blocks;

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerRegion<'t> {
    pub text: &'t str,
    pub is_fenced: bool,
    /// Whether the line before it introduces an example.
    pub is_example: bool,
}

/// Removes byte order marks, carriage returns, marked blocks and HTML escapes from an answer.
pub(super) fn strip_wrapping(answer_text: &str) -> String {
    let mut answer_text = answer_text.replace("\r\n", "\n").replace('\r', "\n").replace('\u{feff}', "");
    // An agent may echo its prompt. The marked blocks in it are material under review, and a list in that material is
    // not an answer.
    if marked_blocks::has_blocks(&answer_text) {
        answer_text = marked_blocks::remove_blocks(&answer_text);
    }
    if is_html_escaped(&answer_text) { unescape_html(&answer_text) } else { answer_text }
}

/// Whether the whole text was escaped for HTML: its quotation marks were, and no plain `<` or `"` is left.
fn is_html_escaped(answer_text: &str) -> bool {
    let escaped_quotes = ["&quot;", "&#34;", "&#x22;", "&#39;", "&#x27;", "&apos;"];
    !answer_text.contains(['<', '"']) && escaped_quotes.iter().any(|escaped_quote| answer_text.contains(escaped_quote))
}

/// Replaces HTML entities by their characters; an unknown entity stays as it is.
pub(super) fn unescape_html(escaped_text: &str) -> String {
    let mut unescaped = String::with_capacity(escaped_text.len());
    let mut remaining_text = escaped_text;
    while let Some(position) = remaining_text.find('&') {
        unescaped.push_str(&remaining_text[..position]);
        remaining_text = &remaining_text[position..];
        // No entity is longer than ten bytes. The limit keeps the search linear in a text full of ampersands.
        let entity = remaining_text
            .bytes()
            .take(10)
            .position(|byte| byte == b';')
            .and_then(|entity_end| remaining_text.get(1..entity_end));
        match entity.and_then(|entity_name| decode_entity(entity_name).map(|decoded| (entity_name.len() + 2, decoded)))
        {
            Some((entity_length, decoded)) => {
                unescaped.push(decoded);
                remaining_text = &remaining_text[entity_length..];
            }
            // A bare `&` is ordinary text.
            None => {
                unescaped.push('&');
                remaining_text = &remaining_text[1..];
            }
        }
    }
    unescaped.push_str(remaining_text);
    unescaped
}

/// Decodes an entity by its name or its number.
fn decode_entity(entity_name: &str) -> Option<char> {
    match entity_name {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "nbsp" => Some(' '),
        _ => {
            let code_text = entity_name.strip_prefix('#')?;
            let code_point = match code_text.strip_prefix(['x', 'X']) {
                Some(hex_digits) => u32::from_str_radix(hex_digits, 16),
                None => code_text.parse(),
            };
            code_point.ok().and_then(char::from_u32)
        }
    }
}

/// An opening code fence.
#[derive(Clone, Copy)]
struct CodeFence {
    indent: usize,
    fence_char: char,
    fence_length: usize,
}

/// Splits a text into fenced blocks and what is between them. A fence is closed by one that is not indented deeper:
/// deeper fences belong to the text inside. A fence that is never closed ends with the text.
pub(super) fn split_regions(answer_text: &str) -> Vec<AnswerRegion<'_>> {
    let mut found_regions = Vec::new();
    let mut open_fence: Option<CodeFence> = None;
    let (mut region_start, mut line_start) = (0, 0);
    let mut introduction_line = "";
    let mut after_example = false;
    for text_line in answer_text.split_inclusive('\n') {
        let next_start = line_start + text_line.len();
        let line_marks = parse_fence(text_line);
        let is_boundary = match (line_marks, open_fence) {
            // An inline code span like ```` ```x``` ```` begins like a fence but contains further backticks.
            (Some((_, info_string)), None) => !info_string.contains('`'),
            (Some((line_fence, info_string)), Some(outer_fence)) => {
                let closes_outer = line_fence.fence_char == outer_fence.fence_char
                    && line_fence.fence_length >= outer_fence.fence_length
                    && line_fence.indent <= outer_fence.indent;
                closes_outer && (info_string.is_empty() || !info_string.contains('`'))
            }
            (None, _) => false,
        };
        if is_boundary {
            found_regions.push(AnswerRegion {
                text: &answer_text[region_start..line_start],
                is_fenced: open_fence.is_some(),
                is_example: open_fence.is_some() && after_example,
            });
            // A fence with a data language opens a block, even if the previous block was never closed.
            let opens_block =
                open_fence.is_none() || line_marks.is_some_and(|(_, info_string)| is_data_language(info_string));
            open_fence = line_marks.map(|(line_fence, _)| line_fence).filter(|_| opens_block);
            after_example = introduces_example(introduction_line);
            region_start = next_start;
        } else if open_fence.is_none() && !text_line.trim().is_empty() {
            // The last line of prose before a fence says whether the block is an example.
            introduction_line = text_line;
        }
        line_start = next_start;
    }
    found_regions.push(AnswerRegion {
        text: &answer_text[region_start..],
        is_fenced: open_fence.is_some(),
        is_example: open_fence.is_some() && after_example,
    });
    found_regions.retain(|region| !region.text.trim().is_empty());
    found_regions
}

/// Parses a line as a fence, with the info string behind it.
fn parse_fence(text_line: &str) -> Option<(CodeFence, &str)> {
    let trimmed_line = text_line.trim_start();
    let fence_char = trimmed_line.chars().next().filter(|character| matches!(character, '`' | '~'))?;
    let after_fence = trimmed_line.trim_start_matches(fence_char);
    let fence_length = trimmed_line.len() - after_fence.len();
    (fence_length >= 3).then(|| {
        (CodeFence { indent: text_line.len() - trimmed_line.len(), fence_char, fence_length }, after_fence.trim())
    })
}

fn is_data_language(info_string: &str) -> bool {
    ["yaml", "yml", "json", "jsonc", "json5"].iter().any(|language| info_string.eq_ignore_ascii_case(language))
}

/// Whether a line introduces an example: `For example:` or `The form:`, but not `My findings in the form you asked
/// for:`.
fn introduces_example(introduction: &str) -> bool {
    let lowercase_line = introduction.to_lowercase();
    let mut line_words =
        lowercase_line.split(|character: char| !character.is_alphanumeric()).filter(|line_word| !line_word.is_empty());
    // Only a short line that ends with such a word is about the form itself.
    let first_words: Vec<&str> = line_words.by_ref().take(4).collect();
    let names_form = first_words.len() <= 3
        && first_words.last().is_some_and(|line_word| matches!(*line_word, "form" | "format" | "template" | "schema"));
    names_form || first_words.iter().copied().chain(line_words).any(|line_word| line_word == "example")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_split_a_text_into_regions() {
        let answer_text =
            "Hello\n```yaml\na: 1\n  ```\n  inside\n  ```\n```\nFor example:\n~~~~\n```\n~~~\n~~~~\nBye\n```json\n{\n";
        let found_regions: Vec<(bool, bool, &str)> = split_regions(answer_text)
            .iter()
            .map(|region| (region.is_fenced, region.is_example, region.text))
            .collect();
        assert_eq!(
            found_regions,
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
        assert_eq!(strip_wrapping("quote: &quot;a &lt; b &amp;&#x26; c&quot;"), "quote: \"a < b && c\"");
        assert_eq!(strip_wrapping("quote: \"write &quot;&lt;b&gt;&quot;\""), "quote: \"write &quot;&lt;b&gt;&quot;\"");
        assert_eq!(unescape_html("a & b &unknown; &#xfffffff; &"), "a & b &unknown; &#xfffffff; &");
    }

    #[test]
    fn examples_are_recognized_by_the_line_that_introduces_them() {
        for (introduction_line, expected) in [
            ("The form:", true),
            ("For example:", true),
            ("Requested format:", true),
            ("Here are my findings in the format you asked for:", false),
            ("Mine:", false),
        ] {
            assert_eq!(introduces_example(introduction_line), expected, "{introduction_line}");
        }
    }
}
