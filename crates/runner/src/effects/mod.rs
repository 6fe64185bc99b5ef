//! Performs effects, with one module per kind. An effect that fails is a reply, not an error.
//!
//! A new effect needs a row in the table of effects in `workflows`, a module here, and an arm in [`perform_effect`].

mod ask;
mod base_checks;
mod base_files;
mod change_diff;
mod change_listing;
mod check_places;
mod checks;
mod clone_setup;
mod commands;
mod decision_files;
mod development;
mod freeze;
mod fresh_checks;
mod frozen_readings;
mod land;
mod notify;
mod other_stories;
mod own_files;
pub(crate) mod retrospectives;
mod scratchpad;
mod sprints;
mod stories;
mod story_reading;
mod stray_edits;
mod take_in;
#[cfg(test)]
pub(crate) mod test_context;
mod verify_commands;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::sync::{mpsc::UnboundedSender, watch};
use tribunal_agents::driver::LaunchEnv;
use tribunal_engine::{
    effect::Elapsed,
    fault::{Fault, FaultKind},
    ids::{Hash, Key, RunId},
    progress::AgentProgress,
};
use tribunal_supervise::{Deadlines, KeeperSetup, MARK_VARIABLE, OutputLimits, ProcessCommand, SandboxSupport};
use tribunal_workflows::runs::{
    effect::{Land, Reply, TakeIn, WorldEffect, WriteFile},
    kinds::RunOrder,
    settings::Settings,
};

use crate::{
    blocking_work::run_blocking,
    git::REDIRECTING_VARIABLES,
    landing::checkpoints::CheckpointKey,
    masking::Masker,
    project::Project,
    sandbox::{SandboxPolicy, SpareTmp},
    shared::{
        permits::{AgentPermit, PermitLane},
        shared_state::SharedState,
        stop_level::StopLevel,
    },
    workspaces::{SharedScans, agent_file_names},
};

pub(crate) use ask::RecentOutputs;
pub use base_checks::BaseCheck;
pub(crate) use base_checks::{ReplacedCheck, run_checks_of_base};
pub(crate) use base_files::BaseFiles;
pub(crate) use check_places::run_checks;
pub(crate) use checks::run_checks_in_checkout;
pub(crate) use decision_files::{
    answers_in_files, clear_page_answer, decision_page_path, find_retained_workspaces, read_trusted_answers,
    remove_decision_page, reword_page, unusable_answers,
};
pub(crate) use frozen_readings::FrozenReadings;
pub(crate) use own_files::{put_back_files, read_tracker_edits};
pub(crate) use story_reading::read_story;

/// What every effect may use.
#[derive(Debug)]
pub(crate) struct EffectContext {
    pub project: Project,
    pub run_id: RunId,
    pub settings: Settings,
    /// What the run was asked to do.
    pub order: RunOrder,
    pub masker: Masker,
    pub launch_env: LaunchEnv,
    /// The directory for clones, unless the settings name another one; `None` if the user has no cache directory.
    pub clones_root: Option<PathBuf>,
    pub progress: UnboundedSender<AgentProgress>,
    pub process_policy: ProcessPolicy,
    pub memory: RunMemory,
    /// The state shared with the other runs of this process.
    pub shared: SharedState,
    /// The queue in which this run's tasks wait for permits to start agents.
    pub permit_lane: PermitLane,
}

/// What a process remembers of its run. It can be lost: all of it can be read again.
#[derive(Debug, Default)]
pub(crate) struct RunMemory {
    /// The hash of the edited tracker that was accepted last.
    pub last_accepted_tracker_hash: Mutex<Option<Hash>>,
    /// What agents printed last.
    pub recent_outputs: RecentOutputs,
    /// What the project's directory looked like last, for agents that could write there.
    pub project_scans: SharedScans,
    /// What did not count as the user's word, for the journal.
    pub ignored_words: Mutex<IgnoredWords>,
    /// The workspaces of approved patches that were landed.
    pub landed_workspaces: Mutex<BTreeSet<PathBuf>>,
    pub spare_tmp: Arc<SpareTmp>,
    pub base_files: BaseFiles,
    pub readings: FrozenReadings,
    /// The workspaces in the user's checkout in which this process has worked.
    pub entered_checkouts: EnteredCheckouts,
}

/// Names of workspaces.
#[derive(Debug, Default)]
pub(crate) struct EnteredCheckouts(Mutex<BTreeSet<String>>);

impl EnteredCheckouts {
    pub fn has_workspace(&self, workspace_name: &str) -> bool {
        self.lock_names().contains(workspace_name)
    }

    pub fn add_workspace(&self, workspace_name: &str) {
        self.lock_names().insert(workspace_name.to_string());
    }

    fn lock_names(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What did not count as the user's word.
#[derive(Debug, Default)]
pub(crate) struct IgnoredWords {
    /// Descriptions that are not in the journal yet.
    pub unrecorded: Vec<String>,
    /// How many were recorded by this process.
    pub recorded_count: u32,
    /// When the inbox was looked at last.
    pub inspected_at: Option<tokio::time::Instant>,
}

/// How processes are started and supervised.
#[derive(Debug)]
pub(crate) struct ProcessPolicy {
    /// Every keeper holds the locks of the run as well: a free lock means that no process of the run is left.
    pub keeper: Option<KeeperSetup>,
    /// What the kernel can enforce.
    pub sandbox_support: SandboxSupport,
    /// Marks every process of this run; a number behind it tells the tasks apart.
    pub process_mark: String,
    pub started_count: AtomicU64,
    /// How far the user wants the run to stop.
    pub stop_requests: watch::Receiver<StopLevel>,
    /// Tells running processes to end now.
    pub end_requested: watch::Receiver<bool>,
}

impl EffectContext {
    /// Returns what restricts the processes of this run.
    pub fn sandbox_policy(&self) -> SandboxPolicy<'_> {
        // Without a keeper nothing can be enforced.
        let has_keeper = self.process_policy.keeper.is_some();
        SandboxPolicy {
            settings: &self.settings.sandbox,
            support: if has_keeper { self.process_policy.sandbox_support } else { SandboxSupport::OtherSystem },
            launch_env: &self.launch_env,
            project: &self.project,
            run_id: &self.run_id,
            spare_tmp: &self.memory.spare_tmp,
        }
    }

    /// Lists the ignored files that go into every workspace.
    pub fn seed_paths(&self) -> Vec<String> {
        let configured_seeds = self.settings.seeds.iter().cloned();
        agent_file_names().map(String::from).chain(configured_seeds).collect()
    }

    /// Remembers, for the journal, that something does not count as the user's word.
    pub fn ignore_word(&self, description: String) {
        self.memory.ignored_words.lock().unwrap_or_else(PoisonError::into_inner).unrecorded.push(description);
    }

    /// Waits until one more agent may start. Returns `None` if the user wants to stop: nothing new starts then.
    pub async fn acquire_permit(&self) -> Option<AgentPermit> {
        let mut stop = self.process_policy.stop_requests.clone();
        tokio::select! {
            // The stop request is polled first: a permit that becomes free at the same time must not start an agent.
            biased;
            Ok(_) = stop.wait_for(|stop| *stop > StopLevel::Continue) => None,
            permit = self.permit_lane.acquire_permit() => Some(permit),
        }
    }

    /// Sleeps. Returns `None` if the user wants to stop.
    async fn sleep_unless_stopped(&self, sleep_ms: u64) -> Option<()> {
        let mut stop = self.process_policy.stop_requests.clone();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => Some(()),
            Ok(_) = stop.wait_for(|stop| *stop > StopLevel::Continue) => None,
        }
    }

    /// Waits for a wall time. Returns `None` if the user wants to stop.
    pub async fn wait_until(&self, until_ms: u64) -> Option<()> {
        let mut stop = self.process_policy.stop_requests.clone();
        tokio::select! {
            () = wait_for_wall_clock(until_ms) => Some(()),
            Ok(_) = stop.wait_for(|stop| *stop > StopLevel::Continue) => None,
        }
    }

    /// Returns a command with the run's mark, locks and isolation; the caller fills in the rest.
    pub fn new_command(&self, program: OsString, arguments: Vec<OsString>, directory: PathBuf) -> ProcessCommand {
        // Git must not find the user's repository above a workspace: a `git reset` there would reset the user's files.
        let git_ceiling = directory.parent().unwrap_or(&directory).as_os_str().to_owned();
        let process_number = self.process_policy.started_count.fetch_add(1, Ordering::Relaxed);
        let environment = BTreeMap::from([
            ("GIT_CEILING_DIRECTORIES".to_string(), git_ceiling),
            ("PWD".to_string(), directory.as_os_str().to_owned()),
            (RUN_VARIABLE.to_string(), self.run_id.as_str().into()),
            (MARK_VARIABLE.to_string(), format!("{}{process_number}", self.process_policy.process_mark).into()),
        ]);
        ProcessCommand {
            program,
            args: arguments,
            working_dir: directory,
            extra_env: environment,
            // These variables would lead git past that ceiling, or a shell out of the directory.
            removed_env: REDIRECTING_VARIABLES.into_iter().chain(["OLDPWD"]).map(String::from).collect(),
            stdin_bytes: Vec::new(),
            // The caller sets the real deadlines; these only make sure that a forgotten one is not unlimited.
            deadlines: Deadlines { total: MAX_PROCESS_TIME, idle: MAX_PROCESS_TIME, grace: END_GRACE },
            output_limits: OutputLimits::default(),
            // The caller restricts what is not the user's own command.
            sandbox: None,
            keeper: self.process_policy.keeper.clone(),
            stop_signal: Some(self.process_policy.end_requested.clone()),
        }
    }
}

/// The time between asking processes to end and killing them.
pub(crate) const END_GRACE: Duration = Duration::from_secs(5);
/// The upper bound for any process: nothing is ever unlimited.
const MAX_PROCESS_TIME: Duration = Duration::from_secs(24 * 3600);
/// Tells the processes of an agent which run they work for.
const RUN_VARIABLE: &str = "TRIBUNAL_RUN";

/// The outcome of an effect with the blobs it names: a typed outcome, or the journal's reply.
#[derive(Debug)]
pub(crate) struct PerformedEffect<T = Reply> {
    pub reply: T,
    pub blobs: Vec<Vec<u8>>,
}

impl<T> From<T> for PerformedEffect<T> {
    fn from(reply: T) -> Self {
        PerformedEffect { reply, blobs: Vec::new() }
    }
}

impl<T> PerformedEffect<T> {
    fn map_reply(self, to_reply: fn(T) -> Reply) -> PerformedEffect {
        PerformedEffect { reply: to_reply(self.reply), blobs: self.blobs }
    }
}

/// Performs an effect. Returns `None` if the user ended it before it was done; the next process asks for it again.
///
/// `segment` is the part of the run that asks for it. `unfinished_count` says how often it was started before and never finished:
/// an agent that was asked then was paid for reading the prompt all the same.
pub(crate) async fn perform_effect(
    context: Arc<EffectContext>,
    effect_key: Key,
    effect: WorldEffect,
    segment_number: u32,
    unfinished_attempts: u32,
) -> Option<PerformedEffect> {
    if !matches!(effect, WorldEffect::ReadStory(_)) {
        context.memory.readings.forget_reading();
    }
    let reply = match effect {
        WorldEffect::Ask(ask_request) => {
            let asked = ask::ask_agent(context, effect_key, ask_request, unfinished_attempts).await;
            return asked.map(|performed| performed.map_reply(Reply::Ask));
        }
        WorldEffect::Land(Land { by: task_key, patch, allowed, size_limit, checks, preview, without }) => {
            let checkpoint_key = CheckpointKey { segment: segment_number, task_key };
            let (is_preview, limits) = (preview, land::LandingLimits { allowed, size_limit, checks });
            let request = land::LandingRequest { checkpoint_key, patch, limits, is_preview, without };
            Reply::Land(land::land_patch(context, request).await?)
        }
        WorldEffect::TakeIn(TakeIn { before: frozen_files, checks }) => {
            Reply::TakeIn(take_in::take_in_edits(context, effect_key, frozen_files, checks).await?)
        }
        WorldEffect::Freeze(freeze) => {
            Reply::Freeze(run_file_effect(move || freeze::freeze_subject(&context, &effect_key, &freeze.subject)).await)
        }
        WorldEffect::Write(WriteFile { file: own_file, text: file_text }) => {
            Reply::Write(run_file_effect(move || own_files::write_own_file(&context, &own_file, &file_text)).await)
        }
        WorldEffect::Post(post_request) => {
            Reply::Post(run_file_effect(move || decision_files::post_decision(&context, &post_request.decision)).await)
        }
        WorldEffect::Restore(restore_request) => {
            Reply::Restore(run_file_effect(move || stray_edits::restore_stray(&context, &restore_request.stray)).await)
        }
        WorldEffect::Sleep(sleep) => {
            context.sleep_unless_stopped(sleep.ms).await?;
            Reply::Sleep(Elapsed {})
        }
        WorldEffect::AwaitReset(wait) => {
            if !ask::call_booking::is_wait_over(&context, &wait).await {
                context.wait_until(wait.until_ms).await?;
            }
            Reply::AwaitReset(Elapsed {})
        }
        WorldEffect::OpenWorkspace(request) => {
            return Some(development::open_workspace(context, request).await?.map_reply(Reply::OpenWorkspace));
        }
        WorldEffect::CloseWorkspace(request) => {
            Reply::CloseWorkspace(development::close_workspace(context, request).await)
        }
        WorldEffect::FreezeWork(request) => Reply::FreezeWork(development::freeze_work(context, request).await),
        WorldEffect::Checks(request) => {
            return Some(check_places::run_checks(context, effect_key, request).await?.map_reply(Reply::Checks));
        }
        WorldEffect::ReadChange(read_change) => {
            Reply::ReadChange(run_file_effect(move || change_listing::list_change(&context, &read_change)).await)
        }
        WorldEffect::Commit(request) => {
            // A key is unique only within its part of the run.
            let request_id = format!("{segment_number} {effect_key}");
            return Some(development::commit_work(context, request, request_id).await?.map_reply(Reply::Commit));
        }
        WorldEffect::Rebase(request) => Reply::Rebase(development::rebase_work(context, request).await),
        WorldEffect::ParkWork(request) => Reply::ParkWork(development::park_work(context, request).await),
        WorldEffect::Integrate(request) => Reply::Integrate(development::integrate_commit(context, request).await),
        WorldEffect::Notify(request) => Reply::Notify(notify::notify_user(&context, &request).await?),
        WorldEffect::ReadStory(request) => Reply::ReadStory(story_reading::read_story(context, request).await),
        WorldEffect::WriteStory(request) => Reply::WriteStory(stories::write_story(context, request).await),
        WorldEffect::ReadSprint(request) => Reply::ReadSprint(sprints::read_sprint(context, request).await),
        WorldEffect::PlanStory(request) => Reply::PlanStory(sprints::plan_story(context, request).await),
        WorldEffect::FinishRetrospective(request) => {
            Reply::FinishRetrospective(retrospectives::finish_retrospective(context, request).await)
        }
        WorldEffect::RestoreBoard(request) => Reply::RestoreBoard(stories::restore_board(context, request).await),
    };
    Some(reply.into())
}

/// Waits until the wall clock reaches a time. The machine may sleep meanwhile, so a long wait consists of many short ones. The
/// clock may be set back, so no wait is longer than it seemed when it began.
async fn wait_for_wall_clock(until_ms: u64) {
    const CHECK_INTERVAL: Duration = Duration::from_secs(20);
    let started_at = tokio::time::Instant::now();
    let initial_wait = Duration::from_millis(until_ms.saturating_sub(current_wall_ms()));
    loop {
        // The shorter of both: the wall clock says when to stop, the monotonic clock how long at most.
        let remaining = Duration::from_millis(until_ms.saturating_sub(current_wall_ms()));
        let remaining = remaining.min(initial_wait.saturating_sub(started_at.elapsed()));
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining.min(CHECK_INTERVAL)).await;
    }
}

/// Returns the milliseconds since 1970.
fn current_wall_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Runs work on files on a separate thread.
async fn run_file_effect<T: From<Fault> + Send + 'static>(file_work: impl FnOnce() -> T + Send + 'static) -> T {
    match run_blocking(file_work).await {
        Ok(outcome) => outcome,
        Err(panicked) => environment_fault(format!("a file operation failed unexpectedly: {panicked}")).into(),
    }
}

pub(crate) fn environment_fault(detail: impl Into<String>) -> Fault {
    Fault::new(FaultKind::World, detail)
}
