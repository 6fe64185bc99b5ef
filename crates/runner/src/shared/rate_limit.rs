//! Limits how often agents may be called in an hour, by all runs of a user on this machine together.
//!
//! Every call books the next free time in a file that outlives every process, so calls are served in order, and a used-up window
//! is still used up after a restart. A time that was booked and not used is lost for an hour; that is better than one call too
//! many. The provider's own limits are not known here.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    num::NonZeroUsize,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

pub(crate) const HOUR_MS: u64 = 3_600_000;

#[derive(Clone, Debug)]
pub struct CallRate {
    /// The state file, outside of every project.
    pub state_file: PathBuf,
    pub calls_per_hour: NonZeroUsize,
}

impl CallRate {
    /// Books one more call and returns the wall time at which it may start.
    pub(crate) fn book_call(&self, now_ms: u64) -> io::Result<u64> {
        let mut state_file = self.open_state_file()?;
        // The lock is held only for as long as it takes to write a few numbers.
        state_file.lock()?;
        let mut state_bytes = Vec::new();
        state_file.read_to_end(&mut state_bytes)?;
        let state_text = String::from_utf8_lossy(&state_bytes);
        let mut booked_times = parse_times(&state_text);
        let expired_count = booked_times.iter().filter(|call_time_ms| is_expired(**call_time_ms, now_ms)).count();
        let call_time_ms = next_free_time(&mut booked_times, self.calls_per_hour.get(), now_ms);
        // A file in which everything is valid only grows by a line, until half of its calls are no longer needed.
        let is_valid = state_bytes.is_empty() || state_bytes.ends_with(b"\n");
        if is_valid
            && state_text.lines().count() + 1 == expired_count + booked_times.len()
            && expired_count <= booked_times.len()
        {
            state_file.write_all(format!("{call_time_ms}\n").as_bytes())?;
            return Ok(call_time_ms);
        }
        replace_times(&mut state_file, &booked_times)?;
        Ok(call_time_ms)
    }

    /// Moves a booked call to now if the limit allows it: the limit may have been raised since the call was booked. Returns whether the
    /// call may start.
    pub(crate) fn advance_call(&self, booked_ms: u64, now_ms: u64) -> io::Result<bool> {
        let mut state_file = self.open_state_file()?;
        state_file.lock()?;
        let mut state_bytes = Vec::new();
        state_file.read_to_end(&mut state_bytes)?;
        let mut booked_times = parse_times(&String::from_utf8_lossy(&state_bytes));
        if let Some(position) = booked_times.iter().position(|call_time_ms| *call_time_ms == booked_ms) {
            booked_times.swap_remove(position);
        }
        // Calls that are booked for later, of other runs, look at the limit themselves.
        let is_used = |call_time_ms: &&u64| **call_time_ms <= now_ms && !is_expired(**call_time_ms, now_ms);
        if booked_times.iter().filter(is_used).count() >= self.calls_per_hour.get() {
            return Ok(false);
        }
        booked_times.push(now_ms);
        replace_times(&mut state_file, &booked_times)?;
        Ok(true)
    }

    fn open_state_file(&self) -> io::Result<File> {
        if let Some(directory) = self.state_file.parent() {
            fs::create_dir_all(directory)?;
        }
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.state_file)
    }
}

/// Reads the times of booked calls. Lines that are not numbers are dropped: a damaged file must not block all calls.
fn parse_times(state_text: &str) -> Vec<u64> {
    state_text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn replace_times(state_file: &mut File, booked_times: &[u64]) -> io::Result<()> {
    let state_text: String = booked_times.iter().map(|call_time_ms| format!("{call_time_ms}\n")).collect();
    state_file.rewind()?;
    state_file.set_len(0)?;
    state_file.write_all(state_text.as_bytes())
}

/// Whether a call is so old that it no longer counts.
fn is_expired(call_time_ms: u64, now_ms: u64) -> bool {
    call_time_ms.saturating_add(HOUR_MS) <= now_ms
}

fn next_free_time(booked_times: &mut Vec<u64>, per_hour: usize, now_ms: u64) -> u64 {
    booked_times.retain(|call_time_ms| !is_expired(*call_time_ms, now_ms));
    // With this many bookings none can be farther ahead: the clock must have been set back.
    let max_hours_ahead = (booked_times.len() / per_hour + 1) as u64;
    booked_times.retain(|call_time_ms| *call_time_ms <= now_ms.saturating_add(max_hours_ahead.saturating_mul(HOUR_MS)));
    // The call that was booked `per_hour` calls ago has to be an hour old before the next one may start.
    booked_times.sort_unstable();
    let free_time_ms =
        booked_times.len().checked_sub(per_hour).map_or(now_ms, |call_index| booked_times[call_index] + HOUR_MS);
    let call_time_ms = free_time_ms.max(now_ms);
    booked_times.push(call_time_ms);
    call_time_ms
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use proptest::prelude::*;

    use super::*;

    fn call_rate(directory: &tempfile::TempDir, per_hour: usize) -> CallRate {
        CallRate {
            state_file: directory.path().join("state/calls"),
            calls_per_hour: NonZeroUsize::new(per_hour).unwrap(),
        }
    }

    #[test]
    fn a_window_that_is_used_up_opens_when_its_first_call_is_an_hour_old() {
        let directory = tempfile::tempdir().unwrap();
        let limit = call_rate(&directory, 2);
        let book_at = |now| limit.book_call(now).unwrap();
        assert_eq!((book_at(1_000), book_at(2_000)), (1_000, 2_000));
        // Waiting calls are served in the order in which they came, also across processes.
        assert_eq!((book_at(3_000), book_at(3_000)), (1_000 + HOUR_MS, 2_000 + HOUR_MS));
        assert_eq!(book_at(3_000), 1_000 + 2 * HOUR_MS);
        assert_eq!(book_at(9 * HOUR_MS), 9 * HOUR_MS, "long after, nothing is left of it");
    }

    #[test]
    fn a_raised_limit_moves_a_booked_call_to_now() {
        let directory = tempfile::tempdir().unwrap();
        let limit = call_rate(&directory, 2);
        let [_, _, booked_ms, later_ms] = [1_000, 2_000, 3_000, 4_000].map(|now_ms| limit.book_call(now_ms).unwrap());
        assert!(!limit.advance_call(booked_ms, 5_000).unwrap(), "the limit is the same");
        let raised_limit = call_rate(&directory, 3);
        assert!(raised_limit.advance_call(booked_ms, 5_000).unwrap());
        assert!(!raised_limit.advance_call(later_ms, 5_000).unwrap(), "three calls of this hour are used now");
        assert_eq!(
            raised_limit.book_call(6_000).unwrap(),
            2_000 + HOUR_MS,
            "the moved call no longer counts for later"
        );
    }

    #[test]
    fn a_clock_set_back_or_a_broken_file_does_not_block_calls() {
        let directory = tempfile::tempdir().unwrap();
        let rate = call_rate(&directory, 1);
        assert_eq!(rate.book_call(900 * HOUR_MS).unwrap(), 900 * HOUR_MS);
        assert_eq!(rate.book_call(896 * HOUR_MS).unwrap(), 896 * HOUR_MS);
        assert_eq!(rate.book_call(HOUR_MS).unwrap(), HOUR_MS);
        fs::write(&rate.state_file, b"what\n\xff\n-3\n").unwrap();
        assert_eq!(rate.book_call(HOUR_MS).unwrap(), HOUR_MS);
    }

    #[test]
    fn calls_that_no_longer_count_leave_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let rate = call_rate(&directory, 1_000);
        for minute in 0..300 {
            rate.book_call(minute * 60_000).unwrap();
        }
        let line_count = fs::read_to_string(&rate.state_file).unwrap().lines().count();
        assert!((60..=120).contains(&line_count), "{line_count} lines for the 60 calls of the last hour");
    }

    #[test]
    fn concurrent_calls_each_get_their_own_time() {
        let directory = tempfile::tempdir().unwrap();
        let shared_rate = Arc::new(call_rate(&directory, 5));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let shared_rate = shared_rate.clone();
                thread::spawn(move || shared_rate.book_call(1_000).unwrap())
            })
            .collect();
        let mut call_times: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        call_times.sort_unstable();
        let expected: Vec<u64> = (0..20).map(|number| 1_000 + number / 5 * HOUR_MS).collect();
        assert_eq!(call_times, expected);
    }

    proptest! {
        #[test]
        fn no_hour_has_more_than_is_allowed(
            steps in proptest::collection::vec(0..HOUR_MS, 1..60),
            per_hour in 1..6_usize,
        ) {
            let (mut booked, mut all, mut now) = (Vec::new(), Vec::new(), 1_000_000);
            for step in steps {
                now += step;
                let at = next_free_time(&mut booked, per_hour, now);
                prop_assert!(at >= now);
                all.push(at);
            }
            for at in &all {
                let within = all.iter().filter(|other| (*at..*at + HOUR_MS).contains(other)).count();
                prop_assert!(within <= per_hour, "{within} in the hour from {at}");
            }
        }
    }
}
