//! Decides which workspaces are kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::TaskWorkspace;

/// Removes the workspaces of a run, except these. Which ones are kept follows from the journal: an agent could write a mark.
pub(crate) fn clear_workspaces(work_dir: &Path, retained_workspaces: &[PathBuf]) {
    for task_dir in fs::read_dir(work_dir).into_iter().flatten().flatten() {
        let dir_entries = fs::read_dir(task_dir.path()).into_iter().flatten().flatten();
        let attempts: Vec<_> = dir_entries.map(|dir_entry| dir_entry.path()).collect();
        // A task without a retained attempt goes as a whole, with the files beside its attempts.
        if !attempts.iter().any(|attempt_path| retained_workspaces.contains(attempt_path)) {
            let _ = TaskWorkspace::from_directory(task_dir.path()).remove();
            continue;
        }
        for attempt_path in attempts
            .into_iter()
            .filter(|attempt_path| attempt_path.is_dir() && !retained_workspaces.contains(attempt_path))
        {
            let _ = TaskWorkspace::from_directory(attempt_path).remove();
        }
    }
}
