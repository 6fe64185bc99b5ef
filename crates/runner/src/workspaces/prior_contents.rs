//! What is known of the content of the project's files before an agent begins, so that a stray edit can be told from a touched
//! file, and be undone.
//!
//! A whole copy of the project has every content. Otherwise git has the content of files that are as they were staged, and the
//! others are stored.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::Hash;

use super::{
    TaskWorkspace,
    file_stamps::HashCache,
    project_scan::{EntryKind, ProjectScan, SharedScans},
};
use crate::{git::GitRepository, landing::checkpoints::CheckpointStore};

/// The limits for what is stored of files that only the user's directory has.
const MAX_STORED_BYTES: u64 = 64 << 20;
const MAX_STORED_FILES: usize = 2_000;

/// Where the content of a file before the agent's work can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PriorContent {
    Hash(Hash),
    /// An object of git.
    Blob(String),
    Unknown,
}

/// The files that belong to the project, with what is known of their content.
#[derive(Debug, Default)]
pub(crate) struct PriorContents {
    pub files: BTreeMap<PathBuf, PriorContent>,
}

/// What prior contents are read from.
#[derive(Clone, Copy)]
pub(crate) struct PriorSource<'a> {
    pub project_root: &'a Path,
    pub scan: &'a ProjectScan,
    pub shared_scans: &'a SharedScans,
}

impl PriorContents {
    /// Adds the files of a workspace that was copied from the user's work tree. Returns whether it has all of them.
    pub fn add_copied_files(&mut self, source: PriorSource<'_>, workspace: &TaskWorkspace) -> io::Result<bool> {
        let record = workspace.read_record()?;
        if !record.from_work_tree {
            return Ok(false);
        }
        let hash_cache = HashCache::load(source.project_root, 0);
        for relative_path in record.files.keys() {
            let path = Path::new(relative_path);
            let prior_content = match source.scan.entries.get(path) {
                Some(entry) if entry.kind == EntryKind::File => {
                    // The file may have changed since it was copied, so the hash of the copy says nothing.
                    let cached_hash = hash_cache.find_hash(relative_path, &entry.stamp);
                    cached_hash.or_else(|| source.shared_scans.hash_file(source.project_root, path, &entry.stamp))
                }
                _ => None,
            };
            let prior_content = prior_content.map_or(PriorContent::Unknown, PriorContent::Hash);
            self.files.insert(path.to_path_buf(), prior_content);
        }
        Ok(record.whole)
    }

    /// Adds the files that git lists. Content that git does not have is stored.
    pub fn add_listed_files(&mut self, source: PriorSource<'_>, checkpoints: &CheckpointStore) {
        let mut listed_files = list_files(source.project_root);
        listed_files.retain(|path, _| !self.files.contains_key(path));
        let mut stored_bytes = 0;
        let mut stored_files = 0;
        for (path, prior_content) in &mut listed_files {
            let Some(entry) = source.scan.entries.get(path).filter(|entry| entry.kind == EntryKind::File) else {
                continue;
            };
            let is_within_limits =
                stored_bytes + entry.stamp.byte_size() <= MAX_STORED_BYTES && stored_files < MAX_STORED_FILES;
            if *prior_content != PriorContent::Unknown || !is_within_limits {
                continue;
            }
            stored_bytes += entry.stamp.byte_size();
            stored_files += 1;
            // Most turns of a loop find the same files as the turn before.
            let known_hash = source.shared_scans.find_hash(path, &entry.stamp);
            let known_hash = known_hash.filter(|content_hash| checkpoints.has_bytes(content_hash));
            let stored_hash = known_hash.or_else(|| {
                let bytes = fs::read(source.project_root.join(path)).ok()?;
                let stored_hash = checkpoints.store_bytes(&bytes).ok()?;
                source.shared_scans.remember_hash(source.project_root, path, &entry.stamp, &stored_hash);
                Some(stored_hash)
            });
            if let Some(stored_hash) = stored_hash {
                *prior_content = PriorContent::Hash(stored_hash);
            }
        }
        self.files.append(&mut listed_files);
    }
}

/// Lists what git would track. Files that are not as they were staged have unknown contents. Empty where there is no git.
fn list_files(project_root: &Path) -> BTreeMap<PathBuf, PriorContent> {
    let list_arguments =
        ["ls-files", "-z", "-t", "--stage", "--cached", "--others", "--modified", "--exclude-standard"];
    let listing = GitRepository::open_at(project_root).and_then(|repository| repository.query(list_arguments));
    let mut files = BTreeMap::new();
    for record in listing.unwrap_or_default().split(|byte| *byte == 0) {
        // The forms are `? path` and `H 100644 OBJECT 0<tab>path`; a modified file has a second record, which begins with C.
        let (path_bytes, prior_content) = match (record.strip_prefix(b"? "), record.splitn(2, |byte| *byte == b'\t')) {
            (Some(path_bytes), _) => (path_bytes, PriorContent::Unknown),
            (None, mut parts) => {
                let (Some(head), Some(path_bytes)) = (parts.next(), parts.next()) else { continue };
                let head_text = String::from_utf8_lossy(head);
                let words: Vec<&str> = head_text.split(' ').collect();
                match words.as_slice() {
                    ["H", mode, object_id, "0"] if mode.starts_with("100") => {
                        (path_bytes, PriorContent::Blob((*object_id).to_string()))
                    }
                    _ => (path_bytes, PriorContent::Unknown),
                }
            }
        };
        let path = PathBuf::from(OsStr::from_bytes(path_bytes));
        let known = files.entry(path).or_insert_with(|| prior_content.clone());
        if prior_content == PriorContent::Unknown {
            *known = PriorContent::Unknown;
        }
    }
    files
}
