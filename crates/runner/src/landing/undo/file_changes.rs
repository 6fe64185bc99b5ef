//! Changes the files of an undo: parks them, prepares their texts, then replaces or removes one after the other.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{FileUndoPlan, UndoError, UndoPlan, read_current_text};
use crate::{
    kill_points,
    landing::{
        checkpoints::{CheckpointChange, CheckpointKey},
        parked_files::park_file,
    },
    project::{
        Project,
        atomic_files::{FileReplacement, sweep_temporary_files},
    },
};

/// Parks the files, then replaces them one after the other. Returns where they were parked.
pub(super) fn replace_files(project: &Project, undo_plan: &UndoPlan) -> Result<BTreeMap<String, PathBuf>, UndoError> {
    let changed_files: Vec<&FileUndoPlan> = undo_plan.changed_files().collect();
    let mut parked_files = BTreeMap::new();
    for FileUndoPlan { relative_path, current_text, .. } in &changed_files {
        let Some(current_text) = current_text else { continue };
        let parked_path = park_file(project, &undo_plan.landings.run_id, relative_path, current_text.as_bytes());
        let parked_path = parked_path.map_err(|cause| UndoError::CannotPark { path: relative_path.clone(), cause })?;
        parked_files.insert(relative_path.clone(), parked_path);
    }
    if changed_files.is_empty() {
        return Ok(parked_files);
    }
    let real_paths: Vec<PathBuf> =
        changed_files.iter().map(|file_plan| project.root().join(&file_plan.relative_path)).collect();
    // Everything is prepared before the first file changes, so that a full disk cannot leave half an undo.
    let mut replacements = Vec::new();
    for (file_plan, real_path) in changed_files.iter().zip(&real_paths) {
        real_path.parent().into_iter().for_each(sweep_temporary_files);
        replacements.push((
            *file_plan,
            real_path,
            prepare_replacement(file_plan, real_path).map_err(|cause| file_plan.write_error(cause, false))?,
        ));
    }
    for file_plan in &changed_files {
        file_plan.verify_unchanged(project, false)?;
    }
    let undone_keys: Vec<CheckpointKey> =
        undo_plan.landings_to_undo.iter().map(|landing| landing.checkpoint_key.clone()).collect();
    let undo_changes: Vec<CheckpointChange> =
        changed_files.iter().map(|file_plan| file_plan.to_checkpoint_change()).collect();
    // From here on a crash leaves a record that tells which of the files are done.
    let undo_start = undo_plan.landings.checkpoints.begin_undo(&undone_keys, &undo_changes);
    undo_start.map_err(|cause| undo_plan.landings.damaged_error(cause))?;
    for (position, (file_plan, real_path, replacement)) in replacements.into_iter().enumerate() {
        // The last comparison comes right before the rename.
        file_plan.verify_unchanged(project, position > 0)?;
        let outcome = match replacement {
            Some(replacement) => replacement.put_in_place(),
            None => remove_durably(real_path),
        };
        outcome.map_err(|cause| file_plan.write_error(cause, position > 0))?;
    }
    Ok(parked_files)
}

impl FileUndoPlan {
    fn verify_unchanged(&self, project: &Project, other_files_done: bool) -> Result<(), UndoError> {
        match read_current_text(project, &self.relative_path) {
            Ok(current_text) if current_text == self.current_text => Ok(()),
            _ => Err(UndoError::BeingChanged { path: self.relative_path.clone(), begun: other_files_done }),
        }
    }

    fn write_error(&self, cause: io::Error, other_files_done: bool) -> UndoError {
        UndoError::CannotWrite { path: self.relative_path.clone(), cause, begun: other_files_done }
    }
}

/// Prepares the new content. Returns `None` if the file is to be removed.
fn prepare_replacement<'a>(file_plan: &FileUndoPlan, real_path: &'a Path) -> io::Result<Option<FileReplacement<'a>>> {
    let Some(restored_text) = &file_plan.restored_text else { return Ok(None) };
    // Only a file that is gone gets its recorded permissions; an existing one keeps its own.
    let replacement = match file_plan.restored_mode.filter(|_| file_plan.current_text.is_none()) {
        Some(mode) => FileReplacement::prepare_with_mode(real_path, restored_text.as_bytes(), mode),
        None => FileReplacement::prepare(real_path, restored_text.as_bytes()),
    };
    replacement.map(Some)
}

fn remove_durably(real_path: &Path) -> io::Result<()> {
    let file_name = real_path.file_name().unwrap_or_default().to_string_lossy();
    kill_points::kill_if_requested(&format!("remove:{file_name}"), "before");
    fs::remove_file(real_path)?;
    kill_points::kill_if_requested(&format!("remove:{file_name}"), "after");
    real_path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
