//! Starting and resuming runs.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use tokio::{
    sync::{mpsc::unbounded_channel, watch},
    task::JoinSet,
};
use tribunal_agents::driver::Whereabouts;
use tribunal_core::{
    decision::Decision,
    event::{Draft, Entry, Event},
    ids::{Hash, RunId},
    reason::Ending,
    review::{VERSION, WORKFLOW},
    session::Bound,
    settings::Settings,
    view::{Phase, RunView},
};
use tribunal_store::{Store, StoreError};
use tribunal_supervise::{Identity, sweep_strays};

use crate::{
    effects::{GRACE, Keeping, World, unusable_answers},
    files,
    host::{self, Host, HostError, Seen},
    journal::{Journal, mask_all},
    locks::{self, Lock, Locked},
    mask::Masker,
    names,
    project::Project,
    session::{self, SessionError},
    shared::Shared,
    stop::Stop,
    subject::{self, SubjectError},
};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error("{}: {cause}", project.display())]
    Project { project: PathBuf, cause: io::Error },
    #[error("{path} is a link that leads out of the project, to {}", to.display())]
    LeadsOut { path: String, to: PathBuf },
    #[error("{subject} is already under review by run {by}")]
    SubjectBusy { subject: String, by: RunId },
    #[error("run {run} is being worked on by another process")]
    RunBusy { run: RunId },
    #[error("there is no run {run} in this project")]
    NoRun { run: RunId },
    #[error("run {run} has ended: {outcome}")]
    Ended { run: RunId, outcome: String },
    #[error(
        "run {run} was started by workflow {workflow} version {version}; this build has {WORKFLOW} version {VERSION}"
    )]
    OtherVersion { run: RunId, workflow: String, version: u32 },
    #[error("run {run} has an entry that this build does not know (number {seq})")]
    UnknownEntry { run: RunId, seq: u64 },
    #[error("the settings contain what looks like a secret: {place}")]
    SecretInSettings { place: String },
    #[error("the changed settings do not fit what run {run} has done since its last stage: {cause}")]
    SettingsDoNotFit { run: RunId, cause: HostError },
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("run {run}: {cause}")]
    Host { run: RunId, cause: HostError },
}

/// The time that the processes of a killed run get to end: the grace period of its agents, and a little more.
const PATIENCE: Duration = Duration::from_secs(GRACE.as_secs() + 5);

/// Everything a run needs from outside.
#[derive(Clone, Debug)]
pub struct Runner {
    pub project: Project,
    pub masker: Masker,
    pub at: Whereabouts,
    /// The version and build of this program, for the journal.
    pub build: String,
    /// The program that supervises agent processes: our own binary, where keepers are supported.
    pub keeper: Option<PathBuf>,
    pub stop: watch::Receiver<Stop>,
    /// The state that this run shares with the other runs of this process.
    pub shared: Shared,
    /// The session that repairs the findings, if a session does that.
    pub binding: Option<Bound>,
}

/// Whether processes of a run are left, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Free,
    /// This process works on the run.
    By(Identity),
    /// The process that worked on the run is dead; its keepers are still ending its agents.
    Ending,
    /// The holder did not record its process.
    Unknown,
}

impl Runner {
    /// Starts a run and drives it to its end. `update_sink` receives every entry as soon as it is durable.
    pub async fn start(
        &self,
        settings: Settings,
        sink: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(RunId, Ending), RunError> {
        // All refusals come before the first write, so a refused start leaves nothing behind.
        self.refuse_secrets(&settings)?;
        self.stay_inside(&settings)?;
        let home = self.open_home()?;
        let store = Store::open(&self.project.home())?;
        let run = names::fresh(&settings.subject.slug(), &store.runs()?);
        // Files of killed processes are removed under no lock: their names carry the identity of the process that made them.
        self.sweep(&run, &settings);
        self.sweep_copies(&store);
        let locks = self.lock(&run, &settings, &home, sink).await?;
        // Stray processes are ended only after the locks are held: before that they might belong to a living run.
        self.sweep_strays(&run, sink);
        let mut journal = Journal::new(store, run.clone(), self.masker.clone(), &[]);
        let bound = self.rebind(&settings)?;
        let started = Draft {
            id: "run_started".into(),
            event: Event::RunStarted {
                workflow: WORKFLOW.into(),
                version: VERSION,
                build: self.build.clone(),
                settings,
            },
        };
        let entries = journal.record([started].into_iter().chain(bound).collect()).await?;
        if let Some(settings) = &journal.view().settings {
            self.show_binding(&run, settings, &entries)?;
        }
        for entry in &entries {
            sink(Seen::Entry(entry));
        }
        self.drive(run, journal, entries, locks, sink).await
    }

    /// Continues a run that parked or crashed, with its own settings or with changed ones.
    pub async fn resume(
        &self,
        run: &RunId,
        changed: Option<Settings>,
        sink: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(RunId, Ending), RunError> {
        self.refuse_way_out(".tribunal")?;
        let home = self.open_home()?;
        let store = Store::open(&self.project.home())?;
        // The first look happens without the lock and only finds out whether the run can be resumed at all.
        let entries = store.entries_to_go_on(run)?;
        let view = RunView::of(&entries);
        let settings = check_resumable(run, &entries, &view)?;
        self.stay_inside(&settings)?;
        if let Some(path) = settings.subject.path().filter(|path| self.project.root().join(path).exists()) {
            // The journal may have come with a clone. A subject that is only missing is reported by the run itself.
            subject::stays_inside(self.project.root(), path)?;
        }
        let locks = self.lock(run, &settings, &home, sink).await?;
        // Another process may have continued the run between the first look and the lock.
        let entries = store.entries_to_go_on(run)?;
        let view = RunView::of(&entries);
        check_resumable(run, &entries, &view)?;
        if let Some(changed) = &changed {
            // Changed settings must not contradict what the journal replays, so they are tried out before they are recorded.
            self.refuse_secrets(changed)?;
            host::check_settings(changed, &entries)
                .map_err(|cause| RunError::SettingsDoNotFit { run: run.clone(), cause })?;
        }
        self.sweep(run, &settings);
        self.sweep_strays(run, sink);
        let life = view.lives + 1;
        let mut journal = Journal::new(store, run.clone(), self.masker.clone(), &entries);
        let resumed = Draft { id: format!("run_resumed:{life}"), event: Event::RunResumed { life } };
        // Screens draw the past first, so that a resumed run looks like one that never stopped.
        for entry in &entries {
            sink(Seen::Past(entry));
        }
        let changed = changed.map(|settings| Draft {
            id: format!("settings_changed:{life}"),
            event: Event::SettingsChanged { settings },
        });
        let bound = self.rebind_if_free(&settings, &entries)?;
        let recorded = journal.record([resumed].into_iter().chain(changed).chain(bound).collect()).await?;
        self.show_binding(run, &settings, &recorded)?;
        for entry in recorded {
            sink(Seen::Entry(&entry));
        }
        self.drive(run.clone(), journal, entries, locks, sink).await
    }

    /// Whether a process works on the run right now.
    pub fn is_live(project: &Project, run: &RunId) -> bool {
        Runner::process_of(project, run).is_some()
    }

    /// Returns the process that works on the run.
    pub fn process_of(project: &Project, run: &RunId) -> Option<Identity> {
        // A lock without a living holder is held by keepers, which do not work on the run.
        locks::holder(&project.locks(), &run_lock(run))?.process
    }

    /// Returns what holds the run right now.
    pub fn hold(project: &Project, run: &RunId) -> Hold {
        let (locks, what) = (project.locks(), run_lock(run));
        if !locks::is_held(&locks, &what) {
            return Hold::Free;
        }
        match locks::holder(&locks, &what) {
            Some(holder) => holder.process.map_or(Hold::Unknown, Hold::By),
            None => Hold::Ending,
        }
    }

    /// Waits until no process of the run is left; returns false if some are still there after the patience has ended.
    pub fn wait_until_gone(project: &Project, run: &RunId) -> bool {
        locks::wait_until_free(&project.locks(), &run_lock(run), PATIENCE)
    }

    async fn drive(
        &self,
        run: RunId,
        mut journal: Journal,
        entries: Vec<Entry>,
        locks: [Lock; 2],
        sink: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(RunId, Ending), RunError> {
        // The recorded settings count, which may differ from those of the caller after a resume.
        let Some(settings) = journal.view().settings.clone() else {
            return Err(RunError::NoRun { run });
        };
        let (progress, seen) = unbounded_channel();
        let (end, ending) = watch::channel(false);
        let world = World {
            project: self.project.clone(),
            run: run.clone(),
            settings,
            masker: self.masker.clone(),
            at: self.at.clone(),
            progress,
            tracker_seen: Default::default(),
            shared: self.shared.clone(),
            lane: self.shared.permits.lane(),
            keeping: Keeping {
                keeper: self.keeper.clone(),
                locks: locks.iter().map(Lock::file).collect(),
                mark: self.mark(&run),
                stop: self.stop.clone(),
                ending,
                started: AtomicU64::new(0),
            },
        };
        let mut host = Host {
            world: Arc::new(world),
            journal: &mut journal,
            progress: seen,
            stop: self.stop.clone(),
            sink,
            ending: end,
            running: JoinSet::new(),
            tasks: HashMap::new(),
            lost: HashMap::new(),
            answered_at_once: false,
        };
        // The host returns when the run has ended or parked, never before its effects are recorded.
        let ending = host.drive(entries).await.map_err(|cause| RunError::Host { run: run.clone(), cause })?;
        // The state file of a session is only a view, so it is refreshed once the journal is complete.
        session::refresh(&self.project, journal.view());
        if matches!(journal.view().phase, Phase::Finished(_)) {
            // No effect refers to the workspaces of a finished run.
            let work = self.project.work(&run);
            let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(work)).await;
        }
        Ok((run, ending))
    }

    /// Refuses settings that contain a secret. They are pinned in the journal, and the journal is masked, so a command line with
    /// a secret would come back broken.
    fn refuse_secrets(&self, settings: &Settings) -> Result<(), RunError> {
        let unwritable = |cause| RunError::Store(StoreError::Unwritable(cause));
        let mut value = serde_json::to_value(settings).map_err(unwritable)?;
        if !mask_all(&self.masker, &mut value) {
            return Ok(());
        }
        Err(RunError::SecretInSettings { place: masked_string(&value).unwrap_or_default() })
    }

    /// Refuses to start if a link in the project would lead our own files out of it.
    fn stay_inside(&self, settings: &Settings) -> Result<(), RunError> {
        for folder in [
            "",
            "/locks",
            "/work",
            "/originals",
            "/checkpoints",
            "/logs",
            "/reviews",
            "/.gitignore",
            "/journal.db",
            "/journal.db-wal",
        ] {
            self.refuse_way_out(&format!(".tribunal{folder}"))?;
        }
        self.refuse_way_out(&settings.reviews)?;
        let awaiting = Path::new(&settings.reviews).with_file_name("awaiting-human");
        self.refuse_way_out(&awaiting.to_string_lossy())
    }

    fn refuse_way_out(&self, path: &str) -> Result<(), RunError> {
        match self.project.leads_out(&self.project.root().join(path)) {
            Some(to) => Err(RunError::LeadsOut { path: path.to_string(), to }),
            None => Ok(()),
        }
    }

    /// Lists the decision files in which the user wrote something that is not a valid answer.
    pub fn unusable_answers(project: &Project, view: &RunView) -> Vec<String> {
        let (Some(run), Some(settings)) = (&view.run, &view.settings) else { return Vec::new() };
        let open: Vec<Decision> = view.waiting().cloned().collect();
        unusable_answers(project, settings, run, &open)
    }

    /// Removes the workspaces of runs that had finished when their process was killed.
    fn sweep_copies(&self, store: &Store) {
        let work = self.project.home().join("work");
        // A link in place of the directory could lead to files that are not ours.
        if self.project.leads_out(&work).is_some() {
            return;
        }
        let folders = std::fs::read_dir(work).into_iter().flatten().flatten();
        for folder in folders {
            let run = RunId::new(folder.file_name().to_string_lossy());
            let ended = store.entries(&run, 0).is_ok_and(|entries| {
                matches!(entries.last().map(|entry| &entry.event), Some(Event::RunFinished(_)))
            });
            if ended {
                let _ = std::fs::remove_dir_all(folder.path());
            }
        }
    }

    /// Removes temporary files that a killed process of this run left beside the user's files.
    fn sweep(&self, run: &RunId, settings: &Settings) {
        for folder in files::places(&self.project, run, settings) {
            files::sweep(&folder);
        }
    }

    /// Ends processes of runs that no process works on any more, because their keepers and those keepers' parents were killed.
    fn sweep_strays(&self, run: &RunId, sink: &mut dyn FnMut(Seen<'_>)) {
        let locks = self.project.locks();
        let own = self.mark(run);
        let here = self.mark_of_project();
        let swept = sweep_strays(|mark| match mark.strip_prefix(&here) {
            // This process holds the run's lock and has started nothing yet.
            Some(_) if mark.starts_with(&own) => true,
            Some(other) => {
                let other = other.split('/').next().unwrap_or_default();
                !locks::is_held(&locks, &run_lock(&RunId::new(other)))
            }
            None => false,
        });
        if swept > 0 {
            sink(Seen::Swept(swept));
        }
    }

    /// Returns the mark of the processes of one run of one project; what follows the mark tells its tasks apart.
    fn mark(&self, run: &RunId) -> String {
        format!("{}{run}/", self.mark_of_project())
    }

    fn mark_of_project(&self) -> String {
        let home = self.project.home();
        // The same project can be reached through links; its processes must have the same mark either way.
        let home = home.canonicalize().unwrap_or(home);
        format!("{}/", Hash::of(home.as_os_str().as_encoded_bytes()).short())
    }

    fn open_home(&self) -> Result<PathBuf, RunError> {
        self.project
            .prepare_home()
            .map_err(|cause| RunError::Project { project: self.project.home(), cause })?;
        Ok(self.project.locks())
    }

    async fn lock(
        &self,
        run: &RunId,
        settings: &Settings,
        locks: &Path,
        sink: &mut dyn FnMut(Seen<'_>),
    ) -> Result<[Lock; 2], RunError> {
        let failed = |cause| RunError::Project { project: locks.to_path_buf(), cause };
        // The run's lock comes first, so that a run that is being worked on is reported as that and not as a busy subject.
        let own = self.take(locks, run_lock(run), run, sink).await.map_err(|locked| match locked {
            Locked::By(_) => RunError::RunBusy { run: run.clone() },
            Locked::Failed(cause) => failed(cause),
        })?;
        let subject =
            self.take(locks, subject_lock(settings), run, sink).await.map_err(|locked| match locked {
                Locked::By(by) => RunError::SubjectBusy { subject: settings.subject.title(), by: by.run },
                Locked::Failed(cause) => failed(cause),
            })?;
        Ok([own, subject])
    }

    async fn take(
        &self,
        locks: &Path,
        what: String,
        run: &RunId,
        sink: &mut dyn FnMut(Seen<'_>),
    ) -> Result<Lock, Locked> {
        match take_aside(locks, &what, run, sink).await {
            // The holder is dead and its keepers do not end, because they were stopped. They are ended by their mark.
            Err(Locked::By(holder)) if holder.is_dead() => {
                let left = self.mark(&holder.run);
                sweep_strays(|mark| mark.starts_with(&left));
                take_aside(locks, &what, run, &mut |_| {}).await
            }
            other => other,
        }
    }
}

/// Takes a lock on a separate thread, so that other runs of this process go on meanwhile.
async fn take_aside(
    locks: &Path,
    what: &str,
    run: &RunId,
    sink: &mut dyn FnMut(Seen<'_>),
) -> Result<Lock, Locked> {
    let (tell, mut waiting) = unbounded_channel();
    let (locks, what, run) = (locks.to_path_buf(), what.to_string(), run.clone());
    let take = move || {
        locks::take(&locks, &what, &run, PATIENCE, &mut || {
            let _ = tell.send(());
        })
    };
    let mut taking = tokio::task::spawn_blocking(take);
    loop {
        tokio::select! {
            taken = &mut taking => {
                return taken.unwrap_or_else(|broke| Err(Locked::Failed(io::Error::other(broke))));
            }
            Some(()) = waiting.recv() => sink(Seen::Waiting),
        }
    }
}

fn masked_string(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => text.contains("[masked:").then(|| text.clone()),
        serde_json::Value::Array(items) => items.iter().find_map(masked_string),
        serde_json::Value::Object(map) => map.values().find_map(masked_string),
        _ => None,
    }
}

/// Names the lock that is held while a process works on a run.
pub(crate) fn run_lock(run: &RunId) -> String {
    format!("run {run}")
}

/// Names the lock that is held while any run works on the subject.
pub(crate) fn subject_lock(settings: &Settings) -> String {
    let subject = &settings.subject;
    format!("subject {}", subject.path().map_or_else(|| subject.title(), String::from))
}

fn check_resumable(run: &RunId, entries: &[Entry], view: &RunView) -> Result<Settings, RunError> {
    let Some(Entry { event: Event::RunStarted { workflow, version, settings, .. }, .. }) = entries.first()
    else {
        return Err(RunError::NoRun { run: run.clone() });
    };
    // An unknown entry was written by a newer build; ignoring it could repeat what it records.
    if let Some(unknown) = entries.iter().find(|entry| entry.event == Event::Unknown) {
        return Err(RunError::UnknownEntry { run: run.clone(), seq: unknown.seq });
    }
    if workflow != WORKFLOW || *version != VERSION {
        return Err(RunError::OtherVersion {
            run: run.clone(),
            workflow: workflow.clone(),
            version: *version,
        });
    }
    if let Phase::Finished(summary) = &view.phase {
        let outcome = summary.outcome.map_or("", |outcome| outcome.as_str()).to_string();
        return Err(RunError::Ended { run: run.clone(), outcome });
    }
    // The latest settings count: they may have been changed by an earlier resume.
    Ok(view.settings.clone().unwrap_or_else(|| settings.clone()))
}
