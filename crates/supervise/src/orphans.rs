//! Ends what a killed keeper leaves behind.
//!
//! An agent without a sandbox can kill its keeper. The kernel then gives the keeper's processes to the next ancestor that adopts
//! orphans, which is this process. They are children of ours that we have not started: keepers are known, and everything else
//! that we start stays in our own session, while all processes of a tree are in others.

use std::{
    collections::BTreeSet,
    fs,
    sync::{Mutex, MutexGuard, Once, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, RawPid, Signal, WaitOptions, getpid, kill_process, waitpid};

use crate::{
    process_table::{self, ProcessGroups},
    strays::MARK_VARIABLE,
};

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The time after which remaining processes count as ones that we cannot end.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Daemons that the user's git starts to sign commits and to remember credentials. They serve the user's other programs, too.
const USER_DAEMONS: [&str; 6] =
    ["gpg-agent", "keyboxd", "scdaemon", "dirmngr", "ssh-agent", "git-credential-cache--daemon"];

/// The keepers that this process has started and not reaped yet.
static OWN_KEEPERS: Mutex<BTreeSet<RawPid>> = Mutex::new(BTreeSet::new());

fn lock_keepers() -> MutexGuard<'static, BTreeSet<RawPid>> {
    OWN_KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A keeper of ours, until it is reaped.
#[derive(Debug)]
pub(crate) struct OwnKeeper(RawPid);

impl OwnKeeper {
    /// Starts a keeper. It is never mistaken for an orphan, not even before this returns.
    pub fn start<T, E>(start: impl FnOnce() -> Result<(T, Option<u32>), E>) -> Result<(T, OwnKeeper), E> {
        static ADOPTING: Once = Once::new();
        ADOPTING.call_once(adopt_orphans);
        let mut own_keepers = lock_keepers();
        let (started, pid) = start()?;
        let raw_pid = pid.and_then(|pid| RawPid::try_from(pid).ok()).unwrap_or_default();
        own_keepers.insert(raw_pid);
        Ok((started, OwnKeeper(raw_pid)))
    }
}

impl Drop for OwnKeeper {
    fn drop(&mut self) {
        lock_keepers().remove(&self.0);
    }
}

/// Makes this process the one that adopts orphans. Where that fails they go to the first process of the system, and are ended by
/// their mark only.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
}

/// Ends and reaps all orphans that this process has adopted, with everything that they leave behind in turn.
pub(crate) fn end_orphans() {
    let mut waited_time = Duration::ZERO;
    while waited_time < MAX_WAIT {
        {
            // No keeper can be started meanwhile.
            let own_keepers = lock_keepers();
            let orphans = find_orphans(&own_keepers);
            if orphans.is_empty() {
                return;
            }
            for pid in orphans {
                // They are our children, so their ids cannot be reused before they are reaped here.
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        thread::sleep(POLL_INTERVAL);
        waited_time += POLL_INTERVAL;
    }
}

fn find_orphans(own_keepers: &BTreeSet<RawPid>) -> Vec<Pid> {
    let Some(own_groups) = ProcessGroups::of_own_process() else { return Vec::new() };
    let is_orphan = |pid: &Pid| {
        ProcessGroups::look_up(*pid).is_some_and(|groups| groups.session != own_groups.session)
            && !own_keepers.contains(&pid.as_raw_nonzero().get())
            && !is_user_daemon(*pid)
    };
    process_table::list_children(getpid()).into_iter().filter(is_orphan).collect()
}

/// Whether a process is a daemon that the user's own git started, rather than an agent's.
fn is_user_daemon(pid: Pid) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let program_name = program.as_deref().and_then(|program| program.file_name()?.to_str().map(String::from));
    program_name.is_some_and(|program_name| USER_DAEMONS.contains(&program_name.as_str()))
        && process_table::read_env_values(pid, MARK_VARIABLE).is_empty()
}
