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

use tribunal_engine::ids::Hash;
use tribunal_json::{Deserialize, Serialize};

use crate::project::atomic_files::write_atomically;

/// Some file systems count time in steps of two seconds.
pub(super) const CLOCK_STEP_NS: i64 = 2_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
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

impl FileStamp {
    pub fn from_metadata(metadata: &Metadata) -> FileStamp {
        let to_nanoseconds =
            |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        FileStamp {
            inode: metadata.ino(),
            size: metadata.size(),
            changed: to_nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            modified: to_nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    pub fn is_same_inode(&self, other: &FileStamp) -> bool {
        self.inode == other.inode
    }

    pub fn byte_size(&self) -> u64 {
        self.size
    }

    /// Whether every change from `moment_ns` on is visible in the time of change.
    pub fn is_older_than(&self, moment_ns: i64) -> bool {
        self.changed < moment_ns
    }

    /// Returns the earlier of both times.
    pub fn earliest_time_ns(&self) -> i64 {
        self.changed.min(self.modified)
    }
}

/// Hashes of the user's files from earlier workspaces.
///
/// Losing them only costs time. Workspaces that are created concurrently overwrite each other's caches; each cache is complete.
pub(super) struct HashCache {
    cache_file: PathBuf,
    /// When the creation of this workspace began, by the file system's clock.
    started_at_ns: i64,
    earlier_hashes: BTreeMap<String, CachedHash>,
    current_hashes: BTreeMap<String, CachedHash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CachedHash {
    #[serde(flatten)]
    stamp: FileStamp,
    #[serde(rename = "h")]
    hash: Hash,
}

impl HashCache {
    /// Loads the hashes of a project.
    pub fn load(project_root: &Path, started_at_ns: i64) -> HashCache {
        let cache_file = project_root.join(".tribunal/work/seen.json");
        // A missing or damaged cache counts as an empty one.
        let earlier_hashes = fs::read(&cache_file).ok().and_then(|cache_json| serde_json::from_slice(&cache_json).ok());
        HashCache {
            cache_file,
            started_at_ns,
            earlier_hashes: earlier_hashes.unwrap_or_default(),
            current_hashes: BTreeMap::new(),
        }
    }

    pub fn find_hash(&self, relative_path: &str, stamp: &FileStamp) -> Option<Hash> {
        self.earlier_hashes
            .get(relative_path)
            .filter(|cached_hash| cached_hash.stamp == *stamp)
            .map(|cached_hash| cached_hash.hash.clone())
    }

    /// Remembers the hash of a file that had settled before the workspace was begun: a later change gives it another time.
    pub fn remember_hash(&mut self, relative_path: &str, stamp: FileStamp, content_hash: &Hash) {
        if stamp.is_older_than(self.started_at_ns.saturating_sub(CLOCK_STEP_NS)) {
            self.current_hashes.insert(relative_path.to_string(), CachedHash { stamp, hash: content_hash.clone() });
        }
    }

    /// Saves the hashes, but only where the project has a `.tribunal` directory.
    pub fn save_if_changed(self) -> io::Result<()> {
        let home_dir = self.cache_file.parent().and_then(Path::parent);
        if self.current_hashes == self.earlier_hashes || !home_dir.is_some_and(Path::is_dir) {
            return Ok(());
        }
        let cache_json = serde_json::to_vec(&self.current_hashes).map_err(io::Error::other)?;
        write_atomically(&self.cache_file, &cache_json)
    }
}
