//! Ends processes that an earlier run left behind because it and their keeper were both killed. They are recognised by a mark
//! in their environment, which every process of a run inherits, and are signalled by process id *and* start time.

use std::{thread, time::Duration};

use rustix::process::{Signal, getpid};

use crate::{
    identity::Identity,
    table::{self, Process},
};

/// The environment variable that marks every process of a run.
pub const MARK: &str = "TRIBUNAL_MARK";

/// The time between asking and killing.
const GRACE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(10);
/// The time after which remaining processes count as ones that we cannot end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends every process whose mark `is_stray` accepts, and returns how many there were. This process and its ancestors are never
/// among them: the user may work in a shell that an agent once opened.
pub fn sweep(is_stray: impl Fn(&str) -> bool) -> usize {
    let own = getpid();
    let mut spared = table::ancestors(own);
    spared.push(own);
    let find = || -> Vec<Process> {
        let ours = table::all().into_iter().filter(|process| !spared.contains(&process.pid));
        ours.filter(|process| process.has_variable(MARK, &is_stray)).collect()
    };
    // Processes may start others while they are being ended, so the table is read again in each step.
    let mut seen: Vec<Process> = Vec::new();
    let mut waited = Duration::ZERO;
    loop {
        let found = find();
        if found.is_empty() || waited >= PATIENCE {
            return seen.len();
        }
        for process in found {
            let fresh = !seen.contains(&process);
            if waited >= GRACE {
                Identity::from(process).signal(Signal::KILL);
            } else if fresh {
                Identity::from(process).signal(Signal::TERM);
            }
            if fresh {
                seen.push(process);
            }
        }
        thread::sleep(STEP);
        waited += STEP;
    }
}
