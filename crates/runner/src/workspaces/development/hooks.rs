//! The user's commit hooks: which would run, and in which environment.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::Hash;

use super::{DevelopmentWorkspace, WithPath, WorkspaceError, user_repository::UserRepository};
use crate::{
    git::{git_command, run_checked, to_trimmed_text},
    project::atomic_files,
};
use tribunal_engine::ids::CommitId;

/// The hooks that run before a commit. `prepare-commit-msg` is for the user's editor and does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitHook {
    PreCommit,
    CommitMsg,
}

impl CommitHook {
    pub fn file_name(self) -> &'static str {
        match self {
            CommitHook::PreCommit => "pre-commit",
            CommitHook::CommitMsg => "commit-msg",
        }
    }
}

/// A hook that would run. It may have come with the repository, so the user has to have agreed to its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitHookFile {
    pub hook: CommitHook,
    pub path: PathBuf,
    pub content_hash: Hash,
}

/// Lists the hooks that would run before a commit of a project; none where there is no repository.
pub fn list_commit_hooks(project_root: &Path) -> Vec<CommitHookFile> {
    let Ok(repository) = UserRepository::open_around(project_root) else { return Vec::new() };
    find_hooks(&repository).unwrap_or_default()
}

fn find_hooks(repository: &UserRepository) -> Result<Vec<CommitHookFile>, WorkspaceError> {
    let hooks_dir = match repository.effective_setting("core.hookspath") {
        None => repository.layout.common_dir.join("hooks"),
        Some(hooks_path) => {
            let mut command = git_command(&repository.layout.work_tree_top);
            // Our commands switch hooks off, so the user's setting is passed once more, for git to expand a path like `~/hooks`.
            command.arg("-c").arg(format!("core.hooksPath={hooks_path}")).args(["rev-parse", "--git-path", "hooks"]);
            repository.layout.work_tree_top.join(to_trimmed_text(&run_checked(command, None)?))
        }
    };
    let hooks = [CommitHook::PreCommit, CommitHook::CommitMsg].into_iter().filter_map(|hook| {
        let path = hooks_dir.join(hook.file_name());
        // Git passes over hooks that are not executable, too.
        let metadata = fs::metadata(&path).ok()?;
        let is_runnable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        let content_hash = atomic_files::hash_file(&path).ok().filter(|_| is_runnable)?;
        Some(CommitHookFile { hook, path, content_hash })
    });
    Ok(hooks.collect())
}

impl DevelopmentWorkspace {
    /// Lists the user's hooks, which are those of the checkout and not of the workspace.
    pub fn commit_hooks(&self) -> Result<Vec<CommitHookFile>, WorkspaceError> {
        find_hooks(&UserRepository::open_around(&self.record.project_root)?)
    }

    /// Returns the directory in which hooks run: the root of the work tree.
    pub fn hook_dir(&self) -> PathBuf {
        self.record.tree.clone()
    }

    /// Returns what a hook may write: the files, and the index and objects of our git directory.
    pub fn hook_writable_paths(&self) -> Vec<PathBuf> {
        vec![self.record.tree.clone(), self.control_git().git_dir]
    }

    /// Returns the variables with which a hook sees what is staged for the commit.
    pub fn hook_env(&self) -> BTreeMap<String, OsString> {
        let commit_git = self.control_git().with_commit_index();
        BTreeMap::from([
            ("GIT_DIR".to_string(), commit_git.git_dir.clone().into_os_string()),
            ("GIT_INDEX_FILE".to_string(), commit_git.index_file().into_os_string()),
            ("GIT_WORK_TREE".to_string(), commit_git.work_tree.into_os_string()),
            ("GIT_PREFIX".to_string(), OsString::new()),
            // A hook that wants an editor must not wait for a user.
            ("GIT_EDITOR".to_string(), ":".into()),
        ])
    }

    /// Lets HEAD be the last commit while hooks run, so that they see only what is new.
    pub fn begin_hooks(&self, parent: &CommitId) -> Result<(), WorkspaceError> {
        self.control_git().set_head(parent)
    }

    pub fn end_hooks(&self) -> Result<(), WorkspaceError> {
        self.control_git().set_head(&self.record.base)
    }

    /// Writes the message for the hook that may change it.
    pub fn write_message_file(&self, message: &str) -> Result<PathBuf, WorkspaceError> {
        let message_file = self.control_git().git_dir.join("COMMIT_EDITMSG");
        fs::write(&message_file, format!("{}\n", message.trim_end())).at_path(&message_file)?;
        Ok(message_file)
    }

    pub fn read_message_file(&self) -> Result<String, WorkspaceError> {
        let message_file = self.control_git().git_dir.join("COMMIT_EDITMSG");
        let bytes = fs::read(&message_file).at_path(&message_file)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_string())
    }
}
