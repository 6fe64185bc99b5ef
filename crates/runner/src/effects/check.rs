//! Runs verify commands on the merged files, in a workspace of their own, before they land.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use tribunal_core::{files::Refusal, text::cut};
use tribunal_supervise::{Deadlines, How};

use super::{
    World,
    land::{Candidate, Merged, aside},
};
use crate::copies::{Copy, Source};

/// The error of a check that the user ended.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Stopped;

pub(super) fn was_stopped(cause: &io::Error) -> bool {
    cause.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// Runs the verify commands on what would land. Returns a refusal if one of them fails.
pub(super) async fn check(
    world: &Arc<World>,
    candidate: &Arc<Candidate>,
    verify: &[String],
    merged: &[Merged],
) -> io::Result<Option<Refusal>> {
    let court = Copy::at(candidate.copy.folder().with_extension("verify"));
    judge(world, court, candidate.paths().collect(), verify, merged.to_vec()).await
}

/// Runs the commands on a copy of the tree, created at `verify_workspace`, that contains these texts.
pub(super) async fn judge(
    world: &Arc<World>,
    court: Copy,
    files: Vec<String>,
    verify: &[String],
    texts: Vec<Merged>,
) -> io::Result<Option<Refusal>> {
    // Without commands there is no need to create a workspace.
    if verify.is_empty() {
        return Ok(None);
    }
    let (at, here) = (world.clone(), court.clone());
    aside(move || {
        let root = at.project.root();
        here.make(&Source { root, files: &files, tree: None, seeds: &at.seeds() })?;
        for file in texts {
            let path = here.tree().join(&file.path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, file.after)?;
        }
        Ok(())
    })
    .await?;
    let mut refusal = Ok(None);
    for command in verify {
        refusal = run(world, command, court.tree()).await;
        if !matches!(refusal, Ok(None)) {
            break;
        }
    }
    // Whether the cleanup succeeds does not matter: the workspace is removed with its run at the latest.
    let folder = court.folder().to_path_buf();
    let _ = aside(move || fs::remove_dir_all(folder)).await;
    refusal
}

async fn run(world: &World, verify: &str, folder: PathBuf) -> io::Result<Option<Refusal>> {
    let mut command = world.command("sh".into(), vec!["-c".into(), verify.into()], folder);
    // A check may print nothing for a long time, so the idle limit equals the total one.
    let deadline = Duration::from_millis(world.settings.tasks.check_timeout_ms);
    command.deadlines = Deadlines { total: deadline, idle: deadline };
    let ended = tribunal_supervise::run(command).await.map_err(io::Error::other)?;
    if ended.how == How::Stopped {
        return Err(io::Error::other(Stopped));
    }
    let said = format!("{}{}", ended.stdout.text(), ended.stderr.text());
    let mut output = cut(&world.masker.mask(&said), 2000);
    if ended.how == How::TimedOut {
        output = format!("not done after {} s (tasks.check_timeout) {output}", deadline.as_secs());
    } else if output.trim().is_empty() {
        // A refusal without any output would tell neither the fixer nor the user what happened.
        output = match ended.how {
            How::Exited(code) => format!("exit code {code}, and it printed nothing"),
            How::Killed(signal) => format!("killed by signal {signal}"),
            How::Flooded => "it printed without end".to_string(),
            How::TimedOut | How::Silent | How::Stopped | How::Lost => "it was ended".to_string(),
        };
    }
    match ended.how {
        How::Exited(0) => Ok(None),
        How::Lost => Err(io::Error::other(format!("`{verify}` was lost: its keeper was killed"))),
        // The command itself is missing or not executable, which says nothing about the patch.
        How::Exited(126 | 127) => Err(io::Error::other(format!("`{verify}` cannot run: {}", output.trim()))),
        _ => Ok(Some(Refusal::Check { command: verify.to_string(), output })),
    }
}
