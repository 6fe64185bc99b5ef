//! Accepts edits that were made directly in the subject's files, for example by a session of the user. They are in place
//! already, so there is nothing to land and nothing to undo, but the same checks apply.

use std::{io, sync::Arc};

use tribunal_engine::{
    files::{FrozenFile, LandedFile, PatchRefusal},
    ids::{Hash, Key},
};
use tribunal_workflows::{
    development::checks::CheckSpec,
    runs::effect::{LandOutcome, LandedChange},
};

use super::{
    EffectContext, environment_fault,
    land::{detect_gutting, run_file_work},
    verify_commands::{self, CheckVerdict},
};
use crate::{landing::merging::diff_hunks, project::subject, workspaces::TaskWorkspace};

/// Accepts the edits. Returns `None` if the user ended a check.
pub(super) async fn take_in_edits(
    context: Arc<EffectContext>,
    effect_key: Key,
    frozen_files: Vec<FrozenFile>,
    checks: Vec<CheckSpec>,
) -> Option<LandOutcome> {
    let shared_context = context.clone();
    let landed_files = match run_file_work(move || Ok(read_edited_files(&shared_context, &frozen_files))).await {
        Ok(Ok(landed_files)) => landed_files,
        Ok(Err(refusal)) => return Some(LandOutcome::Refused { why: refusal }),
        Err(cause) => return Some(take_in_fault(&cause)),
    };
    // Without a change there is nothing to verify.
    let mut check_results = Vec::new();
    let has_changes = landed_files.iter().any(|landed_file| !landed_file.hunks.is_empty());
    if has_changes {
        let workspace = TaskWorkspace::from_directory(context.project.task_dir(&context.run_id, &effect_key));
        let paths: Vec<String> = landed_files.iter().map(|landed_file| landed_file.path.clone()).collect();
        match verify_commands::run_verify_commands(&context, workspace, paths, &checks, Vec::new()).await {
            Ok(CheckVerdict::Passed(other_results)) => check_results = other_results,
            Ok(CheckVerdict::Refused(refusal)) => return Some(LandOutcome::Refused { why: refusal }),
            Err(cause) if verify_commands::is_stop_error(&cause) => return None,
            Err(cause) => return Some(take_in_fault(&cause)),
        }
    }
    let (hunks, text, landed_hash) = (Vec::new(), String::new(), hash_landed_files(&landed_files));
    Some(LandOutcome::Landed(LandedChange {
        hunks,
        text,
        hash: landed_hash,
        files: landed_files,
        checks: check_results,
    }))
}

fn take_in_fault(cause: &io::Error) -> LandOutcome {
    environment_fault(format!("could not check the changes: {cause}")).into()
}

/// Hashes the files: a single one by its text, as a frozen subject is hashed, several by their paths and texts.
fn hash_landed_files(landed_files: &[LandedFile]) -> Hash {
    match landed_files {
        [file] => Hash::digest_of(file.text.as_bytes()),
        landed_files => {
            let file_texts: Vec<String> =
                landed_files.iter().map(|file| format!("{}\n{}\n", file.path, file.text)).collect();
            Hash::digest_of(file_texts.concat().as_bytes())
        }
    }
}

fn read_edited_files(context: &EffectContext, frozen_files: &[FrozenFile]) -> Result<Vec<LandedFile>, PatchRefusal> {
    let project_root = context.project.tree_root();
    let mut landed_files = Vec::new();
    for frozen_file in frozen_files {
        let relative_path = frozen_file.path.as_str();
        let load_outcome = subject::ensure_inside(project_root, relative_path)
            .and_then(|()| subject::load_subject(project_root, relative_path));
        let current_text = load_outcome.map_err(|problem| PatchRefusal::Lost { detail: problem.to_string() })?;
        // Removing the text is not a repair.
        if let Some((before, after)) = detect_gutting(&frozen_file.text, &current_text) {
            return Err(PatchRefusal::Gutted { before, after });
        }
        landed_files.push(LandedFile {
            path: relative_path.to_string(),
            hunks: diff_hunks(&frozen_file.text, &current_text),
            text: current_text,
        });
    }
    Ok(landed_files)
}
