//! One run per subject and one process per run. A lock is a locked file: the kernel releases it when the last process that
//! holds it is gone. Keepers hold the locks of their run, too, so a free lock means that no process of the run is left.
//!
//! The file names its holder by run, pid and start time. That serves only messages, and tells a living holder from keepers that
//! a killed process left to end its agents.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::fs::OFlags;
use tribunal_core::ids::{Hash, RunId};
use tribunal_supervise::Identity;

/// A process that only checks ([`is_held`]) holds a lock for a moment; that must not make another one fail.
const GLANCE: Duration = Duration::from_millis(500);
const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();
const STEP: Duration = Duration::from_millis(10);

/// A lock, held as long as this value or any keeper that received it lives.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    file: Arc<File>,
}

impl Lock {
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }
}

#[derive(Debug)]
pub(crate) enum Locked {
    /// The lock is held by this run, and its process lives.
    By(Holder),
    Failed(io::Error),
}

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub run: RunId,
    /// The process, or `None` if the file does not name one.
    pub process: Option<Identity>,
}

impl Holder {
    fn parse(text: &str) -> Holder {
        let mut lines = text.lines();
        let run = RunId::new(lines.next().unwrap_or_default().trim());
        Holder { run, process: lines.next().and_then(|line| line.parse().ok()) }
    }

    pub fn is_dead(&self) -> bool {
        self.process.is_some_and(|process| !process.is_alive())
    }
}

fn path(folder: &Path, what: &str) -> PathBuf {
    folder.join(format!("{}.lock", Hash::of(what.as_bytes()).short()))
}

fn open(folder: &Path, what: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // A lock file that is a link was created by something else and may lead anywhere.
    options.custom_flags(NOFOLLOW).open(path(folder, what))
}

/// The longest time that another process may take to put its files in place.
const LONGEST_PUT: Duration = Duration::from_secs(30);

/// Locks the user's tree. While the lock is held, no other process of this project writes into the tree, so nothing changes
/// between the last comparison of a file and its rename.
pub(crate) fn alone(folder: &Path) -> io::Result<File> {
    let file = open(folder, "the person's tree")?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(cause)) => return Err(cause),
            Err(TryLockError::WouldBlock) if began.elapsed() > LONGEST_PUT => {
                return Err(io::Error::other(
                    "another run has been putting files in their place for too long",
                ));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(STEP),
        }
    }
}

/// Takes the lock on a subject or a run for `run_id`. A dead holder has left keepers that are ending its agents: they are waited
/// for, at most for `patience`; `on_waiting` is called once if that takes longer than a moment.
pub(crate) fn take(
    folder: &Path,
    what: &str,
    run: &RunId,
    patience: Duration,
    waiting: &mut dyn FnMut(),
) -> Result<Lock, Locked> {
    let mut file = open(folder, what).map_err(Locked::Failed)?;
    let began = Instant::now();
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(cause)) => return Err(Locked::Failed(cause)),
            Err(TryLockError::WouldBlock) => {}
        }
        let waited = began.elapsed();
        // A shorter wait could be caused by a process that only checks the lock.
        if waited >= GLANCE {
            let holder = read(&mut file).map_err(Locked::Failed)?;
            // A living holder keeps the lock for the whole run, so there is no point in waiting for it.
            if !holder.is_dead() || waited >= patience {
                return Err(Locked::By(holder));
            }
            if !std::mem::replace(&mut told, true) {
                waiting();
            }
        }
        thread::sleep(STEP);
    }
    // The holder's name is written only after the lock is held, so that it never names a process that failed to take it.
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{run}\n{}\n", Identity::own()));
    written.map_err(Locked::Failed)?;
    Ok(Lock { file: Arc::new(file) })
}

fn read(file: &mut File) -> io::Result<Holder> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(Holder::parse(&text))
}

/// Whether any process of the run is left.
pub(crate) fn is_held(folder: &Path, what: &str) -> bool {
    match File::open(path(folder, what)) {
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Returns who works on the run: the holder, if the lock is held and the holder lives.
pub(crate) fn holder(folder: &Path, what: &str) -> Option<Holder> {
    if !is_held(folder, what) {
        return None;
    }
    let holder = Holder::parse(&fs::read_to_string(path(folder, what)).ok()?);
    (!holder.is_dead()).then_some(holder)
}

/// Waits until no process of the run is left. Returns false if `patience` ended first.
pub(crate) fn wait_until_free(folder: &Path, what: &str, patience: Duration) -> bool {
    let began = Instant::now();
    while is_held(folder, what) {
        if began.elapsed() >= patience {
            return false;
        }
        thread::sleep(STEP);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_now(folder: &Path, run: &str) -> Result<Lock, Locked> {
        take(folder, "prd.md", &RunId::new(run), Duration::from_secs(30), &mut || {})
    }

    #[test]
    fn a_second_taker_learns_who_holds_it_and_a_freed_lock_can_be_taken() {
        let folder = tempfile::tempdir().unwrap();
        let first = take_now(folder.path(), "prd-aaaa").unwrap();
        match take_now(folder.path(), "prd-bbbb") {
            Err(Locked::By(holder)) => {
                assert_eq!(holder.run.as_str(), "prd-aaaa");
                assert_eq!(holder.process, Some(Identity::own()));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(holder(folder.path(), "prd.md").unwrap().run.as_str(), "prd-aaaa");
        drop(first);
        // A process that another test is starting shares our descriptors until it executes its program.
        while holder(folder.path(), "prd.md").is_some() {
            thread::sleep(STEP);
        }
        assert!(wait_until_free(folder.path(), "prd.md", Duration::from_secs(60)));
        take_now(folder.path(), "prd-bbbb").unwrap();
    }

    #[test]
    fn a_lock_that_is_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        fs::write(&precious, "text").unwrap();
        std::os::unix::fs::symlink(&precious, path(folder.path(), "prd.md")).unwrap();
        assert!(matches!(take_now(folder.path(), "prd-aaaa"), Err(Locked::Failed(_))));
        assert_eq!(fs::read_to_string(precious).unwrap(), "text");
    }

    #[test]
    fn what_a_dead_holder_left_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = take_now(folder.path(), "prd-aaaa").unwrap();
        // Simulates a killed process: the same pid, another start time.
        fs::write(path(folder.path(), "prd.md"), "prd-aaaa\n1@1@0\n").unwrap();
        assert!(is_held(folder.path(), "prd.md") && holder(folder.path(), "prd.md").is_none());
        let mut keeper = Some(keeper);
        let mut told = 0;
        let waited = take(folder.path(), "prd.md", &RunId::new("b"), Duration::from_secs(30), &mut || {
            told += 1;
            keeper = None;
        });
        assert!(waited.is_ok());
        assert_eq!(told, 1);
    }
}
