//! Tribunal's own git directory for the files of a workspace.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use tribunal_core::engine::ids::CommitId;

use super::{
    WithPath, WorkspaceError,
    user_repository::{path_option, run_checked},
};
use crate::git::{GitOutput, index_writing_command, run_git, to_trimmed_text};

/// The time limit of one git process. A checkout of a large repository takes minutes.
pub(super) const GIT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The branch with the commits of a workspace, in our own git directory.
pub(super) const WORK_BRANCH: &str = "refs/heads/work";

#[derive(Clone, Debug)]
pub(super) struct ControlGit {
    pub git_dir: PathBuf,
    pub work_tree: PathBuf,
}

impl ControlGit {
    /// Returns a command on our git directory. The git directory of the agent is never looked at.
    pub fn new_command(&self) -> Command {
        let mut command = index_writing_command(&self.work_tree);
        command.arg(path_option("--git-dir", &self.git_dir)).arg(path_option("--work-tree", &self.work_tree)).args([
            "--literal-pathspecs",
            "-c",
            "submodule.recurse=false",
        ]);
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
        run_checked(command, stdin_bytes)
    }

    pub fn query_text<const N: usize>(&self, arguments: [&str; N]) -> Result<String, WorkspaceError> {
        Ok(to_trimmed_text(&self.run(arguments)?))
    }

    pub fn run_unchecked<const N: usize>(&self, arguments: [&str; N]) -> Result<GitOutput, WorkspaceError> {
        let mut command = self.new_command();
        command.args(arguments);
        Ok(run_git(command, None, GIT_TIMEOUT)?)
    }

    /// Returns the last commit of the workspace.
    pub fn read_tip(&self) -> Result<CommitId, WorkspaceError> {
        self.query_text(["rev-parse", "--verify", WORK_BRANCH]).map(CommitId::new)
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
        crate::project::atomic_files::write_atomically(&head_file, head_text.as_bytes()).at_path(&head_file)
    }
}
