//! Stamps that tell without reading that a file is unchanged: inode, size, time of its last change.
//!
//! The time of change (`ctime`) is set by the kernel and cannot be set back. It counts in ticks, so a file that changed in the
//! same tick in which it was inspected may have changed again: such a file is read.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_core::ids::Hash;

use crate::files::write_atomically;

/// Some file systems count time in steps of two seconds.
const STEP_NS: i64 = 2_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    #[serde(rename = "i")]
    inode: u64,
    #[serde(rename = "s")]
    size: u64,
    /// In nanoseconds since 1970.
    #[serde(rename = "c")]
    changed: i64,
    #[serde(rename = "m")]
    modified: i64,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Stamp {
        let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
        Stamp {
            inode: meta.ino(),
            size: meta.size(),
            changed: ns(meta.ctime(), meta.ctime_nsec()),
            modified: ns(meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// Whether every change from `moment_ns` on is visible in the time of change.
    pub fn is_older_than(&self, moment: i64) -> bool {
        self.changed < moment
    }

    /// Returns a time at which both times were in the past.
    pub fn moment(&self) -> i64 {
        self.changed.min(self.modified)
    }
}

/// Hashes of the user's files from earlier workspaces.
///
/// Losing them only costs time. Workspaces that are created concurrently overwrite each other's caches; each cache is complete.
pub(super) struct Seen {
    path: PathBuf,
    /// When the creation of this workspace began, by the file system's clock.
    begun: i64,
    before: BTreeMap<String, Entry>,
    now: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    stamp: Stamp,
    #[serde(rename = "h")]
    hash: Hash,
}

impl Seen {
    /// Loads the hashes of a project.
    pub fn of(root: &Path, begun: i64) -> Seen {
        let path = root.join(".tribunal/work/seen.json");
        // A missing or damaged cache counts as an empty one.
        let before = fs::read(&path).ok().and_then(|json| serde_json::from_slice(&json).ok());
        Seen { path, begun, before: before.unwrap_or_default(), now: BTreeMap::new() }
    }

    pub fn hash(&self, path: &str, stamp: &Stamp) -> Option<Hash> {
        self.before.get(path).filter(|entry| entry.stamp == *stamp).map(|entry| entry.hash.clone())
    }

    /// Remembers the hash of a file that had settled before the workspace was begun: a later change gives it another time.
    pub fn keep(&mut self, path: &str, stamp: Stamp, hash: &Hash) {
        if stamp.is_older_than(self.begun.saturating_sub(STEP_NS)) {
            self.now.insert(path.to_string(), Entry { stamp, hash: hash.clone() });
        }
    }

    /// Saves the hashes, but only where the project has a `.tribunal` directory.
    pub fn save(self) -> io::Result<()> {
        let home = self.path.parent().and_then(Path::parent);
        if self.now == self.before || !home.is_some_and(Path::is_dir) {
            return Ok(());
        }
        let json = serde_json::to_vec(&self.now).map_err(io::Error::other)?;
        write_atomically(&self.path, &json)
    }
}
