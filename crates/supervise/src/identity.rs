//! Who a process is: its number and when it started. A number alone may be somebody else's by now.

use std::{fmt, str::FromStr};

use rustix::process::{Pid, Signal, getpid};

use crate::table::Process;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: Pid,
    /// 0: this system does not tell.
    started: u64,
}

impl Identity {
    pub fn own() -> Identity {
        let pid = getpid();
        Identity { pid, started: Process::at(pid).map_or(0, |process| process.started) }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether this very process is still there. What cannot be found out counts as there: unknown is not dead.
    pub fn is_alive(&self) -> bool {
        match Process::at(self.pid) {
            Some(process) => self.started == 0 || process.started == self.started,
            None if cfg!(target_os = "linux") => false,
            None => rustix::process::test_kill_process(self.pid).is_ok(),
        }
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
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        // Held by its descriptor and then looked at: the number cannot change hands in between.
        let Ok(held) = pidfd_open(self.pid, PidfdFlags::empty()) else { return false };
        self.is_alive() && pidfd_send_signal(held, signal).is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.is_alive() && rustix::process::kill_process(self.pid, signal).is_ok()
    }
}

impl From<Process> for Identity {
    fn from(process: Process) -> Self {
        Identity { pid: process.pid, started: process.started }
    }
}

/// `1234@5678`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid(), self.started)
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started) = text.trim().split_once('@').ok_or(())?;
        let pid = pid.parse().ok().and_then(Pid::from_raw).ok_or(())?;
        Ok(Identity { pid, started: started.parse().map_err(|_| ())? })
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
            assert!(!Identity { started: own.started + 1, ..own }.is_alive());
        }
        assert!("".parse::<Identity>().is_err() && "12".parse::<Identity>().is_err());
    }
}
