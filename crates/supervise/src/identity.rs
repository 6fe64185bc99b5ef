//! Identifies a process by its id, its start time, and its PID namespace (a container has its own). A process id alone may have
//! been given to another process by now.

use std::{fmt, str::FromStr};

use rustix::process::{Pid, Signal, getpid};

use crate::process_table::ProcessEntry;

/// One particular process, also after its id was reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    pid: Pid,
    /// When the process started; 0 if the system does not tell.
    start_time: u64,
    /// The PID namespace that its id belongs to; 0 if the system does not tell.
    pid_namespace: u64,
}

impl ProcessIdentity {
    /// The identity of this process.
    pub fn current() -> ProcessIdentity {
        let pid = getpid();
        let start_time = ProcessEntry::look_up(pid).map_or(0, |process| process.start_ticks);
        ProcessIdentity { pid, start_time, pid_namespace: current_pid_namespace() }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn raw_pid(&self) -> Pid {
        self.pid
    }

    /// Whether this very process still runs. If that cannot be found out, it counts as running: unknown is not dead.
    pub fn is_alive(&self) -> bool {
        if self.is_in_other_namespace() {
            return true;
        }
        match ProcessEntry::look_up(self.pid) {
            Some(process) => self.start_time == 0 || process.start_ticks == self.start_time,
            // On Linux every running process has an entry in `/proc`; elsewhere only a signal can tell.
            None if cfg!(target_os = "linux") => false,
            None => rustix::process::test_kill_process(self.pid).is_ok(),
        }
    }

    /// Whether the process belongs to another container, where its id means nothing to us.
    fn is_in_other_namespace(&self) -> bool {
        self.pid_namespace != 0 && self.pid_namespace != current_pid_namespace()
    }

    /// Asks the process to stop once its current work is finished.
    pub fn ask_to_stop(&self) -> bool {
        self.signal(Signal::USR1)
    }

    /// Asks the process to look whether the user wants to stop a part of its work.
    pub fn ask_to_check(&self) -> bool {
        self.signal(Signal::USR2)
    }

    /// Asks the process to end now.
    pub fn ask_to_end(&self) -> bool {
        self.signal(Signal::TERM)
    }

    /// Sends a signal. The result is false if the process is gone or if we may not signal it.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        use rustix::{
            io::Errno,
            process::{PidfdFlags, pidfd_open, pidfd_send_signal},
        };
        if self.is_in_other_namespace() {
            return false;
        }
        // The handle is opened before the check, so the id cannot be reused in between.
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(pid_handle) => self.is_alive() && pidfd_send_signal(pid_handle, signal).is_ok(),
            Err(Errno::SRCH) => false,
            // This system has no such handles: the check comes as late as possible.
            Err(_) => self.is_alive() && rustix::process::kill_process(self.pid, signal).is_ok(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.is_alive() && rustix::process::kill_process(self.pid, signal).is_ok()
    }
}

impl From<ProcessEntry> for ProcessIdentity {
    fn from(process: ProcessEntry) -> Self {
        ProcessIdentity { pid: process.pid, start_time: process.start_ticks, pid_namespace: current_pid_namespace() }
    }
}

/// The kernel's number for the PID namespace that we live in.
fn current_pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace_file| namespace_file.ino())
}

/// Formats the identity as process id, start time and namespace: `1234@5678@4026531836`.
impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}@{}", self.pid(), self.start_time, self.pid_namespace)
    }
}

impl FromStr for ProcessIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.trim().split('@');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let (pid, started, numbering) = (next()?, next()?, next()?);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(())?;
        Ok(ProcessIdentity { pid, start_time: started, pid_namespace: numbering })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_the_same_pid_but_another_start_time_is_not_alive() {
        let own_identity = ProcessIdentity::current();
        assert!(own_identity.is_alive());
        assert_eq!(own_identity.to_string().parse(), Ok(own_identity));
        if cfg!(target_os = "linux") {
            let other_start = ProcessIdentity { start_time: own_identity.start_time + 1, ..own_identity };
            assert!(!other_start.is_alive());
            // A process of another namespace is unknown, and unknown is not dead.
            let other_namespace = ProcessIdentity { pid_namespace: own_identity.pid_namespace + 1, ..other_start };
            assert!(other_namespace.is_alive() && !other_namespace.ask_to_end());
        }
        assert!("".parse::<ProcessIdentity>().is_err() && "12".parse::<ProcessIdentity>().is_err());
    }
}
