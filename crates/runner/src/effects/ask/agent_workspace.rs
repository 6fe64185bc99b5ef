//! Where an agent works, and what is guarded meanwhile.

use std::path::PathBuf;

use tribunal_core::development::workspace::DevelopmentPlace;

use crate::workspaces::{
    TaskWorkspace,
    development::{DevelopmentWorkspace, GuardedFiles},
};

/// Where an agent works.
pub(super) enum AgentWorkspace {
    Copy {
        workspace: TaskWorkspace,
    },
    Development {
        workspace: Box<DevelopmentWorkspace>,
        /// What the agent must not change, if it works in the user's checkout.
        guarded_files: Option<Box<GuardedFiles>>,
    },
}

impl AgentWorkspace {
    /// Returns the copy of the project, if that is where the agent works.
    pub fn task_copy(&self) -> Option<&TaskWorkspace> {
        match self {
            AgentWorkspace::Copy { workspace } => Some(workspace),
            AgentWorkspace::Development { .. } => None,
        }
    }

    /// Whether the agent works in the user's checkout itself.
    pub fn is_in_place(&self) -> bool {
        match self {
            AgentWorkspace::Copy { .. } => false,
            AgentWorkspace::Development { workspace, .. } => workspace.record.place == DevelopmentPlace::InPlace,
        }
    }

    /// Returns the directory that belongs to the agent. The project may be only a part of it.
    pub fn writable_dir(&self) -> PathBuf {
        match self {
            AgentWorkspace::Copy { workspace } => workspace.tree_dir(),
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
            AgentWorkspace::Copy { workspace } => workspace.tree_dir(),
            AgentWorkspace::Development { workspace, .. } => workspace.agent_dir(),
        }
    }
}
