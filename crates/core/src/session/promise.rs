//! The tags in a session's last answer: that it is done, that it is blocked, that its time is up.
//!
//! A tag counts anywhere in the last answer, but not in code (fences, back quotes) and not in lines quoted with `>`: an
//! answer that explains what it will say has not said it. Texts are compared literally, with runs of white space as one
//! space; `*` and `[` have no special meaning.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// The tags that declare completion.
const DONE: [&str; 2] = ["review-complete", "promise"];

/// The tags of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The contents of completion tags, with white space folded.
    pub done: Vec<String>,
    pub blocked: Option<String>,
    pub timed_out: Option<String>,
}

impl Said {
    pub fn in_answer(answer: &str) -> Said {
        let plain = without_code(answer);
        let mut said = Said::in_plain(&plain);
        // Codex escapes what a hook prints, so its model sees the tags escaped and repeats them like that.
        if plain.contains("&lt;") {
            let shown = Said::in_plain(&unescaped(&plain));
            said.done.extend(shown.done);
            said.blocked = said.blocked.or(shown.blocked);
            said.timed_out = said.timed_out.or(shown.timed_out);
        }
        said
    }

    fn in_plain(plain: &str) -> Said {
        let mut done = Vec::new();
        for tag in DONE {
            done.extend(tagged(plain, tag));
        }
        Said { done, blocked: reason(plain, "review-blocked"), timed_out: reason(plain, "review-timeout") }
    }

    pub fn promises(&self, promise: &str) -> bool {
        let promise = folded(promise);
        !promise.is_empty() && self.done.contains(&promise)
    }
}

/// The placeholder in the instructions: an answer that repeats it literally gives no reason.
const PLACEHOLDER: &str = "REASON";

fn reason(text: &str, tag: &str) -> Option<String> {
    tagged(text, tag).into_iter().find(|reason| reason != PLACEHOLDER)
}

/// Replaces entities. `&amp;` comes last, so that text that was escaped twice is not unescaped twice.
fn unescaped(text: &str) -> String {
    let marks =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_string(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// Returns each text between `<tag>` and `</tag>`. A tag that is never closed is ignored.
fn tagged(text: &str, tag: &str) -> Vec<String> {
    let (open, close) = (alloc::format!("<{tag}>"), alloc::format!("</{tag}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(open.as_str()) {
        let Some((inside, after)) = behind.split_once(close.as_str()) else { break };
        // The innermost opening tag is the one that is closed.
        let inside = inside.rsplit(open.as_str()).next().unwrap_or(inside);
        found.push(folded(inside));
        rest = after;
    }
    found
}

pub(crate) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Removes fenced blocks, quoted lines and text in back quotes.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = start.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |mark| start.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            // A fence is closed by at least as many of the same marks, with nothing behind them.
            (Some((open, least)), Some(mark)) if mark == open && length >= least => {
                let closes = start.trim_start_matches(mark).trim().is_empty();
                fence = if closes { None } else { fence };
            }
            (Some(_), _) => {}
            (None, Some(mark)) if length >= 3 => fence = Some((mark, length)),
            (None, _) if start.starts_with('>') => {}
            (None, _) => out.push_str(line),
        }
        // Removed lines stay as empty ones, so that paragraphs remain separate.
        out.push('\n');
    }
    without_spans(&out)
}

/// Removes the text between equal runs of back quotes. A run without a counterpart is plain text.
fn without_spans(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inside = from.trim_start_matches('`');
        let ticks = from.len() - inside.len();
        match closing(inside, ticks) {
            Some(end) => rest = &inside[end..],
            None => {
                out.push_str(&from[..ticks]);
                rest = inside;
            }
        }
    }
    out.push_str(rest);
    out.to_string()
}

/// Returns where a span of so many back quotes ends. A span does not cross an empty line.
fn closing(inside: &str, ticks: usize) -> Option<usize> {
    let within = inside.find("\n\n").unwrap_or(inside.len());
    let mut at = 0;
    while let Some(found) = inside[at..within].find('`') {
        let start = at + found;
        let run = inside[start..within].bytes().take_while(|byte| *byte == b'`').count();
        at = start + run;
        // A run of another length is part of the span's content.
        if run == ticks {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promises(answer: &str, promise: &str) -> bool {
        Said::in_answer(answer).promises(promise)
    }

    #[test]
    fn a_promise_is_its_exact_text_in_its_tags() {
        for (answer, promise, kept) in [
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
            assert_eq!(promises(answer, promise), kept, "{answer:?} {promise:?}");
        }
    }

    #[test]
    fn without_a_tag_nothing_was_said() {
        assert_eq!(Said::in_answer("review-blocked? no. I am blocked, timeout"), Said::default());
        assert_eq!(Said::in_answer("I may say <review-blocked>REASON</review-blocked>").blocked, None);
        let said = Said::in_answer("<review-blocked> needs\n a key </review-blocked>");
        assert_eq!(said.blocked.as_deref(), Some("needs a key"));
        assert_eq!(said.timed_out, None);
    }
}
