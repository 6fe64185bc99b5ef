//! A directory for temporary files that belongs to one process. It is directly below the system's one: some programs create
//! sockets in it, whose paths must be short.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use tribunal_core::engine::ids::{Hash, RunId};

use crate::{project::Project, workspaces::TaskWorkspace};

static CREATED_COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateTmp {
    path: PathBuf,
}

impl PrivateTmp {
    /// Creates a directory in the system's one or, if that cannot be written, in the directory of the run: Tribunal itself may
    /// have been started in the sandbox of a client.
    pub fn create(system_dir: &Path, project: &Project, run_id: &RunId) -> io::Result<PrivateTmp> {
        let prefix = dir_prefix(project.root(), run_id);
        PrivateTmp::create_in(system_dir, &prefix)
            .or_else(|_| PrivateTmp::create_in(&project.work_dir(run_id).join("tmp"), &prefix))
    }

    fn create_in(parent_dir: &Path, prefix: &str) -> io::Result<PrivateTmp> {
        loop {
            let number = CREATED_COUNT.fetch_add(1, Ordering::Relaxed);
            let path = parent_dir.join(format!("{prefix}{}-{number}", std::process::id()));
            let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent_dir);
            match created.and_then(|()| fs::DirBuilder::new().mode(0o700).create(&path)) {
                Ok(()) => return Ok(PrivateTmp { path }),
                // Anyone may create names there, so another one is tried.
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(io::Error::new(cause.kind(), format!("{}: {cause}", path.display()))),
            }
        }
    }

    pub fn directory_path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the run is resumed or ends.
        let _ = TaskWorkspace::from_directory(self.path.clone()).remove();
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
