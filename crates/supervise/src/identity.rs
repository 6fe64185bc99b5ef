//! Identifies a process by its id, its start time, and its PID namespace (a container has its own). A process id alone may have
//! been given to another process by now.

use std::{fmt, str::FromStr};

use rustix::process::{Pid, Signal, getpid};

use crate::table::Process;

/// One particular process, also after its id was reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: Pid,
    /// When the process started; 0 if the system does not tell.
    started: u64,
    /// The PID namespace that its id belongs to; 0 if the system does not tell.
    numbering: u64,
}

impl Identity {
    /// The identity of this process.
    pub fn own() -> Identity {
        let pid = getpid();
        let started = Process::at(pid).map_or(0, |process| process.started);
        Identity { pid, started, numbering: own_numbering() }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether this very process still runs. If that cannot be found out, it counts as running: unknown is not dead.
    pub fn is_alive(&self) -> bool {
        if self.is_elsewhere() {
            return true;
        }
        match Process::at(self.pid) {
            Some(process) => self.started == 0 || process.started == self.started,
            // On Linux every running process has an entry in `/proc`; elsewhere only a signal can tell.
            None if cfg!(target_os = "linux") => false,
            None => rustix::process::test_kill_process(self.pid).is_ok(),
        }
    }

    /// Whether the process belongs to another container, where its id means nothing to us.
    fn is_elsewhere(&self) -> bool {
        self.numbering != 0 && self.numbering != own_numbering()
    }

    /// Asks the process to stop once its current work is finished.
    pub fn ask_to_stop(&self) -> bool {
        self.signal(Signal::USR1)
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
        if self.is_elsewhere() {
            return false;
        }
        // The handle is opened before the check, so the id cannot be reused in between.
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) => self.is_alive() && pidfd_send_signal(held, signal).is_ok(),
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

impl From<Process> for Identity {
    fn from(process: Process) -> Self {
        Identity { pid: process.pid, started: process.started, numbering: own_numbering() }
    }
}

/// The kernel's number for the PID namespace that we live in.
fn own_numbering() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

/// Formats the identity as process id, start time and namespace: `1234@5678@4026531836`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}@{}", self.pid(), self.started, self.numbering)
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.trim().split('@');
        let mut next = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let (pid, started, numbering) = (next()?, next()?, next()?);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(())?;
        Ok(Identity { pid, started, numbering })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_alive_and_somebody_with_our_number_from_another_time_is_not() {
        let own = Identity::own();
        assert!(own.is_alive());
        assert_eq!(own.to_string().parse(), Ok(own));
        if cfg!(target_os = "linux") {
            let another = Identity { started: own.started + 1, ..own };
            assert!(!another.is_alive());
            // A process of another namespace is unknown, and unknown is not dead.
            let elsewhere = Identity { numbering: own.numbering + 1, ..another };
            assert!(elsewhere.is_alive() && !elsewhere.ask_to_end());
        }
        assert!("".parse::<Identity>().is_err() && "12".parse::<Identity>().is_err());
    }
}
