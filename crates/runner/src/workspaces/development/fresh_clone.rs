//! Fresh clones: what the user gets by cloning the repository at a commit and setting it up.
//!
//! Checks run in one before work lands. A workspace may have files that they need and that git does not commit: ignored ones, a
//! repository of its own, line ends that git converts.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::workspace::DevelopmentPlace;

use super::{
    DevelopmentWorkspace, WorkspaceError, WorkspaceHome, WorkspaceRecord, create_private_dir, opening::fill_clone,
    own_git_files::is_agent_git_untouched, remove_workspace_dir, seeding::SeedRequest,
    special_files::is_attributes_file, user_repository::UserRepository,
};

/// A clone of a commit, as a new workspace is one. It is never complete: what a process leaves that ends, the next one or `gc` removes.
#[derive(Debug)]
pub(crate) struct FreshClone {
    workspace: DevelopmentWorkspace,
}

impl FreshClone {
    /// Clones a commit of a workspace. What an earlier process has left is removed first.
    pub fn create(
        home: &WorkspaceHome,
        workspace: &DevelopmentWorkspace,
        commit: &CommitId,
        seeds: SeedRequest<'_>,
    ) -> Result<FreshClone, WorkspaceError> {
        let record = &workspace.record;
        let name = format!("{}-fresh", record.name);
        let directory = home.workspace_dir(DevelopmentPlace::Clone, &record.run, &name);
        let record = WorkspaceRecord {
            name,
            place: DevelopmentPlace::Clone,
            tree: directory.join("tree"),
            base: commit.clone(),
            remarks: Vec::new(),
            sealed_files: Vec::new(),
            ..record.clone()
        };
        remove_workspace_dir(&directory)?;
        create_private_dir(&directory)?;
        let repository = UserRepository::open_around(home.project.root())?;
        let mut clone = FreshClone { workspace: DevelopmentWorkspace { directory, record } };
        match fill_clone(&repository, &mut clone.workspace, seeds) {
            Ok(()) => Ok(clone),
            Err(cause) => {
                // The cause counts, not whether the rest could be removed.
                let _ = clone.remove();
                Err(cause)
            }
        }
    }

    /// What commands in it may write.
    pub fn tree_dir(&self) -> &Path {
        &self.workspace.record.tree
    }

    /// The project's root in it.
    pub fn project_dir(&self) -> PathBuf {
        self.workspace.agent_dir()
    }

    pub fn remove(self) -> Result<(), WorkspaceError> {
        remove_workspace_dir(&self.workspace.directory)
    }
}

impl DevelopmentWorkspace {
    /// Whether the directory has these files of a tree and nothing else, as a clone has that was just made. Links are not followed.
    pub(super) fn has_only<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) -> bool {
        // What git stores may differ from the files, and others may write in the checkout.
        if self.is_in_place() || self.record.converts_content || !self.record.sealed_files.is_empty() {
            return false;
        }
        let known = KnownPaths::from_files(paths);
        // What they say about line ends and filters holds for files that were there before as well.
        if known.files.iter().any(|path| is_attributes_file(path)) || !is_agent_git_untouched(&self.record.tree) {
            return false;
        }
        let own_dir = [self.record.prefix.as_bytes(), b".tribunal"].concat();
        known.cover(&self.record.tree, b"", &own_dir)
    }
}

/// Files, and the directories that contain them. Paths are relative to a root.
#[derive(Default)]
struct KnownPaths<'a> {
    files: BTreeSet<&'a [u8]>,
    directories: BTreeSet<&'a [u8]>,
}

impl<'a> KnownPaths<'a> {
    fn from_files(paths: impl Iterator<Item = &'a [u8]>) -> KnownPaths<'a> {
        let mut known = KnownPaths::default();
        for path in paths {
            known.files.insert(path);
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
            known.directories.extend(slashes.map(|index| &path[..index]));
        }
        known
    }

    /// Whether everything in a directory is known. Empty directories of Tribunal's own do not count.
    fn cover(&self, root: &Path, directory: &[u8], own_dir: &[u8]) -> bool {
        let Ok(dir_entries) = fs::read_dir(root.join(OsStr::from_bytes(directory))) else { return false };
        dir_entries.into_iter().all(|dir_entry| {
            let Ok(dir_entry) = dir_entry else { return false };
            let name = dir_entry.file_name();
            if directory.is_empty() && name == ".git" {
                return true;
            }
            let path = match directory {
                [] => name.as_bytes().to_vec(),
                directory => [directory, b"/", name.as_bytes()].concat(),
            };
            if !dir_entry.file_type().is_ok_and(|file_type| file_type.is_dir()) {
                return self.files.contains(path.as_slice());
            }
            let is_own = path.strip_prefix(own_dir).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
            let is_known = self.directories.contains(path.as_slice()) || is_own;
            is_known && self.cover(root, &path, own_dir)
        })
    }
}
