//! Single files of a tree: what they are, and how one is put in its place.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use tribunal_engine::ids::Hash;

use super::{
    WithPath, WorkspaceError,
    contents::{is_own_content, untracked_mode},
    special_files::tree_path,
};
use crate::project::atomic_files::{self, FileReplacement};

/// Returns the mode and the hash of a file or a link; `None` if there is none.
pub(super) fn read_file_mark(tree: &Path, path: &[u8]) -> Result<Option<String>, WorkspaceError> {
    if !is_own_content(tree, path) {
        return Ok(None);
    }
    let full_path = tree_path(tree, path);
    let metadata = fs::symlink_metadata(&full_path).at_path(&full_path)?;
    let content_hash = if metadata.is_symlink() {
        let link_target = fs::read_link(&full_path).at_path(&full_path)?;
        Hash::digest_of(link_target.as_os_str().as_encoded_bytes())
    } else {
        atomic_files::hash_file(&full_path).at_path(&full_path)?
    };
    Ok(Some(format!("{} {content_hash}", untracked_mode(&metadata))))
}

/// Whether all directories above a path are directories of the tree itself, or do not exist yet.
pub(super) fn has_real_parents(tree: &Path, path: &[u8]) -> bool {
    let full_path = tree_path(tree, path);
    let mut parents = full_path.ancestors().skip(1).take_while(|directory| *directory != tree);
    parents.all(|directory| match fs::symlink_metadata(directory) {
        Ok(metadata) => metadata.is_dir(),
        Err(cause) => cause.kind() == io::ErrorKind::NotFound,
    })
}

/// Copies a file or a link to its place, in one atomic step.
pub(super) fn put_file(staged_path: &Path, target_path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(staged_path)?;
    if metadata.is_symlink() {
        return atomic_files::link_atomically(&fs::read_link(staged_path)?, target_path);
    }
    let file_bytes = fs::read(staged_path)?;
    let mode = metadata.permissions().mode() & 0o777;
    FileReplacement::prepare_with_mode(target_path, &file_bytes, mode)?.put_in_place()
}
