//! Takes a run from its start to its last line: runtime, view, interrupts. All commands that run something share it; several
//! runs of one command are handled in [`crate::multi_run`].

use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};
use tribunal_core::{ids::RunId, session::Bound, settings::Settings};
use tribunal_report::Mode;
use tribunal_runner::{Project, Rate, RunError, Runner, Seen, Shared, Stop, mask::Masker};

use crate::{
    build::VERSION,
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
    settings::Share,
    view::View,
};

/// What is to be done with a run.
pub(crate) enum Job {
    Start(Box<Settings>),
    /// Resumes a run, with changed settings if there are any.
    Resume(RunId, Option<Box<Settings>>),
    /// Does one of the others with a session that repairs the findings.
    InSession(Box<Bound>, Box<Job>),
}

impl Job {
    /// Adds a session, if there is one.
    pub fn bound(self, bound: Option<Bound>) -> Job {
        match bound {
            Some(bound) => Job::InSession(Box::new(bound), Box::new(self)),
            None => self,
        }
    }
}

/// A job and its project.
pub(crate) struct ProjectJob {
    pub project: Project,
    pub job: Job,
}

/// How a run ended.
pub(crate) struct Ended {
    pub run: RunId,
    pub exit: u8,
}

/// What one command needs once, however many runs it executes.
pub(crate) struct Engine {
    runtime: Runtime,
    /// Tells all runs what the user wants: go on, park, or end now.
    say: watch::Sender<Stop>,
    masker: Masker,
    shared: Shared,
}

impl Engine {
    pub fn new(context: &Context, share: Share) -> Result<Engine, Complaint> {
        // Checked before anything is started: a run that breaks for lack of files leaves agents behind.
        enough_room()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Complaint::new(ENVIRONMENT, format!("no runtime: {cause}")))?;
        let (say, _) = watch::channel(Stop::GoOn);
        {
            // Signals are handled from the first moment on, because taking locks and sweeping processes may take a while.
            let _inside = runtime.enter();
            if let Ok(signals) = Signals::new() {
                runtime.spawn(interrupts(signals, say.clone()));
            }
        }
        let shared = Shared::new(share.agents);
        // Without a home directory calls cannot be counted across runs, and then the hourly limit does not apply.
        let shared = match context.state_home() {
            Ok(home) => shared.counted(Rate { file: home.join("calls"), per_hour: share.calls }),
            Err(_) => shared,
        };
        Ok(Engine { runtime, say, masker: context.masker(), shared })
    }

    /// Returns whether nothing new may start.
    pub fn is_stopping(&self) -> bool {
        *self.say.borrow() > Stop::GoOn
    }

    /// Takes a run to its end, or to the point where it parks. `progress_view` draws it, and `observer` sees the same updates.
    pub async fn run(
        &self,
        context: &Context,
        job: ProjectJob,
        view: &View,
        also: &mut dyn FnMut(&Seen<'_>),
    ) -> Result<Ended, Complaint> {
        let ProjectJob { project, job } = job;
        // A session is unwrapped from around the job that it belongs to.
        let (binding, job) = match job {
            Job::InSession(bound, job) => (Some(*bound), *job),
            job => (None, job),
        };
        let runner = Runner {
            at: context.whereabouts(&project)?,
            project,
            masker: self.masker.clone(),
            build: format!("tribunal {VERSION}"),
            keeper: tribunal_supervise::own_program(),
            stop: self.say.subscribe(),
            shared: self.shared.clone(),
            binding,
        };
        let mut sink = |seen: Seen<'_>| {
            also(&seen);
            view.see(&seen);
        };
        let run = async {
            match job {
                Job::Start(settings) => runner.start(*settings, &mut sink).await,
                Job::Resume(run, changed) => {
                    runner.resume(&run, changed.map(|settings| *settings), &mut sink).await
                }
                // Jobs are bound only once, so this cannot happen; an error is still better than a panic.
                Job::InSession(..) => Err(RunError::NoRun { run: RunId::new("") }),
            }
        };
        // The view never ends by itself; the run always does.
        let result = tokio::select! {
            ended = run => ended,
            never = view.attend(&self.say) => match never {},
        };
        // The region is removed before the caller prints anything.
        view.close();
        let (run, ending) = result?;
        Ok(Ended { run, exit: ending.reason.exit() })
    }

    /// Runs `work` to its end and shuts the runtime down.
    pub fn drive<T>(self, all: impl AsyncFnOnce(&Engine) -> T) -> T {
        let done = self.runtime.block_on(all(&self));
        // Threads that still work on files of a stopped run are not awaited.
        self.runtime.shutdown_background();
        done
    }
}

/// Executes a single run.
pub(crate) fn execute(
    context: &Context,
    project: Project,
    job: Job,
    mode: Mode,
    share: Share,
) -> Result<Ended, Complaint> {
    let engine = Engine::new(context, share)?;
    let view = View::new(context, mode);
    engine.drive(async |engine| engine.run(context, ProjectJob { project, job }, &view, &mut |_| {}).await)
}

/// With fewer open files than this a run could not even report what is wrong.
const LEAST_FILES: u64 = 64;

/// Signals that stop a run.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    asked: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            asked: signal(SignalKind::user_defined1())?,
        })
    }
}

/// Checks that the system lets us open enough files and start a thread.
fn enough_room() -> Result<(), Complaint> {
    let files = tribunal_supervise::allow_many_files();
    if files < LEAST_FILES {
        return Err(Complaint::new(ENVIRONMENT, format!("only {files} files may be open at once"))
            .why(format!("A run needs {LEAST_FILES} at least; every agent takes five. Nothing was started."))
            .todo("allow more: ulimit -n 1024"));
    }
    // The runtime starts threads later and panics if it cannot, so one is tried here.
    match std::thread::Builder::new().spawn(|| {}).map(std::thread::JoinHandle::join) {
        Ok(_) => Ok(()),
        Err(cause) => Err(no_thread(&cause.to_string())),
    }
}

/// The error for a system that refuses another thread.
fn no_thread(cause: &str) -> Complaint {
    Complaint::new(ENVIRONMENT, format!("the system has no room for another thread: {cause}"))
        .why("What was recorded is kept.")
        .todo("end other programs, or allow more processes: ulimit -u")
        .todo("then: tribunal resume")
}

/// Turns the panic of a library into an error if it could not start a thread.
pub(crate) fn is_about_threads(panic: &(dyn std::any::Any + Send)) -> Option<Complaint> {
    let text = panic.downcast_ref::<String>()?;
    text.contains("spawn worker thread").then(|| no_thread(text))
}

/// Forwards signals. The first Ctrl-C, or `tribunal stop`, lets running agents finish; the second one, or a request to
/// terminate, ends them now. After a hang-up the run goes on without a screen.
async fn interrupts(signals: Signals, say: watch::Sender<Stop>) {
    let Signals { mut interrupt, mut terminate, mut hang_up, mut asked } = signals;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                let next = if *say.borrow() == Stop::GoOn { Stop::Park } else { Stop::Now };
                say.send_replace(next);
            }
            _ = asked.recv() => {
                // A request to stop must not weaken an order to end now.
                say.send_if_modified(|now| std::mem::replace(now, (*now).max(Stop::Park)) == Stop::GoOn);
            }
            _ = terminate.recv() => {
                say.send_replace(Stop::Now);
            }
            // The terminal is gone, but the run goes on.
            _ = hang_up.recv() => {}
        }
    }
}
