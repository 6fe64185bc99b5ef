//! What has changed in the person's work tree since a copy was made of it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_core::ids::Hash;

use crate::files;

use super::{
    Copy, git, is_never_copied,
    stamps::{Seen, Stamp},
};

/// The kernel's clock for files lags behind by a tick.
const TICK_NS: i64 = 20_000_000;

/// A file that is not as it was. None: it was not there, or is not there any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub path: String,
    pub before: Option<Hash>,
    pub after: Option<Hash>,
}

/// The person's work tree as it was when somebody began to work.
#[derive(Debug)]
pub(crate) struct Watch {
    files: BTreeMap<String, Watched>,
    /// Whether the copy has all that git lists. Known from the start: what lies beside a copy, an agent can reach.
    whole: bool,
    /// In nanoseconds since 1970.
    begun: i64,
}

#[derive(Debug)]
struct Watched {
    stamp: Stamp,
    hash: Hash,
}

impl Copy {
    /// Begins to watch the files that the copy was made from. What changed before is nobody's at work.
    pub fn watch(&self, root: &Path) -> io::Result<Watch> {
        let seen = Seen::of(root, 0);
        let mut files = BTreeMap::new();
        for (path, copied) in self.seen()? {
            if let Some(stamp) = stamp_now(root, &path) {
                let hash = seen.hash(&path, &stamp).unwrap_or(copied);
                files.insert(path, Watched { stamp, hash });
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let whole = self.record()?.whole;
        Ok(Watch {
            files,
            whole,
            begun: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(TICK_NS),
        })
    }
}

impl Watch {
    /// Reads only what has another stamp than before; one process, and none where the copy has only a part of the project.
    pub fn moved(&self, root: &Path) -> Vec<Moved> {
        let mut moved = Vec::new();
        for (path, was) in &self.files {
            let stamp = stamp_now(root, path);
            if stamp == Some(was.stamp) {
                continue;
            }
            let after = stamp.map(|_| hash_now(root, path));
            if after.as_ref() != Some(&was.hash) {
                moved.push(Moved { path: path.clone(), before: Some(was.hash.clone()), after });
            }
        }
        if self.files.is_empty() || !self.whole {
            return moved;
        }
        // Where git does not answer, nobody can say what is new.
        let listed = git::list(root).unwrap_or_default();
        for listed in git::listed(&listed).filter(|listed| !listed.tracked) {
            let Ok(path) = std::str::from_utf8(listed.path) else { continue };
            if self.files.contains_key(path) || is_never_copied(path) || is_passing(path) {
                continue;
            }
            if stamp_now(root, path).is_some_and(|stamp| !stamp.is_older_than(self.begun)) {
                moved.push(Moved { path: path.to_string(), before: None, after: Some(hash_now(root, path)) });
            }
        }
        moved
    }
}

/// None: there is no ordinary file.
fn stamp_now(root: &Path, path: &str) -> Option<Stamp> {
    fs::symlink_metadata(root.join(path)).ok().filter(fs::Metadata::is_file).map(|meta| Stamp::of(&meta))
}

/// What cannot be read any more is not as it was: nothing can be hidden so.
pub(super) fn hash_now(root: &Path, path: &str) -> Hash {
    files::hash_of(&root.join(path)).unwrap_or_else(|_| Hash::new("unreadable"))
}

/// What editors and Tribunal itself leave for a moment.
fn is_passing(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let starts = [".#", "#", files::TEMPORARY];
    let ends = ["~", ".swp", ".swo", ".tmp", ".bak", ".part"];
    starts.iter().any(|start| name.starts_with(start))
        || ends.iter().any(|end| name.ends_with(end))
        || matches!(name, "4913" | ".DS_Store")
}

/// Removes the copies of a run that nobody waits for.
pub(crate) fn clear(work: &Path) {
    for desk in fs::read_dir(work).into_iter().flatten().flatten() {
        let inside = fs::read_dir(desk.path()).into_iter().flatten().flatten();
        let attempts: Vec<_> = inside.map(|attempt| attempt.path()).collect();
        if !attempts.iter().any(|path| mark(path).exists()) {
            let _ = Copy::at(desk.path()).remove();
            continue;
        }
        for attempt in attempts.into_iter().filter(|path| path.is_dir() && !mark(path).exists()) {
            let _ = Copy::at(attempt).remove();
        }
    }
}

/// Keeps a copy until [`release`]: its patch waits for a person's yes.
pub(crate) fn retain(copy: &Path) -> io::Result<()> {
    fs::write(mark(copy), "")
}

pub(crate) fn release(copy: &Path) {
    let _ = fs::remove_file(mark(copy));
}

/// Beside the copy: `3.kept`.
fn mark(copy: &Path) -> PathBuf {
    copy.with_extension("kept")
}
