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
//! The keeper writes lines on the control channel: `started PID`, `refused ERRNO`, `exited CODE`, `killed SIGNAL`, `left
//! NUMBER`.
//! In the other direction any byte means "end it".

#[cfg(target_os = "linux")]
mod linux;

use std::{path::PathBuf, process::ExitCode};

/// The name by which the keeper is started and shown in a list of processes.
pub(crate) const NAME: &str = "tribunal-keeper";

/// Runs the keeper if this process was started as one, and returns its exit code. Every program that is its own keeper calls
/// this first in `main`.
pub fn enter() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        return Some(linux::keep());
    }
    None
}

/// The path of our own program, which stays valid when its file is replaced. `None` on systems without keepers.
pub fn own_program() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe"))
}

/// A message of the keeper on the control channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Started(i32),
    /// The program could not be started; the value is the error number of the system.
    Refused(i32),
    Exited(i32),
    Killed(i32),
    /// The number of processes that we may not end.
    Left(usize),
}

impl Word {
    pub fn line(self) -> String {
        match self {
            Word::Started(pid) => format!("started {pid}\n"),
            Word::Refused(errno) => format!("refused {errno}\n"),
            Word::Exited(code) => format!("exited {code}\n"),
            Word::Killed(signal) => format!("killed {signal}\n"),
            Word::Left(number) => format!("left {number}\n"),
        }
    }

    /// Reads a line of the control channel; unknown messages are ignored.
    pub fn parse(line: &str) -> Option<Word> {
        let (word, number) = line.trim().split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        match word {
            "started" => Some(Word::Started(number)),
            "refused" => Some(Word::Refused(number)),
            "exited" => Some(Word::Exited(number)),
            "killed" => Some(Word::Killed(number)),
            "left" => usize::try_from(number).ok().map(Word::Left),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood() {
        for word in [Word::Started(7), Word::Refused(2), Word::Exited(255), Word::Killed(9), Word::Left(3)] {
            assert_eq!(Word::parse(&word.line()), Some(word));
        }
        assert_eq!(Word::parse("hello"), None);
    }
}
