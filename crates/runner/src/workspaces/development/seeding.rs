//! Copies ignored files that agents and checks need into a new clone.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Component, Path, PathBuf},
};

use super::{WithPath, WorkspaceError, special_files::IndexEntry, user_repository::UserRepository};
use crate::{
    git::{git_command, run_checked},
    project::subject::is_plain_path,
};

/// Git is asked about directories with more files.
const MAX_COMPARED_FILES: usize = 10_000;

/// What was seeded, and what was not.
#[derive(Default)]
pub(super) struct SeedOutcome {
    /// Below the tree of the workspace.
    pub tree_paths: Vec<Vec<u8>>,
    pub remarks: Vec<String>,
}

/// The paths to seed, relative to the project's root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeedRequest<'a> {
    /// A missing one of these is reported.
    pub named: &'a [String],
    /// Files that are used if they are there.
    pub usual: &'a [String],
}

/// Where seeds are copied.
pub(super) struct SeedTarget<'a> {
    pub tree: &'a Path,
    /// The project's root below it, with a slash at the end; empty if it is the same.
    pub prefix: &'a str,
    /// What the commit has in it.
    pub index_entries: &'a [IndexEntry],
}

/// Copies what git ignores of the requested paths. What git tracks comes from the commit.
pub(super) fn copy_seeds(
    repository: &UserRepository,
    request: SeedRequest<'_>,
    target: &SeedTarget<'_>,
) -> Result<SeedOutcome, WorkspaceError> {
    let SeedTarget { tree, prefix, .. } = *target;
    let mut outcome = SeedOutcome::default();
    let project_root = repository.project_root();
    let mut query_paths = Vec::new();
    for (path, is_named) in
        request.named.iter().map(|path| (path, true)).chain(request.usual.iter().map(|path| (path, false)))
    {
        let path = path.trim_end_matches('/');
        let is_usable = !path.is_empty() && is_plain_path(path) && !super::super::is_never_copied(path);
        if is_usable && fs::symlink_metadata(project_root.join(path)).is_ok() {
            query_paths.push(path.as_bytes().to_vec());
        } else if is_named {
            outcome.remarks.push(format!("`{path}` (`seeds`) is not in the project"));
        }
    }
    query_paths.retain(|path| !target.has_everything(project_root, path));
    if query_paths.is_empty() {
        return Ok(outcome);
    }
    let mut command = git_command(project_root);
    // A directory that is ignored as a whole is listed as one.
    command.arg("--literal-pathspecs").args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard"]);
    command.args(["--directory", "--"]);
    for path in &query_paths {
        command.arg(OsStr::from_bytes(path));
    }
    let listed = run_checked(command, None)?;
    for listed_path in listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let listed_path = listed_path.strip_suffix(b"/").unwrap_or(listed_path);
        let relative_path = Path::new(OsStr::from_bytes(listed_path));
        let mut copier = SeedCopier { project_root, skipped: &mut outcome.remarks };
        copier.copy_entry(relative_path, &tree.join(prefix).join(relative_path))?;
        outcome.tree_paths.push([prefix.as_bytes(), listed_path].concat());
    }
    Ok(outcome)
}

impl SeedTarget<'_> {
    /// Whether the commit has every file at and below a path of the checkout, so that git need not be asked which of them it ignores.
    fn has_everything(&self, project_root: &Path, path: &[u8]) -> bool {
        let committed: BTreeSet<&[u8]> = self.index_entries.iter().map(|entry| entry.path.as_slice()).collect();
        let mut pending_paths = vec![path.to_vec()];
        let mut seen_count = 0;
        while let Some(path) = pending_paths.pop() {
            seen_count += 1;
            let full_path = project_root.join(OsStr::from_bytes(&path));
            let is_dir = fs::symlink_metadata(&full_path).is_ok_and(|metadata| metadata.is_dir());
            let is_known = match is_dir {
                true => list_dir(&full_path).is_ok_and(|names| {
                    pending_paths.extend(names.iter().map(|name| [path.as_slice(), b"/", name.as_bytes()].concat()));
                    // Git tracks no empty directory.
                    !names.is_empty()
                }),
                false => committed.contains([self.prefix.as_bytes(), &path].concat().as_slice()),
            };
            if !is_known || seen_count > MAX_COMPARED_FILES {
                return false;
            }
        }
        true
    }
}

fn list_dir(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.map(|dir_entry| Ok(dir_entry?.file_name())).collect()
}

struct SeedCopier<'a> {
    project_root: &'a Path,
    skipped: &'a mut Vec<String>,
}

impl SeedCopier<'_> {
    fn copy_entry(&mut self, relative_path: &Path, target_path: &Path) -> Result<(), WorkspaceError> {
        let source_path = self.project_root.join(relative_path);
        let Ok(metadata) = fs::symlink_metadata(&source_path) else { return Ok(()) };
        if metadata.is_dir() {
            fs::create_dir_all(target_path).at_path(target_path)?;
            for dir_entry in fs::read_dir(&source_path).at_path(&source_path)? {
                let file_name = dir_entry.at_path(&source_path)?.file_name();
                // A repository in a seeded directory is not part of it.
                if file_name != ".git" && file_name != ".tribunal" {
                    self.copy_entry(&relative_path.join(&file_name), &target_path.join(&file_name))?;
                }
            }
            return Ok(());
        }
        fs::create_dir_all(target_path.parent().unwrap_or(target_path)).at_path(target_path)?;
        // What the commit has at this place is there already.
        if fs::symlink_metadata(target_path).is_ok() {
            return Ok(());
        }
        if metadata.is_symlink() {
            return self.copy_link(relative_path, &source_path, target_path);
        }
        if !metadata.is_file() {
            return Ok(());
        }
        // A copy, never a hard link: an agent that writes into a linked file would change the user's. On file systems that can
        // share blocks (btrfs, XFS), the copy takes no space until one of both is written.
        match fs::copy(&source_path, target_path) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                self.skipped.push(format!("`{}` could not be read", relative_path.display()));
                Ok(())
            }
            copied => copied.map(drop).at_path(&source_path),
        }
    }

    /// Copies a link, unless it would lead an agent back into the user's project.
    fn copy_link(
        &mut self,
        relative_path: &Path,
        source_path: &Path,
        target_path: &Path,
    ) -> Result<(), WorkspaceError> {
        let link_target = fs::read_link(source_path).at_path(source_path)?;
        let leads_back = if link_target.is_absolute() {
            link_target.starts_with(self.project_root)
                || self.project_root.canonicalize().is_ok_and(|root| link_target.starts_with(root))
        } else {
            leaves_root(relative_path.parent().unwrap_or(Path::new("")), &link_target)
        };
        if leads_back {
            self.skipped.push(format!("the link `{}` leads out of the workspace", relative_path.display()));
            return Ok(());
        }
        symlink(link_target, target_path).at_path(target_path)
    }
}

/// Whether a relative link in a directory leads out of the root.
fn leaves_root(directory: &Path, link_target: &Path) -> bool {
    let mut depth = 0_i64;
    let joined: PathBuf = directory.join(link_target);
    for component in joined.components() {
        depth += match component {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        if depth < 0 {
            return true;
        }
    }
    false
}
