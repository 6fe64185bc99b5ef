//! Creates the frozen workspace of a round. No agent works in it: every reviewer and challenger gets a copy of it.

use std::{fs, io};

use tribunal_engine::{
    files::FrozenFile,
    ids::{Hash, Key},
};
use tribunal_workflows::{
    findings::subject::{CodeChange, Subject},
    runs::effect::{FreezeOutcome, FrozenSubject},
};

use super::{EffectContext, change_diff, environment_fault};
use crate::{
    project::subject,
    workspaces::{TaskWorkspace, WorkspaceSource},
};

pub(super) fn freeze_subject(context: &EffectContext, effect_key: &Key, subject: &Subject) -> FreezeOutcome {
    let workspace = TaskWorkspace::from_directory(context.project.task_dir(&context.run_id, effect_key));
    match subject {
        Subject::Change(change) => match freeze_change(context, &workspace, change) {
            Ok(reply) => reply,
            Err(cause) => environment_fault(format!("could not read the change {}: {cause}", change.range)).into(),
        },
        Subject::Document { path: subject_path, .. } | Subject::Source { path: subject_path } => {
            freeze_file(context, &workspace, subject_path)
        }
    }
}

fn freeze_file(context: &EffectContext, workspace: &TaskWorkspace, subject_path: &str) -> FreezeOutcome {
    let project_root = context.project.tree_root();
    let containment = subject::ensure_inside(project_root, subject_path);
    // The original is loaded only to report early why it cannot be reviewed.
    if let Err(problem) = containment.and_then(|()| subject::load_subject(project_root, subject_path)) {
        return environment_fault(problem.to_string()).into();
    }
    let subject_files = [subject_path.to_string()];
    let created = workspace.create(&WorkspaceSource {
        project_root,
        subject_files: &subject_files,
        stored_tree: None,
        seed_paths: &context.seed_paths(),
    });
    let remarks = match created {
        Ok(created) => created.remarks,
        Err(cause) => {
            return environment_fault(format!("could not create a workspace for {subject_path}: {cause}")).into();
        }
    };
    // The frozen text is recorded, so that later edits of the original do not matter.
    match subject::load_subject(&workspace.tree_dir(), subject_path) {
        Ok(text) => {
            let content_hash = Hash::digest_of(text.as_bytes());
            FreezeOutcome::Frozen(FrozenSubject { hash: content_hash, text, files: Vec::new(), remarks })
        }
        Err(problem) => environment_fault(problem.to_string()).into(),
    }
}

fn freeze_change(context: &EffectContext, workspace: &TaskWorkspace, change: &CodeChange) -> io::Result<FreezeOutcome> {
    let remarks = create_change_workspace(context, workspace, change)?;
    let diff = change_diff::diff_change(context, workspace, change)?;
    // The prompts of the reviewers contain exactly this text.
    fs::write(workspace.directory().join(change_diff::DIFF_FILE), &diff)?;
    let mut files = Vec::new();
    let mut hashed_text = diff.clone();
    for changed_file in &change.files {
        if let Some(bytes) = workspace.read_base(&changed_file.path)? {
            let text = change_diff::decode_utf8(&changed_file.path, bytes)?;
            // The hash covers the whole files and not only the diff: quotes may come from anywhere in them.
            hashed_text.push_str(&format!("\n{}\n{text}", changed_file.path));
            files.push(FrozenFile { path: changed_file.path.clone(), text });
        }
    }
    let content_hash = Hash::digest_of(hashed_text.as_bytes());
    Ok(FreezeOutcome::Frozen(FrozenSubject { text: diff, hash: content_hash, files, remarks }))
}

/// Creates a workspace with the repository as it is after the change. Returns what agents will not find in it.
pub(super) fn create_change_workspace(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    change: &CodeChange,
) -> io::Result<Vec<String>> {
    let project_root = context.project.tree_root();
    let files: Vec<String> = change.files.iter().map(|changed_file| changed_file.path.clone()).collect();
    let created = workspace.create(&WorkspaceSource {
        project_root,
        subject_files: &files,
        stored_tree: change.end.as_deref(),
        seed_paths: &context.seed_paths(),
    })?;
    Ok(created.remarks)
}
