//! The first stage: replaces every PEM private key, the only secret that spans lines.
//!
//! It works on a growing text: `collapse_keys` takes what it can decide on and keeps its position in a state, so that nothing
//! larger than one line is ever held. A block without an end stops at the first line that cannot belong to it; otherwise the
//! mere mention of a first line would swallow a whole log.

use regex::Regex;

use super::rules::{PEM, compile};

const PATTERNS: &[(&str, &str)] = &[
    ("pem begin", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ("pem end", r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    (
        // A line of the block, also with line numbers, quote marks, a container's name or as a string of source code. The group
        // is what follows the key's own text.
        "pem line",
        concat!(
            r"^[ \t]*(?:[0-9]{1,7}[ \t]*(?:→|[|:])?[ \t]*|[>|#*+-]+[ \t]*|//+[ \t]*",
            r#"|[A-Za-z0-9_.-]{1,40}[ \t]*\|[ \t]*)?["'`]?"#,
            r"(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): .*?)",
            r#"(?:\\+[nr])*(["'`]?[ \t]*[+,;)\\]*[ \t\r]*)$"#
        ),
    ),
    (
        // After any other prefix, such as a timestamp, only a long run counts.
        "pem prefixed line",
        concat!(r"[^A-Za-z0-9+/=][A-Za-z0-9+/=]{40,}", r#"(?:\\+[nr])*(["'`]?[ \t]*[+,;)\\]*[ \t\r]*)$"#),
    ),
];

/// No marker is longer, so holding back this much at the end of a chunk is enough.
const LONGEST_MARKER: usize = 96;

/// The compiled patterns, and the longest line worth waiting for.
pub(super) struct Patterns {
    begin: Regex,
    end: Regex,
    line: Regex,
    prefixed: Regex,
    limit: usize,
}

impl Patterns {
    pub(super) fn new(limit: usize) -> Patterns {
        let [begin, end, line, prefixed] =
            [0, 1, 2, 3].map(|at: usize| compile(PATTERNS[at].0, PATTERNS[at].1));
        Patterns { begin, end, line, prefixed, limit }
    }

    /// Whether this stage would change the text at all.
    pub(super) fn occur_in(&self, text: &str) -> bool {
        self.begin.is_match(text)
    }

    /// Returns where the text after the key begins, if this is a line of a block.
    fn body(&self, line: &str) -> Option<usize> {
        let found = self.line.captures(line);
        let found = found.or_else(|| self.prefixed.captures(line))?;
        found.get(1).map(|tail| tail.start())
    }
}

/// The position in the text.
#[derive(Default)]
pub(super) enum State {
    #[default]
    Outside,
    /// After the first marker or inside an overlong line: the rest of the line is still to come.
    Inside,
    /// At the start of a line of a block; `pending` is written only if the block is over.
    Line { pending: String },
}

/// What one state decided.
enum Step {
    Next(usize, State),
    Wait,
}

/// Takes as much of `text` as can be decided, writes it to `output` and returns its length: all of it when `is_last` is set.
pub(super) fn step(
    patterns: &Patterns,
    state: &mut State,
    text: &str,
    last: bool,
    out: &mut String,
) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let step = match state {
            State::Outside => outside(patterns, rest, last, out),
            State::Inside => inside(patterns, rest, last),
            State::Line { pending } => line(patterns, rest, last, pending, out),
        };
        match step {
            Step::Next(taken, next) => {
                at += taken;
                *state = next;
            }
            Step::Wait => break,
        }
        // There was no decision to wait, so nothing is left to decide on.
        if at == text.len() {
            break;
        }
    }
    // The text ends inside a block: what was held back for its next line is part of the output.
    if last && let State::Line { pending } = state {
        out.push_str(pending);
        *state = State::Outside;
    }
    at
}

fn outside(patterns: &Patterns, text: &str, last: bool, out: &mut String) -> Step {
    if let Some(found) = patterns.begin.find(text) {
        out.push_str(&text[..found.start()]);
        out.push_str("[masked:");
        out.push_str(PEM);
        out.push(']');
        return Step::Next(found.end(), State::Inside);
    }
    let mut ready = text.len();
    if !last {
        // A marker may be split by the end of the chunk.
        let from = text.floor_char_boundary(ready.saturating_sub(LONGEST_MARKER));
        ready = text[from..].find('-').map_or(ready, |dash| from + dash);
    }
    if ready == 0 {
        return Step::Wait;
    }
    out.push_str(&text[..ready]);
    Step::Next(ready, State::Outside)
}

/// Returns the rest of a line up to its end, or as much of it as is worth waiting for.
fn unit<'t>(patterns: &Patterns, text: &'t str, last: bool) -> Option<(&'t str, End)> {
    let window = text.floor_char_boundary(patterns.limit);
    match text[..window].find('\n') {
        Some(end) => Some((&text[..end], End::Newline)),
        None if text.len() >= patterns.limit => Some((&text[..window], End::Cut)),
        None if last => Some((text, End::Text)),
        None => None,
    }
}

/// What ended a part of a line.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Newline,
    Cut,
    Text,
}

fn inside(patterns: &Patterns, text: &str, last: bool) -> Step {
    let Some((line, end)) = unit(patterns, text, last) else {
        return Step::Wait;
    };
    if let Some(found) = patterns.end.find(line) {
        return Step::Next(found.end(), State::Outside);
    }
    let body = body_prefix(line);
    // A window without an end of the line: if it was all key, the key continues in the next window.
    if end == End::Cut {
        let next = if body > 0 { State::Inside } else { State::Outside };
        return Step::Next(body, next);
    }
    let tail = &line[body..];
    // Only quotes and punctuation may follow the key's text on its line; anything else ends the block.
    if !tail.bytes().all(|b| b"\"'`+,;)\\ \t\r".contains(&b)) {
        return Step::Next(body, State::Outside);
    }
    let (taken, pending) = with_newline(text, line.len(), tail, end);
    Step::Next(taken, State::Line { pending })
}

fn line(patterns: &Patterns, text: &str, last: bool, pending: &mut String, out: &mut String) -> Step {
    let Some((line, end)) = unit(patterns, text, last) else {
        return Step::Wait;
    };
    let begin = patterns.begin.find(line).map(|found| found.start());
    if let Some(found) = patterns.end.find(line)
        && begin.is_none_or(|begin| begin > found.start())
    {
        return Step::Next(found.end(), State::Outside);
    }
    if begin.is_none() {
        // One empty line follows the headers of old keys; two end the block.
        let empty = line.trim().is_empty() && end != End::Cut;
        if empty && pending.matches('\n').count() < 2 {
            let (taken, more) = with_newline(text, line.len(), line, end);
            return Step::Next(taken, State::Line { pending: format!("{pending}{more}") });
        }
        match patterns.body(line) {
            Some(_) if end == End::Cut => return Step::Next(line.len(), State::Inside),
            Some(tail) => {
                let (taken, pending) = with_newline(text, line.len(), &line[tail..], end);
                return Step::Next(taken, State::Line { pending });
            }
            None => {}
        }
    }
    // The line does not belong to the block, so the block is over and the line is handled as ordinary text.
    out.push_str(pending);
    Step::Next(0, State::Outside)
}

/// Returns how much of the text was taken, and what to write if the block turns out to be over.
fn with_newline(text: &str, line: usize, tail: &str, end: End) -> (usize, String) {
    let newline = usize::from(end == End::Newline);
    let pending = format!("{tail}{}", &text[line..line + newline]);
    (line + newline, pending)
}

/// Returns how much of the text after the first marker, on the same line, is key: runs of base64 separated by escaped line ends,
/// or by spaces if the run is too long for a word.
fn body_prefix(line: &str) -> usize {
    const HEADERS: [&str; 4] = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:"];
    let bytes = line.as_bytes();
    let mut taken = 0;
    loop {
        let (mut at, mut spaced) = (taken, false);
        loop {
            match bytes.get(at) {
                Some(b' ' | b'\t') => (at, spaced) = (at + 1, true),
                Some(b'\\') => {
                    // Nested escaping doubles the backslashes, so any number of them counts.
                    let run = bytes[at..].iter().take_while(|b| **b == b'\\').count();
                    if !matches!(bytes.get(at + run), Some(b'n' | b'r' | b't')) {
                        return taken;
                    }
                    (at, spaced) = (at + run + 1, false);
                    taken = at;
                }
                _ => break,
            }
        }
        if HEADERS.iter().any(|header| line[at..].starts_with(header)) {
            taken = line[at..].find('\\').map_or(line.len(), |end| at + end);
            continue;
        }
        let is_base64 = |b: &&u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
        let run = bytes[at..].iter().take_while(is_base64).count();
        // A short run after a space could be an ordinary word.
        if run == 0 || spaced && run < 32 {
            return taken;
        }
        taken = at + run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collapse(text: &str) -> String {
        let mut out = String::new();
        let patterns = Patterns::new(1 << 16);
        let taken = step(&patterns, &mut State::default(), text, true, &mut out);
        assert_eq!(taken, text.len());
        out
    }

    fn begin() -> String {
        format!("-----BEGIN RSA {} KEY-----", "PRIVATE")
    }

    fn end() -> String {
        format!("-----END RSA {} KEY-----", "PRIVATE")
    }

    #[test]
    fn every_pattern_compiles() {
        for (name, pattern) in PATTERNS {
            assert!(Regex::new(pattern).is_ok(), "{name}");
        }
    }

    #[test]
    fn blocks_in_all_their_forms() {
        let (b, e, run) = (begin(), end(), "Ab1+".repeat(16));
        let table = [
            (format!("a\n{b}\n{run}\n{run}\nAb==\n{e}\nz\n"), "a\nP\nz\n"),
            (format!("{b}\r\n{run}\r\n{e}\r\nz"), "P\r\nz"),
            (format!("{b}\n{run}\n{run}"), "P"),
            (format!("{b}\n{run}\n"), "P\n"),
            (format!("{b}\n{run}\nand more text\n"), "P\nand more text\n"),
            (format!("{b}\n{run}\n\n\nWord\n"), "P\n\n\nWord\n"),
            (format!("{b}\n{run}\n\nand text\n"), "P\n\nand text\n"),
            (format!("{b}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,0\n\n{run}\n{e}."), "P."),
            (format!("  1\t{b}\n  2\t{run}\n  3\tAb==\n  4\t{e}\n"), "  1\tP\n"),
            (format!("  1→{b}\n  2→{run}\n  3→Ab==\n  4→{e}\n"), "  1→P\n"),
            (format!("web | {b}\nweb | {run}\nweb | {e}\n"), "web | P\n"),
            (format!("10:00 x {b}\n10:00 x {run}\n10:00 x {e}\n"), "10:00 x P\n"),
            (format!("\"{b}\\n\" +\n  \"{run}\\n\" +\n  \"{e}\";\n"), "\"P\";\n"),
            (format!("{{\"k\":\"{b}\\n{run}\\nAb==\\n{e}\\n\"}}"), "{\"k\":\"P\\n\"}"),
            (format!("{{\"k\":\"{b}\\n{run}\\nAb12\"}}"), "{\"k\":\"P\"}"),
            (format!("{{\"k\":\"{b}\\n{run}\",\n\"l\": 1}}"), "{\"k\":\"P\",\n\"l\": 1}"),
            (format!("{b} {run} {run} {e}."), "P."),
            (format!("a file with {b} at its start"), "a file with P at its start"),
            (format!("{b}{b}\n{run}\n{e}"), "PP"),
            (format!("\"{b}\",\n\"{b}\",\n];\n"), "\"P\",\n\"P\",\n];\n"),
        ];
        for (text, expected) in table {
            assert_eq!(collapse(&text), expected.replace('P', "[masked:pem]"), "{text}");
        }
    }

    #[test]
    fn a_key_on_a_line_longer_than_the_limit_is_taken_whole() {
        let (b, e, run) = (begin(), end(), "Ab1+".repeat(3 * 64));
        let patterns = Patterns::new(128);
        for cut in 0..4 {
            let text = format!("x {b}{}{e} y\n{b}\n{}\n{e}\n", &run[cut..], &run[cut..]);
            let mut out = String::new();
            step(&patterns, &mut State::default(), &text, true, &mut out);
            assert_eq!(out, "x [masked:pem] y\n[masked:pem]\n");
        }
    }

    #[test]
    fn public_parts_are_left() {
        let text = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(collapse(text), text);
        assert_eq!(collapse("--- a\n+++ b\n-----\n"), "--- a\n+++ b\n-----\n");
    }
}
