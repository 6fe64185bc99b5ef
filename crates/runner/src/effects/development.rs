//! Performs the effects on workspaces for development: open, close, commit, rebase, park, integrate.
//!
//! The work on files and git is in `workspaces::development`; here it is combined with the commands of the user: setup and hooks.

#[cfg(test)]
mod tests;

use std::{fs, path::PathBuf, sync::Arc};

use tribunal_engine::{
    fault::{Fault, FaultKind},
    ids::{CommitId, TreeId},
    text::shell_quote,
};
use tribunal_workflows::development::{
    checks::{CheckStatus, CommandLine},
    commits::{CommitOutcome, CommitWork, Integrate, IntegrateOutcome, RebaseOutcome, RebaseWork},
    frozen_work::{FreezeWork, WorkFreezing},
    parking::{ParkOutcome, ParkWork, name_files},
    workspace::{CloseOutcome, CloseWorkspace, DevelopmentPlace, OpenOutcome, OpenWorkspace, OpenedWorkspace},
};

use super::{
    EffectContext, PerformedEffect,
    checks::put_back_guarded,
    clone_setup::{SetupEnd, list_usual_seeds, run_setup},
    commands::{CommandFailure, FinishedCheck},
    environment_fault,
    scratchpad::{keep_scratchpad, scratchpad_path},
    stray_edits,
};
use crate::workspaces::development::{
    DevelopmentWorkspace, WorkspaceError, WorkspaceHome, close_workspace as remove_workspace,
    commits::{CommitForm, PreparedCommit, ReadyCommit},
    frozen_work::{FrozenContent, TreeHold},
    hooks::CommitHook,
    integrate::integrate_work,
    move_parked_work,
    opening::{OpenRequest, SeedRequest, UnfinishedWorkspace, create_workspace},
    rebase_workspace,
};
use crate::{blocking_work::run_blocking, locks::lock_user_tree};

impl EffectContext {
    /// Returns where the workspaces of this project are.
    pub fn workspace_home(&self) -> Result<WorkspaceHome, Fault> {
        let configured_root = self.settings.workspace.root.as_ref().map(|root| self.project.root().join(root));
        let clones_root = configured_root.or_else(|| self.clones_root.clone()).ok_or_else(|| {
            environment_fault("there is no cache directory for workspaces; set `workspace.root` to a directory")
        })?;
        Ok(WorkspaceHome { project: self.project.clone(), clones_root })
    }

    /// Returns a workspace that was opened.
    pub fn find_development_workspace(&self, workspace_name: &str) -> Result<DevelopmentWorkspace, Fault> {
        Ok(self.workspace_home()?.require_workspace(&self.run_id, workspace_name)?)
    }

    /// Refuses to go on in the user's checkout with files that were made while no process of the run was there: they are not the work of
    /// an agent, and would be committed with it. What appears later is taken for the agent's.
    pub fn enter_checkout(&self, workspace: &DevelopmentWorkspace) -> Result<(), Fault> {
        let workspace_name = &workspace.record.name;
        if !workspace.is_in_place() || self.memory.entered_checkouts.has_workspace(workspace_name) {
            return Ok(());
        }
        let made_files = workspace.list_files_made_meanwhile()?;
        if made_files.is_empty() {
            self.memory.entered_checkouts.add_workspace(workspace_name);
            return Ok(());
        }
        let quoted: Vec<String> = made_files.iter().map(|path| shell_quote(path)).collect();
        let (named, quoted) = (name_files(&made_files), quoted.join(" "));
        // A name with such a character would be a pattern, and mean other files as well.
        let is_pattern = |path: &String| path.starts_with(':') || path.contains(['*', '?', '[', '\\']);
        let git = if made_files.iter().any(is_pattern) { "git --literal-pathspecs" } else { "git" };
        let message = format!(
            "these files were made in your checkout while the run did not work: {named}; commit them, put them aside with \
             `{git} stash push -u -- {quoted}`, or make them a part of the work with `{git} add -- {quoted}`, then resume"
        );
        Err(Fault::new(FaultKind::CheckoutNotReady, message))
    }

    /// Returns the directory in which agents and checks run in a workspace that was opened.
    pub fn development_dir(&self, workspace_name: &str) -> Result<PathBuf, Fault> {
        self.find_development_workspace(workspace_name).map(|workspace| workspace.agent_dir())
    }
}

/// Runs work on files and git on a thread of its own.
async fn run_work<T: Send + 'static>(
    context: &Arc<EffectContext>,
    work: impl FnOnce(&EffectContext) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let context = context.clone();
    match run_blocking(move || work(&context)).await {
        Ok(outcome) => outcome,
        Err(panicked) => Err(environment_fault(format!("a file operation failed unexpectedly: {panicked}"))),
    }
}

/// Opens a workspace. Returns `None` if the user stopped the run meanwhile.
pub(super) async fn open_workspace(
    context: Arc<EffectContext>,
    request: OpenWorkspace,
) -> Option<PerformedEffect<OpenOutcome>> {
    let in_place = request.place == DevelopmentPlace::InPlace;
    let scratchpad = request.scratchpad.clone().unwrap_or_else(|| scratchpad_path(&context));
    let found = run_work(&context, move |context| find_or_create(context, &request)).await;
    let unfinished = match found {
        Ok(FoundWorkspace::Complete(workspace)) => {
            return Some(describe_opened(&context, *workspace, scratchpad).await.into());
        }
        Ok(FoundWorkspace::Unfinished(unfinished)) => unfinished,
        Err(fault) => return Some(OpenOutcome::from(fault).into()),
    };
    // The user's own checkout is set up by the user.
    if !in_place {
        let workspace = unfinished.as_workspace();
        let (tree, directory) = (workspace.record.tree.clone(), workspace.agent_dir());
        match run_setup(&context, &tree, &directory).await? {
            SetupEnd::Passed => {}
            SetupEnd::Failed(finished) => {
                // Whether the rest could be removed does not matter: the next attempt begins with that.
                let _ = run_work(&context, move |_| Ok(unfinished.remove_directory()?)).await;
                let FinishedCheck { result, log_blob } = finished;
                let blobs = log_blob.into_iter().collect();
                return Some(PerformedEffect { reply: OpenOutcome::SetupFailed(result), blobs });
            }
            SetupEnd::Faulted(fault) => return Some(OpenOutcome::from(fault).into()),
        }
    }
    let completed = run_work(&context, move |_| Ok(unfinished.mark_complete()?)).await;
    Some(match completed {
        Ok(workspace) => describe_opened(&context, workspace, scratchpad).await.into(),
        Err(fault) => OpenOutcome::from(fault).into(),
    })
}

enum FoundWorkspace {
    Complete(Box<DevelopmentWorkspace>),
    Unfinished(Box<UnfinishedWorkspace>),
}

fn find_or_create(context: &EffectContext, request: &OpenWorkspace) -> Result<FoundWorkspace, Fault> {
    let home = context.workspace_home()?;
    if let Some(workspace) = home.find_workspace(&context.run_id, &request.workspace)? {
        return Ok(FoundWorkspace::Complete(Box::new(workspace)));
    }
    let usual_seeds = list_usual_seeds(context);
    let mut own_files = stray_edits::own_directories(context).to_vec();
    own_files.push(context.settings.own_folders().report_pattern());
    let open_request = OpenRequest {
        run_id: &context.run_id,
        open: request,
        seeds: SeedRequest { named: &context.settings.seeds, usual: &usual_seeds },
        own_files: &own_files,
    };
    Ok(FoundWorkspace::Unfinished(Box::new(create_workspace(&home, open_request)?)))
}

async fn describe_opened(
    context: &Arc<EffectContext>,
    workspace: DevelopmentWorkspace,
    scratchpad: String,
) -> OpenOutcome {
    let described = run_work(context, move |context| {
        let notes_file = workspace.agent_dir().join(&scratchpad);
        if let Some(notes_dir) = notes_file.parent() {
            fs::create_dir_all(notes_dir)
                .map_err(|cause| environment_fault(format!("could not create {}: {cause}", notes_dir.display())))?;
        }
        let reading = workspace.read_state(&[], &context.masker)?;
        Ok(OpenedWorkspace {
            // Looked up by its name, as every later effect does it.
            path: context.development_dir(&workspace.record.name)?.display().to_string(),
            base: workspace.record.base.clone(),
            state: reading.state,
            scratchpad,
            remarks: workspace.record.remarks.iter().cloned().chain(reading.remarks).collect(),
        })
    });
    described.await.map_or_else(OpenOutcome::from, OpenOutcome::Opened)
}

pub(super) async fn close_workspace(context: Arc<EffectContext>, request: CloseWorkspace) -> CloseOutcome {
    let closed = run_work(&context, move |context| {
        keep_scratchpad(context, &request.workspace);
        Ok(remove_workspace(&context.workspace_home()?, &context.run_id, &request.workspace)?)
    });
    closed.await.map_or_else(CloseOutcome::from, |()| CloseOutcome::Closed)
}

pub(super) async fn freeze_work(context: Arc<EffectContext>, request: FreezeWork) -> WorkFreezing {
    let frozen = run_work(&context, move |context| {
        let workspace = context.find_development_workspace(&request.workspace)?;
        if let Some(commit) = &request.commit {
            return Ok(WorkFreezing::Frozen { tree: workspace.freeze_commit(commit)?, remarks: Vec::new() });
        }
        context.enter_checkout(&workspace)?;
        let FrozenContent { tree, left, reading } = workspace.freeze_content(&context.masker)?;
        context.memory.readings.remember_reading(&request.workspace, &tree, reading);
        Ok(WorkFreezing::Frozen { tree, remarks: left.describe().into_iter().collect() })
    });
    frozen.await.unwrap_or_else(WorkFreezing::from)
}

pub(super) async fn rebase_work(context: Arc<EffectContext>, request: RebaseWork) -> RebaseOutcome {
    let rebased = run_work(&context, move |context| {
        let workspace = context.find_development_workspace(&request.workspace)?;
        Ok(rebase_workspace(workspace, &request.onto)?)
    });
    rebased.await.unwrap_or_else(RebaseOutcome::from)
}

pub(super) async fn park_work(context: Arc<EffectContext>, request: ParkWork) -> ParkOutcome {
    let moved = run_work(&context, move |context| {
        let _alone = lock_checkout(context)?;
        let workspace = context.find_development_workspace(&request.workspace)?;
        // What the user has made meanwhile is asked about here, or is the work, if the user has said so.
        context.memory.entered_checkouts.add_workspace(&request.workspace);
        Ok(move_parked_work(workspace, request.mode)?)
    });
    moved.await.unwrap_or_else(ParkOutcome::from)
}

fn lock_checkout(context: &EffectContext) -> Result<fs::File, Fault> {
    lock_user_tree(&context.project.locks_dir())
        .map_err(|cause| environment_fault(format!("could not lock the files of the project: {cause}")))
}

/// Takes back what agents of this run committed by themselves in the user's checkout. Returns what the user should know.
pub(super) fn take_back_commits(
    context: &EffectContext,
    workspace: &DevelopmentWorkspace,
) -> Result<Option<String>, Fault> {
    if !workspace.is_in_place() {
        return Ok(None);
    }
    let _alone = lock_checkout(context)?;
    let branch_name = &workspace.record.branch;
    Ok(match workspace.take_back_agent_commits()? {
        0 => None,
        1 => Some(format!(
            "the agent made a commit on {branch_name} by itself; it was taken back, and its changes are part of the work"
        )),
        count => Some(format!(
            "the agent made {count} commits on {branch_name} by itself; they were taken back, and their changes are part of the \
             work"
        )),
    })
}

pub(super) async fn integrate_commit(context: Arc<EffectContext>, request: Integrate) -> IntegrateOutcome {
    let integrated = run_work(&context, move |context| {
        let workspace = context.find_development_workspace(&request.workspace)?;
        Ok(integrate_work(&workspace, &request, &context.masker)?)
    });
    integrated.await.unwrap_or_else(IntegrateOutcome::from)
}

/// Why a commit is not made.
enum CommitFailure {
    Stopped,
    Refused(FinishedCheck),
    Faulted(Fault),
}

impl From<Fault> for CommitFailure {
    fn from(fault: Fault) -> CommitFailure {
        CommitFailure::Faulted(fault)
    }
}

impl From<CommandFailure> for CommitFailure {
    fn from(failure: CommandFailure) -> CommitFailure {
        match failure {
            CommandFailure::Stopped => CommitFailure::Stopped,
            CommandFailure::Lost(cause) => {
                CommitFailure::Faulted(environment_fault(format!("could not run a commit hook: {cause}")))
            }
        }
    }
}

/// Commits the content of a workspace. `request_id` tells this request from all others of the run: the same one, asked again
/// after a process ended, finds its commit. Returns `None` if the user stopped the run meanwhile.
pub(super) async fn commit_work(
    context: Arc<EffectContext>,
    request: CommitWork,
    request_id: String,
) -> Option<PerformedEffect<CommitOutcome>> {
    Some(match try_commit(&context, request, request_id).await {
        Ok(outcome) => outcome.into(),
        Err(CommitFailure::Stopped) => return None,
        Err(CommitFailure::Faulted(fault)) => CommitOutcome::from(fault).into(),
        Err(CommitFailure::Refused(FinishedCheck { result, log_blob })) => {
            PerformedEffect { reply: CommitOutcome::Refused(result), blobs: log_blob.into_iter().collect() }
        }
    })
}

async fn try_commit(
    context: &Arc<EffectContext>,
    request: CommitWork,
    request_id: String,
) -> Result<CommitOutcome, CommitFailure> {
    let CommitWork { workspace: workspace_name, message, run_hooks, squash, keeps_ref, tree } = request;
    let commit_form = if squash { CommitForm::Squashed } else { CommitForm::Added };
    let preparation_id = request_id.clone();
    let prepare = move |context: &EffectContext| {
        let workspace = context.find_development_workspace(&workspace_name)?;
        // The work is what differs from where the branch is without such commits.
        take_back_commits(context, &workspace).map(drop)?;
        let tree = match tree {
            Some(tree) => {
                // Only hooks look at the files; what was edited since is no part of the commit.
                let needs_files = run_hooks && !workspace.commit_hooks()?.is_empty();
                if needs_files && let TreeHold::Edited(paths) = workspace.hold_tree(&tree)? {
                    return Ok(CommitPreparation::Edited(paths));
                }
                tree
            }
            None => {
                context.enter_checkout(&workspace)?;
                workspace.freeze_content(&context.masker)?.tree
            }
        };
        let prepared = workspace.prepare_commit(&tree, &preparation_id, commit_form)?;
        Ok(CommitPreparation::Prepared(Box::new(workspace), prepared))
    };
    let (workspace, prepared) = match run_work(context, prepare).await? {
        CommitPreparation::Prepared(workspace, prepared) => (*workspace, prepared),
        CommitPreparation::Edited(paths) => return Ok(CommitOutcome::Edited { paths }),
    };
    let ready = match prepared {
        PreparedCommit::AlreadyMade(commit) => {
            // The earlier process may have ended before this.
            keep_commit(context, workspace, &commit, keeps_ref).await?;
            return Ok(CommitOutcome::Committed { commit });
        }
        PreparedCommit::Unchanged(tip) => {
            let has_work = tip != *workspace.base_commit();
            keep_commit(context, workspace, &tip, keeps_ref && has_work).await?;
            return Ok(CommitOutcome::Unchanged { tip });
        }
        PreparedCommit::Ready(ready) => ready,
    };
    let workspace = Arc::new(workspace);
    let message = if run_hooks {
        let hooks = CommitHooks { context, workspace: &workspace };
        let verdict = hooks.run_hooks(&ready, message).await;
        // Also after a refusal: HEAD is the base again.
        hooks.with_workspace(DevelopmentWorkspace::end_hooks).await?;
        match verdict? {
            HookVerdict::Accepted { message } => message,
            HookVerdict::Rewritten { tree, paths } => return Ok(CommitOutcome::Rewritten { tree, paths }),
        }
    } else {
        message
    };
    let commit = run_work(context, move |_| {
        let commit = workspace.finish_commit(&ready, &message, &request_id)?;
        if keeps_ref {
            workspace.keep_commit(&commit)?;
        }
        Ok(commit)
    })
    .await?;
    Ok(CommitOutcome::Committed { commit })
}

/// Gives a commit a ref of its own, if that is asked for.
async fn keep_commit(
    context: &Arc<EffectContext>,
    workspace: DevelopmentWorkspace,
    commit: &CommitId,
    is_asked_for: bool,
) -> Result<(), Fault> {
    if !is_asked_for {
        return Ok(());
    }
    let commit = commit.clone();
    run_work(context, move |_| Ok(workspace.keep_commit(&commit)?)).await
}

enum CommitPreparation {
    Prepared(Box<DevelopmentWorkspace>, PreparedCommit),
    /// The user has edited these files since the content was frozen.
    Edited(Vec<String>),
}

/// What the user's hooks made of a commit.
enum HookVerdict {
    Accepted {
        message: String,
    },
    /// They changed these files, which have not been checked like that.
    Rewritten {
        tree: TreeId,
        paths: Vec<String>,
    },
}

struct CommitHooks<'a> {
    context: &'a Arc<EffectContext>,
    workspace: &'a Arc<DevelopmentWorkspace>,
}

impl CommitHooks<'_> {
    async fn run_hooks(&self, ready: &ReadyCommit, message: String) -> Result<HookVerdict, CommitFailure> {
        let hooks = self.with_workspace(DevelopmentWorkspace::commit_hooks).await?;
        let parent = ready.parent.clone();
        self.with_workspace(move |workspace| workspace.begin_hooks(&parent)).await?;
        let hook_path =
            |hook: CommitHook| hooks.iter().find(|found| found.hook == hook).map(|found| found.path.clone());
        if let Some(pre_commit) = hook_path(CommitHook::PreCommit) {
            self.run_hook(&pre_commit, &[]).await?;
            let old_tree = ready.tree.clone();
            if let Some((tree, paths)) =
                self.with_workspace(move |workspace| take_rewriting(workspace, &old_tree)).await?
            {
                return Ok(HookVerdict::Rewritten { tree, paths });
            }
        }
        let message = match hook_path(CommitHook::CommitMsg) {
            Some(commit_msg) => self.run_commit_msg(commit_msg, message).await?,
            None => message,
        };
        Ok(HookVerdict::Accepted { message })
    }

    async fn run_commit_msg(&self, hook: PathBuf, message: String) -> Result<String, CommitFailure> {
        let message_file = self.with_workspace(move |workspace| workspace.write_message_file(&message)).await?;
        let last_run = self.run_hook(&hook, &[message_file]).await?;
        let message = self.with_workspace(DevelopmentWorkspace::read_message_file).await?;
        if message.trim().is_empty() {
            let mut refusal = last_run;
            refusal.result.status = CheckStatus::Failed { exit_code: 1 };
            refusal.result.output = "the hook left an empty message".to_string();
            return Err(CommitFailure::Refused(refusal));
        }
        Ok(message)
    }

    /// Runs a hook that must pass.
    async fn run_hook(&self, hook: &std::path::Path, arguments: &[PathBuf]) -> Result<FinishedCheck, CommitFailure> {
        let words = [hook].into_iter().chain(arguments.iter().map(PathBuf::as_path));
        let command = CommandLine::Argv(words.map(|word| word.display().to_string()).collect());
        let (directory, hook_env) = (self.workspace.hook_dir(), self.workspace.hook_env());
        let writable_paths = Some(self.workspace.hook_writable_paths());
        let guarded_files = self.with_workspace(DevelopmentWorkspace::read_guarded_files).await?;
        self.with_workspace(DevelopmentWorkspace::save_git_settings).await?;
        let finished = self.context.run_user_command(&command, directory, hook_env, writable_paths).await;
        // A hook runs code that agents have changed, and can write what the next git command would obey.
        self.with_workspace(DevelopmentWorkspace::restore_git_settings).await?;
        let remarks = put_back_guarded(guarded_files).await;
        let mut finished = finished?;
        if !remarks.is_empty() {
            finished.result.status = CheckStatus::Failed { exit_code: 1 };
            finished.result.output = remarks.join("; ");
        }
        if finished.result.status.is_passed() { Ok(finished) } else { Err(CommitFailure::Refused(finished)) }
    }

    async fn with_workspace<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DevelopmentWorkspace) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, CommitFailure> {
        let workspace = self.workspace.clone();
        Ok(run_work(self.context, move |_| Ok(work(&workspace)?)).await?)
    }
}

/// Freezes what a hook has made of a tree, and names the files that it changed; `None` if it changed nothing.
fn take_rewriting(
    workspace: &DevelopmentWorkspace,
    old_tree: &TreeId,
) -> Result<Option<(TreeId, Vec<String>)>, WorkspaceError> {
    let staged = workspace.stage_commit()?;
    if staged.tree == *old_tree {
        return Ok(None);
    }
    let paths = workspace.list_differences(old_tree.as_str(), staged.tree.as_str())?;
    Ok(Some((workspace.take_commit_index()?, paths)))
}
