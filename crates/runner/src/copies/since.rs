//! What has changed in the person's work tree since a copy was made of it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::Path,
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
        let seen = Seen::open(root.join(".tribunal/work/seen.json"), 0);
        let mut files = BTreeMap::new();
        for (path, copied) in self.seen()? {
            if let Some(stamp) = stamp_now(root, &path) {
                let hash = seen.hash(&path, &stamp).unwrap_or(copied);
                files.insert(path, Watched { stamp, hash });
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Watch { files, begun: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_sub(TICK_NS) })
    }

    /// Reads only what has another stamp than before; one process, and none where the copy has only a part of the project.
    pub fn moved_since(&self, root: &Path, watch: &Watch) -> io::Result<Vec<Moved>> {
        let mut moved = Vec::new();
        for (path, was) in &watch.files {
            let stamp = stamp_now(root, path);
            if stamp == Some(was.stamp) {
                continue;
            }
            let after = if stamp.is_some() { hash_now(root, path)? } else { None };
            if after.as_ref() != Some(&was.hash) {
                moved.push(Moved { path: path.clone(), before: Some(was.hash.clone()), after });
            }
        }
        if !watch.files.is_empty() && self.record()?.whole {
            let listed = git::list(root).unwrap_or_default();
            for listed in git::listed(&listed).filter(|listed| !listed.tracked) {
                let Ok(path) = std::str::from_utf8(listed.path) else { continue };
                if watch.files.contains_key(path) || is_never_copied(path) || is_passing(path) {
                    continue;
                }
                let is_new = stamp_now(root, path).is_some_and(|stamp| !stamp.is_older_than(watch.begun));
                if let (true, Some(after)) = (is_new, hash_now(root, path)?) {
                    moved.push(Moved { path: path.to_string(), before: None, after: Some(after) });
                }
            }
        }
        Ok(moved)
    }
}

/// None: there is no ordinary file.
fn stamp_now(root: &Path, path: &str) -> Option<Stamp> {
    fs::symlink_metadata(root.join(path)).ok().filter(fs::Metadata::is_file).map(|meta| Stamp::of(&meta))
}

fn hash_now(root: &Path, path: &str) -> io::Result<Option<Hash>> {
    match files::hash_of(&root.join(path)) {
        Ok(hash) => Ok(Some(hash)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// What editors leave for a moment.
fn is_passing(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ends = ["~", ".swp", ".swo", ".tmp", ".bak", ".part"];
    name.starts_with('.')
        || name.starts_with('#')
        || ends.iter().any(|end| name.ends_with(end))
        || name == "4913"
}

/// Removes the desks of a run that nobody waits for.
pub(crate) fn clear(work: &Path) {
    for desk in fs::read_dir(work).into_iter().flatten().flatten() {
        if !desk.path().join(KEPT).exists() {
            let _ = Copy::at(desk.path()).remove();
        }
    }
}

/// Keeps a desk until [`release`]: its patch waits for a person's yes.
pub(crate) fn retain(desk: &Path) -> io::Result<()> {
    fs::create_dir_all(desk)?;
    fs::write(desk.join(KEPT), "")
}

pub(crate) fn release(desk: &Path) {
    let _ = fs::remove_file(desk.join(KEPT));
}

/// Marks a desk that is kept.
const KEPT: &str = "kept.mark";
