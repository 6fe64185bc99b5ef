//! The tags in a session's last answer: that it is done, that it is blocked, that its time is up.
//!
//! A tag counts anywhere in the last answer, but not in code (fences, back quotes) and not in lines quoted with `>`: an
//! answer that explains what it will say has not said it. Texts are compared literally, with runs of white space as one
//! space; `*` and `[` have no special meaning.

use alloc::{
    collections::BTreeSet,
    string::{String, ToString},
    vec::Vec,
};

use super::SessionWork;

/// The tags that declare completion.
const COMPLETION_TAGS: [&str; 2] = [SessionWork::Review.completion_tag(), SessionWork::Loop.completion_tag()];

/// The tags of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerTags {
    /// The contents of completion tags, with white space folded.
    pub promised: Vec<String>,
    pub blocked: Option<String>,
    pub timed_out: Option<String>,
}

impl AnswerTags {
    pub fn from_answer(answer: &str) -> AnswerTags {
        let plain_text = strip_code(answer);
        let mut answer_tags = AnswerTags::from_plain_text(&plain_text);
        // Codex escapes what a hook prints, so its model sees the tags escaped and repeats them like that.
        if plain_text.contains("&lt;") {
            let escaped_tags = AnswerTags::from_plain_text(&unescape_entities(&plain_text));
            answer_tags.promised.extend(escaped_tags.promised);
            answer_tags.blocked = answer_tags.blocked.or(escaped_tags.blocked);
            answer_tags.timed_out = answer_tags.timed_out.or(escaped_tags.timed_out);
        }
        answer_tags
    }

    fn from_plain_text(plain_text: &str) -> AnswerTags {
        let mut promised = Vec::new();
        for tag in COMPLETION_TAGS {
            promised.extend(find_tagged(plain_text, tag));
        }
        AnswerTags {
            promised,
            blocked: tag_reason(plain_text, "review-blocked"),
            timed_out: tag_reason(plain_text, "review-timeout"),
        }
    }

    pub fn has_promised(&self, expected: &str) -> bool {
        let expected = fold_whitespace(expected);
        !expected.is_empty() && self.promised.contains(&expected)
    }
}

/// Whether an answer says a completion word such as `LOOP_COMPLETE`, which has no tags around it.
///
/// The word must be a line or a sentence of its own, with nothing but emphasis and punctuation at its sides: "I have not
/// reached LOOP_COMPLETE" and "`LOOP_COMPLETE` comes last" only talk about it. Code, quoted lines and quotation marks do not
/// count, and case matters. An answer that may repeat its prompt goes through [`remove_prompt_echo`] first.
pub fn has_completion_word(answer: &str, word: &str) -> bool {
    let word = fold_whitespace(word);
    let is_word = |sentence: &str| {
        let sentence =
            sentence.trim_matches(|character: char| character.is_whitespace() || "*_~.!#-".contains(character));
        fold_whitespace(sentence) == word
    };
    // An underscore or a dash at the ends of the word itself would be trimmed from the answer.
    let word_is_plain = word.trim_matches(|character: char| "*_~.!#- ".contains(character)) == word;
    !word.is_empty()
        && word_is_plain
        && strip_code(answer).lines().any(|line| is_word(line) || split_sentences(line).any(is_word))
}

/// Splits at punctuation that a space follows, so that `v1.2` stays whole.
fn split_sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(". ").flat_map(|part| part.split_inclusive("! ")).flat_map(|part| part.split_inclusive("? "))
}

/// Removes the lines of an answer that repeat its prompt: a prompt that says how to declare completion would otherwise
/// declare it. A line of one word is a repetition only below the line that it follows in the prompt as well, since this
/// word may be just what the agent was asked to say.
pub fn remove_prompt_echo(answer: &str, prompt: &str) -> String {
    let prompt_lines: Vec<String> = prompt.lines().map(fold_whitespace).filter(|line| !line.is_empty()).collect();
    let known_lines: BTreeSet<&str> = prompt_lines.iter().map(String::as_str).collect();
    let known_pairs: BTreeSet<(&str, &str)> =
        prompt_lines.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect();
    let mut kept_text = String::with_capacity(answer.len());
    let mut line_above = String::new();
    for line in answer.lines() {
        let folded_line = fold_whitespace(line);
        let is_known = known_lines.contains(folded_line.as_str());
        let follows_known = known_pairs.contains(&(line_above.as_str(), folded_line.as_str()));
        if !is_known || !(folded_line.contains(' ') || follows_known) {
            kept_text.push_str(line);
        }
        kept_text.push('\n');
        if !folded_line.is_empty() {
            line_above = folded_line;
        }
    }
    kept_text
}

/// The placeholder in the instructions: an answer that repeats it literally gives no reason.
const REASON_PLACEHOLDER: &str = "REASON";

fn tag_reason(plain_text: &str, tag: &str) -> Option<String> {
    find_tagged(plain_text, tag).into_iter().find(|reason| reason != REASON_PLACEHOLDER)
}

/// Replaces entities. `&amp;` comes last, so that text that was escaped twice is not unescaped twice.
fn unescape_entities(escaped_text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    entities
        .iter()
        .fold(escaped_text.to_string(), |unescaped_text, (entity, character)| unescaped_text.replace(entity, character))
}

/// Returns each text between `<tag>` and `</tag>`. A tag that is never closed is ignored.
fn find_tagged(plain_text: &str, tag: &str) -> Vec<String> {
    let (opening, closing_tag) = (alloc::format!("<{tag}>"), alloc::format!("</{tag}>"));
    let mut contents = Vec::new();
    let mut remainder = plain_text;
    while let Some((_, after_opening)) = remainder.split_once(opening.as_str()) {
        let Some((content, after_closing)) = after_opening.split_once(closing_tag.as_str()) else { break };
        // The innermost opening tag is the one that is closed.
        let content = content.rsplit(opening.as_str()).next().unwrap_or(content);
        contents.push(fold_whitespace(content));
        remainder = after_closing;
    }
    contents
}

pub(crate) fn fold_whitespace(raw_text: &str) -> String {
    raw_text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Removes fenced blocks, quoted lines and text in back quotes.
fn strip_code(answer: &str) -> String {
    let mut plain_text = String::with_capacity(answer.len());
    let mut fence: Option<(char, usize)> = None;
    for line in answer.lines() {
        let line_start = line.trim_start();
        let fence_character = line_start.chars().next().filter(|character| matches!(character, '`' | '~'));
        let mark_length = fence_character.map_or(0, |fence_character| {
            line_start.chars().take_while(|character| *character == fence_character).count()
        });
        match (fence, fence_character) {
            // A fence is closed by at least as many of the same marks, with nothing behind them.
            (Some((open_character, min_length)), Some(fence_character))
                if fence_character == open_character && mark_length >= min_length =>
            {
                let closes = line_start.trim_start_matches(fence_character).trim().is_empty();
                fence = if closes { None } else { fence };
            }
            (Some(_), _) => {}
            (None, Some(fence_character)) if mark_length >= 3 => fence = Some((fence_character, mark_length)),
            (None, _) if line_start.starts_with('>') => {}
            (None, _) => plain_text.push_str(line),
        }
        // Removed lines stay as empty ones, so that paragraphs remain separate.
        plain_text.push('\n');
    }
    strip_code_spans(&plain_text)
}

/// Removes the text between equal runs of back quotes. A run without a counterpart is plain text.
fn strip_code_spans(plain_text: &str) -> String {
    let mut stripped = String::with_capacity(plain_text.len());
    let mut remainder = plain_text;
    while let Some(tick_offset) = remainder.find('`') {
        let (text_before, from_ticks) = remainder.split_at(tick_offset);
        stripped.push_str(text_before);
        let after_ticks = from_ticks.trim_start_matches('`');
        let tick_count = from_ticks.len() - after_ticks.len();
        match find_span_end(after_ticks, tick_count) {
            Some(span_end) => remainder = &after_ticks[span_end..],
            None => {
                stripped.push_str(&from_ticks[..tick_count]);
                remainder = after_ticks;
            }
        }
    }
    stripped.push_str(remainder);
    stripped.to_string()
}

/// Returns where a span of so many back quotes ends. A span does not cross an empty line.
fn find_span_end(after_ticks: &str, tick_count: usize) -> Option<usize> {
    let paragraph_end = after_ticks.find("\n\n").unwrap_or(after_ticks.len());
    let mut offset = 0;
    while let Some(found_at) = after_ticks[offset..paragraph_end].find('`') {
        let start = offset + found_at;
        let run_length = after_ticks[start..paragraph_end].bytes().take_while(|byte| *byte == b'`').count();
        offset = start + run_length;
        // A run of another length is part of the span's content.
        if run_length == tick_count {
            return Some(offset);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_promise(answer: &str, promise: &str) -> bool {
        AnswerTags::from_answer(answer).has_promised(promise)
    }

    #[test]
    fn a_promise_is_its_exact_text_in_its_tags() {
        for (answer, promise, expected) in [
            ("<promise>DONE</promise>", "DONE", true),
            ("<review-complete>ALL_ISSUES_RESOLVED</review-complete>", "ALL_ISSUES_RESOLVED", true),
            // In the middle of an answer, over several lines, with spaces.
            ("All done.\n<promise>\n  every test\n passes </promise>\nBye.", "every test passes", true),
            ("one <promise>A</promise> two <promise>B</promise>", "B", true),
            // The promise of another loop, other words, a part of it, or no tags.
            ("<promise>OTHER</promise>", "DONE", false),
            ("<promise>done</promise>", "DONE", false),
            ("<promise>DONE and more</promise>", "DONE", false),
            ("DONE", "DONE", false),
            ("abandoned <promise>", "DONE", false),
            ("", "DONE", false),
            ("<promise></promise>", "", false),
            // Characters that are special in patterns have no meaning here.
            ("<promise>all [x] * done?</promise>", "all [x] * done?", true),
            ("<promise>anything</promise>", "*", false),
            ("<promise>x</promise>", "[a-z]", false),
            // Escaped, as a client may have shown it to the model.
            ("&lt;promise&gt;A &amp; &quot;B&quot;&lt;/promise&gt;", "A & \"B\"", true),
            ("&lt;promise&gt;A & B&lt;/promise&gt;", "A & B", true),
            ("&amp;lt;promise&gt;A&lt;/promise&gt;", "A", false),
            ("`&lt;promise&gt;A&lt;/promise&gt;`", "A", false),
            ("<promise>&lt;b&gt;</promise>", "&lt;b&gt;", true),
            // An answer that explains what it will say has not said it.
            ("When I am done I say `<promise>DONE</promise>`.", "DONE", false),
            ("```\n<promise>DONE</promise>\n```", "DONE", false),
            ("~~~~\n```\n<promise>DONE</promise>\n```\n~~~~\n", "DONE", false),
            ("> <promise>DONE</promise>", "DONE", false),
            ("```\ncode\n```\n<promise>DONE</promise>", "DONE", true),
            ("a ` alone <promise>DONE</promise>", "DONE", true),
            ("I will not say <promise> yet. <promise>DONE</promise>", "DONE", true),
        ] {
            assert_eq!(has_promise(answer, promise), expected, "{answer:?} {promise:?}");
        }
    }

    #[test]
    fn what_a_session_is_told_to_say_is_what_counts() {
        for work in [SessionWork::Loop, SessionWork::Review] {
            assert!(has_promise(&work.tag_promise("ALL DONE"), "ALL DONE"), "{work:?}");
        }
    }

    #[test]
    fn an_answer_without_tags_says_nothing() {
        assert_eq!(AnswerTags::from_answer("review-blocked? no. I am blocked, timeout"), AnswerTags::default());
        assert_eq!(AnswerTags::from_answer("I may say <review-blocked>REASON</review-blocked>").blocked, None);
        let answer_tags = AnswerTags::from_answer("<review-blocked> needs\n a key </review-blocked>");
        assert_eq!(answer_tags.blocked.as_deref(), Some("needs a key"));
        assert_eq!(answer_tags.timed_out, None);
    }

    #[test]
    fn a_completion_word_is_a_line_or_a_sentence_of_its_own() {
        for (answer, expected) in [
            ("LOOP_COMPLETE", true),
            ("All tests pass.\n\n**LOOP_COMPLETE**\n", true),
            ("All tests pass. LOOP_COMPLETE", true),
            ("LOOP_COMPLETE. Good night!", true),
            ("- LOOP_COMPLETE!", true),
            // Words about the word, parts of other words and other spellings.
            ("I have not reached LOOP_COMPLETE yet", false),
            ("I print LOOP_COMPLETE when all is done", false),
            ("LOOP_COMPLETED", false),
            ("NOT_LOOP_COMPLETE", false),
            ("loop_complete", false),
            ("LOOP COMPLETE", false),
            // Code and quotes.
            ("`LOOP_COMPLETE`", false),
            ("```\nLOOP_COMPLETE\n```", false),
            ("> LOOP_COMPLETE", false),
            ("\"LOOP_COMPLETE\"", false),
            ("", false),
        ] {
            assert_eq!(has_completion_word(answer, "LOOP_COMPLETE"), expected, "{answer:?}");
        }
        assert!(has_completion_word("Done.\nall  done", "all done"));
        for no_word in ["", "  ", "***", "_"] {
            assert!(!has_completion_word("\n\n***\n_\n", no_word), "{no_word:?}");
        }
    }

    #[test]
    fn a_repeated_prompt_declares_nothing() {
        let prompt =
            "Fix the parser.\n\nWhen all is done, say only:\n\n  LOOP_COMPLETE\n\nDo not stop early. LOOP_COMPLETE\n";
        for (answer, expected) in [
            (prompt, false),
            ("You said:\nWhen all is done, say only:\nLOOP_COMPLETE\nI go on.", false),
            ("Do not stop early.  LOOP_COMPLETE", false),
            ("The parser is fixed.\n\nLOOP_COMPLETE", true),
            ("LOOP_COMPLETE", true),
            ("When all is done, say only:\nLOOP_COMPLETE\nIt is done:\nLOOP_COMPLETE", true),
        ] {
            let own_words = remove_prompt_echo(answer, prompt);
            assert_eq!(has_completion_word(&own_words, "LOOP_COMPLETE"), expected, "{answer:?}");
        }
    }
}
