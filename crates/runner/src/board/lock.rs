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

use tribunal_supervise::Identity;

/// The waiting times between attempts.
const BACKOFF: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
];
/// A younger lock is never cleared.
const STALE: Duration = Duration::from_secs(30);
/// The time between moving a lock aside and removing it.
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// The first line of our locks, which tells them from other files.
const HEADING: &str = "tribunal";

/// The clock; tests use one that stands still.
pub(super) trait Clock {
    fn now(&self) -> SystemTime;
    fn wait(&self, length: Duration);
}

/// The machine's clock.
pub(super) struct Real;

impl Clock for Real {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn wait(&self, length: Duration) {
        thread::sleep(length);
    }
}

/// A lock that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    text: String,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Our lock may have been cleared as stale; the lock of another process stays.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The reason why a lock could not be taken.
#[derive(Debug)]
pub enum Locked {
    By { holder: Holder, lock: PathBuf },
    Failed { cause: io::Error, lock: PathBuf },
}

/// The content of a lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process, or `None` if the lock is not one of ours.
    pub process: Option<Identity>,
    pub age: Duration,
}

impl Holder {
    /// Whether the holder is provably dead: a process of another container is unknown.
    pub fn is_dead(&self) -> bool {
        self.process.is_some_and(|process| !process.is_alive())
    }

    fn is_stale(&self) -> bool {
        self.is_dead() && self.age >= STALE
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.age.as_secs();
        match self.process {
            Some(process) if self.is_dead() => {
                write!(f, "process {}, which is dead, left it {seconds} s ago", process.pid())
            }
            Some(process) => write!(f, "process {} has held it for {seconds} s", process.pid()),
            None => write!(f, "another program made it {seconds} s ago"),
        }
    }
}

/// Returns `sprint-status.yaml.lock` beside `sprint-status.yaml`.
fn path_for(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".lock");
    file.with_file_name(name)
}

pub(super) fn take(file: &Path, clock: &dyn Clock) -> Result<Lock, Locked> {
    let path = path_for(file);
    let failed = |cause: io::Error| Locked::Failed { cause, lock: path.clone() };
    // The waits grow, since a lock that is still held after a short wait is likely to be held longer.
    let mut waits = BACKOFF.iter();
    loop {
        if let Some(lock) = create(&path).map_err(failed)? {
            return Ok(lock);
        }
        let Some((holder, text)) = look(&path, clock).map_err(failed)? else {
            // It was released at this very moment.
            continue;
        };
        if holder.is_stale() {
            clear(&path, &text, clock).map_err(failed)?;
            continue;
        }
        match waits.next() {
            Some(wait) => clock.wait(*wait),
            None => return Err(Locked::By { holder, lock: path }),
        }
    }
}

/// Creates the lock. Returns `None` if it is taken.
fn create(path: &Path) -> io::Result<Option<Lock>> {
    let text = format!("{HEADING}\n{}\n", Identity::own());
    // The lock is never visible half written: it is created under a temporary name and renamed only if the name is free.
    let folder = path.parent().unwrap_or(Path::new("."));
    let prefix = format!("{}{}-", crate::files::TEMPORARY, Identity::own());
    let mut own = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder)?;
    own.write_all(text.as_bytes())?;
    match own.persist_noclobber(path) {
        Ok(_) => Ok(Some(Lock { path: path.to_path_buf(), text })),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(failed) => Err(failed.error),
    }
}

/// Returns the holder and the content of the lock; `None` if it is gone.
fn look(path: &Path, clock: &dyn Clock) -> io::Result<Option<(Holder, Vec<u8>)>> {
    let read = || -> io::Result<(Holder, Vec<u8>)> {
        let made = fs::symlink_metadata(path)?;
        // A link or a directory is not one of our locks, and is not opened.
        let text = if made.is_file() { fs::read(path)? } else { Vec::new() };
        let age = clock.now().duration_since(made.modified()?).unwrap_or_default();
        Ok((Holder { process: process_in(&text), age }, text))
    };
    match read() {
        Ok(found) => Ok(Some(found)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn process_in(text: &[u8]) -> Option<Identity> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(HEADING)).then(|| lines.next()?.parse().ok())?
}

/// Moves a stale lock aside, inspects it again, and removes it if it is still the same one.
fn clear(path: &Path, text: &[u8], clock: &dyn Clock) -> io::Result<()> {
    let mut aside = path.as_os_str().to_os_string();
    aside.push(".clearing");
    let aside = PathBuf::from(aside);
    match fs::rename(path, &aside) {
        // Another process cleared it first.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    clock.wait(SECOND_LOOK);
    let moved = match fs::read(&aside) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if moved != text {
        // A new lock was taken between the check and the move: it is put back, unless its place was taken since.
        match fs::hard_link(&aside, path) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
            _ => {}
        }
    }
    match fs::remove_file(&aside) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A clock that stands still; `on_wait` is called at every wait.
    struct Still<'a> {
        now: SystemTime,
        waited: RefCell<Vec<Duration>>,
        each: &'a dyn Fn(usize),
    }

    impl Clock for Still<'_> {
        fn now(&self) -> SystemTime {
            self.now
        }

        fn wait(&self, length: Duration) {
            self.waited.borrow_mut().push(length);
            (self.each)(self.waited.borrow().len());
        }
    }

    fn still<'a>(ahead: u64, each: &'a dyn Fn(usize)) -> Still<'a> {
        let now = SystemTime::now() + Duration::from_secs(ahead);
        Still { now, waited: RefCell::default(), each }
    }

    /// A clock that is set to this many seconds after the lock was created.
    fn after<'a>(lock: &Path, seconds: u64, each: &'a dyn Fn(usize)) -> Still<'a> {
        let made = fs::metadata(lock).unwrap().modified().unwrap();
        Still { now: made + Duration::from_secs(seconds), ..still(0, each) }
    }

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sprint-status.yaml");
        let lock = folder.path().join("sprint-status.yaml.lock");
        (folder, file, lock)
    }

    fn dead() -> String {
        format!("{HEADING}\n{}\n", Identity::own().to_string().replacen('@', "@9", 1))
    }

    #[test]
    fn it_says_who_holds_it_and_is_gone_afterwards() {
        let (_folder, file, lock) = place();
        let held = take(&file, &still(0, &|_| ())).unwrap();
        let (holder, _) = look(&lock, &Real).unwrap().unwrap();
        assert_eq!(holder.process, Some(Identity::own()));
        drop(held);
        assert!(!lock.exists());
    }

    #[test]
    fn a_holder_that_lives_is_waited_for_four_times() {
        let (_folder, file, lock) = place();
        let held = take(&file, &still(0, &|_| ())).unwrap();
        let clock = after(&lock, 3_600, &|_| ());
        let Err(Locked::By { holder, .. }) = take(&file, &clock) else { panic!("two have it") };
        assert_eq!(*clock.waited.borrow(), BACKOFF);
        assert!(holder.to_string().contains("has held it for 3600 s"), "{holder}");
        let held = RefCell::new(Some(held));
        let let_go = |times: usize| {
            if times == 2 {
                *held.borrow_mut() = None;
            }
        };
        let clock = still(0, &let_go);
        take(&file, &clock).unwrap();
        assert!(!lock.exists());
    }

    #[test]
    fn a_dead_holder_s_lock_is_cleared_when_it_is_old_enough() {
        let (folder, file, lock) = place();
        fs::write(&lock, dead()).unwrap();
        let young = after(&lock, 29, &|_| ());
        let Err(Locked::By { holder, .. }) = take(&file, &young) else { panic!("cleared too soon") };
        assert!(holder.to_string().ends_with("left it 29 s ago"), "{holder}");
        let clock = after(&lock, 31, &|_| ());
        drop(take(&file, &clock).unwrap());
        assert_eq!(*clock.waited.borrow(), [SECOND_LOOK]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_ours_or_not_provably_dead_is_never_cleared() {
        for text in [String::new(), "1234".into(), format!("{}9", dead().trim_end()), "x\n".repeat(9)] {
            let (_folder, file, lock) = place();
            fs::write(&lock, &text).unwrap();
            let taken = take(&file, &still(86_400, &|_| ()));
            assert!(matches!(taken, Err(Locked::By { .. })), "{text:?}");
            assert_eq!(fs::read_to_string(&lock).unwrap(), text);
        }
        let (folder, file, lock) = place();
        fs::write(folder.path().join("precious"), dead()).unwrap();
        std::os::unix::fs::symlink("precious", &lock).unwrap();
        assert!(matches!(take(&file, &still(86_400, &|_| ())), Err(Locked::By { .. })));
        assert!(folder.path().join("precious").exists());
    }

    #[test]
    fn a_lock_that_was_taken_between_the_look_and_the_move_is_given_back() {
        let (_folder, file, lock) = place();
        let held = take(&file, &still(0, &|_| ())).unwrap();
        clear(&lock, dead().as_bytes(), &still(31, &|_| ())).unwrap();
        assert_eq!(look(&lock, &Real).unwrap().unwrap().0.process, Some(Identity::own()));
        // If its place was taken since, the new holder keeps it.
        clear(&lock, dead().as_bytes(), &still(31, &|_| fs::write(&lock, "theirs").unwrap())).unwrap();
        assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs");
        drop(held);
        assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs", "only one's own lock is taken away");
    }
}
