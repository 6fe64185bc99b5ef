//! Fills timestamps into what the server sends: `{now+15}` becomes the time in 15 seconds, in seconds since 1970, and
//! `{minute+15}` the first full minute from then on.
//!
//! They are filled in when the answer is written and not when the scenario is built, because on a busy machine it is not known
//! how long a client takes to start and to ask.

use std::time::{SystemTime, UNIX_EPOCH};

/// Fills in the timestamps relative to now.
pub(super) fn filled_now(text: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    filled(text, now.as_secs())
}

fn filled(text: &str, now: u64) -> String {
    let mut pieces = text.split('{');
    let mut whole = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let moment = piece.split_once('}').and_then(|(inside, rest)| Some((moment(inside, now)?, rest)));
        match moment {
            Some((moment, rest)) => whole.push_str(&format!("{moment}{rest}")),
            None => whole.extend(["{", piece]),
        }
    }
    whole
}

fn moment(inside: &str, now: u64) -> Option<u64> {
    let (base, seconds) = inside.split_once('+')?;
    let then = now + seconds.parse::<u64>().ok()?;
    match base {
        "now" => Some(then),
        "minute" => Some(then.div_ceil(60) * 60),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_filled_in_and_other_braces_stay() {
        let body = r#"{"a": {now+15}, "b": {minute+15}, "c": "{x+1} {now+} {now"}"#;
        assert_eq!(filled(body, 1_000), r#"{"a": 1015, "b": 1020, "c": "{x+1} {now+} {now"}"#);
        assert_eq!(filled("reached|{now+0}", 1_000), "reached|1000");
        assert_eq!(filled("", 1_000), "");
    }
}
