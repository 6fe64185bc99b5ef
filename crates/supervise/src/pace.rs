//! Measures how fast a process prints. There is no timer here, so that tests can say what time it is.

use std::time::Duration;

/// The period over which bytes are added up.
const WINDOW: Duration = Duration::from_secs(1);

/// The bytes of the current period.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    since: Option<Duration>,
    bytes: u64,
}

impl Pace {
    /// Adds new bytes and tells whether there were more than `max_bytes` within one period.
    pub fn exceeds(&mut self, limit: u64, now: Duration, bytes: u64) -> bool {
        // A clock that was set back gives a difference of zero and therefore no new period.
        if self.since.is_none_or(|since| now.saturating_sub(since) >= WINDOW) {
            *self = Pace { since: Some(now), bytes: 0 };
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_within_a_second_counts_together() {
        let ms = Duration::from_millis;
        let mut pace = Pace::default();
        assert!(!pace.exceeds(100, ms(5000), 60));
        assert!(!pace.exceeds(100, ms(5999), 40));
        // A second after the first byte another period begins.
        assert!(!pace.exceeds(100, ms(6000), 100));
        assert!(pace.exceeds(100, ms(6999), 1));
        assert!(!pace.exceeds(100, ms(7000), 1));
        assert!(pace.exceeds(100, ms(7000), u64::MAX));
        // A clock that was set back does not begin a new period.
        assert!(pace.exceeds(100, ms(1), 1));
    }
}
