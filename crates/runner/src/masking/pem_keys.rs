//! The first stage: replaces every PEM private key, the only secret that spans lines.
//!
//! It works on a growing text: `collapse_keys` takes what it can decide on and keeps its position in a state, so that nothing
//! larger than one line is ever held. A block without an end stops at the first line that cannot belong to it; otherwise the
//! mere mention of a first line would swallow a whole log.
//!
//! The line ends of a block stay, so that the lines behind it keep their numbers.

use regex::Regex;

use super::mask_rule::{PEM_KIND, compile_pattern};

const PEM_PATTERNS: &[(&str, &str)] = &[
    // PuTTY's own format has a line with the number of lines that follow.
    ("pem begin", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: [0-9]{1,4}"),
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
const MAX_MARKER_BYTES: usize = 96;

/// The compiled patterns, and the longest line worth waiting for.
pub(super) struct PemPatterns {
    begin_marker: Regex,
    end_marker: Regex,
    key_line: Regex,
    prefixed_line: Regex,
    max_line: usize,
}

impl PemPatterns {
    pub(super) fn new(max_line: usize) -> PemPatterns {
        let [begin_marker, end_marker, key_line, prefixed_line] =
            [0, 1, 2, 3].map(|index: usize| compile_pattern(PEM_PATTERNS[index].0, PEM_PATTERNS[index].1));
        PemPatterns { begin_marker, end_marker, key_line, prefixed_line, max_line }
    }

    /// Whether this stage would change the text at all.
    pub(super) fn occurs_in(&self, text: &str) -> bool {
        self.begin_marker.is_match(text)
    }

    /// Lists the keys of a text, each from its first marker to its last or to the next empty line.
    pub(super) fn list_keys<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.begin_marker.find_iter(text).map(|begin_match| {
            let key_text = &text[begin_match.start()..];
            let end_match = self.end_marker.find(key_text).map(|end_match| end_match.end());
            &key_text[..end_match.or_else(|| key_text.find("\n\n")).unwrap_or(key_text.len())]
        })
    }

    /// Returns where the text after the key begins, if this is a line of a block.
    fn key_text_end(&self, text_line: &str) -> Option<usize> {
        let captures = self.key_line.captures(text_line);
        let captures = captures.or_else(|| self.prefixed_line.captures(text_line))?;
        captures.get(1).map(|trailing| trailing.start())
    }
}

/// The position in the text.
#[derive(Default)]
pub(super) enum PemState {
    #[default]
    OutsideKey,
    /// After the first marker or inside an overlong line: the rest of the line is still to come.
    InsideLine,
    /// At the start of a line of a block; `pending` is written only if the block is over.
    AtLineStart { pending: String },
}

/// What one state decided.
enum PemStep {
    Advance(usize, PemState),
    Wait,
}

/// Takes as much of `text` as can be decided, writes it to `output` and returns its length: all of it when `is_last` is set.
pub(super) fn collapse_keys(
    patterns: &PemPatterns,
    pem_state: &mut PemState,
    text: &str,
    is_last: bool,
    output: &mut String,
) -> usize {
    let mut position = 0;
    loop {
        let remaining = &text[position..];
        let decision = match pem_state {
            PemState::OutsideKey => step_outside(patterns, remaining, is_last, output),
            PemState::InsideLine => step_inside_line(patterns, remaining, is_last),
            PemState::AtLineStart { pending } => step_at_line_start(patterns, remaining, is_last, pending, output),
        };
        match decision {
            PemStep::Advance(taken_length, next_state) => {
                position += taken_length;
                *pem_state = next_state;
            }
            PemStep::Wait => break,
        }
        // All of the text was taken, so nothing is left to decide on.
        if position == text.len() {
            break;
        }
    }
    // The text ends inside a block: what was held back for its next line is part of the output.
    if is_last && let PemState::AtLineStart { pending } = pem_state {
        output.push_str(pending);
        *pem_state = PemState::OutsideKey;
    }
    position
}

fn step_outside(patterns: &PemPatterns, text: &str, is_last: bool, output: &mut String) -> PemStep {
    if let Some(begin_match) = patterns.begin_marker.find(text) {
        output.push_str(&text[..begin_match.start()]);
        output.push_str("[masked:");
        output.push_str(PEM_KIND);
        output.push(']');
        return PemStep::Advance(begin_match.end(), PemState::InsideLine);
    }
    let mut ready_length = text.len();
    if !is_last {
        // A marker may be split by the end of the chunk.
        let marker_start = text.floor_char_boundary(ready_length.saturating_sub(MAX_MARKER_BYTES));
        ready_length = text[marker_start..].find(['-', 'P']).map_or(ready_length, |start| marker_start + start);
    }
    if ready_length == 0 {
        return PemStep::Wait;
    }
    output.push_str(&text[..ready_length]);
    PemStep::Advance(ready_length, PemState::OutsideKey)
}

/// Returns the rest of a line up to its end, or as much of it as is worth waiting for.
fn next_line_part<'t>(patterns: &PemPatterns, text: &'t str, is_last: bool) -> Option<(&'t str, LinePartEnd)> {
    let window_end = text.floor_char_boundary(patterns.max_line);
    match text[..window_end].find('\n') {
        Some(newline) => Some((&text[..newline], LinePartEnd::Newline)),
        None if text.len() >= patterns.max_line => Some((&text[..window_end], LinePartEnd::WindowEnd)),
        None if is_last => Some((text, LinePartEnd::TextEnd)),
        None => None,
    }
}

/// What ended a part of a line.
#[derive(Clone, Copy, PartialEq)]
enum LinePartEnd {
    Newline,
    WindowEnd,
    TextEnd,
}

fn step_inside_line(patterns: &PemPatterns, text: &str, is_last: bool) -> PemStep {
    let Some((line_part, part_end)) = next_line_part(patterns, text, is_last) else {
        return PemStep::Wait;
    };
    if let Some(end_match) = patterns.end_marker.find(line_part) {
        return PemStep::Advance(end_match.end(), PemState::OutsideKey);
    }
    let key_length = key_prefix_length(line_part);
    // A window without an end of the line: if it was all key, the key continues in the next window.
    if part_end == LinePartEnd::WindowEnd {
        let next_state = if key_length > 0 { PemState::InsideLine } else { PemState::OutsideKey };
        return PemStep::Advance(key_length, next_state);
    }
    let trailing_text = &line_part[key_length..];
    // Only quotes and punctuation may follow the key's text on its line; anything else ends the block.
    if !trailing_text.bytes().all(|byte| b"\"'`+,;)\\ \t\r".contains(&byte)) {
        return PemStep::Advance(key_length, PemState::OutsideKey);
    }
    let (taken_length, pending) = take_with_newline(text, line_part.len(), trailing_text, part_end);
    PemStep::Advance(taken_length, PemState::AtLineStart { pending })
}

fn step_at_line_start(
    patterns: &PemPatterns,
    text: &str,
    is_last: bool,
    pending: &mut String,
    output: &mut String,
) -> PemStep {
    let Some((line_part, part_end)) = next_line_part(patterns, text, is_last) else {
        return PemStep::Wait;
    };
    let begin_start = patterns.begin_marker.find(line_part).map(|begin_match| begin_match.start());
    if let Some(end_match) = patterns.end_marker.find(line_part)
        && begin_start.is_none_or(|begin_start| begin_start > end_match.start())
    {
        push_line_ends(pending, output);
        return PemStep::Advance(end_match.end(), PemState::OutsideKey);
    }
    if begin_start.is_none() {
        // One empty line follows the headers of old keys; two end the block.
        let is_empty = line_part.trim().is_empty() && part_end != LinePartEnd::WindowEnd;
        if is_empty && pending.matches('\n').count() < 2 {
            let (taken_length, more_pending) = take_with_newline(text, line_part.len(), line_part, part_end);
            return PemStep::Advance(
                taken_length,
                PemState::AtLineStart { pending: format!("{pending}{more_pending}") },
            );
        }
        match patterns.key_text_end(line_part) {
            Some(_) if part_end == LinePartEnd::WindowEnd => {
                push_line_ends(pending, output);
                return PemStep::Advance(line_part.len(), PemState::InsideLine);
            }
            Some(trailing_start) => {
                push_line_ends(pending, output);
                let (taken_length, pending) =
                    take_with_newline(text, line_part.len(), &line_part[trailing_start..], part_end);
                return PemStep::Advance(taken_length, PemState::AtLineStart { pending });
            }
            None => {}
        }
    }
    // The line does not belong to the block, so the block is over and the line is handled as ordinary text.
    output.push_str(pending);
    PemStep::Advance(0, PemState::OutsideKey)
}

/// Writes the line ends of text that turned out to be part of a block.
fn push_line_ends(key_text: &str, output: &mut String) {
    output.extend(key_text.chars().filter(|character| matches!(character, '\r' | '\n')));
}

/// Returns how much of the text was taken, and what to write if the block turns out to be over.
fn take_with_newline(text: &str, line_length: usize, trailing_text: &str, part_end: LinePartEnd) -> (usize, String) {
    let newline_length = usize::from(part_end == LinePartEnd::Newline);
    let pending = format!("{trailing_text}{}", &text[line_length..line_length + newline_length]);
    (line_length + newline_length, pending)
}

/// Returns how much of the text after the first marker, on the same line, is key: runs of base64 separated by escaped line ends,
/// or by spaces if the run is too long for a word.
fn key_prefix_length(line_text: &str) -> usize {
    const KEY_HEADERS: [&str; 4] = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:"];
    let bytes = line_text.as_bytes();
    let mut taken_length = 0;
    loop {
        let (mut position, mut after_space) = (taken_length, false);
        loop {
            match bytes.get(position) {
                Some(b' ' | b'\t') => (position, after_space) = (position + 1, true),
                Some(b'\\') => {
                    // Nested escaping doubles the backslashes, so any number of them counts.
                    let run_length = bytes[position..].iter().take_while(|byte| **byte == b'\\').count();
                    if !matches!(bytes.get(position + run_length), Some(b'n' | b'r' | b't')) {
                        return taken_length;
                    }
                    (position, after_space) = (position + run_length + 1, false);
                    taken_length = position;
                }
                _ => break,
            }
        }
        if KEY_HEADERS.iter().any(|header| line_text[position..].starts_with(header)) {
            taken_length = line_text[position..].find('\\').map_or(line_text.len(), |backslash| position + backslash);
            continue;
        }
        let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let run_length = bytes[position..].iter().take_while(is_base64).count();
        // A short run after a space could be an ordinary word.
        if run_length == 0 || after_space && run_length < 32 {
            return taken_length;
        }
        taken_length = position + run_length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collapse_text(text: &str) -> String {
        let mut collapsed = String::new();
        let patterns = PemPatterns::new(1 << 16);
        let taken = collapse_keys(&patterns, &mut PemState::default(), text, true, &mut collapsed);
        assert_eq!(taken, text.len());
        collapsed
    }

    fn begin_marker() -> String {
        format!("-----BEGIN RSA {} KEY-----", "PRIVATE")
    }

    fn end_marker() -> String {
        format!("-----END RSA {} KEY-----", "PRIVATE")
    }

    #[test]
    fn every_pattern_compiles() {
        for (name, pattern) in PEM_PATTERNS {
            assert!(Regex::new(pattern).is_ok(), "{name}");
        }
    }

    #[test]
    fn keys_are_replaced_in_all_their_forms() {
        let (begin_line, end_line, run_id) = (begin_marker(), end_marker(), "Ab1+".repeat(16));
        let table = [
            (format!("a\n{begin_line}\n{run_id}\n{run_id}\nAb==\n{end_line}\nz\n"), "a\nP\n\n\n\n\nz\n"),
            (format!("{begin_line}\r\n{run_id}\r\n{end_line}\r\nz"), "P\r\n\r\n\r\nz"),
            (format!("{begin_line}\n{run_id}\n{run_id}"), "P\n\n"),
            (format!("{begin_line}\n{run_id}\n"), "P\n\n"),
            (format!("{begin_line}\n{run_id}\nand more text\n"), "P\n\nand more text\n"),
            (format!("{begin_line}\n{run_id}\n\n\nWord\n"), "P\n\n\n\nWord\n"),
            (format!("{begin_line}\n{run_id}\n\nand text\n"), "P\n\n\nand text\n"),
            (format!("{begin_line}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,0\n\n{run_id}\n{end_line}."), "P\n\n\n\n\n."),
            (format!("  1\t{begin_line}\n  2\t{run_id}\n  3\tAb==\n  4\t{end_line}\n"), "  1\tP\n\n\n\n"),
            (format!("  1→{begin_line}\n  2→{run_id}\n  3→Ab==\n  4→{end_line}\n"), "  1→P\n\n\n\n"),
            (format!("web | {begin_line}\nweb | {run_id}\nweb | {end_line}\n"), "web | P\n\n\n"),
            (format!("10:00 x {begin_line}\n10:00 x {run_id}\n10:00 x {end_line}\n"), "10:00 x P\n\n\n"),
            (format!("\"{begin_line}\\n\" +\n  \"{run_id}\\n\" +\n  \"{end_line}\";\n"), "\"P\n\n\";\n"),
            (format!("{{\"k\":\"{begin_line}\\n{run_id}\\nAb==\\n{end_line}\\n\"}}"), "{\"k\":\"P\\n\"}"),
            (format!("{{\"k\":\"{begin_line}\\n{run_id}\\nAb12\"}}"), "{\"k\":\"P\"}"),
            (format!("{{\"k\":\"{begin_line}\\n{run_id}\",\n\"l\": 1}}"), "{\"k\":\"P\",\n\"l\": 1}"),
            (format!("{begin_line} {run_id} {run_id} {end_line}."), "P."),
            (format!("a file with {begin_line} at its start"), "a file with P at its start"),
            (format!("{begin_line}{begin_line}\n{run_id}\n{end_line}"), "PP\n\n"),
            (format!("\"{begin_line}\",\n\"{begin_line}\",\n];\n"), "\"P\",\n\"P\",\n];\n"),
        ];
        for (text, expected) in table {
            assert_eq!(collapse_text(&text), expected.replace('P', "[masked:pem]"), "{text}");
        }
    }

    #[test]
    fn a_key_on_a_line_longer_than_the_limit_is_taken_whole() {
        let (begin_line, end_line, run_id) = (begin_marker(), end_marker(), "Ab1+".repeat(3 * 64));
        let patterns = PemPatterns::new(128);
        for cut in 0..4 {
            let text =
                format!("x {begin_line}{}{end_line} y\n{begin_line}\n{}\n{end_line}\n", &run_id[cut..], &run_id[cut..]);
            let mut output = String::new();
            collapse_keys(&patterns, &mut PemState::default(), &text, true, &mut output);
            assert_eq!(output, "x [masked:pem] y\n[masked:pem]\n\n\n");
        }
    }

    #[test]
    fn public_parts_are_left() {
        let text = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        assert_eq!(collapse_text(text), text);
        assert_eq!(collapse_text("--- a\n+++ b\n-----\n"), "--- a\n+++ b\n-----\n");
    }
}
