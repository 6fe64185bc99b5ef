//! Points at which a run is killed: a sample of them in the tests, all of them by `cargo xtask crash`.

use std::{
    panic::{RefUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Which points are tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coverage {
    All,
    /// So many points, evenly spread. The sample is always the same: another one each time would hide a failure.
    Sample(usize),
}

impl Coverage {
    fn choose_from(self, fault_points: &[String]) -> Vec<&String> {
        match self {
            Coverage::All => fault_points.iter().collect(),
            Coverage::Sample(sample_size) => {
                let step = (fault_points.len() / sample_size).max(1);
                fault_points.iter().skip(step / 2).step_by(step).collect()
            }
        }
    }
}

/// Kills a run of its own at each of the points. `survives_kill` returns false if the run did not reach its point, and panics if
/// the result is another one. One failure does not keep the other points from being tried.
#[expect(clippy::print_stdout, reason = "the sweep says how far it went")]
pub(crate) fn try_fault_points(
    fault_points: &[String],
    coverage: Coverage,
    survives_kill: impl Fn(&str) -> bool + Sync + RefUnwindSafe,
) {
    let chosen_points = coverage.choose_from(fault_points);
    let next_index = AtomicUsize::new(0);
    let (missed_points, failed_points): (Mutex<Vec<&str>>, Mutex<Vec<&str>>) = Default::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(fault_point) = chosen_points.get(next_index.fetch_add(1, Ordering::Relaxed)) {
                    match catch_unwind(|| survives_kill(fault_point)) {
                        Ok(true) => {}
                        Ok(false) => missed_points.lock().unwrap().push(fault_point),
                        Err(_) => failed_points.lock().unwrap().push(fault_point),
                    }
                }
            });
        }
    });
    assert_eq!(failed_points.into_inner().unwrap(), Vec::<&str>::new(), "kills at these points were not survived");
    assert_eq!(missed_points.into_inner().unwrap(), Vec::<&str>::new(), "these points did not come up");
    println!("killed at {} of {} points", chosen_points.len(), fault_points.len());
}
