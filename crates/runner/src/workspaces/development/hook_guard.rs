//! Keeps hooks from changing what our own git commands obey.
//!
//! A commit hook has to write into our git directory: it may stage files. It also runs code that agents have changed, such as the
//! settings of a linter. So the settings in that directory are saved beside it before a hook runs, where the hook cannot write,
//! and everything that could make git run a program or use another directory is put back afterwards. A process that ends in
//! between leaves the saved files, and the next one puts them back before it uses git.

use std::{fs, io, path::Path};

use super::{DevelopmentWorkspace, WithPath, WorkspaceError, create_private_dir};
use crate::workspaces::TaskWorkspace;

/// The directory with the saved files, beside the git directory.
const SAVED_DIR: &str = "git-settings";
/// Files that git obeys. What is not there before a hook runs is not there afterwards.
const SETTINGS_FILES: [&str; 7] =
    ["HEAD", "config", "shallow", "info/attributes", "info/exclude", "info/sparse-checkout", "objects/info/alternates"];
/// What a hook may leave behind: indexes, objects, refs and the message.
const HOOK_RESULTS: [&str; 6] = ["index", "commit-index", "objects", "refs", "packed-refs", "COMMIT_EDITMSG"];

impl DevelopmentWorkspace {
    /// Saves the settings of our git directory.
    pub fn save_git_settings(&self) -> Result<(), WorkspaceError> {
        let (git_dir, saved_dir) = (self.control_git().git_dir, self.directory.join(SAVED_DIR));
        let unfinished_dir = saved_dir.with_extension("new");
        remove_entry(&unfinished_dir).at_path(&unfinished_dir)?;
        for directory in ["info", "objects/info"] {
            create_private_dir(&unfinished_dir.join(directory))?;
        }
        copy_settings(&git_dir, &unfinished_dir)?;
        fs::rename(&unfinished_dir, &saved_dir).at_path(&saved_dir)
    }

    /// Puts back what was saved, if anything was, and removes everything that a hook has no reason to create.
    pub fn restore_git_settings(&self) -> Result<(), WorkspaceError> {
        let (git_dir, saved_dir) = (self.control_git().git_dir, self.directory.join(SAVED_DIR));
        if !saved_dir.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&git_dir).at_path(&git_dir)?.flatten() {
            // A pipe would block its reader, and a link could lead anywhere.
            let is_plain = entry.file_type().is_ok_and(|file_type| file_type.is_file() || file_type.is_dir());
            let is_result = HOOK_RESULTS.iter().any(|name| entry.file_name() == *name);
            if !is_plain || !is_result {
                remove_entry(&entry.path()).at_path(&entry.path())?;
            }
        }
        remove_entry(&git_dir.join("objects/info")).at_path(&git_dir)?;
        for directory in ["info", "objects/info", "refs"] {
            create_private_dir(&git_dir.join(directory))?;
        }
        copy_settings(&saved_dir, &git_dir)?;
        remove_entry(&saved_dir).at_path(&saved_dir)
    }
}

fn copy_settings(source_dir: &Path, target_dir: &Path) -> Result<(), WorkspaceError> {
    for name in SETTINGS_FILES {
        let source_path = source_dir.join(name);
        if source_path.is_file() {
            fs::copy(&source_path, target_dir.join(name)).at_path(&source_path)?;
        }
    }
    Ok(())
}

/// Removes a file, a link or a directory. Links are not followed.
fn remove_entry(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => TaskWorkspace::from_directory(path.to_path_buf()).remove(),
        Ok(_) => fs::remove_file(path),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(cause),
    }
}
