//! Commits the content of a workspace, and stores the commits in the user's repository under a ref of Tribunal's own.

use std::{fs, io, process::Command};

use tribunal_engine::ids::{CommitId, TreeId};
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::development::workspace::DevelopmentPlace;

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError,
    control_git::{ControlGit, TipTrees},
    git_listings::parse_raw_diff,
    own_git_files::replace_agent_git,
    user_repository::{CommitRole, UserRepository},
};
use crate::{
    git::{run_checked, run_piped, to_trimmed_text},
    project::atomic_files,
    workspaces::TaskWorkspace,
};

/// The author of commits where git knows no name.
const FALLBACK_NAME: &str = "Tribunal";
const FALLBACK_EMAIL: &str = "tribunal@localhost";
/// Settings about signatures that are taken from the repository, too. The programs come only from the user's configuration.
const SIGNING_SETTINGS: [&str; 2] = ["user.signingkey", "gpg.format"];

/// What there is to commit.
#[derive(Debug)]
pub(crate) enum PreparedCommit {
    /// An earlier process made this very commit and ended before it could tell.
    AlreadyMade(CommitId),
    Unchanged(CommitId),
    Ready(ReadyCommit),
}

/// The content of the next commit.
#[derive(Clone, Debug)]
pub(crate) struct ReadyCommit {
    pub tree: TreeId,
    pub parent: CommitId,
    pub parent_tree: TreeId,
    pub base_tree: TreeId,
    /// The last commit of the workspace, which is the parent unless commits are squashed.
    pub tip: CommitId,
}

/// How a commit relates to the earlier ones of its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitForm {
    /// It follows them.
    Added,
    /// It takes their place.
    Squashed,
}

/// The last commit, with the request that it was made for.
#[derive(Serialize, Deserialize)]
struct CommitRecord {
    request: String,
    commit: CommitId,
}

impl DevelopmentWorkspace {
    /// Prepares a commit of frozen content. `request` tells one request to commit from another.
    pub fn prepare_commit(
        &self,
        tree: &TreeId,
        request: &str,
        commit_form: CommitForm,
    ) -> Result<PreparedCommit, WorkspaceError> {
        self.refuse_broken_seals()?;
        self.prepare_commit_index(tree)?;
        let ready = self.describe_tree(tree.clone())?;
        if ready.parent_tree != ready.tree {
            return self.in_form(ready, commit_form);
        }
        match self.read_commit_record() {
            Some(record) if record.request == request && record.commit == ready.parent => {
                // The earlier process may have ended before the user's repository had the commit.
                let repository = UserRepository::open_around(&self.record.project_root)?;
                self.publish_commit(&repository, &record.commit)?;
                Ok(PreparedCommit::AlreadyMade(record.commit))
            }
            // Several commits become one although nothing has changed since the last of them.
            _ if commit_form == CommitForm::Squashed && ready.parent != self.record.base => {
                self.in_form(ready, commit_form)
            }
            _ => Ok(PreparedCommit::Unchanged(ready.parent)),
        }
    }

    /// Prepares a commit that follows the last one, or the base.
    fn in_form(&self, ready: ReadyCommit, commit_form: CommitForm) -> Result<PreparedCommit, WorkspaceError> {
        if commit_form == CommitForm::Added {
            return Ok(PreparedCommit::Ready(ready));
        }
        let (base, base_tree) = (self.record.base.clone(), ready.base_tree.clone());
        // All work was taken back.
        if base_tree == ready.tree {
            return Ok(PreparedCommit::Unchanged(base));
        }
        Ok(PreparedCommit::Ready(ReadyCommit { parent: base, parent_tree: base_tree, ..ready }))
    }

    /// Stages the content in the index of the commit, and returns what a commit of it would be.
    pub fn stage_commit(&self) -> Result<ReadyCommit, WorkspaceError> {
        self.refuse_broken_seals()?;
        self.update_commit_index()?;
        self.describe_tree(self.control_git().with_commit_index().query_text(["write-tree"]).map(TreeId::new)?)
    }

    fn refuse_broken_seals(&self) -> Result<(), WorkspaceError> {
        if let Some(broken_seal) = self.find_broken_seals().first() {
            let shown_path = self.shown_path(&broken_seal.path);
            return Err(WorkspaceError::new_refusal(format!(
                "{shown_path} was changed, but only the repository's own configuration defines its filter, and that one does not \
                 run; define the filter in your own configuration (`git config --global`), or leave the file as it is"
            )));
        }
        Ok(())
    }

    fn describe_tree(&self, tree: TreeId) -> Result<ReadyCommit, WorkspaceError> {
        let control_git = self.control_git();
        let TipTrees { tip, tree: parent_tree, base_tree } = control_git.read_tip_with_trees(&self.record.base)?;
        Ok(ReadyCommit { tree, tip: tip.clone(), parent: tip, parent_tree, base_tree })
    }

    /// Returns the files that differ between two trees.
    pub fn list_differences(&self, old_tree: &str, new_tree: &str) -> Result<Vec<String>, WorkspaceError> {
        let output = self.control_git().run(["diff-tree", "-r", "--raw", "-z", "--no-renames", old_tree, new_tree])?;
        Ok(parse_raw_diff(&output).iter().map(|change| self.shown_path(&change.path)).collect())
    }

    /// Commits what was staged.
    pub fn finish_commit(&self, ready: &ReadyCommit, message: &str, request: &str) -> Result<CommitId, WorkspaceError> {
        let repository = UserRepository::open_around(&self.record.project_root)?;
        let control_git = self.control_git();
        let author = repository.read_identity(CommitRole::Author);
        let mut command = new_commit_command(&repository, &control_git);
        let (name, email) = author.unwrap_or_else(|| (FALLBACK_NAME.into(), FALLBACK_EMAIL.into()));
        command.env("GIT_AUTHOR_NAME", name).env("GIT_AUTHOR_EMAIL", email);
        let commit = write_commit(command, ready.tree.as_str(), &ready.parent, message)?;
        let record = CommitRecord { request: request.to_string(), commit };
        // The record comes before the branch: without it, a repeated request would not know the commit for its own.
        let record_path = self.commit_record_path();
        let record_text = serde_json::to_vec(&record).map_err(io::Error::other).at_path(&record_path)?;
        atomic_files::write_privately(&record_path, &record_text).at_path(&record_path)?;
        control_git.move_tip(&ready.tip, &record.commit)?;
        self.publish_commit(&repository, &record.commit)?;
        Ok(record.commit)
    }

    /// Gives a commit a ref of its own beside that of the workspace, so that it stays when later commits take its place.
    pub fn keep_commit(&self, commit: &CommitId) -> Result<(), WorkspaceError> {
        let repository = UserRepository::open_around(&self.record.project_root)?;
        repository.set_own_ref(&format!("{}-{}", self.work_ref(), commit.short_hex()), commit)
    }

    /// Replaces what agents may have left in the tree for us to read: their own repository, and our own directory in it. From then on
    /// git may look at the tree, as long as no agent works in it.
    pub fn distrust_agent_files(&self) -> Result<(), WorkspaceError> {
        if self.record.place != DevelopmentPlace::Clone {
            return Ok(());
        }
        let own_dir = self.agent_dir().join(".tribunal/work");
        if fs::symlink_metadata(&own_dir).is_ok() {
            TaskWorkspace::from_directory(own_dir.clone()).remove().at_path(&own_dir)?;
        }
        let repository = UserRepository::open_around(&self.record.project_root)?;
        let control_git = self.control_git();
        let tip = control_git.read_tip()?;
        replace_agent_git(&repository, &control_git, &self.record, &tip)
    }

    fn commit_record_path(&self) -> std::path::PathBuf {
        self.directory.join("commit.json")
    }

    fn read_commit_record(&self) -> Option<CommitRecord> {
        serde_json::from_slice(&fs::read(self.commit_record_path()).ok()?).ok()
    }

    /// Copies the objects of the workspace's commits into the user's repository, and lets the agent's own repository follow.
    pub(super) fn publish_commit(&self, repository: &UserRepository, commit: &CommitId) -> Result<(), WorkspaceError> {
        let control_git = self.control_git();
        let work_ref = self.work_ref();
        // What the ref has is there already. If the user removed the ref, everything since the base is copied again.
        let known_commit = repository.find_commit(&work_ref)?.unwrap_or_else(|| self.record.base.clone());
        if known_commit != *commit {
            let mut packing = control_git.new_command();
            packing.args(["pack-objects", "--revs", "--thin", "--stdout", "-q"]);
            let wanted = format!("{commit}\n^{known_commit}\n^{}\n", self.record.base);
            let mut unpacking = repository.checkout_command(repository.project_root());
            unpacking.args(["unpack-objects", "-q"]);
            // A pack can be larger than the memory.
            run_piped(packing, wanted.as_bytes(), unpacking)?;
        }
        repository.set_own_ref(&work_ref, commit)?;
        if self.record.place == DevelopmentPlace::Clone {
            replace_agent_git(repository, &control_git, &self.record, commit)?;
        }
        Ok(())
    }
}

/// Returns a command that makes a commit as the user, signed if the user's commits are.
pub(super) fn new_commit_command(repository: &UserRepository, control_git: &ControlGit) -> Command {
    let mut command = control_git.new_command();
    let (name, email) = repository
        .read_identity(CommitRole::Committer)
        .unwrap_or_else(|| (FALLBACK_NAME.to_string(), FALLBACK_EMAIL.to_string()));
    command.env("GIT_COMMITTER_NAME", name).env("GIT_COMMITTER_EMAIL", email);
    let is_signed = repository.is_enabled("commit.gpgsign");
    for key in SIGNING_SETTINGS {
        if let Some(value) = repository.effective_setting(key).filter(|_| is_signed) {
            command.arg("-c").arg(format!("{key}={value}"));
        }
    }
    command.arg("commit-tree");
    if is_signed {
        command.arg("-S");
    }
    command
}

pub(super) fn write_commit(
    mut command: Command,
    tree: &str,
    parent: &CommitId,
    message: &str,
) -> Result<CommitId, WorkspaceError> {
    command.args(["-p", parent.as_str(), tree]);
    let message_bytes = format!("{}\n", message.trim_end()).into_bytes();
    let output = run_checked(command, Some(message_bytes))?;
    Ok(CommitId::new(to_trimmed_text(&output)))
}
