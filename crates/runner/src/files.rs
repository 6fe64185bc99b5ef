//! Writes files so that a crash leaves either the old or the new file, never a part of one.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tribunal_supervise::Identity;

use tribunal_core::{
    ids::{Hash, Hashing, RunId},
    settings::Settings,
};

use crate::{fault, project::Project};

/// The prefix of our temporary files; the identity of the process that created them follows.
pub(crate) const TEMPORARY: &str = ".tribunal-tmp-";

/// Writes a temporary file in the same directory, syncs, renames and syncs the directory. Keeps the old file's permissions.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Replacement::prepare(path, bytes)?.put()
}

/// Does the same for a file that only its owner may read.
pub(crate) fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Replacement::with(path, bytes, permissions(0o600))?.put()
}

/// A file's new content, durable and ready to be put in place.
pub(crate) struct Replacement<'a> {
    path: &'a Path,
    temporary: tempfile::NamedTempFile,
}

impl<'a> Replacement<'a> {
    pub fn prepare(path: &'a Path, bytes: &[u8]) -> io::Result<Replacement<'a>> {
        // Temporary files are private; the final file gets ordinary permissions.
        let as_before = fs::metadata(path).map_or_else(|_| permissions(0o644), |old| old.permissions());
        Replacement::with(path, bytes, as_before)
    }

    /// Prepares a file with these permissions, whether or not the target exists.
    pub fn prepare_as(path: &'a Path, bytes: &[u8], mode: u32) -> io::Result<Replacement<'a>> {
        Replacement::with(path, bytes, permissions(mode))
    }

    fn with(path: &'a Path, bytes: &[u8], permissions: fs::Permissions) -> io::Result<Replacement<'a>> {
        let folder = folder_of(path);
        fs::create_dir_all(folder)?;
        // The name carries the process, so that a later process can tell an orphan from a file in use.
        let prefix = format!("{TEMPORARY}{}-", Identity::own());
        let mut temporary = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder)?;
        temporary.write_all(bytes)?;
        temporary.as_file().set_permissions(permissions)?;
        // The content must be durable before the rename, or a crash could leave an empty file.
        temporary.as_file().sync_all()?;
        Ok(Replacement { path, temporary })
    }

    /// Makes the file executable if `yes` is set.
    pub fn executable(self, yes: bool) -> io::Result<Replacement<'a>> {
        if yes {
            self.temporary.as_file().set_permissions(permissions(0o755))?;
        }
        Ok(self)
    }

    pub fn put(self) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        fault::point(&format!("write:{name}"), "before");
        self.temporary.persist(self.path).map_err(|failed| failed.error)?;
        fault::point(&format!("write:{name}"), "after");
        // The rename itself is durable only once the directory is synced.
        File::open(folder_of(self.path))?.sync_all()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lists the directories in which a run writes files beside the user's.
pub(crate) fn places(project: &Project, run: &RunId, settings: &Settings) -> Vec<PathBuf> {
    let root = project.root();
    let reviews = root.join(&settings.reviews);
    let awaiting = reviews.with_file_name("awaiting-human");
    let checkpoints = project.checkpoints(run);
    let mut folders = vec![reviews, awaiting, checkpoints.join("texts"), checkpoints, project.parked(run)];
    // The hash cache lies beside the workspaces of all runs.
    folders.push(project.home().join("work"));
    for own in settings.subject.files().into_iter().filter_map(|path| Path::new(path).parent()) {
        folders.extend([root.join(own), project.originals(run).join(own)]);
    }
    folders
}

/// Hashes a file without holding all of it in memory.
pub(crate) fn hash_of(path: &Path) -> io::Result<Hash> {
    let (mut file, mut hashing) = (File::open(path)?, Hashing::default());
    let mut some = vec![0; 1 << 16];
    loop {
        match file.read(&mut some) {
            Ok(0) => return Ok(hashing.done()),
            Ok(count) => hashing.add(&some[..count]),
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// Removes temporary files that killed processes left in a directory.
pub(crate) fn sweep(folder: &Path) {
    for path in left_behind(folder) {
        let _ = fs::remove_file(path);
    }
}

/// Returns our temporary files in a directory whose process is gone.
pub(crate) fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let is_orphan = |name: &OsStr| {
        let maker = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)?.split('-').next());
        maker.and_then(|maker| maker.parse::<Identity>().ok()).is_some_and(|maker| !maker.is_alive())
    };
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    items.filter(|item| is_orphan(&item.file_name())).map(|item| item.path()).collect()
}

fn permissions(mode: u32) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_survive_and_nothing_is_left_beside_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.md");
        write_atomically(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn a_long_file_has_the_hash_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        for length in [0, 1, 1 << 16, (1 << 16) + 1, 300_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            fs::write(folder.path().join("a"), &bytes).unwrap();
            assert_eq!(hash_of(&folder.path().join("a")).unwrap(), Hash::of(&bytes));
        }
    }

    #[test]
    fn only_what_a_dead_process_of_ours_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let own = Identity::own().to_string();
        // The same pid with another start time is a different process, and dead; in another container it is unknown.
        let dead = own.replacen('@', "@9", 1);
        let elsewhere = format!("{dead}9");
        let kept = [
            format!("{TEMPORARY}{own}-x1"),
            format!("{TEMPORARY}{elsewhere}-x1"),
            "a.md".into(),
            ".hidden".into(),
            format!("{TEMPORARY}x"),
        ];
        for name in kept.iter().chain([&format!("{TEMPORARY}{dead}-x1")]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        sweep(folder.path());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, kept.len());
        assert!(kept.iter().all(|name| folder.path().join(name).exists()));
    }
}
