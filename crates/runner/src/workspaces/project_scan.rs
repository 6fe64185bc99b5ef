//! Scans the project's directory, to find out what changed while an agent worked.
//!
//! Nothing here asks git, which an agent can tell what to ignore: every entry counts, under any name. Only metadata is
//! read. Agents that work side by side share their scans and the hashes of what has changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fs::{self, Metadata},
    io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tribunal_engine::ids::Hash;

use super::file_stamps::{CLOCK_STEP_NS, FileStamp};
use crate::project::atomic_files;

/// The most entries that are watched. What lies deepest is left out first.
const MAX_ENTRIES: usize = 300_000;
/// The most hashes that are remembered; more are calculated again.
const MAX_HASHES: usize = 50_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Link { target: PathBuf },
    Directory,
    Special(SpecialKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpecialKind {
    Fifo,
    Socket,
    Device,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScannedEntry {
    pub kind: EntryKind,
    pub stamp: FileStamp,
    /// The permission bits.
    pub mode: u32,
}

impl ScannedEntry {
    /// Reads what is at a path; `None` if there is nothing.
    pub fn read_at(path: &Path) -> Option<ScannedEntry> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(ScannedEntry::from_metadata(path, &metadata))
    }

    fn from_metadata(path: &Path, metadata: &Metadata) -> ScannedEntry {
        let file_type = metadata.file_type();
        let kind = match () {
            () if file_type.is_file() => EntryKind::File,
            () if file_type.is_dir() => EntryKind::Directory,
            () if file_type.is_symlink() => EntryKind::Link { target: fs::read_link(path).unwrap_or_default() },
            () if file_type.is_fifo() => EntryKind::Special(SpecialKind::Fifo),
            () if file_type.is_socket() => EntryKind::Special(SpecialKind::Socket),
            () => EntryKind::Special(SpecialKind::Device),
        };
        let mode = metadata.permissions().mode() & 0o7777;
        ScannedEntry { kind, stamp: FileStamp::from_metadata(metadata), mode }
    }

    /// Whether the entry may differ from an earlier one. Files have to be read to know.
    fn may_differ_from(&self, earlier: &ScannedEntry) -> bool {
        match (&earlier.kind, &self.kind) {
            (EntryKind::File, EntryKind::File) => self != earlier,
            // The times of a directory change with every file in it.
            (EntryKind::Directory, EntryKind::Directory) => self.mode != earlier.mode,
            // What is written into a FIFO changes its times.
            (EntryKind::Special(old_kind), EntryKind::Special(new_kind)) => {
                old_kind != new_kind || !self.stamp.is_same_inode(&earlier.stamp)
            }
            (old_kind, new_kind) => old_kind != new_kind,
        }
    }
}

/// Everything in the project at one moment, by its path relative to the root.
#[derive(Debug, Default)]
pub(crate) struct ProjectScan {
    pub entries: BTreeMap<PathBuf, ScannedEntry>,
    /// Directories that could not be read.
    pub unreadable: BTreeSet<PathBuf>,
    /// Directories that were left out because there are too many entries.
    pub unwatched: BTreeSet<PathBuf>,
}

/// A difference between two scans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryChange {
    pub path: PathBuf,
    pub before: Option<ScannedEntry>,
    pub after: Option<ScannedEntry>,
}

impl ProjectScan {
    /// Scans a project without the excluded paths and without `skipped`, which an earlier scan left out.
    pub fn new(project_root: &Path, excluded: &HashSet<PathBuf>, skipped: &BTreeSet<PathBuf>) -> ProjectScan {
        ProjectScan::within_limit(project_root, excluded, skipped, MAX_ENTRIES)
    }

    pub(super) fn within_limit(
        project_root: &Path,
        excluded: &HashSet<PathBuf>,
        skipped: &BTreeSet<PathBuf>,
        max_entries: usize,
    ) -> ProjectScan {
        let mut scan = ProjectScan { unwatched: skipped.clone(), ..ProjectScan::default() };
        // Breadth first: what is left out lies deep.
        let mut directories = VecDeque::from([PathBuf::new()]);
        while let Some(directory) = directories.pop_front() {
            if skipped.contains(&directory) {
                continue;
            }
            // A directory is watched as a whole or not at all, or what was left out would look like a change.
            let Some(room) = max_entries.checked_sub(scan.entries.len()).filter(|room| *room > 0) else {
                scan.unwatched.insert(directory);
                continue;
            };
            match read_directory(project_root, &directory, excluded, room) {
                Ok(Some(found_entries)) => {
                    let subdirectories = found_entries.iter().filter(|(_, entry)| entry.kind == EntryKind::Directory);
                    directories.extend(subdirectories.map(|(path, _)| path.clone()));
                    scan.entries.extend(found_entries);
                }
                Ok(None) => drop(scan.unwatched.insert(directory)),
                Err(_) => drop(scan.unreadable.insert(directory)),
            }
        }
        scan
    }

    /// Lists what differs between an earlier scan and this one. A directory counts only for its permissions: what is in it
    /// is listed itself.
    pub fn list_changes(&self, earlier: &ProjectScan) -> Vec<EntryChange> {
        let mut changes = Vec::new();
        let is_compared = |path: &Path| {
            let is_blind = |directory: &Path| {
                [&self.unreadable, &self.unwatched, &earlier.unreadable, &earlier.unwatched]
                    .iter()
                    .any(|directories| directories.contains(directory))
            };
            !path.ancestors().skip(1).any(is_blind)
        };
        for (path, before) in &earlier.entries {
            let after = self.entries.get(path);
            let is_change = match after {
                Some(after) => after.may_differ_from(before),
                None => before.kind != EntryKind::Directory,
            };
            if is_change && is_compared(path) {
                changes.push(EntryChange { path: path.clone(), before: Some(before.clone()), after: after.cloned() });
            }
        }
        for (path, after) in &self.entries {
            // An empty directory does no harm; one that cannot be read may have anything in it.
            let counts = after.kind != EntryKind::Directory || self.unreadable.contains(path);
            if counts && !earlier.entries.contains_key(path) && is_compared(path) {
                changes.push(EntryChange { path: path.clone(), before: None, after: Some(after.clone()) });
            }
        }
        changes
    }
}

/// Reads the entries of a directory; `None` if there are more than `max_entries`.
fn read_directory(
    project_root: &Path,
    directory: &Path,
    excluded: &HashSet<PathBuf>,
    max_entries: usize,
) -> io::Result<Option<Vec<(PathBuf, ScannedEntry)>>> {
    let mut found_entries = Vec::new();
    for dir_entry in fs::read_dir(project_root.join(directory))? {
        let dir_entry = dir_entry?;
        let relative_path = directory.join(dir_entry.file_name());
        if excluded.contains(&relative_path) {
            continue;
        }
        if found_entries.len() >= max_entries {
            return Ok(None);
        }
        // What is gone by now was there for a moment only.
        let Ok(metadata) = dir_entry.metadata() else { continue };
        let entry = ScannedEntry::from_metadata(&dir_entry.path(), &metadata);
        found_entries.push((relative_path, entry));
    }
    Ok(Some(found_entries))
}

/// The scans and hashes that the agents of a run share.
#[derive(Debug, Default)]
pub(crate) struct SharedScans {
    last_scan: Mutex<LastScan>,
    hashes: Mutex<HashMap<PathBuf, StampedHash>>,
}

#[derive(Debug, Default)]
struct LastScan {
    scan: Option<(Instant, Arc<ProjectScan>)>,
    /// What was left out once is left out of all later scans, so that they can be compared.
    unwatched: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct StampedHash {
    stamp: FileStamp,
    hash: Hash,
}

impl SharedScans {
    /// Returns a scan that began after this call. Of several agents that ask at the same time, most share one.
    pub fn scan_project(&self, project_root: &Path, excluded: &HashSet<PathBuf>) -> Arc<ProjectScan> {
        let requested_at = Instant::now();
        let mut last_scan = self.last_scan.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, scan)) = last_scan.scan.as_ref().filter(|(began_at, _)| *began_at >= requested_at) {
            return scan.clone();
        }
        let began_at = Instant::now();
        let scan = Arc::new(ProjectScan::new(project_root, excluded, &last_scan.unwatched));
        last_scan.unwatched.clone_from(&scan.unwatched);
        last_scan.scan = Some((began_at, scan.clone()));
        scan
    }

    /// Hashes a file of the project, unless it was hashed before with the same stamp. Returns `None` if it cannot be read.
    pub fn hash_file(&self, project_root: &Path, relative_path: &Path, stamp: &FileStamp) -> Option<Hash> {
        if let Some(known_hash) = self.find_hash(relative_path, stamp) {
            return Some(known_hash);
        }
        let hash = atomic_files::hash_file(&project_root.join(relative_path)).ok()?;
        self.remember_hash(project_root, relative_path, stamp, &hash);
        Some(hash)
    }

    pub fn find_hash(&self, relative_path: &Path, stamp: &FileStamp) -> Option<Hash> {
        let hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.get(relative_path).filter(|known| known.stamp == *stamp).map(|known| known.hash.clone())
    }

    /// Remembers the hash of what was read after the file had this stamp, if it still has it.
    pub fn remember_hash(&self, project_root: &Path, relative_path: &Path, stamp: &FileStamp, hash: &Hash) {
        // A file that changed a moment ago may change again without a new time.
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let settled_ns = i64::try_from(now_ns).unwrap_or(i64::MAX).saturating_sub(CLOCK_STEP_NS);
        let current_stamp = ScannedEntry::read_at(&project_root.join(relative_path)).map(|entry| entry.stamp);
        if !stamp.is_older_than(settled_ns) || current_stamp != Some(*stamp) {
            return;
        }
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() >= MAX_HASHES {
            hashes.clear();
        }
        hashes.insert(relative_path.to_path_buf(), StampedHash { stamp: *stamp, hash: hash.clone() });
    }
}

/// Changes as they are shown to the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeGroup {
    Single(EntryChange),
    /// Many changes in a directory that has none of the project's known files: build output, dependencies, a planted directory.
    Directory {
        path: PathBuf,
        count: usize,
        is_new: bool,
    },
}

/// The most changes in a directory without known files that are shown one by one.
const MAX_SINGLE_CHANGES: usize = 5;

/// Groups changes outside of the project's known files by directory. `known_paths` are the files that belong to the project.
pub(crate) fn group_changes<'a>(
    changes: Vec<EntryChange>,
    earlier: &ProjectScan,
    known_paths: impl Iterator<Item = &'a Path>,
) -> Vec<ChangeGroup> {
    let known_dirs: HashSet<&Path> = known_paths.flat_map(|path| path.ancestors().skip(1)).collect();
    let mut groups = Vec::new();
    let mut by_directory: BTreeMap<PathBuf, Vec<EntryChange>> = BTreeMap::new();
    for change in changes {
        // The outermost directory without known files stands for everything in it.
        let outer_dir = change.path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
        match outer_dir.filter(|dir| !known_dirs.contains(dir)).last().map(Path::to_path_buf) {
            Some(directory) => by_directory.entry(directory).or_default().push(change),
            None => groups.push(ChangeGroup::Single(change)),
        }
    }
    for (outer_dir, changes) in by_directory {
        if changes.len() <= MAX_SINGLE_CHANGES {
            groups.extend(changes.into_iter().map(ChangeGroup::Single));
            continue;
        }
        let common_dir = find_common_dir(&changes);
        let dirs_outward = common_dir.ancestors().take_while(|directory| directory.starts_with(&outer_dir));
        let new_dir = dirs_outward.filter(|directory| !earlier.entries.contains_key(*directory)).last();
        let path = new_dir.unwrap_or(&common_dir).to_path_buf();
        groups.push(ChangeGroup::Directory { path, count: changes.len(), is_new: new_dir.is_some() });
    }
    groups
}

/// Returns the innermost directory that has all changes in it.
fn find_common_dir(changes: &[EntryChange]) -> PathBuf {
    let mut parent_dirs = changes.iter().filter_map(|change| change.path.parent());
    let first_dir = parent_dirs.next().unwrap_or(Path::new(""));
    let shared_part = |common_dir: &Path, directory: &Path| -> PathBuf {
        let both = common_dir.components().zip(directory.components());
        both.take_while(|(left, right)| left == right).map(|(left, _)| left).collect()
    };
    parent_dirs.fold(first_dir.to_path_buf(), |common_dir, directory| shared_part(&common_dir, directory))
}
