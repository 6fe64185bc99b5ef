//! One run per subject and one process per run. A lock is a locked file: the kernel releases it when the last process that
//! holds it is gone. Keepers hold the locks of their run, too, so a free lock means that no process of the run is left.
//!
//! The file names its holder by run, pid and start time. That serves only messages, and tells a living holder from keepers that
//! a killed process left to end its agents. A third line says that the holder only looks at the work of the run, and is worth waiting for.

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
use tribunal_engine::ids::{Hash, RunId};
use tribunal_supervise::ProcessIdentity;

/// A process that only checks ([`is_held`]) holds a lock for a moment; that must not make another one fail.
const PROBE_TIME: Duration = Duration::from_millis(500);
const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The third line of a lock file whose holder only looks at the work.
const INSPECTION_MARK: &str = "inspection";

/// A lock, held as long as this value or any keeper that received it lives.
#[derive(Clone, Debug)]
pub(crate) struct HeldLock {
    file: Arc<File>,
}

impl HeldLock {
    pub fn lock_file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Says in the lock file that the holder only looks at the work. It must follow right after the lock was taken.
    pub fn mark_inspection(&self) -> io::Result<()> {
        let mut lock_file = &*self.file;
        writeln!(lock_file, "{INSPECTION_MARK}")
    }
}

#[derive(Debug)]
pub(crate) enum LockFailure {
    /// The lock is held by this run: its process lives, or its keepers did not end in time.
    HeldBy(LockHolder),
    IoFailed(io::Error),
}

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockHolder {
    pub run_id: RunId,
    /// The process, or `None` if the file does not name one.
    pub process: Option<ProcessIdentity>,
    /// Whether it only looks at the work of the run: it ends soon, and changes nothing.
    pub is_inspecting: bool,
}

impl LockHolder {
    fn parse_holder(lock_text: &str) -> LockHolder {
        let mut lines = lock_text.lines();
        let run_id = RunId::new(lines.next().unwrap_or_default().trim());
        let process = lines.next().and_then(|line| line.parse().ok());
        LockHolder { run_id, process, is_inspecting: lines.next() == Some(INSPECTION_MARK) }
    }

    pub fn is_dead(&self) -> bool {
        self.process.is_some_and(|process| !process.is_alive())
    }
}

fn lock_path(locks_dir: &Path, lock_name: &str) -> PathBuf {
    locks_dir.join(format!("{}.lock", Hash::digest_of(lock_name.as_bytes()).short_hex()))
}

fn open_lock_file(locks_dir: &Path, lock_name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // A lock file that is a link was created by something else and may lead anywhere.
    options.custom_flags(NOFOLLOW).open(lock_path(locks_dir, lock_name))
}

/// The longest time that another process may take to put its files in place.
const MAX_TREE_WRITE: Duration = Duration::from_secs(30);

/// Locks the user's tree. While the lock is held, no other process of this project writes into the tree, so nothing changes
/// between the last comparison of a file and its rename.
pub(crate) fn lock_user_tree(locks_dir: &Path) -> io::Result<File> {
    let lock_file = open_lock_file(locks_dir, "the user's tree")?;
    let started_at = Instant::now();
    loop {
        match lock_file.try_lock() {
            Ok(()) => return Ok(lock_file),
            Err(TryLockError::Error(cause)) => return Err(cause),
            Err(TryLockError::WouldBlock) if started_at.elapsed() > MAX_TREE_WRITE => {
                return Err(io::Error::other("timed out waiting for another run to finish writing files"));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Takes the lock on a subject or a run for `run_id`. A dead holder has left keepers that are ending its agents: they are waited
/// for, at most for `patience`; `on_waiting` is called once if that takes longer than a moment.
pub(crate) fn take_lock(
    locks_dir: &Path,
    lock_name: &str,
    run_id: &RunId,
    patience: Duration,
    on_waiting: &mut dyn FnMut(),
) -> Result<HeldLock, LockFailure> {
    let mut lock_file = open_lock_file(locks_dir, lock_name).map_err(LockFailure::IoFailed)?;
    let started_at = Instant::now();
    let mut was_told = false;
    loop {
        match lock_file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(cause)) => return Err(LockFailure::IoFailed(cause)),
            Err(TryLockError::WouldBlock) => {}
        }
        let waited_time = started_at.elapsed();
        // A shorter wait could be caused by a process that only checks the lock.
        if waited_time >= PROBE_TIME {
            let holder = read_holder(&mut lock_file).map_err(LockFailure::IoFailed)?;
            // A living holder keeps the lock for the whole run, so there is no point in waiting for it.
            if !holder.is_dead() || waited_time >= patience {
                return Err(LockFailure::HeldBy(holder));
            }
            if !std::mem::replace(&mut was_told, true) {
                on_waiting();
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
    // The holder's name is written only after the lock is held, so that it never names a process that failed to take it.
    let write_result = lock_file
        .set_len(0)
        .and_then(|()| lock_file.rewind())
        .and_then(|()| write!(lock_file, "{run_id}\n{}\n", ProcessIdentity::current()));
    write_result.map_err(LockFailure::IoFailed)?;
    Ok(HeldLock { file: Arc::new(lock_file) })
}

fn read_holder(lock_file: &mut File) -> io::Result<LockHolder> {
    let mut lock_text = String::new();
    lock_file.rewind()?;
    lock_file.read_to_string(&mut lock_text)?;
    Ok(LockHolder::parse_holder(&lock_text))
}

/// Whether any process holds the lock.
pub(crate) fn is_held(locks_dir: &Path, lock_name: &str) -> bool {
    match File::open(lock_path(locks_dir, lock_name)) {
        Ok(lock_file) => matches!(lock_file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

/// Returns who works on the run: the holder, if the lock is held and the holder lives.
pub(crate) fn living_holder(locks_dir: &Path, lock_name: &str) -> Option<LockHolder> {
    if !is_held(locks_dir, lock_name) {
        return None;
    }
    let recorded_holder = LockHolder::parse_holder(&fs::read_to_string(lock_path(locks_dir, lock_name)).ok()?);
    (!recorded_holder.is_dead()).then_some(recorded_holder)
}

/// Waits until no process holds the lock. Returns false if `patience` ended first.
pub(crate) fn wait_until_free(locks_dir: &Path, lock_name: &str, patience: Duration) -> bool {
    let started_at = Instant::now();
    while is_held(locks_dir, lock_name) {
        if started_at.elapsed() >= patience {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_with_patience(locks_dir: &Path, run_id: &str) -> Result<HeldLock, LockFailure> {
        take_lock(locks_dir, "prd.md", &RunId::new(run_id), Duration::from_secs(30), &mut || {})
    }

    #[test]
    fn a_second_taker_learns_who_holds_it_and_a_freed_lock_can_be_taken() {
        let locks_dir = tempfile::tempdir().unwrap();
        let first = take_with_patience(locks_dir.path(), "prd-aaaa").unwrap();
        match take_with_patience(locks_dir.path(), "prd-bbbb") {
            Err(LockFailure::HeldBy(holder)) => {
                assert_eq!(holder.run_id.as_str(), "prd-aaaa");
                assert_eq!(holder.process, Some(ProcessIdentity::current()));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(living_holder(locks_dir.path(), "prd.md").unwrap().run_id.as_str(), "prd-aaaa");
        drop(first);
        // A process that another test is starting shares our descriptors until it executes its program.
        while living_holder(locks_dir.path(), "prd.md").is_some() {
            thread::sleep(POLL_INTERVAL);
        }
        assert!(wait_until_free(locks_dir.path(), "prd.md", Duration::from_secs(60)));
        take_with_patience(locks_dir.path(), "prd-bbbb").unwrap();
    }

    #[test]
    fn a_holder_that_only_looks_is_told_from_one_that_works() {
        let locks_dir = tempfile::tempdir().unwrap();
        let first = take_with_patience(locks_dir.path(), "prd-aaaa").unwrap();
        let is_inspecting = || living_holder(locks_dir.path(), "prd.md").unwrap().is_inspecting;
        assert!(!is_inspecting());
        first.mark_inspection().unwrap();
        assert!(is_inspecting());
        assert_eq!(living_holder(locks_dir.path(), "prd.md").unwrap().process, Some(ProcessIdentity::current()));
        drop(first);
        assert!(wait_until_free(locks_dir.path(), "prd.md", Duration::from_secs(60)));
        // The next holder writes its own lines.
        let _second = take_with_patience(locks_dir.path(), "prd-bbbb").unwrap();
        assert!(!is_inspecting());
    }

    #[test]
    fn a_lock_that_is_a_link_is_not_followed() {
        let locks_dir = tempfile::tempdir().unwrap();
        let precious = locks_dir.path().join("precious");
        fs::write(&precious, "text").unwrap();
        std::os::unix::fs::symlink(&precious, lock_path(locks_dir.path(), "prd.md")).unwrap();
        assert!(matches!(take_with_patience(locks_dir.path(), "prd-aaaa"), Err(LockFailure::IoFailed(_))));
        assert_eq!(fs::read_to_string(precious).unwrap(), "text");
    }

    #[test]
    fn keepers_of_a_dead_holder_are_waited_for() {
        let locks_dir = tempfile::tempdir().unwrap();
        let keeper = take_with_patience(locks_dir.path(), "prd-aaaa").unwrap();
        // Simulates a killed process: no process has this pid with this start time.
        fs::write(lock_path(locks_dir.path(), "prd.md"), "prd-aaaa\n1@1@0\n").unwrap();
        assert!(is_held(locks_dir.path(), "prd.md") && living_holder(locks_dir.path(), "prd.md").is_none());
        let mut keeper = Some(keeper);
        let mut notice_count = 0;
        let waited = take_lock(locks_dir.path(), "prd.md", &RunId::new("b"), Duration::from_secs(30), &mut || {
            notice_count += 1;
            keeper = None;
        });
        assert!(waited.is_ok());
        assert_eq!(notice_count, 1);
    }
}
