//! Performs effects, with one module per kind. An effect that fails is a reply, not an error.
//!
//! A new effect needs a row in the table of effects in `core`, a module here, and an arm in [`perform_effect`].

mod ask;
mod check;
mod difference;
mod freeze;
mod land;
mod own_files;
mod people;
mod strays;
mod take_in;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::sync::{mpsc::UnboundedSender, watch};
use tribunal_agents::driver::Whereabouts;
use tribunal_core::{
    desk::Ask,
    effect::{AskOutcome, Effect, Elapsed, Land, Reply, Requests, TakeIn, WriteFile},
    fault::{Fault, FaultKind},
    ids::{Hash, RunId},
    progress::Progress,
    settings::Settings,
};
use tribunal_supervise::{Command, Deadlines, MARK, Output};

use crate::{
    checkpoints::At,
    copies::agent_files,
    git::LEADING_AWAY,
    mask::Masker,
    permits::{Lane, Permit},
    project::Project,
    shared::Shared,
    stop::Stop,
};

pub(crate) use own_files::edits_in_tracker;
pub(crate) use people::{answers_in_files, let_go, remove_page, unusable_answers};

/// What every effect may use.
#[derive(Debug)]
pub(crate) struct World {
    pub project: Project,
    pub run: RunId,
    pub settings: Settings,
    pub masker: Masker,
    pub at: Whereabouts,
    pub progress: UnboundedSender<Progress>,
    pub keeping: Keeping,
    /// The hash of the edited tracker that was accepted last.
    pub tracker_seen: Mutex<Option<Hash>>,
    /// The state shared with the other runs of this process.
    pub shared: Shared,
    /// The queue in which this run's tasks wait for permits to start agents.
    pub lane: Lane,
}

/// How processes are started and supervised.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub keeper: Option<PathBuf>,
    /// Locks that every keeper holds as well: a free lock means that no process of the run is left.
    pub locks: Vec<Arc<File>>,
    /// Marks every process of this run; a number behind it tells the tasks apart.
    pub mark: String,
    pub started: AtomicU64,
    /// How far the user wants the run to stop.
    pub stop: watch::Receiver<Stop>,
    /// Tells running processes to end now.
    pub ending: watch::Receiver<bool>,
}

impl World {
    /// Lists the ignored files that go into every workspace.
    pub fn seeds(&self) -> Vec<String> {
        let own = self.settings.tasks.writing.seeds.iter().cloned();
        agent_files().map(String::from).chain(own).collect()
    }

    /// Waits until one more agent may start. Returns `None` if the user wants to stop: nothing new starts then.
    pub async fn permit(&self) -> Option<Permit> {
        let mut stop = self.keeping.stop.clone();
        tokio::select! {
            // The stop request is polled first: a permit that becomes free at the same time must not start an agent.
            biased;
            Ok(_) = stop.wait_for(|stop| *stop > Stop::GoOn) => None,
            permit = self.lane.permit() => Some(permit),
        }
    }

    /// Waits for a wall time. Returns `None` if the user wants to stop.
    pub async fn until(&self, until_ms: u64) -> Option<()> {
        let mut stop = self.keeping.stop.clone();
        tokio::select! {
            () = wall_clock_reaches(until_ms) => Some(()),
            Ok(_) = stop.wait_for(|stop| *stop > Stop::GoOn) => None,
        }
    }

    /// Returns a command with the run's mark, locks and isolation; the caller fills in the rest.
    pub fn command(&self, program: OsString, args: Vec<OsString>, folder: PathBuf) -> Command {
        // Git must not find the user's repository above a workspace: a `git reset` there would reset the user's files.
        let fence = folder.parent().unwrap_or(&folder).as_os_str().to_owned();
        let number = self.keeping.started.fetch_add(1, Ordering::Relaxed);
        let env = BTreeMap::from([
            ("GIT_CEILING_DIRECTORIES".to_string(), fence),
            ("PWD".to_string(), folder.as_os_str().to_owned()),
            (RUN_VARIABLE.to_string(), self.run.as_str().into()),
            (MARK.to_string(), format!("{}{number}", self.keeping.mark).into()),
        ]);
        Command {
            program,
            args,
            folder,
            env,
            // Variables that would lead git past that ceiling, or a shell out of the directory.
            without: LEADING_AWAY.into_iter().chain(["OLDPWD"]).map(String::from).collect(),
            input: Vec::new(),
            // The caller sets the real deadlines; these only make sure that a forgotten one is not unlimited.
            deadlines: Deadlines { total: LONGEST, idle: LONGEST },
            grace: GRACE,
            output: Output::default(),
            keeper: self.keeping.keeper.clone(),
            hold: self.keeping.locks.clone(),
            stop: Some(self.keeping.ending.clone()),
        }
    }
}

/// The time between asking processes to end and killing them.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// The upper bound for any process: nothing is ever unlimited.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Tells the processes of an agent which run they work for.
const RUN_VARIABLE: &str = "TRIBUNAL_RUN";

/// The outcome of an effect with the blobs it names: a typed outcome, or the journal's reply.
#[derive(Debug)]
pub(crate) struct Performed<T = Reply> {
    pub reply: T,
    pub blobs: Vec<Vec<u8>>,
}

impl<T> From<T> for Performed<T> {
    fn from(reply: T) -> Self {
        Performed { reply, blobs: Vec::new() }
    }
}

impl Performed<AskOutcome> {
    fn into_reply(self) -> Performed {
        Performed { reply: Reply::Ask(self.reply), blobs: self.blobs }
    }
}

/// Performs an effect. Returns `None` if the user ended it before it was done; the next process asks for it again.
///
/// `stretch` is the part of the run that asks for it. `unfinished_count` says how often it was started before and never finished:
/// an agent that was asked then was paid for reading the prompt all the same.
pub(crate) async fn perform(world: Arc<World>, ask: Ask, stretch: u32, lost: u32) -> Option<Performed> {
    let Ask { key, effect, .. } = ask;
    let reply = match effect {
        Effect::Ask(asked) => {
            return ask::perform(world, key, asked.task, lost).await.map(Performed::into_reply);
        }
        Effect::Land(Land { by, patch, allowed, verify }) => {
            let landing = land::Landing { at: At { stretch, by }, patch, allowed, verify };
            Reply::Land(land::perform(world, landing).await?)
        }
        Effect::TakeIn(TakeIn { before, verify }) => {
            Reply::TakeIn(take_in::perform(world, key, before, verify).await?)
        }
        Effect::Freeze(freeze) => {
            Reply::Freeze(blocking(move || freeze::perform(&world, &key, &freeze.subject)).await)
        }
        Effect::Write(WriteFile { file, text }) => {
            Reply::Write(blocking(move || own_files::perform(&world, &file, &text)).await)
        }
        Effect::Post(posted) => Reply::Post(blocking(move || people::post(&world, &posted.decision)).await),
        Effect::Restore(restored) => {
            Reply::Restore(blocking(move || strays::restore(&world, &restored.stray)).await)
        }
        Effect::Sleep(sleep) => {
            let mut stop = world.keeping.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(sleep.ms)) => Reply::Sleep(Elapsed {}),
                Ok(_) = stop.wait_for(|stop| *stop > Stop::GoOn) => return None,
            }
        }
        Effect::AwaitReset(wait) => {
            world.until(wait.until_ms).await?;
            Reply::AwaitReset(Elapsed {})
        }
        // The host answers these itself: they concern the run and not the outside world.
        Effect::Inbox(_) => Reply::Inbox(Requests::default()),
        Effect::Wait(_) => Reply::Wait(Requests::default()),
    };
    Some(reply.into())
}

/// Waits until the wall clock reaches a time. The machine may sleep meanwhile, so a long wait consists of many short ones. The
/// clock may be set back, so no wait is longer than it seemed when it began.
async fn wall_clock_reaches(until_ms: u64) {
    const LOOK: Duration = Duration::from_secs(20);
    let began = tokio::time::Instant::now();
    let needed = Duration::from_millis(until_ms.saturating_sub(wall_ms()));
    loop {
        // The shorter of both: the wall clock says when to stop, the monotonic clock how long at most.
        let left = Duration::from_millis(until_ms.saturating_sub(wall_ms()));
        let left = left.min(needed.saturating_sub(began.elapsed()));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

/// Returns the milliseconds since 1970.
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Runs work on files on a separate thread, since it would block the workflow's thread.
async fn blocking<T: From<Fault> + Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(panicked) => world_fault(format!("work on files broke off: {panicked}")).into(),
    }
}

pub(crate) fn world_fault(detail: impl Into<String>) -> Fault {
    Fault::new(FaultKind::World, detail)
}
