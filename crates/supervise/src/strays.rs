//! Ends processes that an earlier run left behind because it and their keeper were both killed. They are recognised by a mark
//! in their environment, which every process of a run inherits, and are signalled by process id *and* start time.

use std::{thread, time::Duration};

use rustix::process::{Signal, getpid};

use crate::{
    identity::ProcessIdentity,
    process_table::{self, ProcessEntry},
};

/// The environment variable that marks every process of a run.
pub const MARK_VARIABLE: &str = "TRIBUNAL_MARK";

/// The time between asking and killing.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time after which remaining processes count as ones that we cannot end.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Ends every process whose mark `is_stray` accepts, and returns how many there were. This process and its ancestors are never
/// among them: the user may work in a shell that an agent once opened.
pub fn sweep_by_mark(is_stray: impl Fn(&str) -> bool) -> usize {
    let own_pid = getpid();
    let mut spared_pids = process_table::find_ancestors(own_pid);
    spared_pids.push(own_pid);
    let find_strays = || -> Vec<ProcessEntry> {
        let candidates =
            process_table::list_processes().into_iter().filter(|process| !spared_pids.contains(&process.pid));
        candidates.filter(|process| process.has_env_variable(MARK_VARIABLE, &is_stray)).collect()
    };
    // Processes may start others while they are being ended, so the table is read again in each step.
    let mut signalled: Vec<ProcessEntry> = Vec::new();
    let mut waited_time = Duration::ZERO;
    loop {
        let remaining = find_strays();
        if remaining.is_empty() || waited_time >= MAX_WAIT {
            return signalled.len();
        }
        for process in remaining {
            let is_new = !signalled.contains(&process);
            if waited_time >= GRACE_PERIOD {
                ProcessIdentity::from(process).signal(Signal::KILL);
            } else if is_new {
                ProcessIdentity::from(process).signal(Signal::TERM);
            }
            if is_new {
                signalled.push(process);
            }
        }
        thread::sleep(POLL_INTERVAL);
        waited_time += POLL_INTERVAL;
    }
}
