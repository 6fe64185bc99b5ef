//! Parses the words in which clients give times.

use jiff::civil::Weekday;

/// Splits a message into lowercase words without the punctuation around them.
pub(super) fn tokens(message: &str) -> Vec<String> {
    let parted = |c: char| c.is_whitespace() || "\"'(),;|·[]{}<>=".contains(c);
    // Inner dots and colons stay: `1.5s`, `18:00` and `a.m.` are single tokens.
    let words = message.split(parted).map(|word| word.trim_matches(['.', ':', '!', '?', '`', '*']));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Parses a number that consists of digits only: `parse` alone would also accept a sign.
pub(super) fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Parses a duration in seconds. A single number without a unit counts as seconds.
pub(super) fn duration(rest: &[String]) -> Option<f64> {
    let mut seconds: Option<f64> = None;
    let mut tokens = rest.iter().map(String::as_str).peekable();
    while let Some(token) = tokens.next() {
        if matches!(token, "about" | "approximately" | "another" | "~")
            // "and" only joins two parts; at the start it would be another sentence.
            || (token == "and" && seconds.is_some())
        {
            continue;
        }
        let amount = match token {
            "a" | "an" | "one" => Some(1.0),
            _ => amount(token),
        };
        let part = match (amount, tokens.peek().and_then(|next| unit(next))) {
            (Some(amount), Some(unit)) => {
                tokens.next();
                amount * unit
            }
            // A number without a unit is a time of day or counts something else, so the duration ends before it.
            (Some(_), None)
                if tokens.peek().is_some() || seconds.is_some() || matches!(token, "a" | "an" | "one") =>
            {
                return seconds;
            }
            (Some(amount), None) => amount,
            (None, _) => match glued(token) {
                Some(part) => part,
                None => return seconds,
            },
        };
        seconds = Some(seconds.unwrap_or(0.0) + part);
    }
    seconds
}

/// Parses a decimal number without sign or exponent.
fn amount(digits: &str) -> Option<f64> {
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plain { digits.parse().ok() } else { None }
}

/// Parses `1h5m`, `1.5s` or `20min`.
fn glued(token: &str) -> Option<f64> {
    let mut rest = token;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let letters =
            rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        seconds += amount(&rest[..digits])? * unit(&rest[digits..letters])?;
        rest = &rest[letters..];
    }
    Some(seconds)
}

fn unit(word: &str) -> Option<f64> {
    Some(match word {
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
fn begins(word: &str, name: &str) -> bool {
    word.len() >= 3 && name.starts_with(word)
}

pub(super) fn weekday(word: &str) -> Option<Weekday> {
    use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    let days = [
        ("monday", Monday),
        ("tuesday", Tuesday),
        ("wednesday", Wednesday),
        ("thursday", Thursday),
        ("friday", Friday),
        ("saturday", Saturday),
        ("sunday", Sunday),
    ];
    days.into_iter().find(|(name, _)| begins(word, name)).map(|(_, day)| day)
}

pub(super) fn month(word: &str) -> Option<i8> {
    let months = [
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
    let at = months.iter().position(|name| begins(word, name) || (word == "sept" && *name == "september"))?;
    i8::try_from(at + 1).ok()
}

/// The offset from UTC in hours, of the abbreviations that clients use and of `UTC+2`.
pub(super) fn abbreviated_zone(word: &str) -> Option<i8> {
    // A bare `utc` has no suffix and falls through to the table.
    let from_utc = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt")).unwrap_or_default();
    if let Some(hours) = from_utc.strip_prefix(['+', '-']) {
        let hours: i8 = number(hours).filter(|hours| *hours <= 14)?;
        return Some(if from_utc.starts_with('-') { -hours } else { hours });
    }
    Some(match word {
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
