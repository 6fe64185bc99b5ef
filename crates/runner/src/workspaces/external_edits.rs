//! Finds what has changed in the user's work tree while an agent worked, and decides which workspaces are kept.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_core::engine::ids::Hash;

use crate::project::atomic_files;

use super::{
    TaskWorkspace,
    file_stamps::{FileStamp, HashCache},
    git_queries, is_never_copied,
};

/// The kernel's clock for files lags behind by up to one tick.
const KERNEL_TICK_NS: i64 = 20_000_000;

/// A file that has changed. A hash is `None` if the file did not exist, or does not exist any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExternalEdit {
    pub relative_path: String,
    pub hash_before: Option<Hash>,
    pub hash_after: Option<Hash>,
}

/// The user's work tree as it was when an agent began to work.
#[derive(Debug)]
pub(crate) struct WorkTreeWatch {
    watched_files: BTreeMap<String, WatchedFile>,
    /// Whether the workspace has everything that git lists. It is read early: agents can reach what lies beside a workspace.
    is_complete: bool,
    /// In nanoseconds since 1970.
    started_at_ns: i64,
}

#[derive(Debug)]
struct WatchedFile {
    stamp: FileStamp,
    hash: Hash,
}

impl TaskWorkspace {
    /// Starts to watch the files that the workspace was copied from. Changes from before that are not the agent's.
    pub fn watch_work_tree(&self, project_root: &Path) -> io::Result<WorkTreeWatch> {
        let hash_cache = HashCache::load(project_root, 0);
        let mut watched_files = BTreeMap::new();
        for (relative_path, copied_hash) in self.work_tree_hashes()? {
            if let Some(stamp) = current_stamp(project_root, &relative_path) {
                // The file may have changed between the copy and now; the cache may then have the newer hash.
                let content_hash = hash_cache.find_hash(&relative_path, &stamp).unwrap_or(copied_hash);
                watched_files.insert(relative_path, WatchedFile { stamp, hash: content_hash });
            }
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_complete = self.read_record()?.whole;
        Ok(WorkTreeWatch {
            watched_files,
            is_complete,
            started_at_ns: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX).saturating_sub(KERNEL_TICK_NS),
        })
    }
}

impl WorkTreeWatch {
    /// Finds edits. Only files with a new stamp are read. This takes one git process, and none for a partial workspace.
    pub fn find_external_edits(&self, project_root: &Path) -> Vec<ExternalEdit> {
        let mut external_edits = Vec::new();
        for (relative_path, watched_file) in &self.watched_files {
            let stamp = current_stamp(project_root, relative_path);
            if stamp == Some(watched_file.stamp) {
                continue;
            }
            let hash_after = stamp.map(|_| current_hash(project_root, relative_path));
            if hash_after.as_ref() != Some(&watched_file.hash) {
                external_edits.push(ExternalEdit {
                    relative_path: relative_path.clone(),
                    hash_before: Some(watched_file.hash.clone()),
                    hash_after,
                });
            }
        }
        // A partial workspace does not know all files, so a new one cannot be told from one that was left out.
        if self.watched_files.is_empty() || !self.is_complete {
            return external_edits;
        }
        // Where git does not answer, it cannot be said which files are new.
        let ls_files_output = git_queries::list_work_tree(project_root).unwrap_or_default();
        for listed_file in git_queries::parse_ls_files(&ls_files_output).filter(|listed_file| !listed_file.is_tracked) {
            let Ok(relative_path) = std::str::from_utf8(listed_file.path_bytes) else { continue };
            if self.watched_files.contains_key(relative_path)
                || is_never_copied(relative_path)
                || is_transient_name(relative_path)
            {
                continue;
            }
            if current_stamp(project_root, relative_path).is_some_and(|stamp| !stamp.is_older_than(self.started_at_ns))
            {
                external_edits.push(ExternalEdit {
                    relative_path: relative_path.to_string(),
                    hash_before: None,
                    hash_after: Some(current_hash(project_root, relative_path)),
                });
            }
        }
        external_edits
    }
}

/// Returns the stamp of an ordinary file, or `None` if there is none.
fn current_stamp(project_root: &Path, relative_path: &str) -> Option<FileStamp> {
    fs::symlink_metadata(project_root.join(relative_path))
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|metadata| FileStamp::from_metadata(&metadata))
}

/// Hashes a file. One that cannot be read any more counts as changed, so removing permissions hides nothing.
pub(super) fn current_hash(project_root: &Path, relative_path: &str) -> Hash {
    atomic_files::hash_file(&project_root.join(relative_path)).unwrap_or_else(|_| Hash::new("unreadable"))
}

/// Whether editors or Tribunal itself leave a file of this name for a moment.
fn is_transient_name(relative_path: &str) -> bool {
    let file_name = relative_path.rsplit('/').next().unwrap_or(relative_path);
    let transient_prefixes = [".#", "#", atomic_files::TEMPORARY_PREFIX];
    let transient_suffixes = ["~", ".swp", ".swo", ".tmp", ".bak", ".part"];
    transient_prefixes.iter().any(|prefix| file_name.starts_with(prefix))
        || transient_suffixes.iter().any(|suffix| file_name.ends_with(suffix))
        || matches!(file_name, "4913" | ".DS_Store")
}

/// Removes the workspaces of a run, except these. Which ones are kept follows from the journal: an agent could write a mark.
pub(crate) fn clear_workspaces(work_dir: &Path, retained_workspaces: &[PathBuf]) {
    for task_dir in fs::read_dir(work_dir).into_iter().flatten().flatten() {
        let dir_entries = fs::read_dir(task_dir.path()).into_iter().flatten().flatten();
        let attempts: Vec<_> = dir_entries.map(|dir_entry| dir_entry.path()).collect();
        // A task without a retained attempt goes as a whole, with the files beside its attempts.
        if !attempts.iter().any(|attempt_path| retained_workspaces.contains(attempt_path)) {
            let _ = TaskWorkspace::from_directory(task_dir.path()).remove();
            continue;
        }
        for attempt_path in attempts
            .into_iter()
            .filter(|attempt_path| attempt_path.is_dir() && !retained_workspaces.contains(attempt_path))
        {
            let _ = TaskWorkspace::from_directory(attempt_path).remove();
        }
    }
}
