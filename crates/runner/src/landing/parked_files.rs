//! Parking: a file of the user is stored as it is before it is replaced.
//!
//! Parked files are never overwritten, and are removed only together with their run (`gc`).

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::ids::RunId;

use crate::project::{Project, atomic_files::write_privately};

/// Stores the content of the file at `relative_path`, durable on return. Returns where, relative to the project's root.
pub(crate) fn park_file(project: &Project, run_id: &RunId, relative_path: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let parked_path = choose_parked_path(project, run_id, relative_path)?;
    write_privately(&parked_path, bytes)?;
    Ok(parked_path.strip_prefix(project.root()).map(Path::to_path_buf).unwrap_or(parked_path))
}

/// Moves what is at `relative_path` to the parked files: a file, a link, a FIFO, a directory with all that is in it. Returns
/// where, relative to the project's root.
pub(crate) fn move_to_parked(project: &Project, run_id: &RunId, relative_path: &str) -> io::Result<PathBuf> {
    let parked_path = choose_parked_path(project, run_id, relative_path)?;
    if let Some(parked_dir) = parked_path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parked_dir)?;
    }
    let source_path = project.root().join(relative_path);
    if fs::symlink_metadata(&source_path)?.is_dir() {
        // Moving a directory changes its entry for the parent, for which it has to be writable.
        fs::set_permissions(&source_path, fs::Permissions::from_mode(0o700))?;
    }
    fs::rename(&source_path, &parked_path)?;
    Ok(parked_path.strip_prefix(project.root()).map(Path::to_path_buf).unwrap_or(parked_path))
}

/// Returns a path among the parked files that nothing has yet.
fn choose_parked_path(project: &Project, run_id: &RunId, relative_path: &str) -> io::Result<PathBuf> {
    let parked_dir = project.parked_dir(run_id);
    if let Some(real_target) = project.resolve_outside(&parked_dir) {
        return Err(io::Error::other(format!("it would be saved outside the project, in {}", real_target.display())));
    }
    let file_name = Path::new(relative_path).file_name().unwrap_or_default().to_string_lossy();
    let mut copy_number = 1;
    // Files of several directories may have the same name, so a number makes them unique.
    loop {
        let candidate_path = parked_dir.join(format!("{copy_number}-{file_name}"));
        if fs::symlink_metadata(&candidate_path).is_err() {
            return Ok(candidate_path);
        }
        copy_number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_same_name_are_parked_beside_each_other() {
        let project_root = tempfile::tempdir().unwrap();
        let project = Project::from_root(project_root.path());
        let run_id = RunId::new("plan-aaaa");
        let park = |path, bytes: &[u8]| park_file(&project, &run_id, path, bytes).unwrap();
        assert_eq!(park("a/mod.rs", b"one"), Path::new(".tribunal/parked/plan-aaaa/1-mod.rs"));
        assert_eq!(park("b/mod.rs", b"\xff"), Path::new(".tribunal/parked/plan-aaaa/2-mod.rs"));
        assert_eq!(fs::read(project_root.path().join(".tribunal/parked/plan-aaaa/1-mod.rs")).unwrap(), b"one");
        assert_eq!(fs::read(project_root.path().join(".tribunal/parked/plan-aaaa/2-mod.rs")).unwrap(), b"\xff");
    }
}
