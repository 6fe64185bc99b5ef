//! Writes files so that a crash leaves either the old or the new file, never a part of one.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tribunal_supervise::ProcessIdentity;

use tribunal_engine::ids::{ContentHasher, Hash, RunId};
use tribunal_workflows::runs::{plan::RunPlan, view::RunView};

use crate::{kill_points, project::Project};

/// The prefix of our temporary files; the identity of the process that created them follows.
pub(crate) const TEMPORARY_PREFIX: &str = ".tribunal-tmp-";

/// Writes a temporary file in the same directory, syncs, renames and syncs the directory. Keeps the old file's permissions.
pub(crate) fn write_atomically(target_path: &Path, bytes: &[u8]) -> io::Result<()> {
    FileReplacement::prepare(target_path, bytes)?.put_in_place()
}

/// Does the same for a file that only its owner may read.
pub(crate) fn write_privately(target_path: &Path, bytes: &[u8]) -> io::Result<()> {
    FileReplacement::create_with(target_path, bytes, permissions_from_mode(0o600))?.put_in_place()
}

/// Puts a link in the place of the file or the link that is there.
pub(crate) fn link_atomically(link_target: &Path, link_path: &Path) -> io::Result<()> {
    let directory = parent_directory(link_path);
    fs::create_dir_all(directory)?;
    let temporary_link = directory.join(format!("{TEMPORARY_PREFIX}{}-link", ProcessIdentity::current()));
    // An earlier attempt of this process may have failed between the two steps.
    let _ = fs::remove_file(&temporary_link);
    std::os::unix::fs::symlink(link_target, &temporary_link)?;
    fs::rename(&temporary_link, link_path)?;
    File::open(directory)?.sync_all()
}

/// A file's new content, durable and ready to be put in place.
pub(crate) struct FileReplacement<'a> {
    target_path: &'a Path,
    temporary_file: tempfile::NamedTempFile,
}

impl<'a> FileReplacement<'a> {
    pub fn prepare(target_path: &'a Path, bytes: &[u8]) -> io::Result<FileReplacement<'a>> {
        // A temporary file is private; the final one gets the permissions of the old file, or ordinary ones.
        let old_permissions = fs::metadata(target_path)
            .map_or_else(|_| permissions_from_mode(0o644), |old_metadata| old_metadata.permissions());
        FileReplacement::create_with(target_path, bytes, old_permissions)
    }

    /// Prepares a file with these permissions, whether or not the target exists.
    pub fn prepare_with_mode(target_path: &'a Path, bytes: &[u8], mode: u32) -> io::Result<FileReplacement<'a>> {
        FileReplacement::create_with(target_path, bytes, permissions_from_mode(mode))
    }

    fn create_with(
        target_path: &'a Path,
        bytes: &[u8],
        file_permissions: fs::Permissions,
    ) -> io::Result<FileReplacement<'a>> {
        let directory = parent_directory(target_path);
        fs::create_dir_all(directory)?;
        // The name carries the process, so that a later process can tell an orphan from a file in use.
        let prefix = format!("{TEMPORARY_PREFIX}{}-", ProcessIdentity::current());
        let mut temporary_file = tempfile::Builder::new().prefix(&prefix).tempfile_in(directory)?;
        temporary_file.write_all(bytes)?;
        temporary_file.as_file().set_permissions(file_permissions)?;
        // The content must be durable before the rename, or a crash could leave an empty file.
        temporary_file.as_file().sync_all()?;
        Ok(FileReplacement { target_path, temporary_file })
    }

    /// Makes the file executable if `yes` is set.
    pub fn make_executable(self, yes: bool) -> io::Result<FileReplacement<'a>> {
        if yes {
            self.temporary_file.as_file().set_permissions(permissions_from_mode(0o755))?;
        }
        Ok(self)
    }

    pub fn put_in_place(self) -> io::Result<()> {
        let file_name = self.target_path.file_name().unwrap_or_default().to_string_lossy();
        kill_points::kill_if_requested(&format!("write:{file_name}"), "before");
        self.temporary_file.persist(self.target_path).map_err(|failed| failed.error)?;
        kill_points::kill_if_requested(&format!("write:{file_name}"), "after");
        // The rename itself is durable only once the directory is synced.
        File::open(parent_directory(self.target_path))?.sync_all()
    }
}

fn parent_directory(target_path: &Path) -> &Path {
    target_path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lists the directories into which a run writes, where a killed process may have left temporary files.
pub(crate) fn written_directories(project: &Project, run_view: &RunView) -> Vec<PathBuf> {
    match (&run_view.run_id, run_view.run_plan()) {
        (Some(run_id), Some(plan)) => plan_directories(project, run_id, &plan),
        _ => Vec::new(),
    }
}

/// Lists the directories into which a run with this plan writes.
pub(crate) fn plan_directories(project: &Project, run_id: &RunId, plan: &RunPlan) -> Vec<PathBuf> {
    let RunPlan { settings, order } = plan;
    let project_root = project.root();
    let checkpoints_dir = project.checkpoints_dir(run_id);
    let mut directories: Vec<PathBuf> =
        settings.own_folders().list_all().iter().map(|folder| project_root.join(folder)).collect();
    directories.push(project_root.join(settings.own_folders().reports));
    directories.extend([checkpoints_dir.join("texts"), checkpoints_dir, project.parked_dir(run_id)]);
    // The hash cache lies beside the workspaces of all runs.
    directories.push(project.home_dir().join("work"));
    for subject_dir in order.written_paths().into_iter().filter_map(|subject_path| Path::new(subject_path).parent()) {
        directories.extend([project_root.join(subject_dir), project.originals_dir(run_id).join(subject_dir)]);
    }
    directories
}

/// Hashes a file without holding all of it in memory.
pub(crate) fn hash_file(file_path: &Path) -> io::Result<Hash> {
    let (mut source_file, mut hasher) = (File::open(file_path)?, ContentHasher::default());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match source_file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => hasher.update(&buffer[..count]),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// Removes temporary files that killed processes left in a directory.
pub(crate) fn sweep_temporary_files(directory: &Path) {
    for orphan in find_orphaned_files(directory) {
        let _ = fs::remove_file(orphan);
    }
}

/// Returns our temporary files in a directory whose process is gone.
pub(crate) fn find_orphaned_files(directory: &Path) -> Vec<PathBuf> {
    let is_orphan = |file_name: &OsStr| {
        let process_text =
            file_name.to_str().and_then(|file_name| file_name.strip_prefix(TEMPORARY_PREFIX)?.split('-').next());
        process_text
            .and_then(|process_text| process_text.parse::<ProcessIdentity>().ok())
            .is_some_and(|process| !process.is_alive())
    };
    let dir_entries = fs::read_dir(directory).into_iter().flatten().flatten();
    dir_entries.filter(|dir_entry| is_orphan(&dir_entry.file_name())).map(|dir_entry| dir_entry.path()).collect()
}

fn permissions_from_mode(mode: u32) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_survive_and_nothing_is_left_beside_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let target_path = directory.path().join("new/a.md");
        write_atomically(&target_path, b"one").unwrap();
        fs::set_permissions(&target_path, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&target_path, b"two").unwrap();
        assert_eq!(fs::read(&target_path).unwrap(), b"two");
        assert_eq!(fs::metadata(&target_path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn a_long_file_has_the_hash_of_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        for length in [0, 1, 1 << 16, (1 << 16) + 1, 300_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            fs::write(directory.path().join("a"), &bytes).unwrap();
            assert_eq!(hash_file(&directory.path().join("a")).unwrap(), Hash::digest_of(&bytes));
        }
    }

    #[test]
    fn only_temporary_files_of_dead_processes_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let own = ProcessIdentity::current().to_string();
        // The same pid with another start time is a different process, and dead; in another container it is unknown.
        let dead = own.replacen('@', "@9", 1);
        let elsewhere = format!("{dead}9");
        let kept = [
            format!("{TEMPORARY_PREFIX}{own}-x1"),
            format!("{TEMPORARY_PREFIX}{elsewhere}-x1"),
            "a.md".into(),
            ".hidden".into(),
            format!("{TEMPORARY_PREFIX}x"),
        ];
        for name in kept.iter().chain([&format!("{TEMPORARY_PREFIX}{dead}-x1")]) {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        sweep_temporary_files(directory.path());
        let left = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, kept.len());
        assert!(kept.iter().all(|name| directory.path().join(name).exists()));
    }
}
