//! The lock beside a file that others write as well: it is created exclusively and names its holder. The file itself is the
//! lock, since the user and BMAD's own tools can see a file; nothing else is agreed on with them.
//!
//! A lock is left behind only by a killed process. It is cleared when its holder is provably dead and it is 30 seconds old: it
//! is moved aside, inspected a second later, and removed if it is still the same one. A lock that is not readable as ours is
//! never cleared.

use std::{
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use tribunal_supervise::ProcessIdentity;

/// The waiting times between attempts.
const BACKOFF: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];
/// A younger lock is never cleared.
const STALE_AFTER: Duration = Duration::from_secs(30);
/// The time between moving a lock aside and removing it.
const CLEARING_DELAY: Duration = Duration::from_secs(1);
/// The first line of our locks, which tells them from other files.
const LOCK_HEADING: &str = "tribunal";

/// Whether a file is a lock that one of our processes has made, alive or not.
pub fn is_lock_of_ours(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|extension| extension == "lock");
    is_named_so && fs::read(path).is_ok_and(|bytes| bytes.starts_with(format!("{LOCK_HEADING}\n").as_bytes()))
}

/// The clock; tests use one that stands still.
pub(super) trait LockClock {
    fn current_time(&self) -> SystemTime;
    fn wait_for(&self, length: Duration);
}

/// The machine's clock.
pub(super) struct SystemClock;

impl LockClock for SystemClock {
    fn current_time(&self) -> SystemTime {
        SystemTime::now()
    }

    fn wait_for(&self, length: Duration) {
        thread::sleep(length);
    }
}

/// A lock that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct FileLock {
    lock_path: PathBuf,
    lock_text: String,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Our lock may have been cleared as stale; the lock of another process stays.
        if fs::read_to_string(&self.lock_path).is_ok_and(|text| text == self.lock_text) {
            let _ = fs::remove_file(&self.lock_path);
        }
    }
}

/// The reason why a lock could not be taken.
#[derive(Debug)]
pub enum FileLockFailure {
    HeldBy { holder: FileLockHolder, lock: PathBuf },
    IoFailed { cause: io::Error, lock: PathBuf },
}

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLockHolder {
    /// The process, or `None` if the lock is not one of ours.
    pub process: Option<ProcessIdentity>,
    pub age: Duration,
}

impl FileLockHolder {
    /// Whether the holder is provably dead: a process of another container is unknown.
    pub fn is_dead(&self) -> bool {
        self.process.is_some_and(|process| !process.is_alive())
    }

    fn is_stale(&self) -> bool {
        self.is_dead() && self.age >= STALE_AFTER
    }
}

impl fmt::Display for FileLockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.age.as_secs();
        match self.process {
            Some(process) if self.is_dead() => {
                write!(f, "process {}, which has exited, left the lock {seconds} s ago", process.pid())
            }
            Some(process) => write!(f, "process {} has held the lock for {seconds} s", process.pid()),
            None => write!(f, "another program created the lock {seconds} s ago"),
        }
    }
}

/// Returns `sprint-status.yaml.lock` beside `sprint-status.yaml`.
fn lock_path_for(locked_file: &Path) -> PathBuf {
    let mut lock_name = locked_file.file_name().unwrap_or_default().to_os_string();
    lock_name.push(".lock");
    locked_file.with_file_name(lock_name)
}

pub(super) fn take_lock(locked_file: &Path, clock: &dyn LockClock) -> Result<FileLock, FileLockFailure> {
    let lock_path = lock_path_for(locked_file);
    let lock_error = |cause: io::Error| FileLockFailure::IoFailed { cause, lock: lock_path.clone() };
    // The waits grow, since a lock that is still held after a short wait is likely to be held longer.
    let mut remaining_waits = BACKOFF.iter();
    loop {
        if let Some(lock) = create_lock(&lock_path).map_err(lock_error)? {
            return Ok(lock);
        }
        let Some((holder, lock_bytes)) = read_lock(&lock_path, clock).map_err(lock_error)? else {
            // It was released at this very moment.
            continue;
        };
        if holder.is_stale() {
            clear_stale_lock(&lock_path, &lock_bytes, clock).map_err(lock_error)?;
            continue;
        }
        match remaining_waits.next() {
            Some(wait_time) => clock.wait_for(*wait_time),
            None => return Err(FileLockFailure::HeldBy { holder, lock: lock_path }),
        }
    }
}

/// Creates the lock. Returns `None` if it is taken.
fn create_lock(lock_path: &Path) -> io::Result<Option<FileLock>> {
    let lock_text = format!("{LOCK_HEADING}\n{}\n", ProcessIdentity::current());
    // The lock is never visible half written: it is created under a temporary name and renamed only if the name is free.
    let directory = lock_path.parent().unwrap_or(Path::new("."));
    let prefix = format!("{}{}-", crate::project::atomic_files::TEMPORARY_PREFIX, ProcessIdentity::current());
    let mut temporary_file = tempfile::Builder::new().prefix(&prefix).tempfile_in(directory)?;
    temporary_file.write_all(lock_text.as_bytes())?;
    match temporary_file.persist_noclobber(lock_path) {
        Ok(_) => Ok(Some(FileLock { lock_path: lock_path.to_path_buf(), lock_text })),
        Err(persist_error) if persist_error.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(persist_error) => Err(persist_error.error),
    }
}

/// Returns the holder and the content of the lock; `None` if it is gone.
fn read_lock(lock_path: &Path, clock: &dyn LockClock) -> io::Result<Option<(FileLockHolder, Vec<u8>)>> {
    let read_holder = || -> io::Result<(FileLockHolder, Vec<u8>)> {
        let metadata = fs::symlink_metadata(lock_path)?;
        // A link or a directory is not one of our locks, and is not opened.
        let lock_bytes = if metadata.is_file() { fs::read(lock_path)? } else { Vec::new() };
        let age = clock.current_time().duration_since(metadata.modified()?).unwrap_or_default();
        Ok((FileLockHolder { process: parse_process(&lock_bytes), age }, lock_bytes))
    };
    match read_holder() {
        Ok(holder_and_text) => Ok(Some(holder_and_text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn parse_process(lock_bytes: &[u8]) -> Option<ProcessIdentity> {
    let lock_text = std::str::from_utf8(lock_bytes).ok()?;
    let mut lines = lock_text.lines();
    (lines.next() == Some(LOCK_HEADING)).then(|| lines.next()?.parse().ok())?
}

/// Moves a stale lock aside, inspects it again, and removes it if it is still the same one.
fn clear_stale_lock(lock_path: &Path, stale_bytes: &[u8], clock: &dyn LockClock) -> io::Result<()> {
    let mut clearing_path = lock_path.as_os_str().to_os_string();
    clearing_path.push(".clearing");
    let clearing_path = PathBuf::from(clearing_path);
    match fs::rename(lock_path, &clearing_path) {
        // Another process cleared it first.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        outcome => outcome?,
    }
    clock.wait_for(CLEARING_DELAY);
    let moved_bytes = match fs::read(&clearing_path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        outcome => outcome?,
    };
    if moved_bytes != stale_bytes {
        // A new lock was taken between the check and the move: it is put back, unless its place was taken since.
        match fs::hard_link(&clearing_path, lock_path) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
            _ => {}
        }
    }
    match fs::remove_file(&clearing_path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A clock that stands still; `on_wait` is called at every wait.
    struct FrozenClock<'a> {
        now: SystemTime,
        waited: RefCell<Vec<Duration>>,
        on_wait: &'a dyn Fn(usize),
    }

    impl LockClock for FrozenClock<'_> {
        fn current_time(&self) -> SystemTime {
            self.now
        }

        fn wait_for(&self, length: Duration) {
            self.waited.borrow_mut().push(length);
            (self.on_wait)(self.waited.borrow().len());
        }
    }

    fn frozen_clock<'a>(ahead: u64, each: &'a dyn Fn(usize)) -> FrozenClock<'a> {
        let now = SystemTime::now() + Duration::from_secs(ahead);
        FrozenClock { now, waited: RefCell::default(), on_wait: each }
    }

    /// A clock that is set to this many seconds after the lock was created.
    fn clock_after<'a>(lock: &Path, seconds: u64, each: &'a dyn Fn(usize)) -> FrozenClock<'a> {
        let created = fs::metadata(lock).unwrap().modified().unwrap();
        FrozenClock { now: created + Duration::from_secs(seconds), ..frozen_clock(0, each) }
    }

    fn new_lock_paths() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sprint-status.yaml");
        let lock = directory.path().join("sprint-status.yaml.lock");
        (directory, file, lock)
    }

    fn dead_holder_text() -> String {
        format!("{LOCK_HEADING}\n{}\n", ProcessIdentity::current().to_string().replacen('@', "@9", 1))
    }

    #[test]
    fn it_says_who_holds_it_and_is_gone_afterwards() {
        let (_folder, file, lock) = new_lock_paths();
        let held = take_lock(&file, &frozen_clock(0, &|_| ())).unwrap();
        let (holder, _) = read_lock(&lock, &SystemClock).unwrap().unwrap();
        assert_eq!(holder.process, Some(ProcessIdentity::current()));
        drop(held);
        assert!(!lock.exists());
    }

    #[test]
    fn a_holder_that_lives_is_waited_for_four_times() {
        let (_folder, file, lock) = new_lock_paths();
        let held = take_lock(&file, &frozen_clock(0, &|_| ())).unwrap();
        let clock = clock_after(&lock, 3_600, &|_| ());
        let Err(FileLockFailure::HeldBy { holder, .. }) = take_lock(&file, &clock) else { panic!("two have it") };
        assert_eq!(*clock.waited.borrow(), BACKOFF);
        assert!(holder.to_string().contains("has held the lock for 3600 s"), "{holder}");
        let held = RefCell::new(Some(held));
        let release_on_second = |times: usize| {
            if times == 2 {
                *held.borrow_mut() = None;
            }
        };
        let clock = frozen_clock(0, &release_on_second);
        take_lock(&file, &clock).unwrap();
        assert!(!lock.exists());
    }

    #[test]
    fn the_lock_of_a_dead_holder_is_cleared_when_it_is_old_enough() {
        let (directory, file, lock) = new_lock_paths();
        fs::write(&lock, dead_holder_text()).unwrap();
        let young = clock_after(&lock, 29, &|_| ());
        let Err(FileLockFailure::HeldBy { holder, .. }) = take_lock(&file, &young) else { panic!("cleared too soon") };
        assert!(holder.to_string().ends_with("left the lock 29 s ago"), "{holder}");
        let clock = clock_after(&lock, 31, &|_| ());
        drop(take_lock(&file, &clock).unwrap());
        assert_eq!(*clock.waited.borrow(), [CLEARING_DELAY]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_ours_or_not_provably_dead_is_never_cleared() {
        for text in [String::new(), "1234".into(), format!("{}9", dead_holder_text().trim_end()), "x\n".repeat(9)] {
            let (_folder, file, lock) = new_lock_paths();
            fs::write(&lock, &text).unwrap();
            let taken = take_lock(&file, &frozen_clock(86_400, &|_| ()));
            assert!(matches!(taken, Err(FileLockFailure::HeldBy { .. })), "{text:?}");
            assert_eq!(fs::read_to_string(&lock).unwrap(), text);
        }
        let (directory, file, lock) = new_lock_paths();
        fs::write(directory.path().join("precious"), dead_holder_text()).unwrap();
        std::os::unix::fs::symlink("precious", &lock).unwrap();
        assert!(matches!(take_lock(&file, &frozen_clock(86_400, &|_| ())), Err(FileLockFailure::HeldBy { .. })));
        assert!(directory.path().join("precious").exists());
    }

    #[test]
    fn a_lock_that_was_taken_between_the_look_and_the_move_is_given_back() {
        let (_folder, file, lock) = new_lock_paths();
        let held = take_lock(&file, &frozen_clock(0, &|_| ())).unwrap();
        clear_stale_lock(&lock, dead_holder_text().as_bytes(), &frozen_clock(31, &|_| ())).unwrap();
        assert_eq!(read_lock(&lock, &SystemClock).unwrap().unwrap().0.process, Some(ProcessIdentity::current()));
        // If its place was taken since, the new holder keeps it.
        clear_stale_lock(
            &lock,
            dead_holder_text().as_bytes(),
            &frozen_clock(31, &|_| fs::write(&lock, "theirs").unwrap()),
        )
        .unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs");
        drop(held);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs", "only one's own lock is taken away");
    }
}
