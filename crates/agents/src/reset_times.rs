//! Finds out when a provider may be asked again.
//!
//! Clients say it in prose, each in its own wording, and a time of day is meant in the user's time zone. Only error
//! messages are read here, never answers. Whether to wait that long is decided elsewhere.

mod words;

use jiff::{
    SignedDuration, Timestamp, Zoned,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

use crate::driver::process_output::LocalClock;
use words::{parse_digits, parse_duration, tokenize_message};

/// No plan is counted over more than a week; a later time is a misreading.
const MAX_WAIT_MS: u64 = 8 * 24 * 3_600_000;
/// Messages round to the minute. A time of day that has just passed therefore means now, not tomorrow.
const JUST_PASSED_MS: u64 = 120_000;

/// The epoch time in milliseconds from which on the provider may be asked again; `None` if the message gives no time,
/// or none that is plausible.
pub fn parse_reset_ms(message: &str, clock: &LocalClock) -> Option<u64> {
    let message_tokens = tokenize_message(message);
    // From the most to the least precise notation. An epoch or a timestamp cannot be misread; a clock time needs a
    // guess about the day.
    let reset_at_ms = find_epoch(&message_tokens, clock)
        .or_else(|| find_timestamp(message, clock))
        .or_else(|| find_wait(&message_tokens, clock))
        .or_else(|| find_clock_time(message, &message_tokens, clock))?;
    (clock.now_ms..=clock.now_ms.saturating_add(MAX_WAIT_MS)).contains(&reset_at_ms).then_some(reset_at_ms)
}

/// Converts a number of seconds or milliseconds since 1970; `None` if the result is in the past or too far away.
pub(crate) fn epoch_to_ms(epoch_number: u64, clock: &LocalClock) -> Option<u64> {
    // As seconds, this bound is the year 5138; as milliseconds, it is 1973. No real reset time is ambiguous.
    let epoch_millis = if epoch_number < 100_000_000_000 { epoch_number.saturating_mul(1000) } else { epoch_number };
    (clock.now_ms..=clock.now_ms.saturating_add(MAX_WAIT_MS)).contains(&epoch_millis).then_some(epoch_millis)
}

/// Finds `…|1794708309`: seconds or milliseconds since 1970. No other number of that length is so close to now.
fn find_epoch(message_tokens: &[String], clock: &LocalClock) -> Option<u64> {
    let is_epoch = |token: &&String| matches!(token.len(), 10 | 13) && token.bytes().all(|byte| byte.is_ascii_digit());
    message_tokens.iter().filter(is_epoch).find_map(|token| epoch_to_ms(token.parse().ok()?, clock))
}

/// Finds `2026-11-17T14:00:00Z`, with or without a time zone.
fn find_timestamp(message: &str, clock: &LocalClock) -> Option<u64> {
    let mut message_words =
        message.split(|character: char| character.is_whitespace() || "\"'(),;|".contains(character)).peekable();
    while let Some(message_word) = message_words.next() {
        let message_word = message_word.trim_end_matches('.');
        // A cheap test that rules out almost every word before anything is parsed.
        if message_word.len() < 10 || message_word.as_bytes().get(4) != Some(&b'-') {
            continue;
        }
        if let Ok(parsed_timestamp) = message_word.parse::<Timestamp>() {
            return to_epoch_ms(parsed_timestamp);
        }
        let next_word = message_words.peek().copied().unwrap_or_default();
        let date_time = message_word.parse::<DateTime>().ok().filter(|_| message_word.contains(['T', 't']));
        // Date and time may be two words: `2026-11-17 14:00`.
        let date_time = date_time.or_else(|| format!("{message_word}T{next_word}").parse().ok());
        if let Some(date_time) = date_time {
            // Without an offset the time is local, unless the message mentions UTC anywhere.
            let time_zone = if message.contains("UTC") { TimeZone::UTC } else { clock.time_zone.clone() };
            return to_epoch_ms(date_time.to_zoned(time_zone).ok()?.timestamp());
        }
    }
    None
}

fn to_epoch_ms(parsed_timestamp: Timestamp) -> Option<u64> {
    u64::try_from(parsed_timestamp.as_millisecond()).ok()
}

/// Finds `try again in 3 days 4 hours`, `resets in 1h 5m` or `Retry-After: 30`.
fn find_wait(message_tokens: &[String], clock: &LocalClock) -> Option<u64> {
    let duration_starts = message_tokens.iter().enumerate().filter_map(|(token_index, token)| {
        let follows_any = |keywords: &[&str]| {
            message_tokens[token_index.saturating_sub(4)..token_index]
                .iter()
                .any(|previous_token| keywords.contains(&previous_token.as_str()))
        };
        let retry_keywords = ["again", "retry", "retrying", "reset", "resets", "wait", "available", "renews", "resume"];
        match token.as_str() {
            // "50 requests in 5 hours" says how much, not when; the preceding words must speak of waiting.
            "in" | "after" | "for" => follows_any(&retry_keywords).then_some(token_index + 1),
            "retry-after" | "retry_after" | "wait" => Some(token_index + 1),
            _ => None,
        }
    });
    for duration_start in duration_starts {
        if let Some(seconds) = parse_duration(&message_tokens[duration_start..]) {
            let wait_millis = (seconds * 1000.0).ceil();
            // A float that is too large saturates at the largest integer, and the addition then overflows to `None`.
            return clock.now_ms.checked_add(wait_millis as u64);
        }
    }
    None
}

/// Finds `resets 5pm`, `resets Nov 17, 2pm (UTC)` or `try again at Nov 20th, 2026 9:11 AM`.
fn find_clock_time(message: &str, message_tokens: &[String], clock: &LocalClock) -> Option<u64> {
    let anchor_words = ["reset", "resets", "resetting", "at", "until", "after", "on"];
    let anchor_tokens = message_tokens.iter().enumerate().filter(|(_, token)| anchor_words.contains(&token.as_str()));
    anchor_tokens.map(|(token_index, _)| token_index + 1).find_map(|time_start| {
        ResetMoment::parse_tokens(message, &message_tokens[time_start..])?.next_occurrence(clock)
    })
}

/// A day, a time of day and a time zone, as far as the message gives them.
#[derive(Debug, Default)]
struct ResetMoment {
    day: Option<ResetDay>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

#[derive(Clone, Copy, Debug)]
enum ResetDay {
    Today,
    Tomorrow,
    OnWeekday(Weekday),
    OnDate { month: i8, day: i8, year: Option<i16> },
}

impl ResetMoment {
    fn parse_tokens(message: &str, mut remaining_tokens: &[String]) -> Option<ResetMoment> {
        let filler_words = ["at", "on", "by", "around", "about", "next", "time", "is", "your", "local"];
        let mut reset_moment = ResetMoment::default();
        // Day and time come in either order, with filler words between them; the first unknown word ends the phrase.
        while let Some(token) = remaining_tokens.first() {
            let consumed = if filler_words.contains(&token.as_str()) {
                1
            } else if reset_moment.day.is_none()
                && let Some((reset_day, consumed)) = parse_day(remaining_tokens)
            {
                reset_moment.day = Some(reset_day);
                consumed
            } else if reset_moment.time.is_none()
                && let Some((clock_time, consumed)) = parse_time(remaining_tokens)
            {
                reset_moment.time = Some(clock_time);
                consumed
            } else if reset_moment.time.is_some() && names_time_zone(message, token) {
                // A time zone that is not understood makes the whole time unusable: being hours off is worse than not
                // knowing.
                reset_moment.zone = Some(parse_time_zone(token)?);
                break;
            } else {
                break;
            };
            remaining_tokens = &remaining_tokens[consumed..];
        }
        (reset_moment.day.is_some() || reset_moment.time.is_some()).then_some(reset_moment)
    }

    /// The next moment at which this day and time occur.
    fn next_occurrence(&self, clock: &LocalClock) -> Option<u64> {
        let time_zone = self.zone.clone().unwrap_or_else(|| clock.time_zone.clone());
        let now_zoned = Timestamp::from_millisecond(clock.now_ms.try_into().ok()?).ok()?.to_zoned(time_zone.clone());
        let (today, clock_time) = (now_zoned.date(), self.time.unwrap_or(Time::midnight()));
        let at_clock_time = |target_date: Date| target_date.to_datetime(clock_time).to_zoned(time_zone.clone()).ok();
        let days_later = |days_until: i64| {
            today.checked_add(SignedDuration::from_hours(24 * days_until)).ok().and_then(at_clock_time)
        };
        let has_passed = |zoned_time: &Zoned| zoned_time.timestamp() <= now_zoned.timestamp();
        let next_time = match self.day {
            // Only a time of day is known: it is today's or tomorrow's.
            None => {
                let today_time = at_clock_time(today)?;
                let elapsed_ms =
                    to_epoch_ms(now_zoned.timestamp())?.saturating_sub(to_epoch_ms(today_time.timestamp())?);
                if has_passed(&today_time) && elapsed_ms <= JUST_PASSED_MS {
                    return Some(clock.now_ms);
                }
                if has_passed(&today_time) { days_later(1)? } else { today_time }
            }
            Some(ResetDay::Today) => at_clock_time(today)?,
            Some(ResetDay::Tomorrow) => days_later(1)?,
            Some(ResetDay::OnWeekday(weekday)) => {
                let days_until = i64::from(today.weekday().until(weekday));
                // The reset is some time today, but the message does not say when.
                if days_until == 0 && self.time.is_none() {
                    return None;
                }
                Some(days_later(days_until)?)
                    .filter(|zoned_time| !has_passed(zoned_time))
                    .or_else(|| days_later(days_until + 7))?
            }
            Some(ResetDay::OnDate { month, day, year }) => {
                // A date without a year that has passed means next year.
                let in_year = |year| Date::new(year, month, day).ok().and_then(at_clock_time);
                match year {
                    Some(year) => in_year(year)?,
                    None => in_year(now_zoned.year())
                        .filter(|zoned_time| !has_passed(zoned_time))
                        .or_else(|| in_year(now_zoned.year() + 1))?,
                }
            }
        };
        to_epoch_ms(next_time.timestamp())
    }
}

fn parse_day(remaining_tokens: &[String]) -> Option<(ResetDay, usize)> {
    let first_token = remaining_tokens.first()?;
    match first_token.as_str() {
        "today" => return Some((ResetDay::Today, 1)),
        "tomorrow" => return Some((ResetDay::Tomorrow, 1)),
        _ => {}
    }
    if let Some(weekday) = words::parse_weekday(first_token) {
        return Some((ResetDay::OnWeekday(weekday), 1));
    }
    let parse_ordinal = |token: Option<&String>| -> Option<i8> {
        let token = token?;
        let digit_text = token.trim_end_matches(|character: char| character.is_ascii_alphabetic());
        let has_ordinal_suffix = matches!(&token[digit_text.len()..], "" | "st" | "nd" | "rd" | "th");
        digit_text.parse().ok().filter(|day_of_month| has_ordinal_suffix && (1..=31).contains(day_of_month))
    };
    // Both `Nov 17` and `17 November` occur.
    let (month, day_of_month, mut consumed) = match (words::parse_month(first_token), remaining_tokens.get(1)) {
        (Some(month), second_token) => (month, parse_ordinal(second_token)?, 2),
        (None, Some(second_token)) => (words::parse_month(second_token)?, parse_ordinal(Some(first_token))?, 2),
        (None, None) => return None,
    };
    // Four digits directly behind the day are the year; `18:00` has five characters.
    let year = remaining_tokens.get(2).filter(|token| token.len() == 4).and_then(|token| token.parse().ok());
    consumed += usize::from(year.is_some());
    Some((ResetDay::OnDate { month, day: day_of_month, year }, consumed))
}

/// Parses `5pm`, `5 p.m.`, `3:30pm` or `18:00`. A number alone is not a time.
fn parse_time(remaining_tokens: &[String]) -> Option<(Time, usize)> {
    let first_token = remaining_tokens.first()?;
    let digits_end = first_token
        .find(|character: char| !character.is_ascii_digit() && character != ':')
        .unwrap_or(first_token.len());
    let (clock_text, glued_suffix) = first_token.split_at(digits_end);
    let is_afternoon = |suffix: &str| match suffix {
        "am" | "a.m" | "a.m." => Some(false),
        "pm" | "p.m" | "p.m." => Some(true),
        _ => None,
    };
    // The half of the day is either glued to the digits or the next word, never both.
    let separate_half =
        remaining_tokens.get(1).and_then(|suffix| is_afternoon(suffix)).filter(|_| glued_suffix.is_empty());
    let afternoon = if glued_suffix.is_empty() { separate_half } else { Some(is_afternoon(glued_suffix)?) };
    let mut clock_parts = clock_text.split(':');
    let hour: i8 = parse_digits(clock_parts.next()?)?;
    let minute: i8 = match clock_parts.next() {
        Some(minute_text) => parse_digits(minute_text)?,
        None => {
            // Without minutes, only `am` or `pm` makes the number a time.
            afternoon?;
            0
        }
    };
    let hour = match afternoon {
        // 12am is midnight and 12pm is noon, hence the remainder.
        Some(afternoon) if (1..=12).contains(&hour) => hour % 12 + if afternoon { 12 } else { 0 },
        Some(_) => return None,
        None => hour,
    };
    Some((Time::new(hour, minute, 0, 0).ok()?, 1 + usize::from(separate_half.is_some())))
}

/// Whether a word behind a time names a time zone, understood or not. Abbreviations of zones are written in capitals,
/// which only the original message still shows.
fn names_time_zone(message: &str, token: &str) -> bool {
    let is_uppercase_token = |message_word: &str| {
        (2..=5).contains(&message_word.len())
            && message_word.bytes().all(|byte| byte.is_ascii_uppercase())
            && message_word.eq_ignore_ascii_case(token)
    };
    token.contains('/')
        || token.starts_with("utc")
        || token.starts_with("gmt")
        || words::zone_offset_hours(token).is_some()
        || message.split(|character: char| !character.is_ascii_alphanumeric()).any(is_uppercase_token)
}

fn parse_time_zone(token: &str) -> Option<TimeZone> {
    if let Some(offset_hours) = words::zone_offset_hours(token) {
        return Some(TimeZone::fixed(jiff::tz::offset(offset_hours)));
    }
    // Only names like `Europe/Berlin` are looked up; the database also knows short names that are ambiguous.
    if !token.contains('/') {
        return None;
    }
    TimeZone::get(token).ok()
}
