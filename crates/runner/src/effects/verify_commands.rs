//! Runs verify commands on the merged files, in a workspace of their own, before they land.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use tribunal_core::{engine::files::PatchRefusal, text::truncate_chars};
use tribunal_supervise::{Deadlines, ExitReason};

use super::{
    EffectContext,
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

/// Runs the verify commands on what would land. Returns a refusal if one of them fails.
pub(super) async fn verify_candidate(
    context: &Arc<EffectContext>,
    candidate: &Arc<LandingCandidate>,
    commands: &[String],
    merged_files: &[MergedFile],
) -> io::Result<Option<PatchRefusal>> {
    let verify_workspace = TaskWorkspace::from_directory(candidate.workspace.directory().with_extension("verify"));
    run_verify_commands(context, verify_workspace, candidate.file_paths().collect(), commands, merged_files.to_vec())
        .await
}

/// Runs the commands on a copy of the tree, created at `verify_workspace`, that contains these texts.
pub(super) async fn run_verify_commands(
    effect_context: &Arc<EffectContext>,
    verify_workspace: TaskWorkspace,
    files: Vec<String>,
    commands: &[String],
    merged_texts: Vec<MergedFile>,
) -> io::Result<Option<PatchRefusal>> {
    // Without commands there is no need to create a workspace.
    if commands.is_empty() {
        return Ok(None);
    }
    let (context, target) = (effect_context.clone(), verify_workspace.clone());
    run_file_work(move || {
        let project_root = context.project.root();
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
    let mut refusal = Ok(None);
    for command in commands {
        refusal = run_verify_command(effect_context, command, verify_workspace.tree_dir()).await;
        if !matches!(refusal, Ok(None)) {
            break;
        }
    }
    // Whether the cleanup succeeds does not matter: the workspace is removed with its run at the latest.
    let directory = verify_workspace.directory().to_path_buf();
    let _ = run_file_work(move || fs::remove_dir_all(directory)).await;
    refusal
}

async fn run_verify_command(
    context: &EffectContext,
    command_line: &str,
    directory: PathBuf,
) -> io::Result<Option<PatchRefusal>> {
    let mut command = context.new_command("sh".into(), vec!["-c".into(), command_line.into()], directory);
    // A check may print nothing for a long time, so the idle limit equals the total one.
    let time_limit = Duration::from_millis(context.settings.tasks.check_timeout_ms);
    command.deadlines = Deadlines { total: time_limit, idle: time_limit };
    let process_end = tribunal_supervise::run_process(command).await.map_err(io::Error::other)?;
    if process_end.exit_reason == ExitReason::Stopped {
        return Err(io::Error::other(StoppedByUser));
    }
    let combined_output = format!("{}{}", process_end.stdout.to_text(), process_end.stderr.to_text());
    let mut output = truncate_chars(&context.masker.mask(&combined_output), 2000);
    if process_end.exit_reason == ExitReason::TimedOut {
        output = format!("timed out after {} s (`tasks.check_timeout`) {output}", time_limit.as_secs());
    } else if output.trim().is_empty() {
        // A refusal without any output would tell neither the fixer nor the user what happened.
        output = match process_end.exit_reason {
            ExitReason::Exited(code) => format!("exit code {code}, no output"),
            ExitReason::Killed(signal) => format!("killed by signal {signal}"),
            ExitReason::Flooded => "printed too much output".to_string(),
            ExitReason::TimedOut | ExitReason::Silent | ExitReason::Stopped | ExitReason::Lost => "stopped".to_string(),
        };
    }
    match process_end.exit_reason {
        ExitReason::Exited(0) => Ok(None),
        ExitReason::Lost => {
            Err(io::Error::other(format!("`{command_line}` was lost: its supervisor process was killed")))
        }
        // The command itself is missing or not executable, which says nothing about the patch.
        ExitReason::Exited(126 | 127) => {
            Err(io::Error::other(format!("could not run `{command_line}`: {}", output.trim())))
        }
        _ => Ok(Some(PatchRefusal::Check { command: command_line.to_string(), output })),
    }
}
