//! Runs checks on the merged files, in a workspace of their own, before they land.

use std::{fs, io, sync::Arc};

use tribunal_engine::files::PatchRefusal;
use tribunal_workflows::development::checks::{CheckResult, CheckSpec, CheckStatus, FailureAction};

use super::{
    EffectContext,
    commands::{CommandFailure, run_check_command},
    land::{LandingCandidate, MergedFile, run_file_work},
};
use crate::workspaces::{TaskWorkspace, WorkspaceSource};

/// The error of a check that the user ended.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct StoppedByUser;

pub(super) fn is_stop_error(cause: &io::Error) -> bool {
    cause.get_ref().is_some_and(|inner| inner.is::<StoppedByUser>())
}

/// What checks say about files that would land.
#[derive(Debug)]
pub(super) enum CheckVerdict {
    /// The files may land. These are the results of the checks that do not block.
    Passed(Vec<CheckResult>),
    Refused(PatchRefusal),
}

/// Runs the checks on what would land.
pub(super) async fn verify_candidate(
    context: &Arc<EffectContext>,
    candidate: &Arc<LandingCandidate>,
    checks: &[CheckSpec],
    merged_files: &[MergedFile],
) -> io::Result<CheckVerdict> {
    let verify_workspace = TaskWorkspace::from_directory(candidate.workspace.directory().with_extension("verify"));
    run_verify_commands(context, verify_workspace, candidate.file_paths().collect(), checks, merged_files.to_vec())
        .await
}

/// Runs the checks on a copy of the tree, created at `verify_workspace`, that contains these texts.
pub(super) async fn run_verify_commands(
    effect_context: &Arc<EffectContext>,
    verify_workspace: TaskWorkspace,
    files: Vec<String>,
    checks: &[CheckSpec],
    merged_texts: Vec<MergedFile>,
) -> io::Result<CheckVerdict> {
    // Without checks there is no need to create a workspace.
    if checks.is_empty() {
        return Ok(CheckVerdict::Passed(Vec::new()));
    }
    let (context, target) = (effect_context.clone(), verify_workspace.clone());
    run_file_work(move || {
        let project_root = context.project.tree_root();
        target.create(&WorkspaceSource {
            project_root,
            subject_files: &files,
            stored_tree: None,
            seed_paths: &context.seed_paths(),
        })?;
        for merged_file in merged_texts {
            let target_path = target.tree_dir().join(&merged_file.relative_path);
            if let Some(directory) = target_path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(target_path, merged_file.merged_text)?;
        }
        Ok(())
    })
    .await?;
    let verdict = run_until_refused(effect_context, checks, &verify_workspace).await;
    // Whether the cleanup succeeds does not matter: the workspace is removed with its run at the latest.
    let directory = verify_workspace.directory().to_path_buf();
    let _ = run_file_work(move || fs::remove_dir_all(directory)).await;
    verdict
}

/// Runs the checks up to the first one that refuses the files.
async fn run_until_refused(
    context: &EffectContext,
    checks: &[CheckSpec],
    verify_workspace: &TaskWorkspace,
) -> io::Result<CheckVerdict> {
    let mut other_results = Vec::new();
    for check in checks {
        let result = run_check(context, check, verify_workspace).await?;
        // Its program is missing, which says nothing about the patch. Only a check that warns may be without it.
        if result.status.is_environment() && check.on_failure != FailureAction::Warn {
            return Err(io::Error::other(format!("could not run `{}`: {}", result.command, result.output.trim())));
        }
        match check.on_failure {
            FailureAction::Block if result.status.is_passed() => {}
            FailureAction::Block => {
                let (command, output) = (result.command.to_string(), describe_refusal_output(&result));
                return Ok(CheckVerdict::Refused(PatchRefusal::Check { command, output }));
            }
            FailureAction::Warn | FailureAction::Fix => other_results.push(result),
        }
    }
    Ok(CheckVerdict::Passed(other_results))
}

async fn run_check(
    context: &EffectContext,
    check: &CheckSpec,
    verify_workspace: &TaskWorkspace,
) -> io::Result<CheckResult> {
    let timeout_ms = check.timeout_ms.unwrap_or(context.settings.tasks.check_timeout_ms);
    match run_check_command(context, &check.command, verify_workspace.tree_dir(), timeout_ms).await {
        Ok(finished) => {
            let (mut result, _) = finished.into_check_result(check.command.clone(), check.on_failure);
            // A landing has no blobs, so the end of the output has to do.
            result.log = None;
            if result.status.is_passed() {
                result.output.clear();
            }
            Ok(result)
        }
        Err(CommandFailure::Stopped) => Err(io::Error::other(StoppedByUser)),
        Err(CommandFailure::Lost(cause)) => Err(io::Error::other(format!("`{}` was lost: {cause}", check.command))),
    }
}

/// Returns the output with what it does not say itself: a refusal without any output would tell neither the fixer nor the
/// user what happened.
fn describe_refusal_output(result: &CheckResult) -> String {
    let output = &result.output;
    match result.status {
        CheckStatus::TimedOut { after_ms } => {
            format!("timed out after {} s (`tasks.check_timeout`) {output}", after_ms / 1000)
        }
        _ if !output.trim().is_empty() => output.clone(),
        CheckStatus::Failed { exit_code } | CheckStatus::CannotRun { exit_code } => {
            format!("exit code {exit_code}, no output")
        }
        CheckStatus::Killed { signal } => format!("killed by signal {signal}"),
        CheckStatus::Passed | CheckStatus::Flooded | CheckStatus::ChangedWork => result.status.to_string(),
    }
}
