//! Merges two changes of the same commit without touching a file.

use super::{WorkspaceError, conflict_sides::MergeSides, control_git::ControlGit};
use crate::git::to_trimmed_text;

/// What git made of two changes of the same commit.
pub(super) struct MergedTree {
    /// The merged content. Files with conflicts have git's marks in it.
    pub tree: String,
    /// The files with conflicts, as git names them.
    pub conflicts: Vec<Vec<u8>>,
}

/// Merges what both sides changed since their base.
pub(super) fn merge_trees(control_git: &ControlGit, sides: &MergeSides<'_>) -> Result<MergedTree, WorkspaceError> {
    let merge_base = format!("--merge-base={}", sides.base);
    let arguments = ["merge-tree", "--write-tree", "-z", "--name-only", &merge_base, sides.on_branch, sides.in_work];
    let merged = control_git.run_unchecked(arguments)?;
    let mut parts = merged.stdout.split(|byte| *byte == 0);
    let tree = to_trimmed_text(parts.next().unwrap_or_default());
    if merged.succeeded {
        return Ok(MergedTree { tree, conflicts: Vec::new() });
    }
    // Exit code 1 stands for conflicts; then the conflicted paths follow the tree, up to an empty one.
    let conflicts: Vec<Vec<u8>> = parts.take_while(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    if tree.is_empty() || conflicts.is_empty() {
        return Err(explain_merge_failure(merged.to_error("merge-tree").into()));
    }
    Ok(MergedTree { tree, conflicts })
}

/// Says which version of git is needed, if this one does not know the command.
fn explain_merge_failure(cause: WorkspaceError) -> WorkspaceError {
    let cause_text = cause.to_string();
    if cause_text.contains("usage") || cause_text.contains("unknown option") {
        return WorkspaceError::new_refusal("this git cannot rebase without a checkout; install git 2.40 or newer");
    }
    cause
}
