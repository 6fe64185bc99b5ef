//! Where an agent works, and what is guarded meanwhile.

use std::{ffi::OsString, path::PathBuf};

use tribunal_workflows::development::workspace::DevelopmentPlace;

use crate::{
    effects::{EffectContext, development::take_back_commits},
    workspaces::{
        TaskWorkspace,
        development::{
            DevelopmentWorkspace, GuardedFiles,
            agent_commits::{COMMITTER_VARIABLE, agent_committer},
        },
    },
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

    /// Returns the variable by which commits of the agent are known, if it works in the user's checkout.
    pub fn committer_variable(&self) -> Option<(String, OsString)> {
        match self {
            AgentWorkspace::Development { workspace, .. } if self.is_in_place() => {
                Some((COMMITTER_VARIABLE.to_string(), agent_committer(&workspace.record.run).into()))
            }
            _ => None,
        }
    }

    /// Puts back what the agent must not have changed, and takes back what it committed in the user's checkout. Returns what the
    /// user should know.
    pub fn end_work(&mut self, context: &EffectContext) -> Vec<String> {
        let AgentWorkspace::Development { workspace, guarded_files } = self else { return Vec::new() };
        // This comes before git is used: it puts back what git would obey.
        let mut remarks = guarded_files.take().map(|guarded_files| guarded_files.put_back()).unwrap_or_default();
        match take_back_commits(context, workspace) {
            Ok(remark) => remarks.extend(remark),
            // It is tried again before the work is committed.
            Err(fault) => remarks.push(format!("could not take back what the agent committed by itself: {fault}")),
        }
        if workspace.is_in_place() {
            // What the user makes from now on is not taken for the agent's, also if the run is stopped here. If it cannot be frozen, it is,
            // as after a kill.
            let _ = workspace.freeze_content(&context.masker);
        }
        remarks
    }

    pub fn directory(&self) -> PathBuf {
        match self {
            AgentWorkspace::Copy { workspace } => workspace.tree_dir(),
            AgentWorkspace::Development { workspace, .. } => workspace.agent_dir(),
        }
    }
}

/// Returns a new directory for every attempt, so that an agent of an earlier process that still writes cannot disturb this one.
pub(super) fn next_attempt_workspace(task_dir: PathBuf) -> TaskWorkspace {
    let mut attempt = 1;
    while task_dir.join(attempt.to_string()).exists() {
        attempt += 1;
    }
    TaskWorkspace::from_directory(task_dir.join(attempt.to_string()))
}
