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

use crate::driver::output::Clock;
use words::{duration, number, tokens};

/// No plan is counted over more than a week; a later time is a misreading.
const FARTHEST_MS: u64 = 8 * 24 * 3_600_000;
/// Messages round to the minute. A time of day that has just passed therefore means now, not tomorrow.
const JUST_PAST_MS: u64 = 120_000;

/// The epoch time in milliseconds from which on the provider may be asked again; `None` if the message gives no time,
/// or none that is plausible.
pub fn reset_ms(message: &str, clock: &Clock) -> Option<u64> {
    let tokens = tokens(message);
    // From the most to the least precise notation. An epoch or a timestamp cannot be misread; a clock time needs a
    // guess about the day.
    let found = epoch(&tokens, clock)
        .or_else(|| timestamp(message, clock))
        .or_else(|| in_a_while(&tokens, clock))
        .or_else(|| at_a_time(message, &tokens, clock))?;
    (clock.now_ms..=clock.now_ms.saturating_add(FARTHEST_MS)).contains(&found).then_some(found)
}

/// Converts a number of seconds or milliseconds since 1970; `None` if the result is in the past or too far away.
pub(crate) fn epoch_ms(number: u64, clock: &Clock) -> Option<u64> {
    // As seconds, this bound is the year 5138; as milliseconds, it is 1973. No real reset time is ambiguous.
    let ms = if number < 100_000_000_000 { number.saturating_mul(1000) } else { number };
    (clock.now_ms..=clock.now_ms.saturating_add(FARTHEST_MS)).contains(&ms).then_some(ms)
}

/// Finds `…|1794708309`: seconds or milliseconds since 1970. No other number of that length is so close to now.
fn epoch(tokens: &[String], clock: &Clock) -> Option<u64> {
    let digits =
        |token: &&String| matches!(token.len(), 10 | 13) && token.bytes().all(|b| b.is_ascii_digit());
    tokens.iter().filter(digits).find_map(|token| epoch_ms(token.parse().ok()?, clock))
}

/// Finds `2026-11-17T14:00:00Z`, with or without a time zone.
fn timestamp(message: &str, clock: &Clock) -> Option<u64> {
    let mut words = message.split(|c: char| c.is_whitespace() || "\"'(),;|".contains(c)).peekable();
    while let Some(word) = words.next() {
        let word = word.trim_end_matches('.');
        // A cheap test that rules out almost every word before anything is parsed.
        if word.len() < 10 || word.as_bytes().get(4) != Some(&b'-') {
            continue;
        }
        if let Ok(at) = word.parse::<Timestamp>() {
            return ms(at);
        }
        let time = words.peek().copied().unwrap_or_default();
        let date_time = word.parse::<DateTime>().ok().filter(|_| word.contains(['T', 't']));
        // Date and time may be two words: `2026-11-17 14:00`.
        let date_time = date_time.or_else(|| format!("{word}T{time}").parse().ok());
        if let Some(date_time) = date_time {
            // Without an offset the time is local, unless the message mentions UTC anywhere.
            let zone = if message.contains("UTC") { TimeZone::UTC } else { clock.zone.clone() };
            return ms(date_time.to_zoned(zone).ok()?.timestamp());
        }
    }
    None
}

fn ms(at: Timestamp) -> Option<u64> {
    u64::try_from(at.as_millisecond()).ok()
}

/// Finds `try again in 3 days 4 hours`, `resets in 1h 5m` or `Retry-After: 30`.
fn in_a_while(tokens: &[String], clock: &Clock) -> Option<u64> {
    let starts = tokens.iter().enumerate().filter_map(|(at, token)| {
        let near = |words: &[&str]| {
            tokens[at.saturating_sub(4)..at].iter().any(|before| words.contains(&before.as_str()))
        };
        let again =
            ["again", "retry", "retrying", "reset", "resets", "wait", "available", "renews", "resume"];
        match token.as_str() {
            // "50 requests in 5 hours" says how much, not when; the preceding words must speak of waiting.
            "in" | "after" | "for" => near(&again).then_some(at + 1),
            "retry-after" | "retry_after" | "wait" => Some(at + 1),
            _ => None,
        }
    });
    for start in starts {
        if let Some(seconds) = duration(&tokens[start..]) {
            let wait = (seconds * 1000.0).ceil();
            // A float that is too large saturates at the largest integer, and the addition then overflows to `None`.
            return clock.now_ms.checked_add(wait as u64);
        }
    }
    None
}

/// Finds `resets 5pm`, `resets Nov 17, 2pm (UTC)` or `try again at Nov 20th, 2026 9:11 AM`.
fn at_a_time(message: &str, tokens: &[String], clock: &Clock) -> Option<u64> {
    let anchors = ["reset", "resets", "resetting", "at", "until", "after", "on"];
    let starts = tokens.iter().enumerate().filter(|(_, token)| anchors.contains(&token.as_str()));
    starts.map(|(at, _)| at + 1).find_map(|start| When::read(message, &tokens[start..])?.next(clock))
}

/// A day, a time of day and a time zone, as far as the message gives them.
#[derive(Debug, Default)]
struct When {
    day: Option<Day>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

#[derive(Clone, Copy, Debug)]
enum Day {
    Today,
    Tomorrow,
    Week(Weekday),
    Month { month: i8, day: i8, year: Option<i16> },
}

impl When {
    fn read(message: &str, mut rest: &[String]) -> Option<When> {
        let fillers = ["at", "on", "by", "around", "about", "next", "time", "is", "your", "local"];
        let mut when = When::default();
        // Day and time come in either order, with filler words between them; the first unknown word ends the phrase.
        while let Some(token) = rest.first() {
            let taken = if fillers.contains(&token.as_str()) {
                1
            } else if when.day.is_none()
                && let Some((day, taken)) = day(rest)
            {
                when.day = Some(day);
                taken
            } else if when.time.is_none()
                && let Some((time, taken)) = time(rest)
            {
                when.time = Some(time);
                taken
            } else if when.time.is_some() && is_zone(message, token) {
                // A time zone that is not understood makes the whole time unusable: being hours off is worse than not
                // knowing.
                when.zone = Some(zone(token)?);
                break;
            } else {
                break;
            };
            rest = &rest[taken..];
        }
        (when.day.is_some() || when.time.is_some()).then_some(when)
    }

    /// The next moment at which this day and time occur.
    fn next(&self, clock: &Clock) -> Option<u64> {
        let zone = self.zone.clone().unwrap_or_else(|| clock.zone.clone());
        let now = Timestamp::from_millisecond(clock.now_ms.try_into().ok()?).ok()?.to_zoned(zone.clone());
        let (today, time) = (now.date(), self.time.unwrap_or(Time::midnight()));
        let at = |date: Date| date.to_datetime(time).to_zoned(zone.clone()).ok();
        let later = |days: i64| today.checked_add(SignedDuration::from_hours(24 * days)).ok().and_then(at);
        let past = |at: &Zoned| at.timestamp() <= now.timestamp();
        let found = match self.day {
            // Only a time of day is known: it is today's or tomorrow's.
            None => {
                let today = at(today)?;
                let gone = ms(now.timestamp())?.saturating_sub(ms(today.timestamp())?);
                if past(&today) && gone <= JUST_PAST_MS {
                    return Some(clock.now_ms);
                }
                if past(&today) { later(1)? } else { today }
            }
            Some(Day::Today) => at(today)?,
            Some(Day::Tomorrow) => later(1)?,
            Some(Day::Week(weekday)) => {
                let days = i64::from(today.weekday().until(weekday));
                // The reset is some time today, but the message does not say when.
                if days == 0 && self.time.is_none() {
                    return None;
                }
                Some(later(days)?).filter(|at| !past(at)).or_else(|| later(days + 7))?
            }
            Some(Day::Month { month, day, year }) => {
                // A date without a year that has passed means next year.
                let of = |year| Date::new(year, month, day).ok().and_then(at);
                match year {
                    Some(year) => of(year)?,
                    None => of(now.year()).filter(|at| !past(at)).or_else(|| of(now.year() + 1))?,
                }
            }
        };
        ms(found.timestamp())
    }
}

fn day(rest: &[String]) -> Option<(Day, usize)> {
    let first = rest.first()?;
    match first.as_str() {
        "today" => return Some((Day::Today, 1)),
        "tomorrow" => return Some((Day::Tomorrow, 1)),
        _ => {}
    }
    if let Some(weekday) = words::weekday(first) {
        return Some((Day::Week(weekday), 1));
    }
    let ordinal = |token: Option<&String>| -> Option<i8> {
        let token = token?;
        let digits = token.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let plain = matches!(&token[digits.len()..], "" | "st" | "nd" | "rd" | "th");
        digits.parse().ok().filter(|day| plain && (1..=31).contains(day))
    };
    // Both `Nov 17` and `17 November` occur.
    let (month, day, mut taken) = match (words::month(first), rest.get(1)) {
        (Some(month), second) => (month, ordinal(second)?, 2),
        (None, Some(second)) => (words::month(second)?, ordinal(Some(first))?, 2),
        (None, None) => return None,
    };
    // Four digits directly behind the day are the year; `18:00` has five characters.
    let year = rest.get(2).filter(|token| token.len() == 4).and_then(|token| token.parse().ok());
    taken += usize::from(year.is_some());
    Some((Day::Month { month, day, year }, taken))
}

/// Parses `5pm`, `5 p.m.`, `3:30pm` or `18:00`. A number alone is not a time.
fn time(rest: &[String]) -> Option<(Time, usize)> {
    let first = rest.first()?;
    let end = first.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(first.len());
    let (clock, glued) = first.split_at(end);
    let half = |word: &str| match word {
        "am" | "a.m" | "a.m." => Some(false),
        "pm" | "p.m" | "p.m." => Some(true),
        _ => None,
    };
    // The half of the day is either glued to the digits or the next word, never both.
    let beside = rest.get(1).and_then(|word| half(word)).filter(|_| glued.is_empty());
    let after_noon = if glued.is_empty() { beside } else { Some(half(glued)?) };
    let mut parts = clock.split(':');
    let hour: i8 = number(parts.next()?)?;
    let minute: i8 = match parts.next() {
        Some(minute) => number(minute)?,
        None => {
            // Without minutes, only `am` or `pm` makes the number a time.
            after_noon?;
            0
        }
    };
    let hour = match after_noon {
        // 12am is midnight and 12pm is noon, hence the remainder.
        Some(after_noon) if (1..=12).contains(&hour) => hour % 12 + if after_noon { 12 } else { 0 },
        Some(_) => return None,
        None => hour,
    };
    Some((Time::new(hour, minute, 0, 0).ok()?, 1 + usize::from(beside.is_some())))
}

/// Whether a word behind a time names a time zone, understood or not. Abbreviations of zones are written in capitals,
/// which only the original message still shows.
fn is_zone(message: &str, token: &str) -> bool {
    let shouted = |word: &str| {
        (2..=5).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_uppercase())
            && word.eq_ignore_ascii_case(token)
    };
    token.contains('/')
        || token.starts_with("utc")
        || token.starts_with("gmt")
        || words::abbreviated_zone(token).is_some()
        || message.split(|c: char| !c.is_ascii_alphanumeric()).any(shouted)
}

fn zone(token: &str) -> Option<TimeZone> {
    if let Some(hours) = words::abbreviated_zone(token) {
        return Some(TimeZone::fixed(jiff::tz::offset(hours)));
    }
    // Only names like `Europe/Berlin` are looked up; the database also knows short names that are ambiguous.
    if !token.contains('/') {
        return None;
    }
    TimeZone::get(token).ok()
}
