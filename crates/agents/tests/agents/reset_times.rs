//! Reset times as clients word them, and the classification of errors.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use jiff::{Timestamp, tz::TimeZone};
use tribunal_agents::{driver::LocalClock, faults::classify_fault, reset_times::parse_reset_ms};
use tribunal_engine::fault::FaultKind;

/// A Sunday noon in November, at which clocks in Berlin show 13:00.
const NOON_IN_BERLIN: &str = "2026-11-15T12:00:00Z";

fn clock_at(current_time: &str, zone_name: &str) -> LocalClock {
    let current_time: Timestamp = current_time.parse().unwrap();
    LocalClock {
        now_ms: current_time.as_millisecond().try_into().unwrap(),
        time_zone: TimeZone::get(zone_name).unwrap(),
    }
}

fn berlin_clock() -> LocalClock {
    clock_at(NOON_IN_BERLIN, "Europe/Berlin")
}

fn find_reset(message: &str) -> Option<String> {
    format_ms(parse_reset_ms(message, &berlin_clock()))
}

fn format_ms(epoch_ms: Option<u64>) -> Option<String> {
    epoch_ms.map(|epoch_ms| Timestamp::from_millisecond(epoch_ms.try_into().unwrap()).unwrap().to_string())
}

#[test]
fn reset_times_are_found_in_every_wording() {
    for (message, expected_time) in [
        ("API Error: Request rejected (429) · Claude AI usage limit reached|1794780000", "2026-11-15T22:00:00Z"),
        ("Claude AI usage limit reached|1794780000000", "2026-11-15T22:00:00Z"),
        ("You've hit your 5-hour limit · resets 10pm (UTC)", "2026-11-15T22:00:00Z"),
        ("You've hit your weekly limit · resets Nov 20, 6:40pm (UTC)", "2026-11-20T18:40:00Z"),
        ("5-hour limit reached ∙ resets 5pm", "2026-11-15T16:00:00Z"),
        ("limit reached, resets 9am", "2026-11-16T08:00:00Z"),
        ("resets at 3:30 PM (America/New_York)", "2026-11-15T20:30:00Z"),
        ("resets Mon 9am", "2026-11-16T08:00:00Z"),
        ("resets Sunday at 9 a.m.", "2026-11-22T08:00:00Z"),
        ("Resets Sunday at 18:00", "2026-11-15T17:00:00Z"),
        ("resets 5pm (JST)", "2026-11-16T08:00:00Z"),
        ("resets at 18:00 UTC-5", "2026-11-15T23:00:00Z"),
        ("resets on Monday", "2026-11-15T23:00:00Z"),
        ("resets tomorrow at 00:15", "2026-11-15T23:15:00Z"),
        ("resets on 17 November, 14:00 UTC", "2026-11-17T14:00:00Z"),
        ("resets 12am", "2026-11-15T23:00:00Z"),
        ("resets 12:30pm (PST)", "2026-11-15T20:30:00Z"),
        ("please try again at 18:00", "2026-11-15T17:00:00Z"),
        ("You've hit your usage limit. Upgrade to Pro or try again at 3:05 PM.", "2026-11-15T14:05:00Z"),
        ("You’ve hit your usage limit. Try again at Nov 20th, 2026 9:11 AM.", "2026-11-20T08:11:00Z"),
        ("try again in 20 minutes", "2026-11-15T12:20:00Z"),
        ("Try again in 3 days 4 hours 2 minutes.", "2026-11-18T16:02:00Z"),
        ("Please try again in 1 hour and 5 minutes", "2026-11-15T13:05:00Z"),
        ("resets in 1h 5m", "2026-11-15T13:05:00Z"),
        ("resets in 1h5m0s", "2026-11-15T13:05:00Z"),
        ("Rate limit reached for model: Limit 30000, Used 29000. Please try again in 1.5s.", "2026-11-15T12:00:01.5Z"),
        ("Please try again in 250ms", "2026-11-15T12:00:00.25Z"),
        ("please wait 45 seconds", "2026-11-15T12:00:45Z"),
        ("Retry-After: 30", "2026-11-15T12:00:30Z"),
        ("retry after 30 seconds", "2026-11-15T12:00:30Z"),
        ("50 messages in 5 hours used; try again in an hour", "2026-11-15T13:00:00Z"),
        ("limit resets at 2026-11-17T14:00:00Z", "2026-11-17T14:00:00Z"),
        ("limit resets at 2026-11-17T14:00:00+01:00.", "2026-11-17T13:00:00Z"),
        ("available again on 2026-11-17 14:00 UTC", "2026-11-17T14:00:00Z"),
        ("available again on 2026-11-17 14:00", "2026-11-17T13:00:00Z"),
        (r#"{"resets_at":1794780000,"resets_in_seconds":36000}"#, "2026-11-15T22:00:00Z"),
    ] {
        assert_eq!(find_reset(message).as_deref(), Some(expected_time), "{message}");
    }
}

#[test]
fn messages_without_a_usable_time_have_none() {
    for message in [
        "",
        "API Error: Request rejected (429) · rate limited",
        "limit of 50 requests per minute",
        "50 requests in 5 hours",
        "Limit 30000, Used 29000, Requested 2000",
        "resets",
        "resets at",
        "resets at 5",
        "resets 13pm",
        "resets 25:00",
        "resets Nov 31, 2pm",
        // An unknown time zone: being hours off would be worse than not knowing.
        "resets 5pm (XYZ)",
        "resets 5pm (Mars/Olympus)",
        "resets 5pm UTC+5:30",
        // Today is Sunday, and the message does not say at what time.
        "resets on Sunday",
        // The time has passed, or is too far away to be meant.
        "usage limit reached|1694780000",
        "resets 2026-11-14T14:00:00Z",
        "try again in 9 days",
        "resets Dec 24, 2pm (UTC)",
        "try again in 99999999999999999999999999 hours",
    ] {
        assert_eq!(find_reset(message), None, "{message}");
    }
}

#[test]
fn a_time_of_day_that_has_just_passed_is_now_and_an_earlier_one_is_tomorrow() {
    let reset_seen_at = |now_text| format_ms(parse_reset_ms("resets 5pm (UTC)", &clock_at(now_text, "UTC")));
    assert_eq!(reset_seen_at("2026-11-15T16:59:59Z").as_deref(), Some("2026-11-15T17:00:00Z"));
    assert_eq!(reset_seen_at("2026-11-15T17:00:40Z").as_deref(), Some("2026-11-15T17:00:40Z"));
    assert_eq!(reset_seen_at("2026-11-15T17:03:00Z").as_deref(), Some("2026-11-16T17:00:00Z"));
}

#[test]
fn a_time_that_daylight_saving_skips_is_still_found() {
    // 02:30 does not exist on that day in Berlin.
    let local_clock = clock_at("2026-03-28T23:00:00Z", "Europe/Berlin");
    assert_eq!(format_ms(parse_reset_ms("resets 2:30am", &local_clock)).as_deref(), Some("2026-03-29T01:30:00Z"));
}

#[test]
fn errors_are_classified_by_phrase_and_status() {
    use FaultKind::{
        Connection, Curtailed, Limited, Malformed, NoCredit, NoModel, NotSignedIn, Overflow, Overloaded, Refused,
        Rejected,
    };
    for (message, status, expected_kind) in [
        ("Invalid API key · Fix external API key", Some(401), NotSignedIn),
        ("Failed to authenticate. API Error: 403 not allowed", Some(403), NotSignedIn),
        ("Not logged in · Please run /login", None, NotSignedIn),
        ("API Error: 400 bad thing", Some(400), Rejected { status: 400 }),
        ("Prompt is too long · use /compact", Some(400), Overflow),
        ("Credit balance is too low", Some(400), NoCredit),
        ("There's an issue with the selected model (x). It may not exist", Some(404), NoModel),
        ("Request too large (max 32MB).", Some(413), Overflow),
        ("API Error: Request rejected (429) · slow down", Some(429), Limited { until_ms: None }),
        ("API Error: 500 Internal server error. This is a server-side issue", Some(500), Overloaded),
        ("API Error: 529 Overloaded", Some(529), Overloaded),
        ("API Error: JSON Parse error: Unexpected identifier", None, Malformed),
        ("API Error: Connection dropped (ECONNRESET)", None, Connection),
        ("API Error: Connection refused — a firewall or proxy may be blocking it", None, Connection),
        ("Request timed out", None, Connection),
        ("API Error: Claude's safeguards flagged this message", None, Refused),
        ("API Error: Claude's response exceeded the 128000 output token maximum", None, Curtailed),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", None, NotSignedIn),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, Limited { until_ms: None }),
        ("Quota exceeded. Check your plan and billing details.", None, NoCredit),
        ("We're currently experiencing high demand, which may cause temporary errors.", None, Overloaded),
        ("stream disconnected before completion: error sending request", None, Connection),
        ("unexpected status 503 Service Unavailable: x", None, Overloaded),
        ("unexpected status 422 Unprocessable Entity: x", None, Rejected { status: 422 }),
    ] {
        assert_eq!(classify_fault(message, status, &berlin_clock()), Some(expected_kind), "{message}");
    }
}

#[test]
fn a_limit_comes_with_its_reset_time() {
    let fault_kind = classify_fault("You've hit your 5-hour limit · resets 10pm (UTC)", Some(429), &berlin_clock());
    assert_eq!(fault_kind, Some(FaultKind::Limited { until_ms: Some(1_794_780_000_000) }));
}

#[test]
fn numbers_without_an_announcement_are_no_fault() {
    for message in ["exit 401", "line 429 of limits.rs", "the limit is 500", "process ended", "status 200", ""] {
        assert_eq!(classify_fault(message, None, &berlin_clock()), None, "{message}");
    }
}

proptest::proptest! {
    #[test]
    fn a_reset_time_is_never_past_nor_absurd(
        text in concat!(
            "((resets|again|in|at|after|Nov|Sunday|31|5pm|12:30|pm|am|\\||[0-9]{1,14}|20[0-9]{2}-[01][0-9]-[0-3][0-9]T?",
            "|h|days|UTC|Asia/Tokyo|é|[.:,()])[ ]?){0,12}"
        ),
        now in 0u64..4_000_000_000_000,
        zone in proptest::sample::select(&["UTC", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"][..]),
    ) {
        let clock = LocalClock { now_ms: now, time_zone: TimeZone::get(zone).unwrap() };
        if let Some(at) = parse_reset_ms(&text, &clock) {
            proptest::prop_assert!(at >= now && at - now <= 8 * 24 * 3_600_000, "{text} at {now}: {at}");
        }
        let _ = classify_fault(&text, None, &clock);
    }
}
