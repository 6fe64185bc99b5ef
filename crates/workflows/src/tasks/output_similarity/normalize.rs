//! Replaces the volatile values of an output.
//!
//! They are recognized by a table of shapes, each a plain function over one piece of a word. Counts and line numbers stay:
//! they carry meaning.

use alloc::string::String;

/// Leaves one blank between words and no empty lines, and replaces times, durations, ids and hashes by their kind.
pub fn normalize_output(output: &str) -> String {
    let mut normalized = String::with_capacity(output.len());
    for line_text in output.lines() {
        let length_before = normalized.len();
        if needs_no_normalizing(line_text) {
            normalized.push_str(line_text)
        } else {
            push_line(&mut normalized, line_text)
        }
        if normalized.len() > length_before {
            normalized.push('\n');
        }
    }
    normalized
}

/// Whether a line has no volatile value and single blanks only. Most lines of prose are like this and need no splitting.
fn needs_no_normalizing(line_text: &str) -> bool {
    let bytes = line_text.as_bytes();
    let is_suspicious = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_control();
    let is_blank = |byte: Option<&u8>| byte == Some(&b' ');
    !bytes.iter().any(is_suspicious)
        && !is_blank(bytes.first())
        && !is_blank(bytes.last())
        && !bytes.windows(2).any(|pair| pair == b"  ")
}

fn push_line(normalized: &mut String, line_text: &str) {
    let line_start = normalized.len();
    let mut number_offset = None;
    for word in line_text.split_ascii_whitespace() {
        // `12 ms` is one duration in two words, so the number that was pushed already is replaced.
        if let Some(offset) = number_offset.take()
            && is_unit(trim_punctuation(word))
        {
            normalized.truncate(offset);
            normalized.push_str("<duration>");
            continue;
        }
        if normalized.len() > line_start {
            normalized.push(' ');
        }
        let offset = normalized.len();
        // Every volatile value has a digit.
        if word.bytes().any(|byte| byte.is_ascii_digit()) {
            push_word(normalized, word);
            // Remembered, because the next word may be the unit of this number.
            number_offset = is_number(trim_punctuation(word)).then_some(offset);
        } else {
            normalized.push_str(word);
        }
    }
}

/// Appends a word piece by piece: `[2026-11-15T01:29:25Z]` is a bracket, a time and a bracket.
fn push_word(normalized: &mut String, word: &str) {
    let mut remainder = word;
    while !remainder.is_empty() {
        let piece_end = remainder.bytes().position(|byte| !is_piece_byte(byte)).unwrap_or(remainder.len());
        let (piece, tail) = remainder.split_at(piece_end);
        push_piece(normalized, piece);
        // A byte that ends a piece is ASCII, so it can be split off on its own.
        let separator_length = tail.len().min(1);
        normalized.push_str(&tail[..separator_length]);
        remainder = &tail[separator_length..];
    }
}

/// Whether a byte belongs to a piece. Letters of other scripts belong to their word.
fn is_piece_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'.' | b'+') || !byte.is_ascii()
}

/// Appends a piece, which may be a name and a value as in `took:1.2s` and `sha-1a2b3c4d`.
fn push_piece(normalized: &mut String, piece: &str) {
    // The whole piece first: a time or a uuid contains the separators itself.
    if push_kind(normalized, piece) {
        return;
    }
    if !piece.contains([':', '-']) {
        return normalized.push_str(piece);
    }
    for part in piece.split_inclusive([':', '-']) {
        if !push_kind(normalized, part) {
            normalized.push_str(part);
        }
    }
}

/// Appends the placeholder of a piece with the punctuation around it; false if it has no known shape.
fn push_kind(normalized: &mut String, piece: &str) -> bool {
    let core_text = piece.trim_matches(|character: char| character.is_ascii_punctuation());
    // Most pieces are words, or numbers that are too short to be a time.
    let digit_count = core_text.bytes().filter(u8::is_ascii_digit).count();
    if digit_count == 0 || digit_count == core_text.len() && digit_count < 10 {
        return false;
    }
    let Some(placeholder) = find_placeholder(core_text) else { return false };
    let leading_length =
        piece.len() - piece.trim_start_matches(|character: char| character.is_ascii_punctuation()).len();
    normalized.push_str(&piece[..leading_length]);
    normalized.push_str(placeholder);
    normalized.push_str(&piece[leading_length + core_text.len()..]);
    true
}

fn find_placeholder(piece: &str) -> Option<&'static str> {
    type Shape = fn(&str) -> bool;
    // The order matters where shapes overlap: `1234567d` is a duration, although it looks like a hash as well.
    let shapes: [(Shape, &str); 4] =
        [(is_uuid, "<uuid>"), (is_time, "<time>"), (is_duration, "<duration>"), (is_hash, "<hash>")];
    shapes.iter().find(|(has_shape, _)| has_shape(piece)).map(|(_, placeholder)| *placeholder)
}

fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_ascii_alphanumeric() && character != 'µ')
}

fn is_all_digits(candidate: &str, lengths: core::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&candidate.len()) && candidate.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(candidate: &str) -> bool {
    candidate.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(candidate: &str) -> bool {
    candidate.len() == 36 && candidate.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && candidate.split('-').all(is_hex)
}

/// Whether it has at least seven hexadecimal digits, with letters and digits mixed unless it is long.
fn is_hash(candidate: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic();
    let is_mixed = || candidate.bytes().any(is_letter) && candidate.bytes().any(|byte| byte.is_ascii_digit());
    candidate.len() >= 7 && is_hex(candidate) && (candidate.len() >= 32 || is_mixed())
}

/// Whether it is a date, a time of day, both, or seconds or milliseconds since 1970.
fn is_time(candidate: &str) -> bool {
    // Unix times of the years 2001 to 2033 have ten digits and begin with 1.
    if candidate.starts_with('1') && (is_all_digits(candidate, 10..=10) || is_all_digits(candidate, 13..=13)) {
        return true;
    }
    match candidate.split_at_checked(10) {
        Some((date, remainder)) if is_date(date) => {
            remainder.is_empty() || remainder.strip_prefix(['T', '_', ' ', '-']).is_some_and(is_time_of_day)
        }
        _ => is_time_of_day(candidate),
    }
}

fn is_date(candidate: &str) -> bool {
    let mut parts = candidate.split('-');
    let mut has_digits =
        |length: usize| parts.next().is_some_and(|date_part| is_all_digits(date_part, length..=length));
    has_digits(4) && has_digits(2) && has_digits(2)
}

/// Whether it is a time such as `01:29` or `01:29:25`, with fractions and a zone.
fn is_time_of_day(candidate: &str) -> bool {
    // The zone may be `Z` or an offset such as `+01:00`.
    let candidate = candidate.trim_end_matches('Z');
    let candidate = candidate.split_once(['+', '-']).map_or(candidate, |(time, _)| time);
    let (time, fraction) = candidate.split_once('.').unwrap_or((candidate, "0"));
    let mut parts = time.split(':');
    let has_hour = parts.next().is_some_and(|part| is_all_digits(part, 1..=2));
    let mut field_count = 0;
    let has_fields = parts.all(|part| {
        field_count += 1;
        is_all_digits(part, 2..=2)
    });
    // Minutes are required, seconds are optional.
    has_hour && has_fields && (1..=2).contains(&field_count) && is_all_digits(fraction, 1..=9)
}

fn is_number(candidate: &str) -> bool {
    let (whole, fraction) = candidate.split_once('.').unwrap_or((candidate, "0"));
    is_all_digits(whole, 1..=12) && is_all_digits(fraction, 1..=12)
}

/// Whether it is a duration: `1.2s`, `350ms`, `1h2m3s`.
fn is_duration(candidate: &str) -> bool {
    let mut remainder = candidate;
    while !remainder.is_empty() {
        let number_length = remainder.len()
            - remainder.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.').len();
        let (value, tail) = remainder.split_at(number_length);
        let unit_length = tail.len() - tail.trim_start_matches(|character: char| character.is_alphabetic()).len();
        let (unit_name, tail) = tail.split_at(unit_length);
        if !is_number(value) || !is_unit(unit_name) {
            return false;
        }
        remainder = tail;
    }
    !candidate.is_empty()
}

fn is_unit(candidate: &str) -> bool {
    const UNITS: [&str; 20] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "d", "sec", "secs", "second", "seconds", "min", "mins", "minute",
        "minutes", "hour", "hours", "day", "days",
    ];
    UNITS.contains(&candidate)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn volatile_values_are_replaced() {
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
            assert_eq!(normalize_output(text).trim_end(), expected, "{text}");
        }
    }

    #[test]
    fn meaningful_numbers_stay() {
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
            assert_eq!(normalize_output(text).trim_end(), text);
        }
    }

    #[test]
    fn normalizing_twice_changes_nothing_more() {
        let once = normalize_output("at 2026-11-15T01:29:25Z 12 ms 1a2b3c4d5e 7 s\n\n x");
        assert_eq!(normalize_output(&once), once.to_string());
    }
}
