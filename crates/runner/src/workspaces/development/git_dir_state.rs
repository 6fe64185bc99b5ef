//! What in the git directory of a checkout keeps git from working, or has it write elsewhere: links, locks, broken lists of refs, and
//! operations that are not finished. An agent that works there can leave any of these behind; no git process of ours may run before they
//! are gone, and the user must not be asked to continue what an agent has begun.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::RunId;
use tribunal_workflows::development::parking::name_files;

use crate::{
    git::plain_files::read_regular_file,
    landing::parked_files::move_to_parked,
    project::{Project, atomic_files::write_atomically},
    workspaces::TaskWorkspace,
};

/// What git leaves in its directory during an operation. The first ones are named to users.
const OPERATION_FILES: [&str; 13] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "BISECT_START",
    "MERGE_MODE",
    "MERGE_MSG",
    "AUTO_MERGE",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_NAMES",
];
const NAMED_OPERATIONS: usize = 7;
/// Repositories with many branches have large lists of them.
const MAX_PACKED_BYTES: u64 = 64 << 20;
const MAX_INDEX_BYTES: u64 = 1 << 30;

/// The git directories before something worked there.
#[derive(Debug)]
pub(super) struct GitDirState {
    work_tree: PathBuf,
    /// The directory with HEAD and the index.
    git_dir: PathBuf,
    /// The directory with refs and objects.
    common_dir: PathBuf,
    operations: BTreeSet<&'static str>,
    links: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    packed_refs: Option<Vec<u8>>,
    index: Option<Vec<u8>>,
}

impl GitDirState {
    pub fn read_from(work_tree: &Path, git_dir: &Path, common_dir: &Path) -> GitDirState {
        let mut state = GitDirState {
            work_tree: work_tree.to_path_buf(),
            git_dir: git_dir.to_path_buf(),
            common_dir: common_dir.to_path_buf(),
            operations: BTreeSet::new(),
            links: BTreeSet::new(),
            locks: BTreeSet::new(),
            packed_refs: read_regular_file(&common_dir.join("packed-refs"), MAX_PACKED_BYTES).ok(),
            index: read_regular_file(&git_dir.join("index"), MAX_INDEX_BYTES).ok(),
        };
        state.operations = state.list_operations();
        (state.links, state.locks) = state.list_links_and_locks();
        state
    }

    /// Puts the directories back into a state in which git works. Returns what the user should know.
    pub fn put_back(&self, project: &Project, run_id: &RunId) -> Vec<String> {
        let mut remarks = Vec::new();
        let show = |path: &Path| path.strip_prefix(&self.work_tree).unwrap_or(path).display().to_string();
        let (links, locks) = self.list_links_and_locks();
        let mut removed_links = Vec::new();
        for link in links.difference(&self.links) {
            match fs::remove_file(link) {
                Ok(()) => removed_links.push(show(link)),
                Err(cause) => remarks.push(format!("the link {} could not be removed: {cause}", show(link))),
            }
            // Git takes a directory without these for no repository.
            if ["refs", "logs"].iter().any(|name| link.ends_with(name)) {
                let _ = fs::create_dir(link);
            }
        }
        if !removed_links.is_empty() {
            let removed_links = name_files(&removed_links);
            remarks.push(format!("links that were made while the agent worked were removed: {removed_links}"));
        }
        let head = self.git_dir.join("HEAD");
        if head.is_dir() && TaskWorkspace::from_directory(head).remove().is_ok() {
            remarks.push("HEAD was made a directory while the agent worked; it was removed".to_string());
        }
        let new_locks: Vec<&PathBuf> = locks.difference(&self.locks).collect();
        // A lock of the agent's has no process any more. One of the user's is gone in a moment.
        if !new_locks.is_empty() && !is_git_running(&self.work_tree) {
            for lock in new_locks {
                if fs::remove_file(lock).is_ok() {
                    remarks.push(format!("{} was left by a process of the agent, and removed", show(lock)));
                }
            }
        }
        remarks.extend(self.put_lists_back());
        for name in self.list_operations().difference(&self.operations) {
            let path = self.git_dir.join(name);
            let moved =
                move_to_parked(project, run_id, &path.to_string_lossy()).map(|parked| parked.display().to_string());
            let removed = moved.or_else(|_| remove_entry(&path).map(|()| "nowhere".to_string()));
            match removed {
                Ok(parked) if OPERATION_FILES[..NAMED_OPERATIONS].contains(name) => remarks.push(format!(
                    "the agent did not finish what git remembers in {}; your checkout is out of that again (kept: {parked})",
                    show(&path)
                )),
                Ok(_) => {}
                Err(cause) => remarks.push(format!("{} could not be removed: {cause}", show(&path))),
            }
        }
        remarks
    }

    /// Replaces lists that git cannot read by what they were.
    fn put_lists_back(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let packed_file = self.common_dir.join("packed-refs");
        let is_broken_list =
            read_regular_file(&packed_file, MAX_PACKED_BYTES).is_ok_and(|bytes| !is_packed_list(&bytes));
        if is_broken_list && replace_file(&packed_file, self.packed_refs.as_deref()).is_ok() {
            remarks
                .push("the list of packed refs was made unreadable while the agent worked, and put back".to_string());
        }
        let index_file = self.git_dir.join("index");
        let is_broken_index = match fs::symlink_metadata(&index_file) {
            Ok(metadata) if metadata.is_file() => {
                !read_regular_file(&index_file, 4).is_ok_and(|start| start == b"DIRC")
            }
            Ok(_) => true,
            Err(_) => self.index.is_some(),
        };
        if is_broken_index && replace_file(&index_file, self.index.as_deref()).is_ok() {
            remarks.push("the index was made unreadable while the agent worked, and put back".to_string());
        }
        remarks
    }

    fn list_operations(&self) -> BTreeSet<&'static str> {
        let is_there = |name: &&str| fs::symlink_metadata(self.git_dir.join(name)).is_ok();
        OPERATION_FILES.into_iter().filter(is_there).collect()
    }

    /// Lists the links and the locks at the top of the git directories and among refs, logs and the directories of objects.
    fn list_links_and_locks(&self) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
        let (mut links, mut locks) = (BTreeSet::new(), BTreeSet::new());
        let mut pending: Vec<(PathBuf, bool)> = vec![(self.git_dir.clone(), false), (self.common_dir.clone(), false)];
        for directory in [&self.git_dir, &self.common_dir] {
            pending.extend(["logs", "refs"].map(|name| (directory.join(name), true)));
        }
        pending.push((self.common_dir.join("objects"), false));
        while let Some((directory, is_deep)) = pending.pop() {
            if !fs::symlink_metadata(&directory).is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Ok(file_type) = entry.file_type() else { continue };
                let path = entry.path();
                if file_type.is_symlink() && (is_deep || !is_kept_link(&path)) {
                    links.insert(path);
                } else if file_type.is_dir() && is_deep {
                    pending.push((path, true));
                } else if file_type.is_file() && path.extension().is_some_and(|extension| extension == "lock") {
                    locks.insert(path);
                }
            }
        }
        (links, locks)
    }
}

/// Whether a link stays: what is guarded by its content is put back elsewhere, and without its objects a repository is lost.
fn is_kept_link(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    ["objects", "config", "config.worktree", "commondir", "hooks", "info", "modules", "HEAD", "index", "shallow"]
        .iter()
        .any(|kept| name == *kept)
}

/// Whether every line is a comment, a peeled object, or an object and a ref.
fn is_packed_list(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').all(|line| {
        let id_length = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        line.is_empty()
            || line.starts_with(b"#")
            || line.starts_with(b"^")
            || matches!(id_length, 40 | 64) && line[id_length..].starts_with(b" refs/")
    })
}

fn replace_file(path: &Path, bytes: Option<&[u8]>) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        remove_entry(path)?;
    }
    match bytes {
        Some(bytes) => write_atomically(path, bytes),
        None => fs::remove_file(path),
    }
}

/// Removes a file, a link or a directory. Links are not followed.
fn remove_entry(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => TaskWorkspace::from_directory(path.to_path_buf()).remove(),
        false => fs::remove_file(path),
    }
}

/// Whether a git process works in a directory. Where that cannot be told, one may.
fn is_git_running(work_tree: &Path) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let work_tree = work_tree.canonicalize().unwrap_or_else(|_| work_tree.to_path_buf());
    processes.flatten().any(|process| {
        let is_git = fs::read_to_string(process.path().join("comm")).is_ok_and(|name| name.starts_with("git"));
        is_git && fs::read_link(process.path().join("cwd")).is_ok_and(|directory| directory.starts_with(&work_tree))
    })
}
