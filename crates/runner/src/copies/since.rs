//! Finds what has changed in the user's work tree since a workspace was created from it.

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

/// The kernel's clock for files lags behind by up to one tick.
const TICK_NS: i64 = 20_000_000;

/// A file that has changed. A hash is `None` if the file did not exist, or does not exist any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub path: String,
    pub before: Option<Hash>,
    pub after: Option<Hash>,
}

/// The user's work tree as it was when an agent began to work.
#[derive(Debug)]
pub(crate) struct Watch {
    files: BTreeMap<String, Watched>,
    /// Whether the workspace has everything that git lists. It is read early: agents can reach what lies beside a workspace.
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
    /// Starts to watch the files that the workspace was copied from. Changes from before that are not the agent's.
    pub fn watch(&self, root: &Path) -> io::Result<Watch> {
        let seen = Seen::of(root, 0);
        let mut files = BTreeMap::new();
        for (path, copied) in self.seen()? {
            if let Some(stamp) = stamp_now(root, &path) {
                // The file may have changed between the copy and now; the cache then has the newer hash.
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
    /// Finds edits. Only files with a new stamp are read. This takes one git process, and none for a partial workspace.
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
        // A partial workspace does not know all files, so a new one cannot be told from one that was left out.
        if self.files.is_empty() || !self.whole {
            return moved;
        }
        // Where git does not answer, it cannot be said which files are new.
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

/// Returns the stamp of an ordinary file, or `None` if there is none.
fn stamp_now(root: &Path, path: &str) -> Option<Stamp> {
    fs::symlink_metadata(root.join(path)).ok().filter(fs::Metadata::is_file).map(|meta| Stamp::of(&meta))
}

/// Hashes a file. One that cannot be read any more counts as changed, so removing permissions hides nothing.
pub(super) fn hash_now(root: &Path, path: &str) -> Hash {
    files::hash_of(&root.join(path)).unwrap_or_else(|_| Hash::new("unreadable"))
}

/// Whether editors or Tribunal itself leave a file of this name for a moment.
fn is_passing(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let starts = [".#", "#", files::TEMPORARY];
    let ends = ["~", ".swp", ".swo", ".tmp", ".bak", ".part"];
    starts.iter().any(|start| name.starts_with(start))
        || ends.iter().any(|end| name.ends_with(end))
        || matches!(name, "4913" | ".DS_Store")
}

/// Removes the workspaces of a run, except those that are retained.
pub(crate) fn clear(work: &Path) {
    for desk in fs::read_dir(work).into_iter().flatten().flatten() {
        let inside = fs::read_dir(desk.path()).into_iter().flatten().flatten();
        let attempts: Vec<_> = inside.map(|attempt| attempt.path()).collect();
        // A task without a retained attempt goes as a whole, with the files beside its attempts.
        if !attempts.iter().any(|path| mark(path).exists()) {
            let _ = Copy::at(desk.path()).remove();
            continue;
        }
        for attempt in attempts.into_iter().filter(|path| path.is_dir() && !mark(path).exists()) {
            let _ = Copy::at(attempt).remove();
        }
    }
}

/// Keeps a workspace until [`release_workspace`]: its patch waits for the user's approval.
pub(crate) fn retain(copy: &Path) -> io::Result<()> {
    fs::write(mark(copy), "")
}

pub(crate) fn release(copy: &Path) {
    let _ = fs::remove_file(mark(copy));
}

/// Returns the path of the marker beside the workspace: `3.kept`.
fn mark(copy: &Path) -> PathBuf {
    copy.with_extension("kept")
}
