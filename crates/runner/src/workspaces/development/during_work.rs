//! Commits that appeared on the branch of the work while something worked in the checkout, and that are not the agent's by their
//! committer. They may be the user's, or those of an agent that hides. So they stay, and the user is asked about them before the work
//! lands on top of them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_engine::ids::CommitId;

use super::{DevelopmentWorkspace, WithPath, WorkspaceError};
use crate::project::atomic_files::write_privately;

const COMMITS_FILE: &str = "commits-during-work.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommitDuringWork {
    pub commit: CommitId,
    pub subject: String,
    /// Whether it says that an agent of the run made it.
    pub is_agents: bool,
    pub is_merge: bool,
    /// Where the branch was before.
    pub before: Option<CommitId>,
}

impl DevelopmentWorkspace {
    pub(super) fn read_commits_during_work(&self) -> Result<Vec<CommitDuringWork>, WorkspaceError> {
        read_commits_during_work(&self.directory)
    }
}

/// Reads the commits that were recorded for a workspace.
fn read_commits_during_work(record_dir: &Path) -> Result<Vec<CommitDuringWork>, WorkspaceError> {
    let commits_file = file_in(record_dir);
    match fs::read(&commits_file) {
        Ok(record_text) => serde_json::from_slice(&record_text).map_err(io::Error::other).at_path(&commits_file),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(cause).at_path(&commits_file),
    }
}

pub(super) fn add_commits_during_work(record_dir: &Path, added: &[CommitDuringWork]) -> Result<(), WorkspaceError> {
    let mut recorded = read_commits_during_work(record_dir)?;
    let is_new = |added: &&CommitDuringWork| !recorded.iter().any(|known| known.commit == added.commit);
    let new_commits: Vec<CommitDuringWork> = added.iter().filter(is_new).cloned().collect();
    recorded.extend(new_commits);
    let commits_file = file_in(record_dir);
    let record_text = serde_json::to_vec_pretty(&recorded).map_err(io::Error::other).at_path(&commits_file)?;
    write_privately(&commits_file, &record_text).at_path(&commits_file)
}

fn file_in(record_dir: &Path) -> PathBuf {
    record_dir.join(COMMITS_FILE)
}
