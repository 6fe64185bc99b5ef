//! Stray edits: what changed in the user's tree while an agent worked, other than by a landing.
//!
//! Whether the agent or the user made such an edit cannot be told from here, so the workflow asks. The earlier content is
//! stored first, so that it can be restored.

use std::{fs, io, path::Path};

use tribunal_core::engine::{effect::RestoreOutcome, files::StrayEdit, ids::Hash};

use super::{EffectContext, environment_fault};
use crate::{
    engine::locks,
    git::git_command,
    landing::{checkpoints::CheckpointStore, merging::merge_or_first_conflict, parked_files::park_file},
    project::{
        atomic_files::write_atomically,
        subject::{find_link_on_path, is_plain_path},
    },
    workspaces::{ExternalEdit, TaskWorkspace, WorkTreeWatch},
};

/// Returns all files that are no longer as they were when the agent began.
pub(super) fn find_stray_edits(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    work_tree_watch: &WorkTreeWatch,
) -> Vec<StrayEdit> {
    let own_prefixes = own_directories(context);
    let mut strays = Vec::new();
    for ExternalEdit { relative_path, hash_before, hash_after } in
        work_tree_watch.find_external_edits(context.project.root())
    {
        // Landings of this and of other runs change files as well; those are not strays.
        let is_own_landing = CheckpointStore::is_own_text(&context.project, &relative_path, hash_after.as_ref());
        if is_own_landing || own_prefixes.iter().any(|directory| relative_path.starts_with(directory)) {
            continue;
        }
        let mut stray = StrayEdit { path: relative_path, before: hash_before, after: hash_after, kept: false };
        stray.kept = keep_both_versions(context, workspace, &stray);
        strays.push(stray);
    }
    strays
}

/// Lists the directories that Tribunal writes into.
pub(super) fn own_directories(context: &EffectContext) -> [String; 2] {
    let reviews_dir = context.settings.reviews.trim_end_matches('/');
    let parent_prefix = reviews_dir.rsplit_once('/').map_or_else(String::new, |(directory, _)| format!("{directory}/"));
    [format!("{reviews_dir}/"), format!("{parent_prefix}awaiting-human/")]
}

/// Stores both versions of the file. Returns whether the earlier one can be put back: the workspace may have been changed as
/// well, but git may still have the content.
fn keep_both_versions(context: &EffectContext, workspace: &TaskWorkspace, stray: &StrayEdit) -> bool {
    let checkpoints = CheckpointStore::for_run(&context.project, &context.run_id);
    let real_path = context.project.root().join(&stray.path);
    if let Some(current_bytes) =
        read_small_file(&real_path).filter(|current_bytes| Some(Hash::digest_of(current_bytes)) == stray.after)
    {
        let _ = checkpoints.store_bytes(&current_bytes);
    }
    // The user must not be offered what `put_file_back` would refuse.
    if find_obstacle(context, &stray.path).is_some() {
        return false;
    }
    // A file that did not exist needs no stored content: restoring it means removing it.
    let Some(hash_before) = &stray.before else { return true };
    let read_from_workspace = || {
        workspace
            .read_base(&stray.path)
            .ok()
            .flatten()
            .or_else(|| read_small_file(&workspace.tree_dir().join(&stray.path)))
    };
    let matches_before = |bytes: &Vec<u8>| Hash::digest_of(bytes) == *hash_before;
    let bytes = read_from_workspace()
        .filter(matches_before)
        .or_else(|| read_staged(context, &stray.path).filter(matches_before));
    bytes.is_some_and(|bytes| checkpoints.store_bytes(&bytes).is_ok())
}

/// Reads an ordinary file of a reasonable size.
fn read_small_file(file_path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(file_path)
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() <= MAX_KEPT_BYTES)?;
    let bytes = fs::read(file_path).ok()?;
    // A different length means that the file was being written at that moment.
    (bytes.len() as u64 == metadata.len()).then_some(bytes)
}

/// Reads the file from git's index.
fn read_staged(context: &EffectContext, relative_path: &str) -> Option<Vec<u8>> {
    let output =
        git_command(context.project.root()).args(["cat-file", "blob", &format!(":./{relative_path}")]).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// Longer files are not stored.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Restores a file as it was before the stray edit.
pub(super) fn restore_stray(context: &EffectContext, stray: &StrayEdit) -> RestoreOutcome {
    match put_file_back(context, stray) {
        Ok(parked) => RestoreOutcome::Restored { parked },
        Err(cause) => environment_fault(cause.to_string()).into(),
    }
}

/// Says why nothing can be put back at this path; `None` if it can.
fn find_obstacle(context: &EffectContext, relative_path: &str) -> Option<String> {
    let is_file_or_missing = match fs::symlink_metadata(context.project.root().join(relative_path)) {
        Ok(metadata) => metadata.is_file(),
        // Any other error is, for instance, a file in place of its directory.
        Err(cause) => cause.kind() == io::ErrorKind::NotFound,
    };
    if !is_plain_path(relative_path) || !is_file_or_missing {
        return Some("it is no longer a regular file".into());
    }
    // Writing through a linked directory would change a file outside the project.
    find_link_on_path(context.project.root(), relative_path).map(|link| format!("it is behind a symlink ({link})"))
}

fn put_file_back(context: &EffectContext, stray: &StrayEdit) -> io::Result<Option<String>> {
    let real_path = context.project.root().join(&stray.path);
    if let Some(obstacle) = find_obstacle(context, &stray.path) {
        return Err(io::Error::other(obstacle));
    }
    let bytes_before = match &stray.before {
        Some(content_hash) => Some(
            CheckpointStore::for_run(&context.project, &context.run_id)
                .read_bytes(content_hash)
                .map_err(|_| io::Error::other("there is no saved copy of the previous version"))?,
        ),
        None => None,
    };
    // The current text is read under the lock, so that no landing can change it in between.
    let _alone = locks::lock_user_tree(&context.project.locks_dir())?;
    let current_bytes = match fs::read(&real_path) {
        Ok(current_bytes) => Some(current_bytes),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
        Err(cause) => return Err(cause),
    };
    if current_bytes == bytes_before {
        return Ok(None);
    }
    // The current text is parked before it is replaced: it may be the only copy.
    let parked_path = match &current_bytes {
        Some(current_bytes) => {
            let parked_file = park_file(&context.project, &context.run_id, &stray.path, current_bytes)?;
            Some(parked_file.display().to_string())
        }
        None => None,
    };
    match (remove_stray_edit(context, stray, current_bytes.as_deref(), bytes_before)?, current_bytes.is_some()) {
        (Some(restored_bytes), _) => write_atomically(&real_path, &restored_bytes)?,
        (None, true) => fs::remove_file(&real_path)?,
        (None, false) => {}
    }
    Ok(parked_path)
}

/// Returns the text without the stray edit. Later edits, by a landing or by the user, stay.
fn remove_stray_edit(
    context: &EffectContext,
    stray: &StrayEdit,
    current_bytes: Option<&[u8]>,
    bytes_before: Option<Vec<u8>>,
) -> io::Result<Option<Vec<u8>>> {
    // Nothing has changed since the edit was noticed, so the earlier content is the result.
    if current_bytes.map(Hash::digest_of) == stray.after {
        return Ok(bytes_before);
    }
    let inseparable = || io::Error::other("it was edited again since, and the edits overlap");
    let stray_hash = stray.after.as_ref().ok_or_else(inseparable)?;
    let stray_bytes = CheckpointStore::for_run(&context.project, &context.run_id)
        .read_bytes(stray_hash)
        .map_err(|_| inseparable())?;
    let decoded_texts = [Some(stray_bytes), current_bytes.map(<[u8]>::to_vec), bytes_before]
        .map(|bytes| String::from_utf8(bytes?).ok());
    let [Some(stray_text), Some(current_text), Some(text_before)] = decoded_texts else {
        return Err(inseparable());
    };
    merge_or_first_conflict(&stray_text, &current_text, &text_before)
        .map(|text| Some(text.into_bytes()))
        .map_err(|_| inseparable())
}
