//! Limits how often clients of vendors may be called in an hour, by all runs of a user on this machine together.
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

const HOUR_MS: u64 = 3_600_000;

#[derive(Clone, Debug)]
pub struct Rate {
    /// The state file, outside of every project.
    pub file: PathBuf,
    pub per_hour: NonZeroUsize,
}

impl Rate {
    /// Books one more call and returns the wall time at which it may start.
    pub(crate) fn book(&self, now_ms: u64) -> io::Result<u64> {
        let mut file = self.open()?;
        // Held only for as long as it takes to write a few numbers.
        file.lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // Lines that are not numbers are dropped: a damaged file must not block all calls.
        let mut booked: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let at = next(&mut booked, self.per_hour.get(), now_ms);
        let text: String = booked.iter().map(|at| format!("{at}\n")).collect();
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        Ok(at)
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.file)
    }
}

fn next(booked: &mut Vec<u64>, per_hour: usize, now_ms: u64) -> u64 {
    booked.retain(|at| at.saturating_add(HOUR_MS) > now_ms);
    // With this many bookings none can be farther ahead: the clock must have been set back.
    let hours = (booked.len() / per_hour + 1) as u64;
    booked.retain(|at| *at <= now_ms.saturating_add(hours.saturating_mul(HOUR_MS)));
    // The call that was booked `per_hour` calls ago has to be an hour old before the next one may start.
    booked.sort_unstable();
    let free = booked.len().checked_sub(per_hour).map_or(now_ms, |at| booked[at] + HOUR_MS);
    let at = free.max(now_ms);
    booked.push(at);
    at
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use proptest::prelude::*;

    use super::*;

    fn rate(folder: &tempfile::TempDir, per_hour: usize) -> Rate {
        Rate { file: folder.path().join("state/calls"), per_hour: NonZeroUsize::new(per_hour).unwrap() }
    }

    #[test]
    fn a_window_that_is_used_up_opens_when_its_first_call_is_an_hour_old() {
        let folder = tempfile::tempdir().unwrap();
        let rate = rate(&folder, 2);
        let at = |now| rate.book(now).unwrap();
        assert_eq!((at(1_000), at(2_000)), (1_000, 2_000));
        // Waiting calls are served in the order in which they came, also across processes.
        assert_eq!((at(3_000), at(3_000)), (1_000 + HOUR_MS, 2_000 + HOUR_MS));
        assert_eq!(at(3_000), 1_000 + 2 * HOUR_MS);
        assert_eq!(at(9 * HOUR_MS), 9 * HOUR_MS, "long after, nothing is left of it");
    }

    #[test]
    fn a_clock_that_was_set_back_and_a_broken_file_keep_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let rate = rate(&folder, 1);
        assert_eq!(rate.book(900 * HOUR_MS).unwrap(), 900 * HOUR_MS);
        assert_eq!(rate.book(896 * HOUR_MS).unwrap(), 896 * HOUR_MS);
        assert_eq!(rate.book(HOUR_MS).unwrap(), HOUR_MS);
        fs::write(&rate.file, b"what\n\xff\n-3\n").unwrap();
        assert_eq!(rate.book(HOUR_MS).unwrap(), HOUR_MS);
    }

    #[test]
    fn of_many_at_once_each_gets_a_moment_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let rate = Arc::new(rate(&folder, 5));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let rate = rate.clone();
                thread::spawn(move || rate.book(1_000).unwrap())
            })
            .collect();
        let mut at: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        at.sort_unstable();
        let expected: Vec<u64> = (0..20).map(|number| 1_000 + number / 5 * HOUR_MS).collect();
        assert_eq!(at, expected);
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
                let at = next(&mut booked, per_hour, now);
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
