//! Tribunal's own git directory for the files of a workspace.

use std::{fs, path::PathBuf, process::Command};

use tribunal_engine::ids::{CommitId, TreeId};

use super::{WithPath, WorkspaceError, user_repository::path_option};
use crate::{
    git::{
        GitOutput, WORK_TIMEOUT, index_writing_command, plain_files::read_regular_file, run_checked, run_git,
        to_trimmed_text,
    },
    project::atomic_files::write_atomically,
};

/// The branch with the commits of a workspace, in our own git directory.
pub(super) const WORK_BRANCH: &str = "refs/heads/work";

/// The index that stays at the base.
const BASE_INDEX: &str = "index";
/// The index of the last commit, or of the one that is being made.
const COMMIT_INDEX: &str = "commit-index";
/// The index of frozen content.
const FROZEN_INDEX: &str = "frozen-index";

/// A ref is one line.
const MAX_REF_BYTES: u64 = 4096;

/// The last commit of a workspace, and what it is compared with.
pub(super) struct TipTrees {
    pub tip: CommitId,
    pub tree: TreeId,
    pub base_tree: TreeId,
}

#[derive(Clone, Debug)]
pub(super) struct ControlGit {
    pub git_dir: PathBuf,
    pub work_tree: PathBuf,
    /// The file name of the index that commands use.
    index_name: &'static str,
}

impl ControlGit {
    pub fn new(git_dir: PathBuf, work_tree: PathBuf) -> ControlGit {
        ControlGit { git_dir, work_tree, index_name: BASE_INDEX }
    }

    /// Returns the same directory for commands that use the index of the next commit.
    pub fn with_commit_index(&self) -> ControlGit {
        ControlGit { index_name: COMMIT_INDEX, ..self.clone() }
    }

    /// Returns the same directory for commands that use the index of frozen content.
    pub fn with_frozen_index(&self) -> ControlGit {
        ControlGit { index_name: FROZEN_INDEX, ..self.clone() }
    }

    /// Makes this index a copy of another one.
    pub fn copy_index_from(&self, other: &ControlGit) -> Result<(), WorkspaceError> {
        self.remove_index_lock();
        let (old_index, new_index) = (other.index_file(), self.index_file());
        let copy_with_time = || {
            fs::copy(&old_index, &new_index)?;
            // Git reads a file that is as young as the index. With a later time, a file that was changed in the same second and to the
            // same size would count as unchanged.
            let modified = fs::metadata(&old_index)?.modified()?;
            fs::File::options().write(true).open(&new_index)?.set_modified(modified)
        };
        copy_with_time().at_path(&new_index)
    }

    /// Removes the lock that a killed process has left. No other process can have it: only this run uses the directory.
    pub fn remove_index_lock(&self) {
        let _ = fs::remove_file(self.git_dir.join(format!("{}.lock", self.index_name)));
    }

    pub fn index_file(&self) -> PathBuf {
        self.git_dir.join(self.index_name)
    }

    /// Makes the index of the next commit: that of the base, which knows which files are unchanged.
    pub fn create_commit_index(&self) -> Result<(), WorkspaceError> {
        let (base_index, commit_index) = (self.git_dir.join(BASE_INDEX), self.git_dir.join(COMMIT_INDEX));
        [self, &self.with_commit_index()].iter().for_each(|git| git.remove_index_lock());
        self.remember_unchanged_files()?;
        fs::copy(&base_index, &commit_index).at_path(&commit_index).map(drop)
    }

    /// Lets the index know which files are unchanged, so that git need not read them again.
    pub fn remember_unchanged_files(&self) -> Result<(), WorkspaceError> {
        // It reports changed files as a failure.
        self.run_unchecked(["update-index", "-q", "--refresh"]).map(drop)
    }

    /// Returns the index that goes with the last commit.
    pub fn latest_index_file(&self) -> PathBuf {
        let commit_index = self.git_dir.join(COMMIT_INDEX);
        if commit_index.exists() { commit_index } else { self.git_dir.join(BASE_INDEX) }
    }

    /// Returns a command on our git directory. The git directory of the agent is never looked at.
    pub fn new_command(&self) -> Command {
        let mut command = index_writing_command(&self.work_tree);
        command.arg(path_option("--git-dir", &self.git_dir)).arg(path_option("--work-tree", &self.work_tree)).args([
            "--literal-pathspecs",
            "-c",
            "submodule.recurse=false",
        ]);
        if self.index_name != BASE_INDEX {
            command.env("GIT_INDEX_FILE", self.index_file());
        }
        command
    }

    pub fn run<const N: usize>(&self, arguments: [&str; N]) -> Result<Vec<u8>, WorkspaceError> {
        self.run_with_input(arguments, None)
    }

    pub fn run_with_input<const N: usize>(
        &self,
        arguments: [&str; N],
        stdin_bytes: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let mut command = self.new_command();
        command.args(arguments);
        Ok(run_checked(command, stdin_bytes)?)
    }

    pub fn query_text<const N: usize>(&self, arguments: [&str; N]) -> Result<String, WorkspaceError> {
        Ok(to_trimmed_text(&self.run(arguments)?))
    }

    pub fn run_unchecked<const N: usize>(&self, arguments: [&str; N]) -> Result<GitOutput, WorkspaceError> {
        let mut command = self.new_command();
        command.args(arguments);
        Ok(run_git(command, None, WORK_TIMEOUT)?)
    }

    /// Returns the last commit of the workspace.
    pub fn read_tip(&self) -> Result<CommitId, WorkspaceError> {
        match self.read_tip_file() {
            Some(tip) => Ok(tip),
            None => self.query_text(["rev-parse", "--verify", WORK_BRANCH]).map(CommitId::new),
        }
    }

    /// Reads the file of our branch; `None` if a hook has packed it, or put something else in its place.
    fn read_tip_file(&self) -> Option<CommitId> {
        let ref_bytes = read_regular_file(&self.git_dir.join(WORK_BRANCH), MAX_REF_BYTES).ok()?;
        let commit_text = str::from_utf8(&ref_bytes).ok()?.strip_suffix('\n')?;
        let is_commit_id = matches!(commit_text.len(), 40 | 64) && commit_text.bytes().all(|b| b.is_ascii_hexdigit());
        is_commit_id.then(|| CommitId::new(commit_text))
    }

    /// Moves our branch from the commit where it is expected to be. No other process uses the directory, so a file is enough.
    pub fn move_tip(&self, expected: &CommitId, new_tip: &CommitId) -> Result<(), WorkspaceError> {
        if self.read_tip_file().as_ref() != Some(expected) {
            return self.run(["update-ref", WORK_BRANCH, new_tip.as_str(), expected.as_str()]).map(drop);
        }
        let ref_file = self.git_dir.join(WORK_BRANCH);
        write_atomically(&ref_file, format!("{new_tip}\n").as_bytes()).at_path(&ref_file)
    }

    /// Returns the last commit of the workspace, its tree, and the tree of the base.
    pub fn read_tip_with_trees(&self, base: &CommitId) -> Result<TipTrees, WorkspaceError> {
        let output = self.query_text([
            "rev-parse",
            WORK_BRANCH,
            &format!("{WORK_BRANCH}^{{tree}}"),
            &format!("{base}^{{tree}}"),
        ])?;
        match output.lines().collect::<Vec<&str>>()[..] {
            [commit, tree, base_tree] => {
                Ok(TipTrees { tip: CommitId::new(commit), tree: TreeId::new(tree), base_tree: TreeId::new(base_tree) })
            }
            _ => Err(WorkspaceError::new_refusal("git did not name the last commit of the workspace")),
        }
    }

    pub fn read_tree_of(&self, commit: &CommitId) -> Result<String, WorkspaceError> {
        self.query_text(["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
    }

    /// Detaches HEAD at a commit: the base, so that one `git status` tells what differs from it, or the last commit while hooks
    /// run, so that they see what is about to be committed.
    pub fn set_head(&self, commit: &CommitId) -> Result<(), WorkspaceError> {
        let head_file = self.git_dir.join("HEAD");
        let head_text = format!("{commit}\n");
        if fs::read_to_string(&head_file).is_ok_and(|current_text| current_text == head_text) {
            return Ok(());
        }
        write_atomically(&head_file, head_text.as_bytes()).at_path(&head_file)
    }
}
