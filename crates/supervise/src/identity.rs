//! Who a process is: its number, when it started, and in which numbering (a container has its own). A number alone may be
//! somebody else's by now.

use std::{fmt, str::FromStr};

use rustix::process::{Pid, Signal, getpid};

use crate::table::Process;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: Pid,
    /// 0: this system does not tell.
    started: u64,
    /// Which processes it is numbered among; 0: this system does not tell.
    numbering: u64,
}

impl Identity {
    pub fn own() -> Identity {
        let pid = getpid();
        let started = Process::at(pid).map_or(0, |process| process.started);
        Identity { pid, started, numbering: own_numbering() }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether this very process is still there. What cannot be found out counts as there: unknown is not dead.
    pub fn is_alive(&self) -> bool {
        if self.is_elsewhere() {
            return true;
        }
        match Process::at(self.pid) {
            Some(process) => self.started == 0 || process.started == self.started,
            None if cfg!(target_os = "linux") => false,
            None => rustix::process::test_kill_process(self.pid).is_ok(),
        }
    }

    /// In another container: its number means nothing here.
    fn is_elsewhere(&self) -> bool {
        self.numbering != 0 && self.numbering != own_numbering()
    }

    /// Asks it to stop once what it has under way is finished.
    pub fn ask_to_stop(&self) -> bool {
        self.signal(Signal::USR1)
    }

    /// Asks it to end, now.
    pub fn ask_to_end(&self) -> bool {
        self.signal(Signal::TERM)
    }

    /// False: it is gone, or not ours to signal.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        use rustix::{
            io::Errno,
            process::{PidfdFlags, pidfd_open, pidfd_send_signal},
        };
        if self.is_elsewhere() {
            return false;
        }
        // Held by its descriptor and then looked at: the number cannot change hands in between.
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) => self.is_alive() && pidfd_send_signal(held, signal).is_ok(),
            Err(Errno::SRCH) => false,
            // A system without them: the look comes as late as it can.
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

/// The kernel's number for the numbering that we live in.
fn own_numbering() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

/// `1234@5678@4026531836`.
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
            // Unknown is not dead.
            let elsewhere = Identity { numbering: own.numbering + 1, ..another };
            assert!(elsewhere.is_alive() && !elsewhere.ask_to_end());
        }
        assert!("".parse::<Identity>().is_err() && "12".parse::<Identity>().is_err());
    }
}
