//! Makes the check that a run makes after each session of a story, for a user who asks for it.

use std::{future::Future, path::Path, sync::Arc};

use tokio::sync::{mpsc::unbounded_channel, watch};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    ids::{CommitId, Key, RunId},
};
use tribunal_supervise::KeeperSetup;
use tribunal_workflows::{
    development::{
        check_scripts::{ScriptPart, may_be_included},
        checks::{CheckPlace, CheckSpec, ChecksOutcome, ChecksReport, RunChecks},
        parking::name_files,
    },
    runs::{kinds::RunOrder, plan::RunPlan},
    story::{
        facts::{ReadStory, StoryFacts, StoryPlace, StoryReading},
        order::{StoryOrder, WORKSPACE_NAME},
    },
};

use super::{RunError, Runner, context_building::ProcessChannels};
use crate::{
    effects::{
        BaseCheck, PerformedEffect, ReplacedCheck, read_story, run_checks, run_checks_in_checkout, run_checks_of_base,
    },
    engine::updates::{RunUpdate, UpdateCallback},
    git::heads,
    shared::stop_level::StopLevel,
    workspaces::development::add_included_scripts,
};

/// A story whose work is to be checked.
#[derive(Debug)]
pub struct StoryInspection {
    pub plan: RunPlan<StoryOrder>,
    /// The run in whose workspace the work is. Without one the checks run in the checkout.
    pub run_id: Option<RunId>,
    pub checks: Vec<CheckSpec>,
    /// The commit with which the work began: checks whose own scripts have changed since run with its scripts as well.
    pub base: CommitId,
    /// The files that have changed since, if the work is not in a workspace.
    pub changed_paths: Vec<String>,
}

/// What was found out about the work on a story.
#[derive(Debug)]
pub struct InspectedStory {
    /// What files and git say, if the work is in a workspace.
    pub facts: Option<Box<StoryFacts>>,
    pub checks: ChecksReport,
    /// The checks whose scripts the work has changed, run with the scripts of the base.
    pub base_checks: Vec<BaseCheck>,
}

impl Runner {
    /// Reads what files and git say about a story in the workspace of a run that waits, and runs the checks on its work. Returns `None`
    /// if the user ended the checks.
    pub async fn inspect_story(&self, inspection: StoryInspection) -> Result<Option<InspectedStory>, RunError> {
        let StoryInspection { plan, run_id: workspace_run, checks, base, changed_paths } = inspection;
        let has_workspace = workspace_run.is_some();
        if !has_workspace && checks.is_empty() {
            return Ok(Some(InspectedStory { facts: None, checks: ChecksReport::default(), base_checks: Vec::new() }));
        }
        self.prepare_locks_dir()?;
        let own_id = || RunId::new(format!("verify-{}", std::process::id()));
        let run_id = workspace_run.unwrap_or_else(own_id);
        // Nothing may work in the workspace meanwhile, and processes of a run that no process holds would be taken for strays.
        let no_updates = UpdateCallback::new(|_: &RunId, _: RunUpdate<'_>| {});
        let lock = self.take_run_lock(&run_id, &no_updates).await?;
        // A run that is resumed meanwhile waits for the checks instead of failing.
        lock.mark_inspection().map_err(|cause| RunError::Project { project: self.project.locks_dir(), cause })?;
        let (end_sender, end_requested) = watch::channel(false);
        let channels = ProcessChannels { progress: unbounded_channel().0, end_requested };
        let read_request = ReadStory {
            place: StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) },
            story: plan.order.story.clone(),
            since: plan.order.files.begun_at.clone(),
            tree: None,
        };
        let plan = RunPlan { settings: plan.settings, order: RunOrder::Story(plan.order) };
        let keeper =
            self.keeper.clone().map(|program| KeeperSetup { program, held_locks: vec![lock.lock_file()], spare: None });
        let context = Arc::new(self.build_context(&run_id, plan, keeper, channels));
        let facts = match has_workspace {
            true => match read_story(context.clone(), read_request).await {
                StoryReading::Read(facts) => Some(facts),
                StoryReading::Failed { fault } => return Err(RunError::Inspection { fault }),
            },
            false => None,
        };
        let changed_paths = match &facts {
            Some(facts) => facts.work.changed.iter().map(|change| change.path.clone()).collect(),
            None => changed_paths,
        };
        let place =
            has_workspace.then(|| CheckPlace::Workspace { workspace: String::from(WORKSPACE_NAME), tree: None });
        let replaced = list_changed_checks(self.project.root(), &base, &checks, &changed_paths);
        let outcome = self.run_until_stopped(end_sender, async {
            let performed = match place {
                Some(place) => run_checks(context.clone(), Key::new("verify"), RunChecks { place, checks }).await?,
                None => run_checks_in_checkout(&context, &checks).await?,
            };
            let PerformedEffect { reply, .. } = performed;
            let base_checks = run_checks_of_base(&context, has_workspace, &base, replaced).await?;
            Some((reply, base_checks))
        });
        match outcome.await {
            None => Ok(None),
            Some((ChecksOutcome::Ran(checks), Ok(base_checks))) => {
                Ok(Some(InspectedStory { facts, checks, base_checks }))
            }
            Some((ChecksOutcome::Edited { paths }, _)) => {
                let fault = Fault::new(FaultKind::World, format!("you edited {} meanwhile", name_files(&paths)));
                Err(RunError::Inspection { fault })
            }
            Some((ChecksOutcome::Failed { fault }, _) | (_, Err(fault))) => Err(RunError::Inspection { fault }),
        }
    }

    async fn run_until_stopped<T>(
        &self,
        end_sender: watch::Sender<bool>,
        running: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        let mut running = std::pin::pin!(running);
        let mut stop = self.stop.clone();
        tokio::select! {
            outcome = &mut running => return outcome,
            Ok(_) = stop.wait_for(|stop| *stop > StopLevel::Continue) => {}
        }
        // The processes are ended, and awaited.
        end_sender.send_replace(true);
        running.await
    }
}

/// Lists the checks whose own scripts are among the changed files: those that their commands name, and those that these include.
fn list_changed_checks(
    project_root: &Path,
    base: &CommitId,
    checks: &[CheckSpec],
    changed_paths: &[String],
) -> Vec<ReplacedCheck> {
    let read_base = |path: &str| heads::read_file_at(project_root, base.as_str(), path);
    let has_candidates = changed_paths.iter().any(|path| may_be_included(path));
    let with_scripts = checks.iter().map(|check| {
        let mut scripts = check.command.list_scripts();
        if has_candidates {
            add_included_scripts(&mut scripts, &|path| read_base(path).and_then(|bytes| String::from_utf8(bytes).ok()));
        }
        let is_changed = |path: &&String| {
            let mut own_scripts = scripts.iter().filter(|script| script.matches_path(path));
            own_scripts.any(|script| {
                script.part != ScriptPart::NewFile || !heads::has_entry_at(project_root, base, &script.path)
            })
        };
        let changed_scripts = changed_paths.iter().filter(is_changed).cloned().collect();
        ReplacedCheck { check: check.clone(), scripts: changed_scripts }
    });
    with_scripts.filter(|replaced: &ReplacedCheck| !replaced.scripts.is_empty()).collect()
}
