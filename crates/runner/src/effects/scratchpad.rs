//! The notes that agents keep in a workspace for later sessions.

use std::fs;

use super::EffectContext;
use crate::project::atomic_files::write_atomically;

/// The most bytes of the agents' notes that are kept.
const MAX_SCRATCHPAD_BYTES: u64 = 1 << 20;

/// The file in which agents keep notes, relative to the project's root. It is one of Tribunal's own files.
pub(super) fn scratchpad_path(context: &EffectContext) -> String {
    format!(".tribunal/scratch/{}.md", context.run_id)
}

/// Copies the agents' notes into the project before the workspace goes. They are only a convenience, so a copy that fails is
/// no reason to keep the workspace.
pub(super) fn keep_scratchpad(context: &EffectContext, workspace_name: &str) {
    let scratchpad = scratchpad_path(context);
    let Ok(agent_dir) = context.development_dir(workspace_name) else { return };
    let (notes_file, kept_file) = (agent_dir.join(&scratchpad), context.project.root().join(&scratchpad));
    let is_short_file = fs::symlink_metadata(&notes_file)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SCRATCHPAD_BYTES);
    if !is_short_file || notes_file == kept_file || context.project.resolve_outside(&kept_file).is_some() {
        return;
    }
    let Ok(notes) = fs::read(&notes_file) else { return };
    let masked_notes = context.masker.mask(&String::from_utf8_lossy(&notes)).into_owned();
    let created = kept_file.parent().map(fs::create_dir_all).transpose();
    let _ = created.and_then(|_| write_atomically(&kept_file, masked_notes.as_bytes()));
}
