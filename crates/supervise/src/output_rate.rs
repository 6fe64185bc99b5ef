//! Measures how fast a process prints. There is no timer here, so that tests can say what time it is.

use std::time::Duration;

/// The period over which bytes are added up.
const WINDOW: Duration = Duration::from_secs(1);

/// The bytes of the current period.
#[derive(Debug, Default)]
pub(crate) struct OutputRate {
    window_start: Option<Duration>,
    window_bytes: u64,
}

impl OutputRate {
    /// Adds new bytes and tells whether there were more than `max_bytes` within one period.
    pub fn exceeds_limit(&mut self, max_bytes: u64, current_time: Duration, new_bytes: u64) -> bool {
        // A clock that was set back gives a difference of zero and therefore no new period.
        if self.window_start.is_none_or(|started| current_time.saturating_sub(started) >= WINDOW) {
            *self = OutputRate { window_start: Some(current_time), window_bytes: 0 };
        }
        self.window_bytes = self.window_bytes.saturating_add(new_bytes);
        self.window_bytes > max_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_within_the_same_second_are_added_up() {
        let millis = Duration::from_millis;
        let mut output_rate = OutputRate::default();
        assert!(!output_rate.exceeds_limit(100, millis(5000), 60));
        assert!(!output_rate.exceeds_limit(100, millis(5999), 40));
        // A second after the first byte another period begins.
        assert!(!output_rate.exceeds_limit(100, millis(6000), 100));
        assert!(output_rate.exceeds_limit(100, millis(6999), 1));
        assert!(!output_rate.exceeds_limit(100, millis(7000), 1));
        assert!(output_rate.exceeds_limit(100, millis(7000), u64::MAX));
        // A clock that was set back does not begin a new period.
        assert!(output_rate.exceeds_limit(100, millis(1), 1));
    }
}
