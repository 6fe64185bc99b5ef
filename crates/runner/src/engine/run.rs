//! Starting and resuming runs. [`run_locks`] says which process works on a run, and keeps others away from it.

mod child_runs;
mod context_building;
mod run_locks;
mod start_check;
mod story_inspection;

use std::{collections::HashMap, io, path::PathBuf, sync::Arc};

use tokio::{
    sync::{mpsc::unbounded_channel, watch},
    task::JoinSet,
};
use tribunal_agents::driver::LaunchEnv;
use tribunal_engine::{
    children::MAX_DEPTH,
    event::ParentRun,
    fault::Fault,
    ids::{BatchId, DecisionId, Hash, RunId},
    reason::RunEnding,
};
use tribunal_store::{Store, StoreError, SyncMode};
use tribunal_supervise::{KeeperSetup, SandboxSupport, SpareKeeper, sweep_strays};
use tribunal_workflows::{
    runs::{
        plan::RunPlan,
        run_kind::RunDriver,
        types::{EntryDraft, JournalEntry, RunEvent},
        user_request::UserRequest,
        view::{RunPhase, RunView},
    },
    session::SessionAssignment,
};

use crate::{
    blocking_work::run_blocking,
    effects::{answers_in_files, clear_page_answer, unusable_answers},
    engine::{
        host::{self, ChildRuns, HostError, WorkflowHost},
        journal::RunJournal,
        updates::{RunUpdate, UpdateSink},
    },
    locks::{self, HeldLock},
    masking::Masker,
    project::{
        Project, atomic_files,
        subject::{self, SubjectError},
    },
    run_names,
    sandbox::remove_leftover_dirs,
    session::{self, SessionError},
    shared::{shared_state::SharedState, stop_level::StopLevel, user_words::WatchStart},
};

use context_building::ProcessChannels;
pub use run_locks::RunHold;
pub(crate) use run_locks::{exclusive_lock_name, run_lock_name};
pub use story_inspection::{InspectedStory, StoryInspection};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error("cannot write to {}: {cause}", project.display())]
    Project { project: PathBuf, cause: io::Error },
    #[error("{path} points outside the project, to {}", to.display())]
    LeadsOut { path: String, to: PathBuf },
    #[error("{subject} is already being worked on by run {by}")]
    SubjectLocked { subject: String, by: RunId },
    #[error("run {run} is already running in another process")]
    RunLocked { run: RunId },
    #[error("no run named `{run}` in this project")]
    NoRun { run: RunId },
    #[error("run {run} has already ended: {outcome}")]
    Ended { run: RunId, outcome: String },
    #[error(
        "run {run} was started by workflow {workflow} version {version}; this build has {workflow} version {known}"
    )]
    IncompatibleVersion { run: RunId, workflow: &'static str, version: u32, known: u32 },
    #[error("run {run} is a `{workflow}`, a kind of run that this build does not have")]
    UnknownKind { run: RunId, workflow: String },
    #[error("run {run} belongs to a session of a coding client, which continues it")]
    DrivenBySession { run: RunId },
    #[error("run {run} would be nested {depth} levels deep, but at most {MAX_DEPTH} are allowed")]
    TooDeep { run: RunId, depth: u32 },
    #[error("run {run} has a journal entry that this build does not understand (entry {seq})")]
    UnknownEntry { run: RunId, seq: u64 },
    #[error("the settings appear to contain a secret: {place}")]
    SecretInSettings { place: String },
    #[error("the changed settings conflict with work that run {run} has already started")]
    SettingsDoNotFit { run: RunId, cause: HostError },
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("{fault}")]
    Inspection { fault: Fault },
    #[error("run {run}: {cause}")]
    Host { run: RunId, cause: HostError },
}

/// Everything a run needs from outside.
#[derive(Clone, Debug)]
pub struct Runner {
    pub project: Project,
    pub masker: Masker,
    pub launch_env: LaunchEnv,
    /// The directory for clones of projects, in the user's cache; `None` if the user has no such directory.
    pub clones_root: Option<PathBuf>,
    /// The version and build of this program, for the journal.
    pub build: String,
    /// The program that supervises agent processes: our own binary, where keepers are supported.
    pub keeper: Option<PathBuf>,
    /// What the kernel can keep agents from doing.
    pub sandbox_support: SandboxSupport,
    pub stop: watch::Receiver<StopLevel>,
    /// The state that this run shares with the other runs of this process.
    pub shared: SharedState,
    /// The session that repairs the findings, if a session does that.
    pub binding: Option<SessionAssignment>,
    /// The command that starts this run, if it starts several.
    pub batch_id: Option<BatchId>,
}

/// What a run starts with.
struct RunStart {
    plan: RunPlan,
    /// The run that asks for it, if it is a child.
    parent: Option<ParentRun>,
}

/// What earlier processes of a run have left.
struct RunPast {
    entries: Vec<JournalEntry>,
    /// The last of them was killed.
    was_interrupted: bool,
}

impl Runner {
    /// Starts a run and drives it to its end. `update_sink` receives every entry as soon as it is durable.
    pub async fn start_run(&self, plan: RunPlan, update_sink: &dyn UpdateSink) -> Result<(RunId, RunEnding), RunError> {
        // Settings are refused before the first write, so such a start leaves nothing behind.
        Runner::refuse_secrets(&self.masker, &plan)?;
        Runner::check_project(&self.project, &plan.settings)?;
        self.prepare_locks_dir()?;
        let store = Store::open(&self.project.home_dir())?;
        let run_id = run_names::new_run_name(&plan.order.file_slug(), &store.list_runs()?);
        self.sweep_workspaces(&store);
        let ending = self.begin_run(&run_id, RunStart { plan, parent: None }, store, update_sink).await?;
        Ok((run_id, ending))
    }

    /// Starts a child run under the id that its parent has recorded.
    pub(crate) async fn start_child_run(
        &self,
        child_id: &RunId,
        plan: RunPlan,
        parent: ParentRun,
        update_sink: &dyn UpdateSink,
    ) -> Result<RunEnding, RunError> {
        // A parent may order something that its own settings do not have.
        Runner::refuse_secrets(&self.masker, &plan)?;
        let store = Store::reopen_store(&self.project.home_dir())?;
        self.begin_run(child_id, RunStart { plan, parent: Some(parent) }, store, update_sink).await
    }

    async fn begin_run(
        &self,
        run_id: &RunId,
        start: RunStart,
        store: Store,
        update_sink: &dyn UpdateSink,
    ) -> Result<RunEnding, RunError> {
        let RunStart { plan, parent } = start;
        // Files of killed processes are removed under no lock: their names carry the identity of the process that made them.
        self.sweep_temporary_files(run_id, &plan);
        let locks = self.take_locks(run_id, &plan.order, update_sink).await?;
        // Stray processes are ended only after the locks are held: before that they might belong to a living run.
        self.sweep_strays(run_id, update_sink);
        remove_leftover_dirs(&self.launch_env.user_dirs.temporary, self.project.root(), run_id);
        let mut journal = RunJournal::new(store, run_id.clone(), self.masker.clone(), &[]);
        let binding_draft = self.draft_binding(&plan.order)?;
        let start_draft = EntryDraft {
            id: "run_started".into(),
            event: RunEvent::RunStarted {
                version: plan.order.workflow_version(),
                build: self.build.clone(),
                settings: plan.settings,
                order: plan.order,
                parent,
                batch: self.batch_id.clone(),
            },
        };
        let drafts = [start_draft].into_iter().chain(binding_draft).collect();
        let entries = journal.record_drafts(drafts, SyncMode::Now).await?;
        self.write_binding_file(journal.run_view(), &entries)?;
        for entry in &entries {
            update_sink.send_update(run_id, RunUpdate::NewEntry(entry));
        }
        self.drive_run(run_id, journal, RunPast { entries, was_interrupted: false }, locks, update_sink).await
    }

    /// Continues a run that parked or crashed, with its own settings or with changed ones.
    pub async fn resume_run(
        &self,
        run_id: &RunId,
        changed_plan: Option<RunPlan>,
        update_sink: &dyn UpdateSink,
    ) -> Result<(RunId, RunEnding), RunError> {
        start_check::refuse_leading_out(&self.project, ".tribunal")?;
        self.prepare_locks_dir()?;
        self.continue_run(run_id, changed_plan, update_sink).await.map(|ending| (run_id.clone(), ending))
    }

    /// Continues a child run for its parent.
    pub(crate) async fn resume_child_run(
        &self,
        child_id: &RunId,
        changed_plan: Option<RunPlan>,
        update_sink: &dyn UpdateSink,
    ) -> Result<RunEnding, RunError> {
        self.continue_run(child_id, changed_plan, update_sink).await
    }

    async fn continue_run(
        &self,
        run_id: &RunId,
        changed_plan: Option<RunPlan>,
        update_sink: &dyn UpdateSink,
    ) -> Result<RunEnding, RunError> {
        let store = Store::open(&self.project.home_dir())?;
        // The first look happens without the lock and only finds out whether the run can be resumed at all.
        let entries = store.entries_for_resume(run_id)?;
        let run_view = RunView::from_entries(&entries);
        let plan = check_resumable(run_id, &entries, &run_view)?;
        start_check::refuse_outside_paths(&self.project, &plan.settings)?;
        for written_path in plan.order.written_paths() {
            if self.project.tree_root().join(written_path).exists() {
                // The journal may have come with a clone. A file that is only missing is reported by the run itself.
                subject::ensure_inside(self.project.tree_root(), written_path)?;
            }
        }
        let locks = self.take_locks(run_id, &plan.order, update_sink).await?;
        // Another process may have continued the run between the first look and the lock.
        let entries = store.entries_for_resume(run_id)?;
        let run_view = RunView::from_entries(&entries);
        check_resumable(run_id, &entries, &run_view)?;
        if let Some(changed_plan) = &changed_plan {
            // Changed settings must not contradict what the journal replays, so they are tried out before they are recorded.
            Runner::refuse_secrets(&self.masker, changed_plan)?;
            host::check_plan(changed_plan, &entries)
                .map_err(|cause| RunError::SettingsDoNotFit { run: run_id.clone(), cause })?;
        }
        self.sweep_temporary_files(run_id, &plan);
        self.sweep_strays(run_id, update_sink);
        remove_leftover_dirs(&self.launch_env.user_dirs.temporary, self.project.root(), run_id);
        let life_number = run_view.incidents.life_count + 1;
        let mut journal = RunJournal::new(store, run_id.clone(), self.masker.clone(), &entries);
        let resume_draft =
            EntryDraft { id: format!("run_resumed:{life_number}"), event: RunEvent::RunResumed { life: life_number } };
        // Screens draw the past first, so that a resumed run looks like one that never stopped.
        for entry in &entries {
            update_sink.send_update(run_id, RunUpdate::ReplayedEntry(entry));
        }
        let changed_settings = changed_plan.map(|RunPlan { settings, order }| EntryDraft {
            id: format!("settings_changed:{life_number}"),
            event: RunEvent::SettingsChanged { settings, order },
        });
        let binding_draft = self.draft_binding_if_free(&plan.order, &entries)?;
        let drafts = [resume_draft].into_iter().chain(changed_settings).chain(binding_draft).collect();
        // The user resumes the run, so what stopped it is over.
        let recorded_entries = journal.record_resume(drafts).await?;
        self.write_binding_file(journal.run_view(), &recorded_entries)?;
        for entry in recorded_entries {
            update_sink.send_update(run_id, RunUpdate::NewEntry(&entry));
        }
        let was_interrupted = matches!(run_view.phase, RunPhase::Running);
        self.drive_run(run_id, journal, RunPast { entries, was_interrupted }, locks, update_sink).await
    }

    async fn drive_run(
        &self,
        run_id: &RunId,
        mut journal: RunJournal,
        past: RunPast,
        locks: Vec<HeldLock>,
        update_sink: &dyn UpdateSink,
    ) -> Result<RunEnding, RunError> {
        // The recorded settings count, which may differ from those of the caller after a resume.
        let RunView { settings: Some(settings), order: Some(order), .. } = journal.run_view().clone() else {
            return Err(RunError::NoRun { run: run_id.clone() });
        };
        let (progress_sender, progress_receiver) = unbounded_channel();
        let (ending_sender, end_requested) = watch::channel(false);
        let spare_keeper = order.repeats_one_agent().then(Arc::<SpareKeeper>::default);
        let keeper = self.keeper.clone().map(|program| KeeperSetup {
            program,
            held_locks: locks.iter().map(HeldLock::lock_file).collect(),
            spare: spare_keeper.clone(),
        });
        let channels = ProcessChannels { progress: progress_sender, end_requested };
        let effect_context = self.build_context(run_id, RunPlan { settings, order }, keeper, channels);
        let is_watched = effect_context.order.works_in_place() || effect_context.sandbox_policy().can_write_project();
        if is_watched {
            effect_context.shared.user_words.watch_run(WatchStart {
                run_id,
                directories: [effect_context.reviews_dir(), effect_context.decisions_dir()],
                requests: journal.requests_of_all()?,
                was_interrupted: past.was_interrupted,
            });
        }
        let mut workflow_host = WorkflowHost {
            context: Arc::new(effect_context),
            child_driver: self,
            journal: &mut journal,
            progress: progress_receiver,
            stop: self.stop.clone(),
            update_sink,
            end_processes: ending_sender,
            running_tasks: JoinSet::new(),
            child_runs: ChildRuns::default(),
            task_effects: HashMap::new(),
            unfinished_attempts_by_key: HashMap::new(),
            answered_at_once: false,
        };
        // The host returns when the run has ended or parked, never before its effects are recorded.
        let ending = workflow_host.drive_workflow(past.entries).await;
        drop(workflow_host);
        spare_keeper.iter().for_each(|spare_keeper| spare_keeper.close());
        self.shared.user_words.unwatch_run(run_id);
        let ending = ending.map_err(|cause| RunError::Host { run: run_id.clone(), cause })?;
        // The state file of a session is only a view, so it is refreshed once the journal is complete.
        session::refresh_state_file(&self.project, journal.run_view());
        if matches!(journal.run_view().phase, RunPhase::Finished(_)) {
            // No effect refers to the workspaces of a finished run.
            let work_dir = self.project.work_dir(run_id);
            let _ = run_blocking(move || std::fs::remove_dir_all(work_dir)).await;
        }
        Ok(ending)
    }

    /// Lists the decision files in which the user wrote something that is not a valid answer.
    pub fn unusable_answers(project: &Project, run_view: &RunView) -> Vec<String> {
        unusable_answers(project, run_view)
    }

    /// Reads the answers in decision files that the run has not used yet.
    pub fn answers_in_files(project: &Project, run_view: &RunView) -> Vec<UserRequest> {
        answers_in_files(project, run_view)
    }

    /// Removes the user's answer from the file of a decision.
    pub fn clear_file_answer(project: &Project, run_view: &RunView, decision_id: &DecisionId) -> io::Result<()> {
        match (&run_view.run_id, &run_view.settings) {
            (Some(run_id), Some(settings)) => clear_page_answer(project, settings, run_id, decision_id),
            _ => Ok(()),
        }
    }

    /// Removes the workspaces of runs that had finished when their process was killed.
    fn sweep_workspaces(&self, store: &Store) {
        let work_dir = self.project.home_dir().join("work");
        // A link in place of the directory could lead to files that are not ours.
        if self.project.resolve_outside(&work_dir).is_some() {
            return;
        }
        let run_directories = std::fs::read_dir(work_dir).into_iter().flatten().flatten();
        for run_directory in run_directories {
            let run_id = RunId::new(run_directory.file_name().to_string_lossy());
            let is_finished = store.read_entries(&run_id, 0).is_ok_and(|entries| {
                matches!(entries.last().map(|entry| &entry.event), Some(RunEvent::RunFinished(_)))
            });
            if is_finished {
                let _ = std::fs::remove_dir_all(run_directory.path());
            }
        }
    }

    /// Removes temporary files that killed processes left where this run writes.
    fn sweep_temporary_files(&self, run_id: &RunId, plan: &RunPlan) {
        for directory in atomic_files::plan_directories(&self.project, run_id, plan) {
            atomic_files::sweep_temporary_files(&directory);
        }
    }

    /// Ends processes of runs that no process works on any more, because their keepers and those keepers' parents were killed.
    fn sweep_strays(&self, run_id: &RunId, update_sink: &dyn UpdateSink) {
        let locks = self.project.locks_dir();
        let own_mark = self.run_mark(run_id);
        let project_mark = self.project_mark();
        let ended_count = sweep_strays(|process_mark| match process_mark.strip_prefix(&project_mark) {
            // This process holds the run's lock and has started nothing yet.
            Some(_) if process_mark.starts_with(&own_mark) => true,
            Some(other_run) => {
                let other_run = other_run.split('/').next().unwrap_or_default();
                !locks::is_held(&locks, &run_lock_name(&RunId::new(other_run)))
            }
            None => false,
        });
        if ended_count > 0 {
            update_sink.send_update(run_id, RunUpdate::StraysEnded(ended_count));
        }
    }

    /// Returns the mark of the processes of one run of one project; what follows the mark tells its tasks apart.
    fn run_mark(&self, run_id: &RunId) -> String {
        format!("{}{run_id}/", self.project_mark())
    }

    /// Reads the run from the mark of a process.
    pub fn run_of_mark(process_mark: &str) -> Option<RunId> {
        let run_part = process_mark.split('/').nth(1);
        run_part.filter(|run_part| !run_part.is_empty()).map(RunId::new)
    }

    fn project_mark(&self) -> String {
        let home_dir = self.project.home_dir();
        // The same project can be reached through links; its processes must have the same mark either way.
        let home_dir = home_dir.canonicalize().unwrap_or(home_dir);
        format!("{}/", Hash::digest_of(home_dir.as_os_str().as_encoded_bytes()).short_hex())
    }

    fn prepare_locks_dir(&self) -> Result<PathBuf, RunError> {
        self.project.prepare_home().map_err(|cause| RunError::Project { project: self.project.home_dir(), cause })?;
        Ok(self.project.locks_dir())
    }
}

fn check_resumable(run_id: &RunId, entries: &[JournalEntry], run_view: &RunView) -> Result<RunPlan, RunError> {
    let version = match entries.first().map(|entry| &entry.event) {
        Some(RunEvent::RunStarted { version, .. }) => *version,
        Some(RunEvent::Unknown(event)) if !event.workflow.is_empty() => {
            return Err(RunError::UnknownKind { run: run_id.clone(), workflow: event.workflow.clone() });
        }
        _ => return Err(RunError::NoRun { run: run_id.clone() }),
    };
    // An unknown entry was written by a newer build; ignoring it could repeat what it records.
    if let Some(unknown_entry) = entries.iter().find(|entry| matches!(entry.event, RunEvent::Unknown(_))) {
        return Err(RunError::UnknownEntry { run: run_id.clone(), seq: unknown_entry.seq });
    }
    // The latest settings count: they may have been changed by an earlier resume.
    let (Some(settings), Some(order)) = (run_view.settings.clone(), run_view.order.clone()) else {
        return Err(RunError::NoRun { run: run_id.clone() });
    };
    if order.run_driver() == RunDriver::Session {
        return Err(RunError::DrivenBySession { run: run_id.clone() });
    }
    if version != order.workflow_version() {
        return Err(RunError::IncompatibleVersion {
            run: run_id.clone(),
            workflow: order.kind_name(),
            version,
            known: order.workflow_version(),
        });
    }
    if let RunPhase::Finished(summary) = &run_view.phase {
        let outcome = summary.outcome.map_or("", |outcome| outcome.as_str()).to_string();
        return Err(RunError::Ended { run: run_id.clone(), outcome });
    }
    Ok(RunPlan { settings, order })
}
