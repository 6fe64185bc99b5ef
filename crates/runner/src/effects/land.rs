//! Landing: a fixer's patch is applied to the user's tree, complete and checked, or not at all.
//!
//! Landing is idempotent: what is to land is recorded beside the workspace before the first file is replaced, so that a run
//! that crashed in between finds out and does the rest. The exact texts before and after are stored first (`checkpoints`), so
//! that a landing can be undone. Checks live in [`super::verify_commands`]; [`candidate`] decides whether a patch may land.

mod candidate;
mod preview;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Arc, PoisonError},
};

use tribunal_engine::{
    files::{Hunk, LandedFile, PatchRefusal},
    ids::Hash,
    text::truncate_chars,
};
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::{
    development::checks::{CheckResult, CheckSpec},
    runs::effect::{LandOutcome, LandedChange},
};

use super::{
    EffectContext, environment_fault,
    verify_commands::{self, CheckVerdict},
};
use crate::{
    blocking_work::run_blocking,
    kill_points,
    landing::{
        checkpoints::CheckpointChange,
        landing_repository,
        merging::{MergeConflict, diff_hunks, merge_or_first_conflict},
    },
    locks,
    project::atomic_files::{FileReplacement, write_atomically},
    workspaces::TaskWorkspace,
};

pub(super) use candidate::{LandingCandidate, LandingLimits, LandingRequest, detect_gutting, find_patch_workspace};
use candidate::{PatchedFile, find_candidate};
use preview::{drop_parts, preview_landing};

/// If the files keep changing while the checks run, the landing gives up after this many attempts.
const MAX_LANDING_ATTEMPTS: u32 = 3;
/// The limit for the text that is shown of each side of a conflict.
const MAX_CONFLICT_CHARS: usize = 600;

/// What is about to land. It is written before the first file is replaced.
#[derive(Serialize, Deserialize)]
struct LandingIntent {
    files: BTreeMap<String, IntendedFile>,
    /// What the checks said that do not block. A process that only reports the landing does not run them again.
    checks: Vec<CheckResult>,
}

#[derive(Clone, Serialize, Deserialize)]
struct IntendedFile {
    after: Hash,
    hunks: Vec<Hunk>,
}

/// One file with its current text and the text it will have.
#[derive(Clone)]
pub(super) struct MergedFile {
    pub relative_path: String,
    current_text: Option<String>,
    pub merged_text: String,
    /// The hunks that an earlier process had computed, if it has already replaced the file.
    landed_hunks: Option<Vec<Hunk>>,
}

/// How far an attempt got.
enum LandingAttempt {
    Decided(Box<LandOutcome>),
    /// Merged with the current files; the checks come next.
    Merged(Vec<MergedFile>),
}

/// Lands a patch. Returns `None` if the user ended a check; nothing has landed then.
pub(super) async fn land_patch(context: Arc<EffectContext>, request: LandingRequest) -> Option<LandOutcome> {
    let Some(workspace) = find_patch_workspace(
        &context.project.task_dir(&context.run_id, &request.checkpoint_key.task_key),
        &request.patch,
    ) else {
        let detail = "the fixer's workspace is gone, or was changed after the fixer answered".to_string();
        return Some(refused_outcome(PatchRefusal::Lost { detail }));
    };
    let directory = workspace.directory().to_path_buf();
    let outcome = attempt_landing(&context, request, workspace).await?;
    // A failed landing is tried again later and needs the workspace for that, and so does one that was only previewed.
    if !matches!(outcome, LandOutcome::Failed { .. } | LandOutcome::Previewed(_)) {
        context.memory.landed_workspaces.lock().unwrap_or_else(PoisonError::into_inner).insert(directory);
    }
    Some(outcome)
}

async fn attempt_landing(
    effect_context: &Arc<EffectContext>,
    request: LandingRequest,
    workspace: TaskWorkspace,
) -> Option<LandOutcome> {
    let landing_fault =
        |cause: io::Error| LandOutcome::from(environment_fault(format!("could not apply the patch: {cause}")));
    let context = effect_context.clone();
    let is_preview = request.is_preview;
    let search = run_file_work(move || {
        find_candidate(&context, &request, workspace).map(|found| (found, request.limits.checks))
    })
    .await;
    let (candidate, checks) = match search {
        Ok((Ok(candidate), _)) if is_preview => {
            let context = effect_context.clone();
            let preview = run_file_work(move || preview_landing(&context, &candidate)).await;
            return Some(preview.unwrap_or_else(landing_fault));
        }
        Ok((Ok(candidate), checks)) => (Arc::new(candidate), checks),
        Ok((Err(refusal), _)) => return Some(refused_outcome(refusal)),
        Err(cause) => return Some(landing_fault(cause)),
    };
    match merge_check_and_put(effect_context, &candidate, &checks).await {
        Ok(outcome) => Some(outcome),
        // A stopped check is no fault: the next process asks for the landing again.
        Err(cause) if verify_commands::is_stop_error(&cause) => None,
        Err(cause) => {
            let context = effect_context.clone();
            let partial_outcome =
                run_file_work(move || report_partial_landing(&context, &candidate)).await.ok().flatten();
            Some(partial_outcome.unwrap_or_else(|| landing_fault(cause)))
        }
    }
}

/// Undoes a landing that broke off. Files that cannot be undone have landed, and are reported as landed.
fn report_partial_landing(context: &EffectContext, candidate: &LandingCandidate) -> io::Result<Option<LandOutcome>> {
    if take_back_partial_landing(context, candidate).is_ok() {
        return Ok(None);
    }
    let Some(intent) = read_intent(&candidate.workspace)? else { return Ok(None) };
    let mut landed_files = Vec::new();
    for patched_file in &candidate.patched_files {
        // The intent tells our own text from an edit that the user made since.
        let intended_file = intent.files.get(&patched_file.relative_path);
        if let (Some(intended_file), Ok(Some(current_text))) = (intended_file, read_current_text(patched_file))
            && intended_file.after == Hash::digest_of(current_text.as_bytes())
        {
            let (relative_path, landed_hunks) = (patched_file.relative_path.clone(), Some(intended_file.hunks.clone()));
            landed_files.push(MergedFile {
                relative_path,
                current_text: Some(current_text.clone()),
                merged_text: current_text,
                landed_hunks,
            });
        }
    }
    Ok((!landed_files.is_empty()).then(|| landed_outcome(context, &landed_files, intent.checks)))
}

fn refused_outcome(refusal: PatchRefusal) -> LandOutcome {
    LandOutcome::Refused { why: refusal }
}

/// Runs work on files on a separate thread, since the workflow's thread must not block.
pub(super) async fn run_file_work<T: Send + 'static>(
    file_work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run_blocking(file_work).await.map_err(io::Error::other)?
}

async fn merge_check_and_put(
    effect_context: &Arc<EffectContext>,
    candidate: &Arc<LandingCandidate>,
    checks: &[CheckSpec],
) -> io::Result<LandOutcome> {
    // The checks can take minutes, so the files are merged again if the user edits them meanwhile.
    for _ in 0..MAX_LANDING_ATTEMPTS {
        let (context, shared_candidate) = (effect_context.clone(), candidate.clone());
        let merged_files = match run_file_work(move || merge_candidate(&context, &shared_candidate)).await? {
            LandingAttempt::Decided(outcome) => return Ok(*outcome),
            LandingAttempt::Merged(merged_files) => merged_files,
        };
        let check_results =
            match verify_commands::verify_candidate(effect_context, candidate, checks, &merged_files).await? {
                CheckVerdict::Passed(check_results) => check_results,
                CheckVerdict::Refused(refusal) => {
                    // An earlier process may have replaced some of the files already; a refused patch must not stay there
                    // in part.
                    let (context, shared_candidate) = (effect_context.clone(), candidate.clone());
                    run_file_work(move || take_back_partial_landing(&context, &shared_candidate)).await?;
                    return Ok(refused_outcome(refusal));
                }
            };
        let (context, shared_candidate) = (effect_context.clone(), candidate.clone());
        let replace_files = move || replace_files(&context, &shared_candidate, merged_files, check_results);
        if let Some(outcome) = run_file_work(replace_files).await? {
            return Ok(outcome);
        }
    }
    let (context, shared_candidate) = (effect_context.clone(), candidate.clone());
    run_file_work(move || take_back_partial_landing(&context, &shared_candidate)).await?;
    let file_names: Vec<String> = candidate.file_paths().collect();
    let detail = format!("{} kept changing while the checks ran", file_names.join(", "));
    Ok(refused_outcome(PatchRefusal::Lost { detail }))
}

fn merge_candidate(context: &EffectContext, candidate: &LandingCandidate) -> io::Result<LandingAttempt> {
    let intent = read_intent(&candidate.workspace)?;
    let mut merged_files = Vec::new();
    for patched_file in &candidate.patched_files {
        let current_text = read_current_text(patched_file)?;
        let intended_file = intent.as_ref().and_then(|intent| intent.files.get(&patched_file.relative_path));
        if let (Some(intended), Some(file_text)) = (intended_file, &current_text)
            && intended.after == Hash::digest_of(file_text.as_bytes())
        {
            // An earlier process had already replaced this file.
            let (merged_text, landed_hunks) = (file_text.clone(), Some(intended.hunks.clone()));
            merged_files.push(MergedFile {
                relative_path: patched_file.relative_path.clone(),
                current_text,
                merged_text,
                landed_hunks,
            });
            continue;
        }
        let merged = merge_file(patched_file, current_text.as_deref())?.and_then(|merged_text| {
            drop_parts(&patched_file.relative_path, current_text.as_deref(), merged_text, &candidate.without)
        });
        match merged {
            Ok(merged_text) => merged_files.push(MergedFile {
                relative_path: patched_file.relative_path.clone(),
                current_text,
                merged_text,
                landed_hunks: None,
            }),
            Err(refusal) => {
                take_back_partial_landing(context, candidate)?;
                return Ok(LandingAttempt::Decided(Box::new(refused_outcome(refusal))));
            }
        }
    }
    // Nothing is left to do, but the crash may have come before git got its commit.
    if merged_files.iter().all(|merged_file| merged_file.landed_hunks.is_some()) {
        record_in_git(context, candidate);
        let check_results = intent.map(|intent| intent.checks).unwrap_or_default();
        return Ok(LandingAttempt::Decided(Box::new(landed_outcome(context, &merged_files, check_results))));
    }
    Ok(LandingAttempt::Merged(merged_files))
}

/// Removes what an earlier process landed before it was killed between two files, if the remaining files can no longer follow.
fn take_back_partial_landing(context: &EffectContext, candidate: &LandingCandidate) -> io::Result<()> {
    if read_intent(&candidate.workspace)?.is_none() {
        return Ok(());
    }
    let _alone = locks::lock_user_tree(&context.project.locks_dir())?;
    // The user's tree is locked before the current texts are read, so that they stay as read.
    for checkpoint_change in candidate.checkpoints.landing_changes(&candidate.checkpoint_key)? {
        let Some(patched_file) = candidate
            .patched_files
            .iter()
            .find(|patched_file| patched_file.relative_path == checkpoint_change.relative_path)
        else {
            continue;
        };
        let current_text = read_current_text(patched_file)?;
        // The file does not contain the change, so there is nothing to remove from it.
        if !checkpoint_change.is_applied_in(current_text.as_deref()) {
            continue;
        }
        match (&checkpoint_change.text_before, &checkpoint_change.text_after, current_text) {
            (None, ..) => fs::remove_file(&patched_file.real_path)?,
            (Some(text_before), Some(text_after), Some(current_text)) => {
                // The user's edits since then stay.
                let text_without =
                    merge_or_first_conflict(text_after, &current_text, text_before).map_err(|conflict| {
                        io::Error::other(format!(
                            "{}:{} was edited while the patch was only partly applied",
                            patched_file.relative_path, conflict.line_number
                        ))
                    })?;
                write_atomically(&patched_file.real_path, text_without.as_bytes())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the file as it is now. Returns `None` if it does not exist.
fn read_current_text(patched_file: &PatchedFile) -> io::Result<Option<String>> {
    // A link leads to another file, and the link itself belongs to the user.
    if patched_file.real_path.is_symlink() {
        return Err(io::Error::other(format!(
            "{} is now a symlink; restore the file, then resume the run",
            patched_file.relative_path
        )));
    }
    match fs::read_to_string(&patched_file.real_path) {
        Ok(file_text) => Ok(Some(file_text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn merge_file(patched_file: &PatchedFile, current_text: Option<&str>) -> io::Result<Result<String, PatchRefusal>> {
    let to_refusal = |conflict: MergeConflict| PatchRefusal::Conflict {
        line: conflict.line_number,
        file: patched_file.relative_path.clone(),
        ours: truncate_chars(&conflict.our_text, MAX_CONFLICT_CHARS),
        theirs: truncate_chars(&conflict.their_text, MAX_CONFLICT_CHARS),
    };
    match (&patched_file.base_text, current_text) {
        (Some(_), None) => Err(io::Error::other(format!(
            "{} no longer exists; restore it, then resume the run",
            patched_file.relative_path
        ))),
        (Some(base_text), Some(current_text)) => {
            Ok(merge_or_first_conflict(base_text, current_text, &patched_file.fixer_text).map_err(to_refusal))
        }
        (None, None) => Ok(Ok(patched_file.fixer_text.clone())),
        (None, Some(current_text)) if current_text == patched_file.fixer_text => {
            Ok(Ok(patched_file.fixer_text.clone()))
        }
        // The fixer and the user created the same file with different texts.
        (None, Some(current_text)) => Ok(Err(to_refusal(MergeConflict {
            line_number: 1,
            our_text: current_text.to_string(),
            their_text: patched_file.fixer_text.clone(),
        }))),
    }
}

/// Replaces the files. Returns `None` if one was edited while the checks ran; the edit is not overwritten.
fn replace_files(
    context: &EffectContext,
    candidate: &LandingCandidate,
    mut merged_files: Vec<MergedFile>,
    check_results: Vec<CheckResult>,
) -> io::Result<Option<LandOutcome>> {
    // Files that an earlier process had already replaced are not written again.
    let due_indexes: Vec<usize> =
        (0..merged_files.len()).filter(|index| merged_files[*index].landed_hunks.is_none()).collect();
    for index in &due_indexes {
        let merged_file = &mut merged_files[*index];
        merged_file.landed_hunks =
            Some(diff_hunks(merged_file.current_text.as_deref().unwrap_or_default(), &merged_file.merged_text));
    }
    let to_change = |merged_file: &MergedFile| CheckpointChange {
        relative_path: merged_file.relative_path.clone(),
        text_before: merged_file.current_text.clone(),
        text_after: Some(merged_file.merged_text.clone()),
    };
    let recorded_changes: Vec<CheckpointChange> =
        due_indexes.iter().map(|index| to_change(&merged_files[*index])).collect();
    // From here on no other process of this project writes into the user's tree.
    let tree_lock = locks::lock_user_tree(&context.project.locks_dir())?;
    // The checkpoint comes first: everything that is found to have landed can then be undone.
    let record_number = candidate.checkpoints.record_landing(&candidate.checkpoint_key, &recorded_changes)?;
    // The intent comes before the first rename: a later process tells from it which files have landed.
    write_intent(&candidate.workspace, &merged_files, &check_results)?;
    // All replacements are prepared before the first rename, so that a full disk cannot stop the landing halfway.
    let mut replacements = Vec::new();
    for index in &due_indexes {
        replacements.push(prepare_replacement(context, &candidate.patched_files[*index], &merged_files[*index])?);
    }
    kill_points::kill_if_requested("landing", "before");
    for (position, (index, replacement)) in due_indexes.iter().zip(replacements).enumerate() {
        // The last comparison comes right before the rename, which keeps the moment short in which an edit would be lost.
        if read_current_text(&candidate.patched_files[*index])? != merged_files[*index].current_text {
            // Nothing has landed yet, so the record would describe a landing that never happened.
            if position == 0 {
                candidate.checkpoints.forget_landing(&candidate.checkpoint_key, record_number)?;
            }
            return Ok(None);
        }
        replacement.put_in_place()?;
        kill_points::kill_if_requested("landing", "between");
    }
    kill_points::kill_if_requested("landing", "after");
    drop(tree_lock);
    record_in_git(context, candidate);
    Ok(Some(landed_outcome(context, &merged_files, check_results)))
}

/// Keeps the original of a file and prepares its new text, without changing the file yet.
fn prepare_replacement<'a>(
    context: &EffectContext,
    patched_file: &'a PatchedFile,
    merged_file: &MergedFile,
) -> io::Result<FileReplacement<'a>> {
    // The text from before this run's first change is kept.
    let original_path = context.project.originals_dir(&context.run_id).join(&merged_file.relative_path);
    if let (Some(current_text), false) = (&merged_file.current_text, original_path.exists()) {
        let mode = fs::metadata(&patched_file.real_path)?.permissions().mode();
        FileReplacement::prepare_with_mode(&original_path, current_text.as_bytes(), mode & 0o777)?.put_in_place()?;
    }
    FileReplacement::prepare(&patched_file.real_path, merged_file.merged_text.as_bytes())?
        .make_executable(merged_file.current_text.is_none() && patched_file.executable)
}

/// Records the landing in git for users who prefer to look there; the checkpoints are what counts.
fn record_in_git(context: &EffectContext, candidate: &LandingCandidate) {
    if let Ok(recorded_changes) = candidate.checkpoints.landing_changes(&candidate.checkpoint_key) {
        let _ = landing_repository::record_landing(
            &context.project,
            &context.run_id,
            &candidate.checkpoint_key,
            &recorded_changes,
        );
    }
}

/// Reports what landed in the form in which the workflow knows its subject: one text, or files.
fn landed_outcome(
    context: &EffectContext,
    merged_files: &[MergedFile],
    check_results: Vec<CheckResult>,
) -> LandOutcome {
    if let ([merged_file], Some(_)) =
        (merged_files, context.order.as_review().and_then(|order| order.subject.file_path()))
    {
        let content_hash = Hash::digest_of(merged_file.merged_text.as_bytes());
        let hunks = merged_file.landed_hunks.clone().unwrap_or_default();
        let merged_text = merged_file.merged_text.clone();
        return LandOutcome::Landed(LandedChange {
            hunks,
            hash: content_hash,
            text: merged_text,
            files: Vec::new(),
            checks: check_results,
        });
    }
    let mut hash_input = String::new();
    for merged_file in merged_files {
        hash_input.push_str(&format!(
            "{}\0{}\n",
            merged_file.relative_path,
            Hash::digest_of(merged_file.merged_text.as_bytes())
        ));
    }
    let landed_files = merged_files.iter().map(|merged_file| LandedFile {
        path: merged_file.relative_path.clone(),
        hunks: merged_file.landed_hunks.clone().unwrap_or_default(),
        text: merged_file.merged_text.clone(),
    });
    LandOutcome::Landed(LandedChange {
        hunks: Vec::new(),
        text: String::new(),
        hash: Hash::digest_of(hash_input.as_bytes()),
        files: landed_files.collect(),
        checks: check_results,
    })
}

fn intent_file(workspace: &TaskWorkspace) -> PathBuf {
    workspace.directory().join("landing.json")
}

/// Records what is about to land.
fn write_intent(
    workspace: &TaskWorkspace,
    merged_files: &[MergedFile],
    check_results: &[CheckResult],
) -> io::Result<()> {
    let intended_files = merged_files.iter().map(|merged_file| {
        let hunks = merged_file.landed_hunks.clone().unwrap_or_default();
        (
            merged_file.relative_path.clone(),
            IntendedFile { after: Hash::digest_of(merged_file.merged_text.as_bytes()), hunks },
        )
    });
    let intent = LandingIntent { files: intended_files.collect(), checks: check_results.to_vec() };
    let intent_json = serde_json::to_vec(&intent).map_err(io::Error::other)?;
    write_atomically(&intent_file(workspace), &intent_json)
}

/// Reads what an earlier process was about to land.
fn read_intent(workspace: &TaskWorkspace) -> io::Result<Option<LandingIntent>> {
    let Ok(intent_json) = fs::read(intent_file(workspace)) else { return Ok(None) };
    serde_json::from_slice(&intent_json).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
