//! One subject, one run; one run, one process. A lock is a locked file: when its holder dies, the kernel lets go.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
    time::Duration,
};

use tribunal_core::ids::{Hash, RunId};

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

#[derive(Debug)]
pub(crate) enum Locked {
    /// Held by this run.
    By(RunId),
    Failed(io::Error),
}

/// Takes the lock on a subject or a run for `run`.
pub(crate) fn take(folder: &Path, what: &str, run: &RunId) -> Result<Lock, Locked> {
    let path = folder.join(format!("{}.lock", Hash::of(what.as_bytes()).short()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(Locked::Failed)?;
    match try_lock(&file) {
        Ok(()) => {
            // Only for the message that somebody else gets; the lock itself is the kernel's.
            let written = file.set_len(0).and_then(|()| write!(file, "{run}"));
            written.map_err(Locked::Failed)?;
            Ok(Lock { _file: file })
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut holder)).map_err(Locked::Failed)?;
            Err(Locked::By(RunId::new(holder.trim())))
        }
        Err(TryLockError::Error(cause)) => Err(Locked::Failed(cause)),
    }
}

/// Somebody who only looks ([`is_held`]) or has just been killed holds the lock for a moment; that must not turn anybody
/// away.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
    file.try_lock()
}

/// Whether some process works on the run.
pub(crate) fn is_held(folder: &Path, what: &str) -> bool {
    let path = folder.join(format!("{}.lock", Hash::of(what.as_bytes()).short()));
    match File::open(path) {
        Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_learns_who_holds_it_and_a_freed_lock_can_be_taken() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), "prd.md", &RunId::new("prd-aaaa")).unwrap();
        match take(folder.path(), "prd.md", &RunId::new("prd-bbbb")) {
            Err(Locked::By(run)) => assert_eq!(run.as_str(), "prd-aaaa"),
            other => panic!("{other:?}"),
        }
        assert!(is_held(folder.path(), "prd.md"));
        drop(first);
        assert!(!is_held(folder.path(), "prd.md"));
        take(folder.path(), "prd.md", &RunId::new("prd-bbbb")).unwrap();
    }
}
