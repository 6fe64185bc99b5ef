//! Task workspaces: agents work in these private copies and never in the user's tree.
//!
//! A workspace holds the subject and its context: what git would track (or every ordinary file, where there is no git), up to
//! a limit, otherwise the subject's own directories; or a commit exactly as git stored it. Files have the same bytes as the
//! user's. Symbolic links are copied if they stay inside; names that are not UTF-8 are left out, and every omission is reported.
//! A workspace has its own git where that is simple ([`workspace_git`]). A list of content hashes is kept beside it, so that
//! every change is known afterwards, regardless of what an agent reports.
//!
//! [`listing`] (the work tree) and [`stored_tree`] (a commit) find out what belongs into a workspace, and [`copier`] copies it.
//! [`frozen_copies`] copies a workspace that was frozen for several readers.
//! This module compares and restores. Landing a change is up to `effects::land`.

mod copier;
pub(crate) mod development;
mod file_stamps;
mod frozen_copies;
mod git_queries;
mod listing;
mod omissions;
mod prior_contents;
mod project_scan;
mod retention;
mod stored_tree;
mod workspace_git;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata},
    io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use tribunal_agents::clients;
use tribunal_engine::ids::Hash;
use tribunal_json::{Deserialize, Serialize};

use crate::{
    file_limits::TOOL_DIRECTORIES,
    project::{
        atomic_files::{self, write_atomically},
        subject::is_plain_path,
    },
};
use copier::WorkspaceCopier;
use file_stamps::FileStamp;
pub(crate) use git_queries::{find_blob_ids, read_objects as contents};
use listing::CopyLimits;
pub(crate) use prior_contents::{PriorContent, PriorContents, PriorSource};
pub(crate) use project_scan::{
    ChangeGroup, EntryChange, EntryKind, ProjectScan, ScannedEntry, SharedScans, group_changes,
};
pub(crate) use retention::clear_workspaces;

/// The limits for what is copied for every task.
const COPY_LIMITS: CopyLimits = CopyLimits { files: 20_000, bytes: 512 << 20 };

/// Files that several agent clients read.
const SHARED_AGENT_FILES: [&str; 4] = [".mcp.json", "AGENTS.md", "_bmad", ".bmad-core"];

/// Lists files that agent clients need and that are often ignored by git.
pub(crate) fn agent_file_names() -> impl Iterator<Item = &'static str> {
    clients::instruction_files().chain(SHARED_AGENT_FILES)
}

/// What a workspace is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkspaceSource<'a> {
    pub project_root: &'a Path,
    /// The subject's files, relative to the root. They are always copied, and their original texts are kept. A file may be
    /// missing: a change may have deleted it.
    pub subject_files: &'a [String],
    /// A commit or tree of git, copied exactly as stored; `None` stands for the work tree as it is.
    pub stored_tree: Option<&'a str>,
    /// Ignored files and directories that agents need, relative to the root. Missing ones are fine.
    pub seed_paths: &'a [String],
}

/// The result of creating a workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceCreation {
    /// What was left out of the context and why, in a line each.
    pub remarks: Vec<String>,
}

/// A workspace on disk.
#[derive(Clone, Debug)]
pub(crate) struct TaskWorkspace {
    directory: PathBuf,
}

/// A copied file or link, as it was when the workspace was created.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CopiedFile {
    #[serde(flatten)]
    stamp: FileStamp,
    hash: Hash,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    link: bool,
}

/// Everything that was copied.
#[derive(Serialize, Deserialize)]
struct WorkspaceRecord {
    files: BTreeMap<String, CopiedFile>,
    /// Whether it was copied from the user's work tree.
    from_work_tree: bool,
    /// Whether it has everything that git lists.
    whole: bool,
}

/// A file of the subject, as it was when the workspace was created.
#[derive(Serialize, Deserialize)]
enum SubjectBase {
    Absent,
    /// Its bytes are in the file of this number.
    File {
        number: usize,
        kept: CopiedFile,
    },
    Link {
        target: String,
        kept: CopiedFile,
    },
}

impl SubjectBase {
    fn copied_file(&self) -> Option<&CopiedFile> {
        match self {
            SubjectBase::Absent => None,
            SubjectBase::File { kept: copied_file, .. } | SubjectBase::Link { kept: copied_file, .. } => {
                Some(copied_file)
            }
        }
    }
}

impl TaskWorkspace {
    pub fn from_directory(directory: PathBuf) -> TaskWorkspace {
        TaskWorkspace { directory }
    }

    pub fn tree_dir(&self) -> PathBuf {
        self.directory.join("tree")
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn manifest_path(&self) -> PathBuf {
        self.directory.join("manifest.json")
    }

    fn base_file_path(&self, file_name: &str) -> PathBuf {
        self.directory.join("base").join(file_name)
    }

    /// Whether the workspace is complete. One without its list was being created when a process crashed; it counts as missing.
    pub fn is_complete(&self) -> bool {
        self.manifest_path().is_file()
    }

    /// Copies the subject and its context.
    pub fn create(&self, source: &WorkspaceSource<'_>) -> io::Result<WorkspaceCreation> {
        self.create_within(source, COPY_LIMITS)
    }

    fn create_within(&self, source: &WorkspaceSource<'_>, limits: CopyLimits) -> io::Result<WorkspaceCreation> {
        // The paths may come from a journal of another origin, so they are checked before anything is removed or written.
        for subject_file in source.subject_files {
            if subject_file.is_empty() || !is_plain_path(subject_file) || is_never_copied(subject_file) {
                return Err(io::Error::other(format!("{subject_file} is not a file of the project")));
            }
        }
        self.remove()?;
        let tree_dir = self.tree_dir();
        fs::create_dir_all(&tree_dir)?;
        let mut copier = WorkspaceCopier::new(source, &tree_dir)?;
        match source.stored_tree {
            None => copier.copy_work_tree(limits)?,
            Some(tree_name) => copier.copy_stored_tree(tree_name, limits)?,
        }
        let WorkspaceCopier { hash_cache, remarks, copied_files, is_complete, .. } = copier;
        self.save_subject_files(source.subject_files, &copied_files)?;
        let from_work_tree = source.stored_tree.is_none();
        if from_work_tree {
            // The cache only saves time; everything is correct without it.
            let _ = hash_cache.save_if_changed();
        }
        let record_json =
            serde_json::to_vec(&WorkspaceRecord { files: copied_files, from_work_tree, whole: is_complete })
                .map_err(io::Error::other)?;
        // The list is written last: its presence marks the workspace as complete.
        write_atomically(&self.manifest_path(), &record_json)?;
        Ok(WorkspaceCreation { remarks: remarks.into_lines() })
    }

    /// Removes the workspace's git. Where an agent's edits are to land, a `git stash` or `git reset` in the workspace would land
    /// as well and undo what the user has not committed.
    pub fn remove_git(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.tree_dir().join(".git")) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    /// Saves the subject's files beside the workspace.
    fn save_subject_files(
        &self,
        subject_files: &[String],
        copied_files: &BTreeMap<String, CopiedFile>,
    ) -> io::Result<()> {
        fs::create_dir_all(self.directory.join("base"))?;
        let mut bases = BTreeMap::new();
        for (base_number, relative_path) in subject_files.iter().enumerate() {
            let tree_path = self.tree_dir().join(relative_path);
            let subject_base = match copied_files.get(relative_path).cloned() {
                None => SubjectBase::Absent,
                Some(copied_file) if copied_file.link => {
                    let target = fs::read_link(tree_path)?.to_string_lossy().into_owned();
                    SubjectBase::Link { target, kept: copied_file }
                }
                Some(copied_file) => {
                    let base_file = self.base_file_path(&base_number.to_string());
                    fs::copy(&tree_path, &base_file)?;
                    workspace_git::copy_modification_time(&fs::metadata(&tree_path)?, &base_file)?;
                    SubjectBase::File { number: base_number, kept: copied_file }
                }
            };
            bases.insert(relative_path.clone(), subject_base);
        }
        fs::write(self.base_file_path("names.json"), serde_json::to_vec(&bases).map_err(io::Error::other)?)
    }

    fn read_bases(&self) -> io::Result<BTreeMap<String, SubjectBase>> {
        serde_json::from_slice(&fs::read(self.base_file_path("names.json"))?).map_err(io::Error::other)
    }

    fn read_record(&self) -> io::Result<WorkspaceRecord> {
        serde_json::from_slice(&fs::read(self.manifest_path())?).map_err(io::Error::other)
    }

    /// Returns when the workspace was completed, by the file system's clock: agents can only have worked after that.
    fn completed_at(&self) -> io::Result<i64> {
        Ok(FileStamp::from_metadata(&fs::metadata(self.manifest_path())?).earliest_time_ns())
    }

    /// Restores every file of the subject that was changed, removed or added.
    pub fn restore_subject(&self) -> io::Result<()> {
        let completed_at = self.completed_at()?;
        for (relative_path, subject_base) in &self.read_bases()? {
            let copied_file = subject_base.copied_file();
            if self.hash_if_present(relative_path, copied_file, completed_at)?
                != copied_file.map(|original| original.hash.clone())
            {
                self.restore_file(relative_path, subject_base)?;
            }
        }
        Ok(())
    }

    fn restore_file(&self, relative_path: &str, subject_base: &SubjectBase) -> io::Result<()> {
        let tree_path = self.tree_dir().join(relative_path);
        // A link in place of a directory would redirect the write to another place.
        let mut directory = self.tree_dir();
        for component in Path::new(relative_path).parent().into_iter().flat_map(Path::components) {
            directory.push(component);
            if fs::symlink_metadata(&directory).is_ok_and(|metadata| !metadata.is_dir()) {
                fs::remove_file(&directory)?;
            }
        }
        fs::create_dir_all(directory)?;
        match fs::symlink_metadata(&tree_path) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&tree_path)?,
            // An ordinary file is replaced atomically, since other agents may be reading it.
            Ok(metadata) if !metadata.is_file() || !matches!(subject_base, SubjectBase::File { .. }) => {
                fs::remove_file(&tree_path)?
            }
            _ => {}
        }
        match subject_base {
            SubjectBase::Absent => Ok(()),
            SubjectBase::Link { target, .. } => symlink(target, tree_path),
            SubjectBase::File { number: base_number, .. } => {
                let base_file = self.base_file_path(&base_number.to_string());
                let base_metadata = fs::metadata(&base_file)?;
                write_atomically(&tree_path, &fs::read(base_file)?)?;
                fs::set_permissions(&tree_path, base_metadata.permissions())?;
                // With the original time the file counts as unchanged for the workspace's git.
                workspace_git::copy_modification_time(&base_metadata, &tree_path)
            }
        }
    }

    /// Reads a file of the subject as it was when the workspace was created. Returns `None` if it did not exist or was a link.
    pub fn read_base(&self, relative_path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.read_bases()?.get(relative_path) {
            Some(SubjectBase::File { number: base_number, .. }) => {
                fs::read(self.base_file_path(&base_number.to_string())).map(Some)
            }
            Some(SubjectBase::Absent | SubjectBase::Link { .. }) => Ok(None),
            None => Err(io::Error::other(format!("{relative_path} is not one of the reviewed files"))),
        }
    }

    /// Returns the paths of everything that existed when the workspace was created.
    pub fn original_paths(&self) -> io::Result<BTreeSet<String>> {
        Ok(self.read_record()?.files.into_keys().collect())
    }

    /// Returns what differs from the workspace as it was created: path to new hash, `None` for a deleted file.
    pub fn changed_files(&self) -> io::Result<BTreeMap<String, Option<Hash>>> {
        let (record, completed_at, bases) = (self.read_record()?, self.completed_at()?, self.read_bases()?);
        // Files of the subject count even in a directory that is otherwise ignored.
        let is_relevant =
            |relative_path: &str| bases.contains_key(relative_path) || !is_in_tool_directory(relative_path);
        let mut changed_files: BTreeMap<String, Option<Hash>> = BTreeMap::new();
        let mut current_files = self.list_tree()?;
        // The walk skips tool directories, so subject files in them are looked up one by one.
        for relative_path in bases.keys().filter(|relative_path| is_in_tool_directory(relative_path)) {
            if let Some(metadata) = self.metadata_if_present(relative_path)? {
                current_files.insert(relative_path.clone(), metadata);
            }
        }
        // Most files are untouched, so comparing stamps first avoids reading the whole tree.
        for (relative_path, metadata) in &current_files {
            let copied_file = record.files.get(relative_path);
            let content_hash =
                hash_unless_unchanged(&self.tree_dir().join(relative_path), metadata, copied_file, completed_at)?;
            if copied_file.map(|original| &original.hash) != Some(&content_hash) {
                changed_files.insert(relative_path.clone(), Some(content_hash));
            }
        }
        // What tools left behind may be removed freely; only relevant files count as deleted.
        for relative_path in record
            .files
            .keys()
            .filter(|relative_path| is_relevant(relative_path) && !current_files.contains_key(*relative_path))
        {
            changed_files.insert(relative_path.clone(), None);
        }
        Ok(changed_files)
    }

    /// Lists all files that could be part of a patch.
    fn list_tree(&self) -> io::Result<BTreeMap<String, Metadata>> {
        let tree_dir = self.tree_dir();
        let mut tree_files = BTreeMap::new();
        let mut directories = vec![tree_dir.clone()];
        while let Some(directory) = directories.pop() {
            for dir_entry in fs::read_dir(&directory)? {
                let dir_entry = dir_entry?;
                let (file_type, entry_path) = (dir_entry.file_type()?, dir_entry.path());
                if !file_type.is_dir() {
                    let relative_path =
                        entry_path.strip_prefix(&tree_dir).unwrap_or(&entry_path).to_string_lossy().into_owned();
                    tree_files.insert(relative_path, dir_entry.metadata()?);
                } else if !TOOL_DIRECTORIES.iter().any(|tool_directory| dir_entry.file_name() == *tool_directory) {
                    directories.push(entry_path);
                }
            }
        }
        Ok(tree_files)
    }

    fn hash_if_present(
        &self,
        relative_path: &str,
        copied_file: Option<&CopiedFile>,
        completed_at: i64,
    ) -> io::Result<Option<Hash>> {
        let Some(metadata) = self.metadata_if_present(relative_path)? else { return Ok(None) };
        hash_unless_unchanged(&self.tree_dir().join(relative_path), &metadata, copied_file, completed_at).map(Some)
    }

    /// Returns the metadata of what is there, unless it is a directory. What lies behind a link does not count as there.
    fn metadata_if_present(&self, relative_path: &str) -> io::Result<Option<Metadata>> {
        let mut current_path = self.tree_dir();
        let mut components = Path::new(relative_path).components().peekable();
        // Every component is checked: a link in the middle of the path would lead out of the workspace.
        while let Some(component) = components.next() {
            current_path.push(component);
            match fs::symlink_metadata(&current_path) {
                Ok(metadata) if components.peek().is_none() => {
                    return Ok((!metadata.is_dir()).then_some(metadata));
                }
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Ok(None),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(cause) => return Err(cause),
            }
        }
        Ok(None)
    }

    /// Removes the workspace, even if an agent changed permissions in it.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                make_directories_removable(&self.directory)?;
                fs::remove_dir_all(&self.directory)
            }
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }
}

/// Makes every directory writable for its owner, so that it can be emptied.
fn make_directories_removable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for dir_entry in fs::read_dir(directory)? {
        let dir_entry = dir_entry?;
        if dir_entry.file_type()?.is_dir() {
            make_directories_removable(&dir_entry.path())?;
        }
    }
    Ok(())
}

/// Hashes a file, and reads it only if it may have changed.
fn hash_unless_unchanged(
    file_path: &Path,
    metadata: &Metadata,
    copied_file: Option<&CopiedFile>,
    completed_at: i64,
) -> io::Result<Hash> {
    let current_stamp = FileStamp::from_metadata(metadata);
    match copied_file {
        Some(copied_file) if copied_file.stamp == current_stamp && current_stamp.is_older_than(completed_at) => {
            Ok(copied_file.hash.clone())
        }
        _ if metadata.is_file() => atomic_files::hash_file(file_path),
        _ if metadata.is_symlink() => Ok(hash_link_target(&fs::read_link(file_path)?.to_string_lossy())),
        // Special files that an agent created still count as a change, under a hash of their own.
        _ => Ok(Hash::new("special")),
    }
}

/// Returns a hash that no file can have.
fn hash_link_target(link_target: &str) -> Hash {
    Hash::new(format!("link to {}", Hash::digest_of(link_target.as_bytes())))
}

/// Whether a path belongs to git or to Tribunal, at any depth.
fn is_never_copied(relative_path: &str) -> bool {
    relative_path.split('/').any(|component| component.eq_ignore_ascii_case(".git") || component == ".tribunal")
}

/// Whether a path lies in a directory that tools leave behind.
fn is_in_tool_directory(relative_path: &str) -> bool {
    relative_path
        .rsplit_once('/')
        .is_some_and(|(directory, _)| directory.split('/').any(|component| TOOL_DIRECTORIES.contains(&component)))
}

/// Combines a set of changes into one hash.
pub(crate) fn hash_changes(changed_files: &BTreeMap<String, Option<Hash>>) -> Hash {
    let mut hash_input = String::new();
    for (relative_path, content_hash) in changed_files {
        hash_input.push_str(relative_path);
        hash_input.push('\0');
        hash_input.push_str(content_hash.as_ref().map_or("deleted", Hash::as_str));
        hash_input.push('\n');
    }
    Hash::digest_of(hash_input.as_bytes())
}
