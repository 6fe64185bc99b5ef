//! Freezes the content of a workspace as a tree, and puts the files back to one.
//!
//! The index of the frozen content stays on the disk, so that one `git status` tells what differs from it. Git compares size, inode and
//! both times of a file with that index, and reads the file if one of them differs.

use std::{fs, io, path::Path};

use tribunal_engine::ids::{CommitId, TreeId};
use tribunal_json::{Deserialize, Serialize};

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError,
    check_traces::{CheckTraces, WorkSnapshot},
    contents::StateReading,
    control_git::ControlGit,
    git_listings::StatusEntry,
    user_repository::UserRepository,
};
use crate::{masking::Masker, project::atomic_files};

/// The file that says of which tree the index is.
const MARK_FILE: &str = "frozen.json";
/// The file that says that an agent may have worked since.
const UNFROZEN_FILE: &str = "unfrozen";

/// The tree of which the index of the frozen content is. After a rebase that index means nothing.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FrozenMark {
    base: CommitId,
    tree: TreeId,
}

/// Frozen content, with what was found when it was frozen.
#[derive(Debug)]
pub(crate) struct FrozenContent {
    pub tree: TreeId,
    /// What interrupted checks had changed.
    pub left: CheckTraces,
    /// How the content differs from the base.
    pub reading: StateReading,
}

/// Whether the files are those of a tree.
#[derive(Debug)]
pub(crate) enum TreeHold {
    Held(HeldTree),
    /// The user has edited these files of the checkout.
    Edited(Vec<String>),
}

/// A tree whose files are in the workspace.
#[derive(Debug)]
pub(crate) struct HeldTree {
    pub tree: TreeId,
    /// What was put back.
    pub put_back: CheckTraces,
    /// What is there besides the tree: repositories of their own, and new files of the user.
    pub others: Vec<Vec<u8>>,
}

/// The state of frozen content.
#[derive(Debug)]
pub(crate) struct FrozenReading {
    pub reading: StateReading,
    /// What had changed since it was frozen. It is as it was.
    pub put_back: CheckTraces,
}

impl DevelopmentWorkspace {
    /// Freezes the content. What interrupted checks had changed is put back first.
    pub fn freeze_content(&self, masker: &Masker) -> Result<FrozenContent, WorkspaceError> {
        let left = self.undo_interrupted_checks()?;
        let control_git = self.control_git();
        control_git.remove_index_lock();
        // The index of the base learns from this which files are unchanged. The new one begins as a copy, so it would answer the same.
        let entries = self.read_status_and_remember(&control_git)?;
        let index_git = control_git.with_frozen_index();
        self.forget_mark()?;
        index_git.copy_index_from(&control_git)?;
        self.stage_entries(&index_git, &entries)?;
        let tree = self.mark_index(&index_git)?;
        let unfrozen_mark = self.directory.join(UNFROZEN_FILE);
        remove_if_present(&unfrozen_mark).at_path(&unfrozen_mark)?;
        let reading = self.describe_state(entries, &[], masker)?;
        Ok(FrozenContent { tree, left, reading })
    }

    /// Freezes the content of a commit, and not that of the files.
    pub fn freeze_commit(&self, commit: &CommitId) -> Result<TreeId, WorkspaceError> {
        self.control_git().read_tree_of(commit).map(TreeId::new)
    }

    /// Adds files to the frozen content as they are now, and nothing else. Files that git ignores stay out of it.
    pub fn freeze_also(&self, tree: &TreeId, project_paths: &[String]) -> Result<TreeId, WorkspaceError> {
        if project_paths.is_empty() {
            return Ok(tree.clone());
        }
        let index_git = self.require_index(tree)?;
        let mut entries = self.read_status(&index_git)?;
        entries.retain(|entry| {
            let path = self.shown_path(&entry.path);
            entry.is_unstaged() && project_paths.contains(&path)
        });
        if entries.is_empty() {
            return Ok(tree.clone());
        }
        self.forget_mark()?;
        self.stage_entries(&index_git, &entries)?;
        self.mark_index(&index_git)
    }

    /// Makes the index of the next commit the frozen one.
    pub fn take_commit_index(&self) -> Result<TreeId, WorkspaceError> {
        let control_git = self.control_git();
        let index_git = control_git.with_frozen_index();
        self.forget_mark()?;
        index_git.copy_index_from(&control_git.with_commit_index())?;
        self.mark_index(&index_git)
    }

    /// Makes the frozen index that of the next commit.
    pub(super) fn prepare_commit_index(&self, tree: &TreeId) -> Result<(), WorkspaceError> {
        let index_git = self.require_index(tree)?;
        self.control_git().with_commit_index().copy_index_from(&index_git)
    }

    /// Makes sure that the files are those of a tree. In a clone they are put back to it, and what was there is kept; in the user's
    /// checkout nothing is touched.
    pub fn hold_tree(&self, tree: &TreeId) -> Result<TreeHold, WorkspaceError> {
        let mut put_back = self.undo_interrupted_checks()?;
        let index_git = self.require_index(tree)?;
        let (nested, entries): (Vec<StatusEntry>, Vec<StatusEntry>) =
            self.read_status(&index_git)?.into_iter().partition(StatusEntry::is_nested_repository);
        let (known, new): (Vec<StatusEntry>, Vec<StatusEntry>) = entries.into_iter().partition(StatusEntry::is_tracked);
        let changed: Vec<StatusEntry> = known.into_iter().filter(StatusEntry::is_unstaged).collect();
        let mut others: Vec<Vec<u8>> = nested.into_iter().map(|entry| entry.path).collect();
        if self.is_in_place() {
            let users_paths = self.list_committed_by_user()?;
            let edited: Vec<String> = changed
                .iter()
                .filter(|entry| !users_paths.contains(&entry.path))
                .map(|entry| self.shown_path(&entry.path))
                .collect();
            if !edited.is_empty() {
                return Ok(TreeHold::Edited(edited));
            }
            others.extend(new.into_iter().map(|entry| entry.path));
        } else if !(changed.is_empty() && new.is_empty()) {
            put_back.add_traces(WorkSnapshot::of_index(self, others.clone())?.put_everything_back()?);
        }
        Ok(TreeHold::Held(HeldTree { tree: tree.clone(), put_back, others }))
    }

    /// Reads the state of frozen content with all files that have changed.
    pub fn read_frozen_state(&self, tree: &TreeId, masker: &Masker) -> Result<FrozenReading, WorkspaceError> {
        let mut put_back = self.undo_interrupted_checks()?;
        let index_git = self.require_index(tree)?;
        let mut entries = self.read_status(&index_git)?;
        let is_changed = |entry: &StatusEntry| entry.is_unstaged() && !entry.is_nested_repository();
        // In the checkout the user may have gone on; what checks and commits take is the tree.
        if !self.is_in_place() && entries.iter().any(is_changed) {
            if let TreeHold::Held(held) = self.hold_tree(tree)? {
                put_back.add_traces(held.put_back);
            }
            entries = self.read_status(&index_git)?;
        }
        Ok(FrozenReading { reading: self.describe_state(entries, &[], masker)?, put_back })
    }

    /// Returns the frozen tree; `None` if nothing is frozen since the work began where it does.
    pub(super) fn find_frozen_tree(&self) -> Option<TreeId> {
        let mark_text = fs::read(self.directory.join(MARK_FILE)).ok()?;
        let mark: FrozenMark = serde_json::from_slice(&mark_text).ok()?;
        let has_index = self.control_git().with_frozen_index().index_file().is_file();
        (mark.base == self.record.base && has_index).then_some(mark.tree)
    }

    /// Returns the git directory with the index of a tree. It is made anew if it is that of another tree.
    pub(super) fn require_index(&self, tree: &TreeId) -> Result<ControlGit, WorkspaceError> {
        let index_git = self.control_git().with_frozen_index();
        index_git.remove_index_lock();
        if self.find_frozen_tree().as_ref() != Some(tree) {
            self.forget_mark()?;
            let _ = fs::remove_file(index_git.index_file());
            index_git.run(["read-tree", tree.as_str()])?;
            self.write_mark(tree)?;
        }
        Ok(index_git)
    }

    /// A process that ends while the index changes must not leave a mark that says something else.
    fn forget_mark(&self) -> Result<(), WorkspaceError> {
        let mark_path = self.directory.join(MARK_FILE);
        remove_if_present(&mark_path).at_path(&mark_path)
    }

    /// Notes that what is new from now on may be an agent's, until it is frozen.
    pub fn mark_unfrozen(&self) -> Result<(), WorkspaceError> {
        let unfrozen_mark = self.directory.join(UNFROZEN_FILE);
        atomic_files::write_privately(&unfrozen_mark, b"").at_path(&unfrozen_mark)
    }

    /// Lists files in the user's checkout that were made since the content was frozen, and not by an agent: none has worked since then.
    /// What the user has staged is meant to be a part of the work.
    pub fn list_files_made_meanwhile(&self) -> Result<Vec<String>, WorkspaceError> {
        if !self.is_in_place() || self.is_parked() || self.directory.join(UNFROZEN_FILE).exists() {
            return Ok(Vec::new());
        }
        let Some(tree) = self.find_frozen_tree() else { return Ok(Vec::new()) };
        let mut new_entries = self.read_status(&self.require_index(&tree)?)?;
        new_entries.retain(|entry| !entry.is_tracked() && !entry.is_nested_repository());
        if new_entries.is_empty() {
            return Ok(Vec::new());
        }
        let repository = UserRepository::open_around(&self.record.project_root)?;
        let staged_paths = repository.list_staged(&repository.layout.work_tree_top, "HEAD")?;
        let committed_paths = self.list_committed_by_user()?;
        let is_users = |path: &Vec<u8>| !staged_paths.contains(path) && !committed_paths.contains(path);
        let made = new_entries.iter().map(|entry| &entry.path).filter(|path| is_users(path));
        Ok(made.map(|path| self.shown_path(path)).collect())
    }

    fn mark_index(&self, index_git: &ControlGit) -> Result<TreeId, WorkspaceError> {
        let tree = TreeId::new(index_git.query_text(["write-tree"])?);
        self.write_mark(&tree)?;
        Ok(tree)
    }

    fn write_mark(&self, tree: &TreeId) -> Result<(), WorkspaceError> {
        let mark_path = self.directory.join(MARK_FILE);
        let mark = FrozenMark { base: self.record.base.clone(), tree: tree.clone() };
        let mark_text = serde_json::to_vec(&mark).map_err(io::Error::other).at_path(&mark_path)?;
        atomic_files::write_privately(&mark_path, &mark_text).at_path(&mark_path)
    }
}

fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}
