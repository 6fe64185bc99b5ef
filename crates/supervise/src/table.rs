//! Reads the kernel's process table. Every result may be outdated as soon as it is returned.

use std::{fs, str::FromStr};

use rustix::process::{Pid, RawPid};

/// One process at one moment; the start time distinguishes it from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: Pid,
    /// The start time in clock ticks since boot.
    pub started: u64,
}

impl Process {
    /// Looks a process up. `None` means that there is no such process (any more), or that it has ended and waits to be reaped.
    pub fn at(pid: Pid) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain anything, even parentheses; the format after the last one is fixed.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let started = fields.get(19)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Process { pid, started })
    }

    /// Whether an environment variable, as it was when the process started, has a value that `is_wanted` accepts. Processes
    /// with an unreadable environment belong to other users and do not count.
    pub fn has_variable(&self, name: &str, wanted: impl Fn(&str) -> bool) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", self.pid)) else { return false };
        environment.split(|byte| *byte == 0).any(|line| {
            let text = String::from_utf8_lossy(line);
            text.split_once('=').is_some_and(|(key, value)| key == name && wanted(value))
        })
    }
}

/// Lists all processes that we may see.
pub(crate) fn all() -> Vec<Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| Process::at(number(&folder.file_name().to_string_lossy())?)).collect()
}

/// Lists the ancestors of a process, nearest first.
pub(crate) fn ancestors(pid: Pid) -> Vec<Pid> {
    let mut line = Vec::new();
    let mut next = parent(pid);
    while let Some(parent_pid) = next {
        // Ids may be reused while the chain is read; without this check a loop would never end.
        if line.contains(&parent_pid) {
            break;
        }
        line.push(parent_pid);
        next = parent(parent_pid);
    }
    line
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the name are the state and then the parent.
    number(stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?)
}

/// Lists the processes that descend from a process and are still connected to it, without the process itself.
pub(crate) fn descendants(of: Pid) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut folks = vec![of];
    while let Some(elder) = folks.pop() {
        for child in children(elder) {
            // The id may have been reused since the list was read: a process with another parent is not meant.
            let Some(process) = Process::at(child).filter(|_| parent(child) == Some(elder)) else { continue };
            if !found.contains(&process) {
                found.push(process);
                folks.push(child);
            }
        }
    }
    found
}

fn children(of: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(number)),
            // This kernel was built without these lists, so all processes are searched by their parent.
            Err(_) => return children_by_parent(of),
        }
    }
    found
}

fn children_by_parent(of: Pid) -> Vec<Pid> {
    all().into_iter().map(|process| process.pid).filter(|pid| parent(*pid) == Some(of)).collect()
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(RawPid::from_str(text).ok()?)
}
