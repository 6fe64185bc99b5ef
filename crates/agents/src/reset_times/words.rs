//! Parses the words in which clients give times.

use jiff::civil::Weekday;

/// Splits a message into lowercase words without the punctuation around them.
pub(super) fn tokenize_message(message: &str) -> Vec<String> {
    let is_separator = |character: char| character.is_whitespace() || "\"'(),;|·[]{}<>=".contains(character);
    // Inner dots and colons stay: `1.5s`, `18:00` and `a.m.` are single tokens.
    let trimmed_words =
        message.split(is_separator).map(|message_word| message_word.trim_matches(['.', ':', '!', '?', '`', '*']));
    trimmed_words.filter(|message_word| !message_word.is_empty()).map(str::to_lowercase).collect()
}

/// Parses a number that consists of digits only: `parse` alone would also accept a sign.
pub(super) fn parse_digits<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let has_only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if has_only_digits { digits.parse().ok() } else { None }
}

/// Parses a duration in seconds. A single number without a unit counts as seconds.
pub(super) fn parse_duration(remaining_tokens: &[String]) -> Option<f64> {
    let mut total_seconds: Option<f64> = None;
    let mut duration_tokens = remaining_tokens.iter().map(String::as_str).peekable();
    while let Some(token) = duration_tokens.next() {
        if matches!(token, "about" | "approximately" | "another" | "~")
            // "and" only joins two parts; at the start it would be another sentence.
            || (token == "and" && total_seconds.is_some())
        {
            continue;
        }
        let token_amount = match token {
            "a" | "an" | "one" => Some(1.0),
            _ => parse_amount(token),
        };
        let part_seconds = match (token_amount, duration_tokens.peek().and_then(|next_token| unit_seconds(next_token)))
        {
            (Some(token_amount), Some(seconds_per_unit)) => {
                duration_tokens.next();
                token_amount * seconds_per_unit
            }
            // A number without a unit is a time of day or counts something else, so the duration ends before it.
            (Some(_), None)
                if duration_tokens.peek().is_some()
                    || total_seconds.is_some()
                    || matches!(token, "a" | "an" | "one") =>
            {
                return total_seconds;
            }
            (Some(token_amount), None) => token_amount,
            (None, _) => match parse_compact_duration(token) {
                Some(part_seconds) => part_seconds,
                None => return total_seconds,
            },
        };
        total_seconds = Some(total_seconds.unwrap_or(0.0) + part_seconds);
    }
    total_seconds
}

/// Parses a decimal number without sign or exponent.
fn parse_amount(digits: &str) -> Option<f64> {
    let is_decimal = digits.starts_with(|character: char| character.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_decimal { digits.parse().ok() } else { None }
}

/// Parses `1h5m`, `1.5s` or `20min`.
fn parse_compact_duration(token: &str) -> Option<f64> {
    let mut remaining_text = token;
    let mut total_seconds = 0.0;
    while !remaining_text.is_empty() {
        let digits_end = remaining_text
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(remaining_text.len());
        let letters_end = remaining_text[digits_end..]
            .find(|character: char| character.is_ascii_digit())
            .map_or(remaining_text.len(), |letter_count| digits_end + letter_count);
        total_seconds +=
            parse_amount(&remaining_text[..digits_end])? * unit_seconds(&remaining_text[digits_end..letters_end])?;
        remaining_text = &remaining_text[letters_end..];
    }
    Some(total_seconds)
}

fn unit_seconds(unit_name: &str) -> Option<f64> {
    Some(match unit_name {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// Whether a word is a name or the beginning of it. Three letters are the shortest abbreviation in use.
fn is_abbreviation(abbreviation: &str, full_name: &str) -> bool {
    abbreviation.len() >= 3 && full_name.starts_with(abbreviation)
}

pub(super) fn parse_weekday(day_name: &str) -> Option<Weekday> {
    use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    let weekdays = [
        ("monday", Monday),
        ("tuesday", Tuesday),
        ("wednesday", Wednesday),
        ("thursday", Thursday),
        ("friday", Friday),
        ("saturday", Saturday),
        ("sunday", Sunday),
    ];
    weekdays
        .into_iter()
        .find(|(full_name, _)| is_abbreviation(day_name, full_name))
        .map(|(_, weekday_value)| weekday_value)
}

pub(super) fn parse_month(month_name: &str) -> Option<i8> {
    let month_names = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let month_index = month_names.iter().position(|full_name| {
        is_abbreviation(month_name, full_name) || (month_name == "sept" && *full_name == "september")
    })?;
    i8::try_from(month_index + 1).ok()
}

/// The offset from UTC in hours, of the abbreviations that clients use and of `UTC+2`.
pub(super) fn zone_offset_hours(zone_name: &str) -> Option<i8> {
    // A bare `utc` has no suffix and falls through to the table.
    let utc_suffix = zone_name.strip_prefix("utc").or_else(|| zone_name.strip_prefix("gmt")).unwrap_or_default();
    if let Some(hours_text) = utc_suffix.strip_prefix(['+', '-']) {
        let offset_hours: i8 = parse_digits(hours_text).filter(|offset_hours| *offset_hours <= 14)?;
        return Some(if utc_suffix.starts_with('-') { -offset_hours } else { offset_hours });
    }
    Some(match zone_name {
        "utc" | "gmt" | "z" => 0,
        "bst" | "cet" => 1,
        "cest" | "eet" => 2,
        "eest" | "msk" => 3,
        "jst" | "kst" => 9,
        "aest" => 10,
        "aedt" => 11,
        "edt" => -4,
        "est" | "cdt" => -5,
        "cst" | "mdt" => -6,
        "mst" | "pdt" => -7,
        "pst" => -8,
        _ => return None,
    })
}
