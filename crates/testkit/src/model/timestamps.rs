//! Fills timestamps into what the server sends: `{now+15}` becomes the time in 15 seconds, in seconds since 1970, and
//! `{minute+15}` the first full minute from then on.
//!
//! They are filled in when the answer is written and not when the scenario is built, because on a busy machine it is not known
//! how long a client takes to start and to ask.

use std::time::{SystemTime, UNIX_EPOCH};

/// Fills in the timestamps relative to now.
pub(super) fn fill_timestamps_now(text: &str) -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    fill_timestamps(text, since_epoch.as_secs())
}

fn fill_timestamps(text: &str, now_seconds: u64) -> String {
    let mut pieces = text.split('{');
    let mut filled_text = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let resolved = piece.split_once('}').and_then(|(placeholder, following_text)| {
            Some((resolve_timestamp(placeholder, now_seconds)?, following_text))
        });
        match resolved {
            Some((timestamp, following_text)) => filled_text.push_str(&format!("{timestamp}{following_text}")),
            None => filled_text.extend(["{", piece]),
        }
    }
    filled_text
}

fn resolve_timestamp(placeholder: &str, now_seconds: u64) -> Option<u64> {
    let (base, seconds) = placeholder.split_once('+')?;
    let target_seconds = now_seconds + seconds.parse::<u64>().ok()?;
    match base {
        "now" => Some(target_seconds),
        "minute" => Some(target_seconds.div_ceil(60) * 60),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_filled_in_and_other_braces_stay() {
        let body = r#"{"a": {now+15}, "b": {minute+15}, "c": "{x+1} {now+} {now"}"#;
        assert_eq!(fill_timestamps(body, 1_000), r#"{"a": 1015, "b": 1020, "c": "{x+1} {now+} {now"}"#);
        assert_eq!(fill_timestamps("reached|{now+0}", 1_000), "reached|1000");
        assert_eq!(fill_timestamps("", 1_000), "");
    }
}
