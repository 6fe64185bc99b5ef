//! Runs checks in a fresh clone of the commit that is to land, set up like a new workspace.
//!
//! What fails there may fail in every fresh clone, because nothing sets it up or because the network is gone. So the same is tried on the
//! commit with which the work began, and only what passes there counts against the work.

use std::{collections::BTreeSet, sync::Arc};

use tribunal_engine::{fault::Fault, ids::CommitId};
use tribunal_workflows::development::checks::{CheckResult, CheckSpec, ChecksOutcome, ChecksReport, CommandLine};

use super::{
    EffectContext, PerformedEffect,
    checks::{list_missing_files, run_all, run_git_work},
    clone_setup::{SetupEnd, list_usual_seeds, run_setup},
};
use crate::workspaces::development::{fresh_clone::FreshClone, opening::SeedRequest};

/// Runs the checks. Returns `None` if the user ended one of them.
pub(super) async fn run_in_fresh_clone(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    commit: CommitId,
    checks: Vec<CheckSpec>,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let mut performed = run_at_commit(context, workspace_name, Some(commit), &checks).await?;
    let PerformedEffect { reply: ChecksOutcome::Ran(report), .. } = &mut performed else { return Some(performed) };
    let failed: BTreeSet<CommandLine> = report.counting_failures().map(|result| result.command.clone()).collect();
    if failed.is_empty() {
        return Some(performed);
    }
    // None of them, if it is the set-up that has failed.
    let failed_checks: Vec<CheckSpec> = checks.into_iter().filter(|check| failed.contains(&check.command)).collect();
    match run_at_commit(context, workspace_name, None, &failed_checks).await?.reply {
        ChecksOutcome::Ran(base_report) => excuse_failures(report, &base_report, &context.settings.workspace.setup),
        outcome => return Some(outcome.into()),
    }
    Some(performed)
}

/// Takes out of the results what fails on the base as well.
fn excuse_failures(report: &mut ChecksReport, base_report: &ChecksReport, setup: &[CommandLine]) {
    let failed: BTreeSet<&CommandLine> = base_report.counting_failures().map(|result| &result.command).collect();
    let is_excused = |result: &CheckResult| !result.status.is_passed() && failed.contains(&result.command);
    let (excused, results): (Vec<CheckResult>, Vec<CheckResult>) =
        std::mem::take(&mut report.results).into_iter().partition(is_excused);
    report.results = results;
    report.has_excused = !excused.is_empty();
    for result in excused {
        let consequence = match setup.contains(&result.command) {
            true => "so no check has run there",
            false => {
                "it is not held against the work; if the check needs files that git does not commit, name them in `workspace.seed` or \
                 make them with `workspace.setup`"
            }
        };
        let failure = result.describe_in("in a fresh clone, and without the work as well");
        report.remarks.push(format!("{failure}; {consequence}"));
    }
}

/// Runs checks in a clone of a commit, or of that with which the work began. A command of the set-up that fails is the only result.
async fn run_at_commit(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    commit: Option<CommitId>,
    checks: &[CheckSpec],
) -> Option<PerformedEffect<ChecksOutcome>> {
    let clone = match create_clone(context, workspace_name, commit).await {
        Ok(clone) => clone,
        Err(fault) => return Some(ChecksOutcome::from(fault).into()),
    };
    let directory = clone.project_dir();
    let mut performed = match run_setup(context, clone.tree_dir(), &directory).await? {
        SetupEnd::Passed => run_all(context, checks, &directory, None).await?,
        SetupEnd::Failed(finished) => {
            let report = ChecksReport { results: vec![finished.result], ..ChecksReport::default() };
            PerformedEffect { reply: ChecksOutcome::Ran(report), blobs: finished.log_blob.into_iter().collect() }
        }
        SetupEnd::Faulted(fault) => ChecksOutcome::from(fault).into(),
    };
    let (work_context, workspace_name) = (context.clone(), workspace_name.to_string());
    let ended = run_git_work(move || {
        let workspace_dir = work_context.development_dir(&workspace_name)?;
        let missing_files = list_missing_files(&workspace_dir, &directory);
        // Whether the clone could be removed does not matter: the next one begins with that.
        let _ = clone.remove();
        Ok(missing_files)
    });
    let missing_files = ended.await.unwrap_or_default();
    if let PerformedEffect { reply: ChecksOutcome::Ran(report), .. } = &mut performed {
        report.is_repeated = true;
        if report.counting_failures().next().is_some() {
            report.differences = missing_files;
        }
    }
    Some(performed)
}

async fn create_clone(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    commit: Option<CommitId>,
) -> Result<FreshClone, Fault> {
    let (context, workspace_name) = (context.clone(), workspace_name.to_string());
    run_git_work(move || {
        let home = context.workspace_home()?;
        let workspace = home.require_workspace(&context.run_id, &workspace_name)?;
        let commit = commit.unwrap_or_else(|| workspace.base_commit().clone());
        let seeds = SeedRequest { named: &context.settings.seeds, usual: &list_usual_seeds(&context) };
        Ok(FreshClone::create(&home, &workspace, &commit, seeds)?)
    })
    .await
}
