//! Reads the kernel's process table. Every result may be outdated as soon as it is returned.

use std::{
    fs::{self, File},
    io::{self, Read},
    str::FromStr,
};

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
        let stat_line = read_process_text(pid, "stat").ok()?;
        // The name may contain anything, even parentheses; the format after the last one is fixed.
        let fields: Vec<&str> = stat_line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let start_ticks = fields.get(19)?.parse().ok()?;
        (state != "Z" && state != "X").then_some(ProcessEntry { pid, start_ticks })
    }

    /// Whether an environment variable, as it was when the process started, has a value that `is_wanted` accepts. Processes
    /// with an unreadable environment belong to other users and do not count.
    pub fn has_env_variable(&self, variable_name: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
        read_env_values(self.pid, variable_name).iter().any(|value| is_wanted(value))
    }
}

/// The session and the process group of a process. Zero means one that was created outside of this container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessGroups {
    pub session: RawPid,
    pub group: RawPid,
}

impl ProcessGroups {
    /// Returns those of this process. `None` if the kernel does not tell.
    pub fn of_own_process() -> Option<ProcessGroups> {
        ProcessGroups::look_up(rustix::process::getpid())
    }

    /// Looks a process up, also one that has ended and waits to be reaped.
    ///
    /// The calls `getsid` and `getpgid` would do, but `rustix` takes zero for impossible.
    #[cfg(target_os = "linux")]
    pub(crate) fn look_up(pid: Pid) -> Option<ProcessGroups> {
        parse_groups(&read_process_text(pid, "stat").ok()?)
    }

    /// Looks a process up. There are no containers here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn look_up(pid: Pid) -> Option<ProcessGroups> {
        use rustix::process::{getpgid, getsid};
        let session = getsid(Some(pid)).ok()?.as_raw_nonzero().get();
        Some(ProcessGroups { session, group: getpgid(Some(pid)).ok()?.as_raw_nonzero().get() })
    }
}

#[cfg(any(target_os = "linux", test))]
fn parse_groups(stat_line: &str) -> Option<ProcessGroups> {
    let mut fields = stat_line.rsplit_once(')')?.1.split_ascii_whitespace().skip(2);
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    Some(ProcessGroups { session, group })
}

/// Reads what the kernel tells about a process. These files have no size that could be asked for, so the buffer is made large
/// enough for most of them: a hook reads dozens.
fn read_process_file(pid: Pid, file_name: &str) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(4096);
    File::open(format!("/proc/{pid}/{file_name}"))?.read_to_end(&mut content)?;
    Ok(content)
}

fn read_process_text(pid: Pid, file_name: &str) -> io::Result<String> {
    let content = read_process_file(pid, file_name)?;
    String::from_utf8(content).map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause))
}

/// Whether a process is stopped, by a signal or a debugger.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    let stat_line = read_process_text(pid, "stat").unwrap_or_default();
    let state = stat_line.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().next());
    matches!(state, Some("T" | "t"))
}

/// Reads the values of an environment variable as they were when the process started. A process may have been started with
/// several; one whose environment we may not read has none.
pub(crate) fn read_env_values(pid: Pid, variable_name: &str) -> Vec<String> {
    let Ok(environment) = read_process_file(pid, "environ") else { return Vec::new() };
    let read_value = |assignment: &[u8]| {
        let assignment_text = String::from_utf8_lossy(assignment);
        let (key, value) = assignment_text.split_once('=')?;
        (key == variable_name).then(|| value.to_string())
    };
    environment.split(|byte| *byte == 0).filter_map(read_value).collect()
}

/// Returns whether a process has this name, in the list of processes or as the name by which it was started.
pub(crate) fn is_named(pid: Pid, process_name: &str) -> bool {
    let has_listed_name =
        read_process_file(pid, "comm").is_ok_and(|listed_name| listed_name.trim_ascii_end() == process_name.as_bytes());
    // A process that has just been started may not have set its name yet.
    has_listed_name
        || read_process_file(pid, "cmdline")
            .is_ok_and(|arguments| arguments.split(|byte| *byte == 0).next() == Some(process_name.as_bytes()))
}

/// Lists all processes that we may see.
pub(crate) fn list_processes() -> Vec<ProcessEntry> {
    let process_dirs = fs::read_dir("/proc").into_iter().flatten().flatten();
    process_dirs
        .filter_map(|process_dir| ProcessEntry::look_up(parse_pid(&process_dir.file_name().to_string_lossy())?))
        .collect()
}

/// How often the ancestors are read again because one of them has ended meanwhile.
const MAX_ANCESTOR_READS: usize = 1000;

/// Lists the ancestors of a process, nearest first.
pub(crate) fn find_ancestors(pid: Pid) -> Vec<Pid> {
    follow_parents(pid, read_parent)
}

fn follow_parents(pid: Pid, mut find_parent: impl FnMut(Pid) -> ParentProcess) -> Vec<Pid> {
    let mut known_ancestors = Vec::new();
    for _ in 0..MAX_ANCESTOR_READS {
        let (ancestor_pids, is_complete) = read_ancestors(pid, &mut find_parent);
        known_ancestors = ancestor_pids;
        // The orphans of an ended process have a new parent, so a process cannot leave its tree by ending its own parent.
        if is_complete {
            break;
        }
    }
    known_ancestors
}

/// Reads the chain of parents, and whether its end was reached: an ancestor may end before its own parent is read.
fn read_ancestors(pid: Pid, mut find_parent: impl FnMut(Pid) -> ParentProcess) -> (Vec<Pid>, bool) {
    let mut ancestor_pids = Vec::new();
    let mut current_pid = pid;
    loop {
        match find_parent(current_pid) {
            ParentProcess::Known(parent_pid) if ancestor_pids.contains(&parent_pid) => {
                // Ids may be reused while the chain is read; without this check a loop would never end.
                return (ancestor_pids, false);
            }
            ParentProcess::Known(parent_pid) => {
                ancestor_pids.push(parent_pid);
                current_pid = parent_pid;
            }
            ParentProcess::Outside => return (ancestor_pids, true),
            // If not even the process itself can be looked up, there is no process table.
            ParentProcess::Gone => return (ancestor_pids, current_pid == pid),
        }
    }
}

/// The parent of a process.
enum ParentProcess {
    Known(Pid),
    /// The process is the first one, or its parent is outside of this container.
    Outside,
    /// There is no such process (any more).
    Gone,
}

fn read_parent(pid: Pid) -> ParentProcess {
    let Ok(stat_line) = read_process_text(pid, "stat") else { return ParentProcess::Gone };
    // The fields after the name are the state and then the parent.
    let fields = stat_line.rsplit_once(')').map(|(_, after_name)| after_name);
    match fields.and_then(|fields| fields.split_ascii_whitespace().nth(1)) {
        Some(parent_text) => parse_pid(parent_text).map_or(ParentProcess::Outside, ParentProcess::Known),
        None => ParentProcess::Gone,
    }
}

fn read_parent_pid(pid: Pid) -> Option<Pid> {
    match read_parent(pid) {
        ParentProcess::Known(parent_pid) => Some(parent_pid),
        ParentProcess::Outside | ParentProcess::Gone => None,
    }
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

/// Lists the children of a process, also those that have ended and wait to be reaped.
pub(crate) fn list_children(parent_pid: Pid) -> Vec<Pid> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pid_from(raw_pid: RawPid) -> Pid {
        Pid::from_raw(raw_pid).unwrap()
    }

    #[test]
    fn ancestors_are_read_again_if_one_of_them_ends_meanwhile() {
        // Process 30 ends after it was found as the parent of 40, which is then adopted by 10.
        let mut has_ended = false;
        let found_pids = follow_parents(pid_from(40), |pid| match pid.as_raw_nonzero().get() {
            40 if has_ended => ParentProcess::Known(pid_from(10)),
            40 => ParentProcess::Known(pid_from(30)),
            30 => {
                has_ended = true;
                ParentProcess::Gone
            }
            10 => ParentProcess::Known(pid_from(1)),
            _ => ParentProcess::Outside,
        });
        assert_eq!(found_pids, [pid_from(10), pid_from(1)]);
    }

    #[test]
    fn groups_from_outside_of_the_container_are_read() {
        let outside = "7 (a) b)) S 0 0 0 34816 0 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0";
        assert_eq!(parse_groups(outside), Some(ProcessGroups { session: 0, group: 0 }));
        let inside = "7 (sh) S 1 5 4 34816 7 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0";
        assert_eq!(parse_groups(inside), Some(ProcessGroups { session: 4, group: 5 }));
        assert_eq!(parse_groups(""), None);
    }

    #[test]
    fn reading_ancestors_always_ends() {
        let in_a_circle = |pid: Pid| ParentProcess::Known(pid_from(3 - pid.as_raw_nonzero().get()));
        assert_eq!(follow_parents(pid_from(1), in_a_circle), [pid_from(2), pid_from(1)]);
        assert_eq!(follow_parents(pid_from(1), |_| ParentProcess::Gone), []);
    }
}
