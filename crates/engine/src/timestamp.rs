//! Time as a run sees it.
//!
//! A workflow never reads a clock: it sees the timestamp of the last reply it was given. `awake_ms` counts only the time in
//! which the run was really running, so waiting for the user never uses up a time limit.

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

/// When something was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Timestamp {
    /// Milliseconds since 1970-01-01 UTC, from the wall clock.
    pub wall_ms: u64,
    /// Milliseconds this run has been awake, over all its processes.
    pub awake_ms: u64,
}

impl Timestamp {
    /// Formats the wall time as `2026-11-15 01:29:25`, in UTC.
    pub fn format_utc(&self) -> String {
        let seconds = self.wall_ms / 1000;
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// Parses `2026-11-15`, `2026-11-15 01:29` or `2026-11-15T01:29:25`, in UTC, into a wall time.
pub fn parse_wall_ms(date_text: &str) -> Option<u64> {
    let (date_part, time_part) =
        date_text.trim().trim_end_matches('Z').split_once([' ', 'T']).unwrap_or((date_text.trim(), "0:0"));
    let mut date_fields = date_part.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date_fields.next()??, date_fields.next()??, date_fields.next()??);
    let mut time_fields = time_part.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time_fields.next()??, time_fields.next()??, time_fields.next().unwrap_or(Some(0))?);
    // Month and day are checked below by converting the date back.
    let is_plausible = year < 10_000 && hour < 24 && minute < 60 && second < 60;
    let day_count = is_plausible.then(|| days_from_civil(year, month, day))?;
    // A date that does not exist, such as February 30, comes back as another one.
    (civil_from_days(day_count) == (year, month, day))
        .then_some((day_count * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

/// Inverts [`civil_from_days`]; the result is meaningless for dates before 1970 or outside the calendar.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March here, so January and February belong to the year before.
    let march_year = if month <= 2 { year.saturating_sub(1) } else { year };
    let (era, year_of_era) = (march_year / 400, march_year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).saturating_sub(719_469)
}

/// Returns year, month and day of a number of days since 1970-01-01 (proleptic Gregorian; years are counted from March so
/// that the leap day is the last day of its year).
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    // 719 468 days lie between 0000-03-01 and 1970-01-01; an era is 400 years of 146 097 days.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let utc_at = |wall_ms| Timestamp { wall_ms, awake_ms: 0 }.format_utc();
        assert_eq!(utc_at(0), "1970-01-01 00:00:00");
        assert_eq!(utc_at(951_782_399_000), "2000-02-28 23:59:59");
        assert_eq!(utc_at(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(utc_at(1_794_706_165_123), "2026-11-15 01:29:25");
    }

    #[test]
    fn a_formatted_time_is_parsed_back() {
        for wall_ms in [0, 951_782_399_000, 951_782_400_000, 1_794_706_165_000, 4_102_444_799_000] {
            assert_eq!(parse_wall_ms(&Timestamp { wall_ms, awake_ms: 0 }.format_utc()), Some(wall_ms));
        }
        assert_eq!(parse_wall_ms("2026-11-15"), Some(1_794_700_800_000));
        assert_eq!(parse_wall_ms("2026-11-15T01:29Z"), Some(1_794_706_140_000));
        for invalid in ["", "today", "2026-02-30", "2026-13-01", "2026-11-15 25:00", "0-0-0", "1969-12-31"] {
            assert_eq!(parse_wall_ms(invalid), None, "{invalid}");
        }
    }
}
