//! The keeper: a process of our own between Tribunal and an agent's process tree, so that no process of the tree outlives the
//! task.
//!
//! It is a mode of the same binary, entered before the arguments are parsed. It adopts orphans (the kernel's "subreaper"), has
//! a session of its own, and waits for three things in one poll: the end of the agent, an order on the control channel to its
//! parent, and the end of that channel, which means that the parent is gone. In each case it then ends what is left: it asks,
//! waits for the grace period, and kills, until it has no child. Meanwhile it holds the locks of the run: a free lock means
//! that the tree is gone.
//!
//! The streams belong to the agent: the keeper passes them on and closes its own copies.
//!
//! The first thing that comes on the control channel is what to start ([`KeeperJob`]). The keeper writes lines: `started PID`,
//! `refused ERRNO`, `exited CODE`, `killed SIGNAL`, `left NUMBER`, `gone 0`. In the other direction any byte after the job means
//! "end it". After `gone` another job may come, whose streams the keeper opens by their numbers in its parent; if it cannot, it
//! says `unopened 0` and ends. A keeper that left processes behind ends, too.

mod job;
#[cfg(target_os = "linux")]
mod linux;

pub(crate) use job::KeeperJob;

use std::{path::PathBuf, process::ExitCode};

/// The name by which the keeper is started and shown in a list of processes.
pub(crate) const KEEPER_NAME: &str = "tribunal-keeper";

/// Runs the keeper if this process was started as one, and returns its exit code. Every program that is its own keeper calls
/// this first in `main`.
pub fn enter_if_keeper() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    if std::env::args_os().next().is_some_and(|program_name| program_name == KEEPER_NAME) {
        return Some(linux::run_keeper());
    }
    None
}

/// The path of our own program, which stays valid when its file is replaced. `None` on systems without keepers.
pub fn own_program() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe"))
}

/// A message of the keeper on the control channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeeperMessage {
    Started(i32),
    /// The program could not be started; the value is the error number of the system.
    StartFailed(i32),
    Exited(i32),
    Killed(i32),
    /// The number of processes that we may not end.
    Remaining(usize),
    /// No process of the tree is left, and the keeper waits for its next job.
    Gone,
    /// The streams of a job could not be opened, so nothing was started.
    NoStreams,
}

impl KeeperMessage {
    pub fn to_line(self) -> String {
        match self {
            KeeperMessage::Started(pid) => format!("started {pid}\n"),
            KeeperMessage::StartFailed(errno) => format!("refused {errno}\n"),
            KeeperMessage::Exited(code) => format!("exited {code}\n"),
            KeeperMessage::Killed(signal) => format!("killed {signal}\n"),
            KeeperMessage::Remaining(count) => format!("left {count}\n"),
            KeeperMessage::Gone => "gone 0\n".to_string(),
            KeeperMessage::NoStreams => "unopened 0\n".to_string(),
        }
    }

    /// Reads a line of the control channel; unknown messages are ignored.
    pub fn parse_line(message_line: &str) -> Option<KeeperMessage> {
        let (keyword, argument_text) = message_line.trim().split_once(' ')?;
        let argument: i32 = argument_text.parse().ok()?;
        match keyword {
            "started" => Some(KeeperMessage::Started(argument)),
            "refused" => Some(KeeperMessage::StartFailed(argument)),
            "exited" => Some(KeeperMessage::Exited(argument)),
            "killed" => Some(KeeperMessage::Killed(argument)),
            "left" => usize::try_from(argument).ok().map(KeeperMessage::Remaining),
            "gone" => Some(KeeperMessage::Gone),
            "unopened" => Some(KeeperMessage::NoStreams),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_a_round_trip() {
        for message in [
            KeeperMessage::Started(7),
            KeeperMessage::StartFailed(2),
            KeeperMessage::Exited(255),
            KeeperMessage::Killed(9),
            KeeperMessage::Remaining(3),
            KeeperMessage::Gone,
            KeeperMessage::NoStreams,
        ] {
            assert_eq!(KeeperMessage::parse_line(&message.to_line()), Some(message));
        }
        assert_eq!(KeeperMessage::parse_line("hello"), None);
    }
}
