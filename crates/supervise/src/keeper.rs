//! The keeper: a process of ours between us and an agent's tree, so that nothing of the tree outlives the task.
//!
//! It is a mode of the same binary, entered before arguments are looked at. It adopts orphans (the kernel's "subreaper"),
//! has a session of its own, and waits for three things in one poll: the agent's end, a word on the line to its parent, and
//! that line's end, which means that the parent is gone. Whichever comes, it then ends what is left: asks, waits the grace,
//! kills, until it has no child. It holds the run's locks meanwhile: a free lock means a tree that is gone.
//!
//! The agent's streams are the agent's own: the keeper passes them on and lets go of them.
//!
//! On the line, in words: `started PID`, `refused ERRNO`, `exited CODE`, `killed SIGNAL`, `left NUMBER`; the other way any byte
//! means "end it".

#[cfg(target_os = "linux")]
mod linux;

use std::{path::PathBuf, process::ExitCode};

/// How the keeper is called, and how it shows up in a list of processes.
pub(crate) const NAME: &str = "tribunal-keeper";

/// To be called first in `main` of every program that is its own keeper: `Some` when it was started as one, and is done.
pub fn enter() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    if std::env::args_os().next().is_some_and(|name| name == NAME) {
        return Some(linux::keep());
    }
    None
}

/// Our own program, also when its file has been replaced since we started. None where there are no keepers.
pub fn own_program() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe"))
}

/// What the keeper says on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Started(i32),
    /// The program could not be started, for this reason of the system's.
    Refused(i32),
    Exited(i32),
    Killed(i32),
    /// So many processes may not be ended by us.
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
