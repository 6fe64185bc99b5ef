//! Where an agent works, and what is watched and guarded meanwhile.

use std::path::PathBuf;

use crate::workspaces::{
    TaskWorkspace, WorkTreeWatch,
    development::{DevelopmentWorkspace, GuardedFiles},
};

/// Where an agent works.
pub(super) enum AgentWorkspace {
    Copy {
        workspace: TaskWorkspace,
        /// The user's tree as it was when the agent began.
        work_tree_watch: WorkTreeWatch,
    },
    /// A workspace for development. The user's tree is not watched: it is no copy of it, so every file would have to be read.
    Development {
        workspace: Box<DevelopmentWorkspace>,
        /// What the agent must not change, if it works in the user's checkout.
        guarded_files: Option<Box<GuardedFiles>>,
    },
}

impl AgentWorkspace {
    /// Returns the directory that belongs to the agent. The project may be only a part of it.
    pub fn writable_dir(&self) -> PathBuf {
        match self {
            AgentWorkspace::Copy { workspace, .. } => workspace.tree_dir(),
            AgentWorkspace::Development { workspace, .. } => workspace.record.tree.clone(),
        }
    }

    /// Puts back what the agent must not have changed. Returns what the user should know.
    pub fn put_back_guarded_files(&mut self) -> Vec<String> {
        match self {
            AgentWorkspace::Development { guarded_files, .. } => {
                guarded_files.take().map(|guarded_files| guarded_files.put_back()).unwrap_or_default()
            }
            AgentWorkspace::Copy { .. } => Vec::new(),
        }
    }

    pub fn directory(&self) -> PathBuf {
        match self {
            AgentWorkspace::Copy { workspace, .. } => workspace.tree_dir(),
            AgentWorkspace::Development { workspace, .. } => workspace.agent_dir(),
        }
    }
}
