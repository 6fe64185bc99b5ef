//! Runs checks in a fresh clone of the commit that is to land, set up like a new workspace.
//!
//! What fails there may fail in every fresh clone, because nothing sets it up or because the network is gone. So the same is tried on the
//! commit with which the work began, and only what passes there counts against the work.

use std::{collections::BTreeSet, sync::Arc};

use tribunal_engine::{fault::Fault, ids::CommitId};
use tribunal_workflows::development::{
    check_scripts::ChangedScript,
    checks::{CheckResult, CheckSpec, ChecksOutcome, ChecksReport, CommandLine},
};

use super::{
    EffectContext, PerformedEffect,
    base_checks::{ReplacedCheck, put_base_scripts},
    checks::{list_missing_files, run_all, run_git_work},
    clone_setup::{SetupEnd, list_usual_seeds, run_setup},
    environment_fault,
};
use crate::workspaces::development::{fresh_clone::FreshClone, opening::SeedRequest};

/// Runs the checks. Returns `None` if the user ended one of them.
pub(super) async fn run_in_fresh_clone(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    commit: CommitId,
    checks: Vec<CheckSpec>,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let source = CloneSource { commit: Some(commit), base_scripts: None };
    let mut performed = run_at_commit(context, workspace_name, source, &checks).await?;
    let PerformedEffect { reply: ChecksOutcome::Ran(report), .. } = &mut performed else { return Some(performed) };
    let failed: BTreeSet<CommandLine> = report.counting_failures().map(|result| result.command.clone()).collect();
    if failed.is_empty() {
        return Some(performed);
    }
    // None of them, if it is the set-up that has failed.
    let failed_checks: Vec<CheckSpec> = checks.into_iter().filter(|check| failed.contains(&check.command)).collect();
    match run_at_commit(context, workspace_name, CloneSource::default(), &failed_checks).await?.reply {
        ChecksOutcome::Ran(base_report) => excuse_failures(report, &base_report, &context.settings.workspace.setup),
        outcome => return Some(outcome.into()),
    }
    Some(performed)
}

/// Scripts as another commit has them.
pub(super) struct BaseScripts {
    pub base: CommitId,
    pub scripts: Vec<ChangedScript>,
}

/// Runs each check in a clone of its own, with its scripts as another commit has them. What fails there, or has no script there, is not
/// tried elsewhere. Returns `None` if the user ended one of them.
pub(super) async fn run_with_base_scripts(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    commit: CommitId,
    base_scripts: BaseScripts,
    checks: Vec<CheckSpec>,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let BaseScripts { base, scripts } = base_scripts;
    let (mut report, mut blobs) = (ChecksReport { is_repeated: true, ..ChecksReport::default() }, Vec::new());
    for check in checks {
        let own_scripts = scripts.iter().filter(|script| script.command == check.command);
        let paths = own_scripts.map(|script| script.path.clone()).collect();
        let replaced = ReplacedCheck { check: check.clone(), scripts: paths };
        let source = CloneSource { commit: Some(commit.clone()), base_scripts: Some((base.clone(), replaced)) };
        let performed = run_at_commit(context, workspace_name, source, &[check]).await?;
        match performed.reply {
            ChecksOutcome::Ran(ran) => report.results.extend(ran.results),
            outcome => return Some(outcome.into()),
        }
        blobs.extend(performed.blobs);
    }
    Some(PerformedEffect { reply: ChecksOutcome::Ran(report), blobs })
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

/// What a clone is made of.
#[derive(Default)]
struct CloneSource {
    /// `None` is the commit with which the work began.
    commit: Option<CommitId>,
    /// A check whose scripts are those of another commit.
    base_scripts: Option<(CommitId, ReplacedCheck)>,
}

/// Runs checks in a clone. A command of the set-up that fails is the only result.
async fn run_at_commit(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    source: CloneSource,
    checks: &[CheckSpec],
) -> Option<PerformedEffect<ChecksOutcome>> {
    let clone = match create_clone(context, workspace_name, source).await {
        Ok(Some(clone)) => clone,
        Ok(None) => return Some(ChecksOutcome::Ran(ChecksReport::default()).into()),
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

/// Makes a clone; `None` if a check has no script there.
async fn create_clone(
    context: &Arc<EffectContext>,
    workspace_name: &str,
    source: CloneSource,
) -> Result<Option<FreshClone>, Fault> {
    let (context, workspace_name) = (context.clone(), workspace_name.to_string());
    run_git_work(move || {
        let home = context.workspace_home()?;
        let workspace = home.require_workspace(&context.run_id, &workspace_name)?;
        let commit = source.commit.unwrap_or_else(|| workspace.base_commit().clone());
        let seeds = SeedRequest { named: &context.settings.seeds, usual: &list_usual_seeds(&context) };
        let clone = FreshClone::create(&home, &workspace, &commit, seeds)?;
        let Some((base, mut replaced)) = source.base_scripts else { return Ok(Some(clone)) };
        // Scripts are named from the root of the repository, and read from that of the project.
        let in_project = |path: String| path.strip_prefix(&workspace.record.prefix).map(String::from);
        replaced.scripts = replaced.scripts.into_iter().filter_map(in_project).collect();
        match put_base_scripts(&context, &clone.project_dir(), &base, &replaced) {
            Ok(true) => Ok(Some(clone)),
            not_put => {
                // Whether it could be removed does not matter: the next one begins with that.
                let _ = clone.remove();
                let cause = "could not put the scripts of the branch into a clone";
                not_put.map(|_| None).map_err(|failure| environment_fault(format!("{cause}: {failure}")))
            }
        }
    })
    .await
}
