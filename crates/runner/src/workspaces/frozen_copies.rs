//! Private copies of a frozen workspace: reviewers and challengers get one each, so that none reads what another one wrote.
//!
//! A copy has exactly what was recorded when the original was frozen, and the original's git. What an agent added to
//! the original later is not copied.

use std::{collections::BTreeMap, fs, io, os::unix::fs::symlink, path::Path};

use super::{CopiedFile, TaskWorkspace, WorkspaceRecord, file_stamps::FileStamp, workspace_git};
use crate::project::atomic_files::write_atomically;

impl TaskWorkspace {
    /// Makes this workspace a copy of a frozen one; what it held before is removed. `std::fs::copy` shares the data of files
    /// where the file system can.
    pub fn copy_frozen(&self, frozen: &TaskWorkspace) -> io::Result<()> {
        // Everything that prompts and patches are compared with is read from the original, so it must be as it was frozen.
        frozen.restore_subject()?;
        let frozen_record = frozen.read_record()?;
        self.remove()?;
        let (source_tree, target_tree) = (frozen.tree_dir(), self.tree_dir());
        fs::create_dir_all(&target_tree)?;
        let mut copied_files = BTreeMap::new();
        for (relative_path, frozen_file) in frozen_record.files {
            let target_path = target_tree.join(&relative_path);
            match copy_item(&source_tree.join(&relative_path), &target_path) {
                Ok(()) => {
                    let stamp = FileStamp::from_metadata(&fs::symlink_metadata(&target_path)?);
                    copied_files.insert(relative_path, CopiedFile { stamp, ..frozen_file });
                }
                // Agents can reach the original. A context file that one removed is missing, as in the user's own tree.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        }
        // Git compares the index with the times of the files, so the copy comes after them and keeps all times.
        copy_directory(&source_tree.join(".git"), &target_tree.join(".git"))?;
        // What lies beside the tree: the texts of the subject, and the diff of a change.
        for dir_entry in fs::read_dir(frozen.directory())? {
            let source_path = dir_entry?.path();
            if source_path != source_tree && source_path != frozen.manifest_path() {
                let Some(file_name) = source_path.file_name() else { continue };
                let target_path = self.directory().join(file_name);
                if source_path.is_dir() {
                    copy_directory(&source_path, &target_path)?;
                } else {
                    copy_item(&source_path, &target_path)?;
                }
            }
        }
        let record = WorkspaceRecord { files: copied_files, ..frozen_record };
        // As with every workspace, the list comes last and marks it as complete.
        write_atomically(&self.manifest_path(), &serde_json::to_vec(&record).map_err(io::Error::other)?)
    }
}

/// Copies a file or a link with its mode and its modification time. Special files are left out.
fn copy_item(source_path: &Path, target_path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(source_path)?;
    if let Some(directory) = target_path.parent() {
        fs::create_dir_all(directory)?;
    }
    if metadata.is_symlink() {
        symlink(fs::read_link(source_path)?, target_path)?;
    } else if metadata.is_file() {
        fs::copy(source_path, target_path)?;
    } else {
        return Err(io::ErrorKind::NotFound.into());
    }
    workspace_git::copy_modification_time(&metadata, target_path)
}

/// Copies a directory with everything in it, if there is one.
fn copy_directory(source_dir: &Path, target_dir: &Path) -> io::Result<()> {
    let dir_entries = match fs::read_dir(source_dir) {
        Ok(dir_entries) => dir_entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(cause),
    };
    fs::create_dir_all(target_dir)?;
    for dir_entry in dir_entries {
        let dir_entry = dir_entry?;
        let target_path = target_dir.join(dir_entry.file_name());
        if dir_entry.file_type()?.is_dir() {
            copy_directory(&dir_entry.path(), &target_path)?;
        } else {
            copy_item(&dir_entry.path(), &target_path)?;
        }
    }
    Ok(())
}
