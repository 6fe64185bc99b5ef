//! A directory for temporary files that belongs to one process. It is directly below the system's one: some programs create
//! sockets in it, whose paths must be short.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use tribunal_engine::ids::{Hash, RunId};

use crate::{project::Project, workspaces::TaskWorkspace};

/// Only the user may look into it.
const DIR_MODE: u32 = 0o700;

static CREATED_COUNT: AtomicU32 = AtomicU32::new(0);

/// The empty directory of a process that has ended, for the next one. A file system needs long to find room for a new directory
/// shortly after others were removed.
#[derive(Debug, Default)]
pub(crate) struct SpareTmp(Mutex<Option<PathBuf>>);

impl SpareTmp {
    fn swap(&self, directory: Option<PathBuf>) -> Option<PathBuf> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), directory)
    }
}

impl Drop for SpareTmp {
    fn drop(&mut self) {
        self.swap(None).into_iter().for_each(|directory| drop(fs::remove_dir(directory)));
    }
}

/// A directory that is removed when this is dropped, or kept as a spare one if it is empty.
#[derive(Debug)]
pub(crate) struct PrivateTmp {
    path: PathBuf,
    spare: Arc<SpareTmp>,
}

impl PrivateTmp {
    /// Takes the spare directory, or creates one in the system's one or, if that cannot be written, in the directory of the run:
    /// Tribunal itself may have been started in the sandbox of a client.
    pub fn create(
        system_dir: &Path,
        project: &Project,
        run_id: &RunId,
        spare: &Arc<SpareTmp>,
    ) -> io::Result<PrivateTmp> {
        let spare = spare.clone();
        if let Some(path) = spare.swap(None).filter(|path| is_unused(path)) {
            return Ok(PrivateTmp { path, spare });
        }
        let prefix = dir_prefix(project.root(), run_id);
        let path = create_dir_in(system_dir, &prefix)
            .or_else(|_| create_dir_in(&project.work_dir(run_id).join("tmp"), &prefix))?;
        Ok(PrivateTmp { path, spare })
    }

    pub fn directory_path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        let unwanted_path = match is_unused(&self.path) {
            true => self.spare.swap(Some(self.path.clone())),
            false => Some(self.path.clone()),
        };
        // What cannot be removed now is removed when the run is resumed or ends.
        unwanted_path.into_iter().for_each(|path| drop(TaskWorkspace::from_directory(path).remove()));
    }
}

/// Whether a directory is as it was created.
fn is_unused(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & 0o7777 == DIR_MODE)
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Creates a directory whose name begins with a prefix.
fn create_dir_in(parent_dir: &Path, prefix: &str) -> io::Result<PathBuf> {
    loop {
        let number = CREATED_COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent_dir.join(format!("{prefix}{}-{number}", std::process::id()));
        let created = fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(parent_dir);
        match created.and_then(|()| fs::DirBuilder::new().mode(DIR_MODE).create(&path)) {
            Ok(()) => return Ok(path),
            // Anyone may create names there, so another one is tried.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))),
        }
    }
}

/// Runs of two projects may have the same id, so the project is part of the name.
fn dir_prefix(project_root: &Path, run_id: &RunId) -> String {
    let user_id = rustix::process::getuid().as_raw();
    let run_name = [project_root.as_os_str().as_encoded_bytes(), b"\0", run_id.as_str().as_bytes()].concat();
    format!("tribunal-{user_id}-{}-", Hash::digest_of(&run_name).short_hex())
}

/// Removes what killed processes of a run left.
pub(crate) fn remove_leftover_dirs(system_dir: &Path, project_root: &Path, run_id: &RunId) {
    let prefix = dir_prefix(project_root, run_id);
    let Ok(entries) = fs::read_dir(system_dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
        let _ = TaskWorkspace::from_directory(entry.path()).remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unused_directory_is_used_again() {
        let (system_dir, project_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let project = Project::from_root(project_dir.path());
        let spare = Arc::new(SpareTmp::default());
        let create = || PrivateTmp::create(system_dir.path(), &project, &RunId::new("r1"), &spare).unwrap();
        let first_path = create().directory_path().to_path_buf();
        let second = create();
        assert_eq!(second.directory_path(), first_path);
        // Two processes at a time have two directories, of which one is kept.
        let third = create();
        assert_ne!(third.directory_path(), first_path);
        drop((second, third));
        assert_eq!(fs::read_dir(system_dir.path()).unwrap().count(), 1);
        let used = create();
        let used_path = used.directory_path().to_path_buf();
        fs::write(used_path.join("left"), "x").unwrap();
        drop(used);
        assert!(!used_path.exists());
        let opened = create();
        let opened_path = opened.directory_path().to_path_buf();
        fs::set_permissions(&opened_path, fs::Permissions::from_mode(0o777)).unwrap();
        drop(opened);
        assert!(!opened_path.exists());
        drop(create());
        drop(spare);
        assert_eq!(fs::read_dir(system_dir.path()).unwrap().count(), 0);
    }
}
