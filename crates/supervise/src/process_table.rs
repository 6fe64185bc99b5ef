//! Reads the kernel's process table. Every result may be outdated as soon as it is returned.

use std::{fs, str::FromStr};

use rustix::process::{Pid, RawPid};

/// One process at one moment; the start time distinguishes it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub pid: Pid,
    /// The start time in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessEntry {
    /// Looks a process up. `None` means that there is no such process (any more), or that it has ended and waits to be reaped.
    pub fn look_up(pid: Pid) -> Option<ProcessEntry> {
        let stat_line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain anything, even parentheses; the format after the last one is fixed.
        let fields: Vec<&str> = stat_line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let start_ticks = fields.get(19)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(ProcessEntry { pid, start_ticks })
    }

    /// Whether an environment variable, as it was when the process started, has a value that `is_wanted` accepts. Processes
    /// with an unreadable environment belong to other users and do not count.
    pub fn has_env_variable(&self, variable_name: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", self.pid)) else { return false };
        environment.split(|byte| *byte == 0).any(|assignment| {
            let assignment_text = String::from_utf8_lossy(assignment);
            assignment_text.split_once('=').is_some_and(|(key, value)| key == variable_name && is_wanted(value))
        })
    }
}

/// Lists all processes that we may see.
pub(crate) fn list_processes() -> Vec<ProcessEntry> {
    let process_dirs = fs::read_dir("/proc").into_iter().flatten().flatten();
    process_dirs
        .filter_map(|process_dir| ProcessEntry::look_up(parse_pid(&process_dir.file_name().to_string_lossy())?))
        .collect()
}

/// Lists the ancestors of a process, nearest first.
pub(crate) fn find_ancestors(pid: Pid) -> Vec<Pid> {
    let mut ancestor_pids = Vec::new();
    let mut next_pid = read_parent_pid(pid);
    while let Some(parent_pid) = next_pid {
        // Ids may be reused while the chain is read; without this check a loop would never end.
        if ancestor_pids.contains(&parent_pid) {
            break;
        }
        ancestor_pids.push(parent_pid);
        next_pid = read_parent_pid(parent_pid);
    }
    ancestor_pids
}

fn read_parent_pid(pid: Pid) -> Option<Pid> {
    let stat_line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the name are the state and then the parent.
    parse_pid(stat_line.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?)
}

/// Lists the processes that descend from a process and are still connected to it, without the process itself.
pub(crate) fn find_descendants(root_pid: Pid) -> Vec<ProcessEntry> {
    let mut found: Vec<ProcessEntry> = Vec::new();
    let mut unvisited = vec![root_pid];
    while let Some(parent_pid) = unvisited.pop() {
        for child_pid in list_children(parent_pid) {
            // The id may have been reused since the list was read: a process with another parent is not meant.
            let Some(process) =
                ProcessEntry::look_up(child_pid).filter(|_| read_parent_pid(child_pid) == Some(parent_pid))
            else {
                continue;
            };
            if !found.contains(&process) {
                found.push(process);
                unvisited.push(child_pid);
            }
        }
    }
    found
}

fn list_children(parent_pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent_pid}/task")) else { return Vec::new() };
    let mut child_pids = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(pid_list) => child_pids.extend(pid_list.split_ascii_whitespace().filter_map(parse_pid)),
            // This kernel was built without these lists, so all processes are searched by their parent.
            Err(_) => return scan_for_children(parent_pid),
        }
    }
    child_pids
}

fn scan_for_children(parent_pid: Pid) -> Vec<Pid> {
    list_processes()
        .into_iter()
        .map(|process| process.pid)
        .filter(|pid| read_parent_pid(*pid) == Some(parent_pid))
        .collect()
}

fn parse_pid(pid_text: &str) -> Option<Pid> {
    Pid::from_raw(RawPid::from_str(pid_text).ok()?)
}
