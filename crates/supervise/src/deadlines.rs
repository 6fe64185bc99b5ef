//! Decides how long a process may run in total and without output. Both limits count only time in which the machine was awake.
//!
//! There is no timer here, so that tests can say what time it is.

use std::time::Duration;

/// The time limits of a process. Both start at its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    pub total: Duration,
    /// The limit without a byte on either stream.
    pub idle: Duration,
}

/// A moment on two clocks: one that stands still while the machine sleeps, and one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub awake: Duration,
    pub boot: Duration,
}

/// The smallest difference between the clocks that counts as sleep: clocks drift, and they are read one after the other.
const SLEPT: Duration = Duration::from_secs(2);

impl Moment {
    #[cfg(target_os = "linux")]
    pub fn now() -> Moment {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| {
            let time = clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
        };
        Moment { awake: read(ClockId::Monotonic), boot: read(ClockId::Boottime) }
    }

    /// The current moment. There is only one clock: sleep is not noticed, and the idle window is not extended.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Moment {
        use std::{sync::OnceLock, time::Instant};
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let awake = FIRST.get_or_init(Instant::now).elapsed();
        Moment { awake, boot: awake }
    }

    /// How long the machine slept between two moments.
    fn slept_since(self, earlier: Moment) -> Duration {
        let boot = self.boot.saturating_sub(earlier.boot);
        boot.saturating_sub(self.awake.saturating_sub(earlier.awake))
    }
}

/// What the deadlines say at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No limit is reached; check again after this time at the latest.
    Wait(Duration),
    TimedOut,
    Silent,
}

/// Compares one process with its deadlines.
#[derive(Debug)]
pub(crate) struct Watch {
    deadlines: Deadlines,
    started: Moment,
    heard: Moment,
}

impl Watch {
    pub fn start(deadlines: Deadlines, now: Moment) -> Watch {
        Watch { deadlines, started: now, heard: now }
    }

    /// Records the last output; the same moment may be recorded again.
    pub fn heard(&mut self, at: Moment) {
        if at.awake > self.heard.awake {
            self.heard = at;
        }
    }

    /// Checks both limits at the given moment.
    pub fn verdict(&mut self, now: Moment) -> Verdict {
        let total = self.deadlines.total.saturating_sub(now.awake.saturating_sub(self.started.awake));
        if total.is_zero() {
            return Verdict::TimedOut;
        }
        let silent = now.awake.saturating_sub(self.heard.awake);
        if silent >= self.deadlines.idle {
            if now.slept_since(self.heard) < SLEPT {
                return Verdict::Silent;
            }
            // Connections break while the machine sleeps, so the process gets time to notice. The window now starts after the
            // sleep, so that each sleep counts once.
            self.heard = now;
        }
        let idle = self.deadlines.idle.saturating_sub(now.awake.saturating_sub(self.heard.awake));
        Verdict::Wait(total.min(idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Deadlines = Deadlines { total: Duration::from_secs(100), idle: Duration::from_secs(10) };

    fn at(awake: u64, slept: u64) -> Moment {
        Moment { awake: Duration::from_secs(awake), boot: Duration::from_secs(awake + slept) }
    }

    fn seconds(seconds: u64) -> Verdict {
        Verdict::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn the_idle_window_starts_at_launch_and_anew_with_every_sign_of_life() {
        let mut watch = Watch::start(LIMITS, at(1000, 0));
        assert_eq!(watch.verdict(at(1009, 0)), seconds(1));
        watch.heard(at(1009, 0));
        assert_eq!(watch.verdict(at(1010, 0)), seconds(9));
        assert_eq!(watch.verdict(at(1019, 0)), Verdict::Silent);
    }

    #[test]
    fn signs_of_life_do_not_lengthen_the_whole() {
        let mut watch = Watch::start(LIMITS, at(0, 0));
        for second in (5..100).step_by(5) {
            watch.heard(at(second, 0));
        }
        assert_eq!(watch.verdict(at(97, 0)), seconds(3));
        watch.heard(at(99, 0));
        assert_eq!(watch.verdict(at(100, 0)), Verdict::TimedOut);
    }

    #[test]
    fn time_asleep_counts_for_nothing_and_restarts_the_idle_window_once() {
        let mut watch = Watch::start(LIMITS, at(0, 0));
        watch.heard(at(1, 0));
        // The machine sleeps for hours after eight seconds of silence.
        assert_eq!(watch.verdict(at(9, 30_000)), seconds(2));
        assert_eq!(watch.verdict(at(11, 30_000)), seconds(10));
        // The last output is still the one from before the sleep.
        watch.heard(at(1, 0));
        assert_eq!(watch.verdict(at(20, 30_000)), seconds(1));
        watch.heard(at(1, 0));
        assert_eq!(watch.verdict(at(21, 30_000)), Verdict::Silent);
    }

    #[test]
    fn clocks_that_drift_a_little_are_no_sleep_and_a_clock_set_back_is_no_time() {
        let mut watch = Watch::start(LIMITS, at(50, 0));
        assert_eq!(watch.verdict(at(60, 1)), Verdict::Silent);
        assert_eq!(watch.verdict(at(40, 0)), seconds(10));
    }
}
