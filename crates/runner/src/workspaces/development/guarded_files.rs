//! Files of a checkout that an agent must not change, although it works there: what git and Tribunal run or obey.
//!
//! The kernel cannot take them out of a directory that may be written. So they are read before an agent works in place; what
//! differs afterwards is put back, and the agent's version is parked. [`guarded_refs`] does the same for branches, HEAD and stashes.
//!
//! [`guarded_refs`]: super::guarded_refs

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::ids::RunId;

use super::{
    WorkspaceError,
    git_dir_state::GitDirState,
    guarded_refs::{GuardedPlace, GuardedRefs},
    user_repository::UserRepository,
};
use crate::{
    git::plain_files::read_regular_file,
    landing::parked_files::park_file,
    project::{Project, atomic_files},
    workspaces::TaskWorkspace,
};

/// What is read below the git directory: settings, and everything that git runs.
const GIT_PATHS: [&str; 8] =
    ["config", "config.worktree", "commondir", "shallow", "hooks", "info", "objects/info", "modules"];
/// What is read below `.tribunal`: it shapes what later runs do.
const OWN_PATHS: [&str; 1] = ["templates"];
/// In a submodule's directory only these matter; the rest is its objects and refs.
const MODULE_NAMES: [&str; 4] = ["config", "config.worktree", "hooks", "info"];
const SKIPPED_DIRS: [&str; 4] = ["objects", "refs", "logs", "lfs"];
/// Longer files are compared by their stamps, and moved away if they change.
const MAX_SAVED_BYTES: u64 = 4 << 20;
const MAX_FILES: usize = 10_000;
/// So many files are named to the user.
const MAX_REMARKS: usize = 6;

/// The files as they were before an agent worked.
#[derive(Debug)]
pub(crate) struct GuardedFiles {
    project: Project,
    run_id: RunId,
    /// The git directories and our own one.
    guarded_dirs: Vec<PathBuf>,
    /// What is guarded below them.
    guarded_paths: Vec<PathBuf>,
    files: BTreeMap<PathBuf, GuardedFile>,
    git_state: GitDirState,
    refs: GuardedRefs,
    refs_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GuardedFile {
    mode: u32,
    content: GuardedContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GuardedContent {
    Bytes(Vec<u8>),
    LinkTo(PathBuf),
    /// Inode, size and time of the last change of what is not read.
    Stamp(u64, u64, i64, i64),
}

impl GuardedFiles {
    /// Reads the files of the checkout in which something is about to work for a run.
    pub(super) fn read_from(
        project: Project,
        place: GuardedPlace,
        repository: UserRepository,
    ) -> Result<GuardedFiles, WorkspaceError> {
        let git_dirs = repository.git_dirs();
        let layout = &repository.layout;
        let git_state = GitDirState::read_from(&layout.work_tree_top, &layout.git_dir, &layout.common_dir);
        let git_paths = git_dirs.iter().flat_map(|git_dir| GIT_PATHS.iter().map(move |name| git_dir.join(name)));
        let own_dir = project.root().join(".tribunal");
        let guarded_paths: Vec<PathBuf> = git_paths.chain(OWN_PATHS.iter().map(|name| own_dir.join(name))).collect();
        let refs_dir = git_dirs.last().cloned().unwrap_or_default();
        let files = read_files(&guarded_paths);
        if files.len() > MAX_FILES {
            return Err(WorkspaceError::new_refusal(format!(
                "the settings and hooks in .git are {} files, and only {MAX_FILES} can be watched; work in a clone, without \
                 --in-place",
                files.len()
            )));
        }
        Ok(GuardedFiles {
            project,
            run_id: place.run_id.clone(),
            files,
            guarded_dirs: git_dirs.iter().cloned().chain([own_dir]).collect(),
            guarded_paths,
            git_state,
            refs: GuardedRefs::begin_turn(place, repository)?,
            refs_dir,
        })
    }

    /// Puts back what differs now. Returns what the user should know.
    pub fn put_back(self) -> Vec<String> {
        self.guarded_paths.iter().for_each(|path| make_readable(path));
        let current_files = read_files(&self.guarded_paths);
        let mut remarks = Vec::new();
        let changed_paths =
            self.files.keys().chain(current_files.keys().filter(|path| !self.files.contains_key(*path)));
        for path in changed_paths.filter(|path| self.files.get(*path) != current_files.get(*path)) {
            let shown_path = path.strip_prefix(self.project.root()).unwrap_or(path).display();
            remarks.push(match self.put_file_back(path, current_files.get(path)) {
                Ok(Some(parked)) => {
                    format!(
                        "{shown_path} was changed while the agent worked, and put back (the changed one is {})",
                        parked.display()
                    )
                }
                Ok(None) => format!("{shown_path} was changed while the agent worked, and put back"),
                Err(cause) => {
                    format!("{shown_path} was changed while the agent worked, and could not be put back: {cause}")
                }
            });
        }
        // What could not be put back matters most, and git's examples of hooks least.
        remarks
            .sort_by_key(|remark| (!remark.contains("could not be put back"), remark.contains(".sample was changed")));
        if remarks.len() > MAX_REMARKS {
            let further_count = remarks.len() - MAX_REMARKS;
            remarks.truncate(MAX_REMARKS);
            remarks
                .push(format!("{further_count} more files in .git and .tribunal were changed while the agent worked"));
        }
        remarks.extend(self.remove_pipes());
        remarks.extend(self.git_state.put_back(&self.project, &self.run_id));
        // Git obeys what is put back above, so this comes last.
        remarks.extend(self.refs.put_back());
        remarks
    }

    fn put_file_back(&self, path: &Path, current: Option<&GuardedFile>) -> io::Result<Option<PathBuf>> {
        let parked = match current {
            // That it goes back matters more than that the other one is kept, which an agent can prevent.
            Some(GuardedFile { content: GuardedContent::Bytes(bytes), .. }) => {
                park_file(&self.project, &self.run_id, &path.to_string_lossy(), bytes).ok()
            }
            _ => None,
        };
        if path.ancestors().skip(1).any(|ancestor| self.files.contains_key(ancestor)) {
            // It was in a directory that an agent had put in place of a file or link, which is back already.
            return Ok(parked);
        }
        self.restore_parents(path)?;
        match self.files.get(path) {
            None => fs::remove_file(path).or_else(|cause| match cause.kind() {
                // It was below something that is gone, or is a directory again.
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Ok(()),
                _ => Err(cause),
            })?,
            Some(GuardedFile { content: GuardedContent::Bytes(bytes), mode }) => {
                // What is there now may be a link, or a directory where the file was.
                if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                    fs::remove_file(path).or_else(|_| TaskWorkspace::from_directory(path.to_path_buf()).remove())?;
                }
                atomic_files::write_atomically(path, bytes)?;
                fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
            }
            Some(GuardedFile { content: GuardedContent::LinkTo(target), .. }) => {
                if fs::symlink_metadata(path).is_ok() {
                    fs::remove_file(path).or_else(|_| TaskWorkspace::from_directory(path.to_path_buf()).remove())?;
                }
                std::os::unix::fs::symlink(target, path)?;
            }
            Some(GuardedFile { content: GuardedContent::Stamp(..), .. }) => {
                // Nothing may use the changed one.
                let moved_path = path.with_extension("changed-by-agent");
                fs::rename(path, &moved_path)?;
                return Err(io::Error::other(format!(
                    "it was too large to be saved, and is now {}",
                    moved_path.display()
                )));
            }
        }
        Ok(parked)
    }

    /// Removes pipes and the like from the refs: git would wait for them. Returns what the user should know.
    fn remove_pipes(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let mut pending_paths =
            vec![self.refs_dir.join("packed-refs"), self.refs_dir.join("refs"), self.refs_dir.join("HEAD")];
        while let Some(path) = pending_paths.pop() {
            let (Ok(own_metadata), Ok(metadata)) = (fs::symlink_metadata(&path), fs::metadata(&path)) else { continue };
            if own_metadata.is_dir() {
                pending_paths.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            } else if !metadata.is_file() && !metadata.is_dir() && fs::remove_file(&path).is_ok() {
                let shown_path = path.strip_prefix(self.project.root()).unwrap_or(&path).display();
                remarks.push(format!("{shown_path} was made while the agent worked; it is no file, and was removed"));
            }
        }
        remarks
    }

    /// Makes the directories above a path real ones again: an agent may have put links to other places there, or taken our rights.
    fn restore_parents(&self, path: &Path) -> io::Result<()> {
        let guarded_dir = self.guarded_dirs.iter().filter(|directory| path.starts_with(directory)).max();
        let Some((guarded_dir, below)) =
            guarded_dir.and_then(|directory| Some((directory, path.strip_prefix(directory).ok()?)))
        else {
            return Ok(());
        };
        if !fs::symlink_metadata(guarded_dir)?.is_dir() {
            return Err(io::Error::other(format!("{} is not a directory any more", guarded_dir.display())));
        }
        let mut current_dir = guarded_dir.clone();
        for part in below.parent().into_iter().flat_map(Path::components) {
            current_dir.push(part);
            match fs::symlink_metadata(&current_dir) {
                Ok(metadata) if metadata.is_dir() => add_owner_rights(&current_dir, &metadata)?,
                Ok(_) => {
                    fs::remove_file(&current_dir)?;
                    fs::create_dir(&current_dir)?;
                }
                Err(_) => fs::create_dir(&current_dir)?,
            }
        }
        Ok(())
    }
}

/// Lets us read and write a directory and those below it. Links are not followed.
fn make_readable(path: &Path) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if metadata.is_dir() {
        // What cannot be changed is noticed when it is put back.
        let _ = add_owner_rights(path, &metadata);
        let is_guarded = |entry: &fs::DirEntry| !SKIPPED_DIRS.iter().any(|name| entry.file_name() == *name);
        let entries = fs::read_dir(path).into_iter().flatten().flatten().filter(is_guarded);
        entries.for_each(|entry| make_readable(&entry.path()));
    }
}

fn add_owner_rights(directory: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    const OWNER_RIGHTS: u32 = 0o700;
    match metadata.mode() & OWNER_RIGHTS {
        OWNER_RIGHTS => Ok(()),
        _ => fs::set_permissions(directory, fs::Permissions::from_mode(metadata.mode() & 0o7777 | OWNER_RIGHTS)),
    }
}

/// Reads everything at and below these paths. Nothing is followed.
fn read_files(guarded_paths: &[PathBuf]) -> BTreeMap<PathBuf, GuardedFile> {
    let mut files = BTreeMap::new();
    // Below `modules` there are whole git directories, of which only a part is read.
    let with_kind = |path: &PathBuf| (path.clone(), path.ends_with("modules").then(|| path.clone()));
    let mut pending_paths: Vec<(PathBuf, Option<PathBuf>)> = guarded_paths.iter().map(with_kind).collect();
    while let Some((path, modules_dir)) = pending_paths.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_read = |entry_path: &PathBuf| {
                modules_dir.as_ref().is_none_or(|modules_dir| is_guarded_in_module(modules_dir, entry_path))
            };
            pending_paths.extend(entries.filter(is_read).map(|entry_path| (entry_path, modules_dir.clone())));
            continue;
        }
        let stamp = || GuardedContent::Stamp(metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec());
        let content = if metadata.is_symlink() {
            fs::read_link(&path).map_or_else(|_| stamp(), GuardedContent::LinkTo)
        } else if metadata.is_file() && metadata.len() <= MAX_SAVED_BYTES {
            read_regular_file(&path, MAX_SAVED_BYTES).map_or_else(|_| stamp(), GuardedContent::Bytes)
        } else {
            stamp()
        };
        files.insert(path, GuardedFile { mode: metadata.mode() & 0o7777, content });
    }
    files
}

/// Whether a path below `modules` is read. A submodule's name may have several parts, so directories that are no part of git are
/// entered.
fn is_guarded_in_module(modules_dir: &Path, path: &Path) -> bool {
    let has_part = |names: &[&str]| {
        let below_modules = path.strip_prefix(modules_dir).unwrap_or(path);
        below_modules.components().any(|part| names.iter().any(|name| part.as_os_str() == *name))
    };
    has_part(&MODULE_NAMES) || (path.is_dir() && !has_part(&SKIPPED_DIRS))
}
