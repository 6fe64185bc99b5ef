//! Decides how long a process may run in total and without output. Both limits count only time in which the machine was awake.
//!
//! There is no timer here, so that tests can say what time it is.

use std::time::Duration;

/// The time limits of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Starts at the launch, like the next one.
    pub total: Duration,
    /// The limit without a byte on either stream.
    pub idle: Duration,
    /// The time between asking the tree to end and killing it.
    pub grace: Duration,
}

/// A moment on two clocks: one that stands still while the machine sleeps, and one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub awake: Duration,
    pub boot: Duration,
}

/// The smallest difference between the clocks that counts as sleep: clocks drift, and they are read one after the other.
const MIN_SLEEP: Duration = Duration::from_secs(2);

impl Moment {
    #[cfg(target_os = "linux")]
    pub fn now() -> Moment {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| {
            let clock_time = clock_gettime(clock);
            let seconds = u64::try_from(clock_time.tv_sec).unwrap_or(0);
            Duration::new(seconds, u32::try_from(clock_time.tv_nsec).unwrap_or(0))
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
        let boot_elapsed = self.boot.saturating_sub(earlier.boot);
        boot_elapsed.saturating_sub(self.awake.saturating_sub(earlier.awake))
    }
}

/// What the deadlines say at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlineVerdict {
    /// No limit is reached; check again after this time at the latest.
    Wait(Duration),
    TimedOut,
    Silent,
}

/// Compares one process with its deadlines.
#[derive(Debug)]
pub(crate) struct DeadlineWatch {
    deadlines: Deadlines,
    start_moment: Moment,
    last_activity: Moment,
}

impl DeadlineWatch {
    pub fn start(deadlines: Deadlines, now: Moment) -> DeadlineWatch {
        DeadlineWatch { deadlines, start_moment: now, last_activity: now }
    }

    /// Records the last output; the same moment may be recorded again.
    pub fn record_activity(&mut self, moment: Moment) {
        if moment.awake > self.last_activity.awake {
            self.last_activity = moment;
        }
    }

    /// Checks both limits at the given moment.
    pub fn check_deadlines(&mut self, now: Moment) -> DeadlineVerdict {
        let total_left = self.deadlines.total.saturating_sub(now.awake.saturating_sub(self.start_moment.awake));
        if total_left.is_zero() {
            return DeadlineVerdict::TimedOut;
        }
        let silent_time = now.awake.saturating_sub(self.last_activity.awake);
        if silent_time >= self.deadlines.idle {
            if now.slept_since(self.last_activity) < MIN_SLEEP {
                return DeadlineVerdict::Silent;
            }
            // Connections break while the machine sleeps, so the process gets time to notice. The window now starts after the
            // sleep, so that each sleep counts once.
            self.last_activity = now;
        }
        let idle_left = self.deadlines.idle.saturating_sub(now.awake.saturating_sub(self.last_activity.awake));
        DeadlineVerdict::Wait(total_left.min(idle_left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Deadlines =
        Deadlines { total: Duration::from_secs(100), idle: Duration::from_secs(10), grace: Duration::ZERO };

    fn moment_at(awake: u64, slept: u64) -> Moment {
        Moment { awake: Duration::from_secs(awake), boot: Duration::from_secs(awake + slept) }
    }

    fn wait_seconds(seconds: u64) -> DeadlineVerdict {
        DeadlineVerdict::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn the_idle_window_starts_at_launch_and_restarts_with_every_output() {
        let mut deadline_watch = DeadlineWatch::start(LIMITS, moment_at(1000, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(1009, 0)), wait_seconds(1));
        deadline_watch.record_activity(moment_at(1009, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(1010, 0)), wait_seconds(9));
        assert_eq!(deadline_watch.check_deadlines(moment_at(1019, 0)), DeadlineVerdict::Silent);
    }

    #[test]
    fn output_does_not_extend_the_total_deadline() {
        let mut deadline_watch = DeadlineWatch::start(LIMITS, moment_at(0, 0));
        for second in (5..100).step_by(5) {
            deadline_watch.record_activity(moment_at(second, 0));
        }
        assert_eq!(deadline_watch.check_deadlines(moment_at(97, 0)), wait_seconds(3));
        deadline_watch.record_activity(moment_at(99, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(100, 0)), DeadlineVerdict::TimedOut);
    }

    #[test]
    fn machine_sleep_does_not_count_and_restarts_the_idle_window_once() {
        let mut deadline_watch = DeadlineWatch::start(LIMITS, moment_at(0, 0));
        deadline_watch.record_activity(moment_at(1, 0));
        // The machine sleeps for hours after eight seconds of silence.
        assert_eq!(deadline_watch.check_deadlines(moment_at(9, 30_000)), wait_seconds(2));
        assert_eq!(deadline_watch.check_deadlines(moment_at(11, 30_000)), wait_seconds(10));
        // The last output is still the one from before the sleep.
        deadline_watch.record_activity(moment_at(1, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(20, 30_000)), wait_seconds(1));
        deadline_watch.record_activity(moment_at(1, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(21, 30_000)), DeadlineVerdict::Silent);
    }

    #[test]
    fn clock_drift_is_not_sleep_and_a_clock_set_back_adds_no_time() {
        let mut deadline_watch = DeadlineWatch::start(LIMITS, moment_at(50, 0));
        assert_eq!(deadline_watch.check_deadlines(moment_at(60, 1)), DeadlineVerdict::Silent);
        assert_eq!(deadline_watch.check_deadlines(moment_at(40, 0)), wait_seconds(10));
    }
}
