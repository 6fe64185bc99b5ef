//! The kernel's process table, as far as we need it. Everything here is a look at something that moves.

use std::{fs, str::FromStr};

use rustix::process::{Pid, RawPid};

/// One process as it was at one moment; the start time tells it from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: Pid,
    /// In clock ticks since boot.
    pub started: u64,
}

impl Process {
    /// None: there is no such process (any more), or it has ended and only waits to be reaped.
    pub fn at(pid: Pid) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain anything, also parentheses; what follows the last one is fixed.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let started = fields.get(19)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(Process { pid, started })
    }

    /// Whether a variable of its environment, as it was at its start, has a value that `wanted` accepts. Unreadable
    /// environments (other people's processes) are not ours.
    pub fn has_variable(&self, name: &str, wanted: impl Fn(&str) -> bool) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{}/environ", self.pid)) else { return false };
        environment.split(|byte| *byte == 0).any(|line| {
            let text = String::from_utf8_lossy(line);
            text.split_once('=').is_some_and(|(key, value)| key == name && wanted(value))
        })
    }
}

/// All processes that we may see.
pub(crate) fn all() -> Vec<Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| Process::at(number(&folder.file_name().to_string_lossy())?)).collect()
}

/// A process's ancestors, nearest first.
pub(crate) fn ancestors(pid: Pid) -> Vec<Pid> {
    let mut line = Vec::new();
    let mut next = parent(pid);
    while let Some(parent_pid) = next {
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
    number(stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?)
}

/// All that descends from a process and is still connected to it, without itself.
pub(crate) fn descendants(of: Pid) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut folks = vec![of];
    while let Some(elder) = folks.pop() {
        for child in children(elder) {
            // Its number may be somebody else's since the list was read: who has another parent is not meant.
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
            // A kernel built without these lists; the long way round finds them, too.
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
