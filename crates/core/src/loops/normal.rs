//! Replaces the volatile values of an output.
//!
//! A table of shapes, each a plain function over one piece of a word. Counts and line numbers stay: they carry meaning.

use alloc::string::String;

/// Leaves one blank between words and no empty lines, and replaces times, durations, ids and hashes by their kind.
pub fn normalised(output: &str) -> String {
    let mut out = String::with_capacity(output.len());
    for line in output.lines() {
        let start = out.len();
        // The fast path: most lines are copied without being split.
        if is_plain(line) {
            out.push_str(line)
        } else {
            push_line(&mut out, line)
        }
        if out.len() > start {
            out.push('\n');
        }
    }
    out
}

/// Whether a line has no volatile value and single blanks only. Most lines of prose are like this and need no splitting.
fn is_plain(line: &str) -> bool {
    let bytes = line.as_bytes();
    let suspicious = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_control();
    let blank = |byte: Option<&u8>| byte == Some(&b' ');
    !bytes.iter().any(suspicious)
        && !blank(bytes.first())
        && !blank(bytes.last())
        && !bytes.windows(2).any(|pair| pair == b"  ")
}

fn push_line(out: &mut String, line: &str) {
    let start = out.len();
    let mut number_at = None;
    for word in line.split_ascii_whitespace() {
        // `12 ms` is one duration in two words, so the number that was pushed already is replaced.
        if let Some(at) = number_at.take()
            && is_unit(bare(word))
        {
            out.truncate(at);
            out.push_str("<duration>");
            continue;
        }
        if out.len() > start {
            out.push(' ');
        }
        let at = out.len();
        // Every volatile value has a digit.
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            push_word(out, word);
            // Remembered, because the next word may be the unit of this number.
            number_at = is_number(bare(word)).then_some(at);
        } else {
            out.push_str(word);
        }
    }
}

/// Appends a word piece by piece: `[2026-11-15T01:29:25Z]` is a bracket, a time and a bracket.
fn push_word(out: &mut String, word: &str) {
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.bytes().position(|byte| !is_of_piece(byte)).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        push_piece(out, piece);
        // A byte that ends a piece is ASCII, so it can be split off on its own.
        let next = tail.len().min(1);
        out.push_str(&tail[..next]);
        rest = &tail[next..];
    }
}

/// Whether a byte belongs to a piece. Letters of other scripts belong to their word.
fn is_of_piece(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'.' | b'+') || !byte.is_ascii()
}

/// Appends a piece, which may be a name and a value as in `took:1.2s` and `sha-1a2b3c4d`.
fn push_piece(out: &mut String, piece: &str) {
    // The whole piece first: a time or a uuid contains the separators itself.
    if push_kind(out, piece) {
        return;
    }
    if !piece.contains([':', '-']) {
        return out.push_str(piece);
    }
    for part in piece.split_inclusive([':', '-']) {
        if !push_kind(out, part) {
            out.push_str(part);
        }
    }
}

/// Appends the placeholder of a piece with the punctuation around it; false if it has no known shape.
fn push_kind(out: &mut String, piece: &str) -> bool {
    let inside = piece.trim_matches(|c: char| c.is_ascii_punctuation());
    // Most pieces are words, or numbers that are too short to be a time.
    let digits = inside.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || digits == inside.len() && digits < 10 {
        return false;
    }
    let Some(kind) = kind(inside) else { return false };
    let before = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_punctuation()).len();
    out.push_str(&piece[..before]);
    out.push_str(kind);
    out.push_str(&piece[before + inside.len()..]);
    true
}

fn kind(piece: &str) -> Option<&'static str> {
    type Shape = fn(&str) -> bool;
    // The shapes exclude each other, so their order does not matter.
    let shapes: [(Shape, &str); 4] =
        [(is_uuid, "<uuid>"), (is_time, "<time>"), (is_duration, "<duration>"), (is_hash, "<hash>")];
    shapes.iter().find(|(fits, _)| fits(piece)).map(|(_, kind)| *kind)
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != 'µ')
}

fn digits(text: &str, lengths: core::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.split('-').all(is_hex)
}

/// Whether it has at least seven hexadecimal digits, with letters and digits mixed unless it is long.
fn is_hash(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic();
    let mixed = || text.bytes().any(letter) && text.bytes().any(|byte| byte.is_ascii_digit());
    text.len() >= 7 && is_hex(text) && (text.len() >= 32 || mixed())
}

/// Whether it is a date, a time of day, both, or seconds or milliseconds since 1970.
fn is_time(text: &str) -> bool {
    // Unix times of the years 2001 to 2033 have ten digits and begin with 1.
    if text.starts_with('1') && (digits(text, 10..=10) || digits(text, 13..=13)) {
        return true;
    }
    match text.split_at_checked(10) {
        Some((date, rest)) if is_date(date) => {
            rest.is_empty() || rest.strip_prefix(['T', '_', ' ', '-']).is_some_and(is_time_of_day)
        }
        _ => is_time_of_day(text),
    }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |length: usize| parts.next().is_some_and(|part| digits(part, length..=length));
    part(4) && part(2) && part(2)
}

/// Whether it is a time such as `01:29` or `01:29:25`, with fractions and a zone.
fn is_time_of_day(text: &str) -> bool {
    // The zone may be `Z` or an offset such as `+01:00`.
    let text = text.trim_end_matches('Z');
    let text = text.split_once(['+', '-']).map_or(text, |(time, _)| time);
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = time.split(':');
    let hour = parts.next().is_some_and(|part| digits(part, 1..=2));
    let mut more = 0;
    let rest = parts.all(|part| {
        more += 1;
        digits(part, 2..=2)
    });
    // Minutes are required, seconds are optional.
    hour && rest && (1..=2).contains(&more) && digits(fraction, 1..=9)
}

fn is_number(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(whole, 1..=12) && digits(fraction, 1..=12)
}

/// Whether it is a duration: `1.2s`, `350ms`, `1h2m3s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (value, tail) = rest.split_at(number);
        let unit = tail.len() - tail.trim_start_matches(|c: char| c.is_alphabetic()).len();
        let (name, tail) = tail.split_at(unit);
        if !is_number(value) || !is_unit(name) {
            return false;
        }
        rest = tail;
    }
    !text.is_empty()
}

fn is_unit(text: &str) -> bool {
    const UNITS: [&str; 20] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "d", "sec", "secs", "second", "seconds", "min", "mins",
        "minute", "minutes", "hour", "hours", "day", "days",
    ];
    UNITS.contains(&text)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_changes_by_itself_is_taken_out() {
        for (text, expected) in [
            ("at 2026-11-15T01:29:25Z done", "at <time> done"),
            ("[2026-11-15 01:29:25.123] x", "[<time> <time>] x"),
            ("since 1794706165 or 1794706165123", "since <time> or <time>"),
            ("id=550e8400-e29b-41d4-a716-446655440000;", "id=<uuid>;"),
            ("commit 1a2b3c4d, tree da39a3ee5e6b4b0d3255bfef95601890afd80709", "commit <hash>, tree <hash>"),
            ("took 1.2s (350ms), 1h2m3s.", "took <duration> (<duration>), <duration>."),
            ("finished in 12 ms and 3 minutes", "finished in <duration> and <duration>"),
            ("took:1.2s sha:1a2b3c4d", "took:<duration> sha:<hash>"),
            ("  many \t blanks\n\n\nand lines ", "many blanks\nand lines"),
        ] {
            assert_eq!(normalised(text).trim_end(), expected, "{text}");
        }
    }

    #[test]
    fn what_was_said_stays() {
        for text in [
            "line 12 of 340",
            "3 findings, F11 and F2",
            "version 1.2.3",
            "src/main.rs:12:5",
            "0x1f is 31",
            "the 4th of 10 files; 100% of 99.99 %",
            "HTTP 404 and port 8080",
            "deadline feedback facade",
            "12 monkeys",
            "größer als 2 €",
        ] {
            assert_eq!(normalised(text).trim_end(), text);
        }
    }

    #[test]
    fn normalising_twice_changes_nothing_more() {
        let once = normalised("at 2026-11-15T01:29:25Z 12 ms 1a2b3c4d5e 7 s\n\n x");
        assert_eq!(normalised(&once), once.to_string());
    }
}
