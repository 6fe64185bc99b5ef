//! Decides which workspaces are kept.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::TaskWorkspace;

/// Removes the workspaces of a run, except those that are retained.
pub(crate) fn clear_workspaces(work_dir: &Path) {
    for task_dir in fs::read_dir(work_dir).into_iter().flatten().flatten() {
        let dir_entries = fs::read_dir(task_dir.path()).into_iter().flatten().flatten();
        let attempts: Vec<_> = dir_entries.map(|dir_entry| dir_entry.path()).collect();
        // A task without a retained attempt goes as a whole, with the files beside its attempts.
        if !attempts.iter().any(|attempt_path| retain_marker(attempt_path).exists()) {
            let _ = TaskWorkspace::from_directory(task_dir.path()).remove();
            continue;
        }
        for attempt_path in
            attempts.into_iter().filter(|attempt_path| attempt_path.is_dir() && !retain_marker(attempt_path).exists())
        {
            let _ = TaskWorkspace::from_directory(attempt_path).remove();
        }
    }
}

/// Keeps a workspace until [`release_workspace`]: its patch waits for the user's approval.
pub(crate) fn retain_workspace(workspace_dir: &Path) -> io::Result<()> {
    fs::write(retain_marker(workspace_dir), "")
}

pub(crate) fn release_workspace(workspace_dir: &Path) {
    let _ = fs::remove_file(retain_marker(workspace_dir));
}

/// Returns the path of the marker beside the workspace: `3.kept`.
fn retain_marker(workspace_dir: &Path) -> PathBuf {
    workspace_dir.with_extension("kept")
}
