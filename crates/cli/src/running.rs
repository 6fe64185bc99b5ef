//! Taking a run from its start to its last line: runtime, view, interrupts. Shared by all commands that run; several of one
//! command are dealt with in [`crate::several`].

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

pub(crate) enum Job {
    Start(Box<Settings>),
    /// With changed settings, if there are any.
    Resume(RunId, Option<Box<Settings>>),
    /// One of these with a session that repairs what is found.
    InSession(Box<Bound>, Box<Job>),
}

impl Job {
    /// With a session, if there is one.
    pub fn bound(self, bound: Option<Bound>) -> Job {
        match bound {
            Some(bound) => Job::InSession(Box::new(bound), Box::new(self)),
            None => self,
        }
    }
}

/// A job, and the project it is done in.
pub(crate) struct ProjectJob {
    pub project: Project,
    pub job: Job,
}

/// How a run ended, for whoever called.
pub(crate) struct Ended {
    pub run: RunId,
    pub exit: u8,
}

/// What a command has once, however many runs it takes to their end.
pub(crate) struct Engine {
    runtime: Runtime,
    /// What the person wants of all of them.
    say: watch::Sender<Stop>,
    masker: Masker,
    shared: Shared,
}

impl Engine {
    pub fn new(context: &Context, share: Share) -> Result<Engine, Complaint> {
        enough_room()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Complaint::new(ENVIRONMENT, format!("no runtime: {cause}")))?;
        let (say, _) = watch::channel(Stop::GoOn);
        {
            // Heard from the first moment on: taking locks and sweeping may take a while.
            let _inside = runtime.enter();
            if let Ok(signals) = Signals::new() {
                runtime.spawn(interrupts(signals, say.clone()));
            }
        }
        let shared = Shared::new(share.agents);
        // Without a home nobody can count.
        let shared = match context.state_home() {
            Ok(home) => shared.counted(Rate { file: home.join("calls"), per_hour: share.calls }),
            Err(_) => shared,
        };
        Ok(Engine { runtime, say, masker: context.masker(), shared })
    }

    /// Whether nothing new is to start.
    pub fn is_stopping(&self) -> bool {
        *self.say.borrow() > Stop::GoOn
    }

    /// Takes a run to its end, or to where it parks. `view` draws, `also` sees the same.
    pub async fn run(
        &self,
        context: &Context,
        job: ProjectJob,
        view: &View,
        also: &mut dyn FnMut(&Seen<'_>),
    ) -> Result<Ended, Complaint> {
        let ProjectJob { project, job } = job;
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
                // Nobody binds two.
                Job::InSession(..) => Err(RunError::NoRun { run: RunId::new("") }),
            }
        };
        let result = tokio::select! {
            ended = run => ended,
            never = view.attend(&self.say) => match never {},
        };
        view.close();
        let (run, ending) = result?;
        Ok(Ended { run, exit: ending.reason.exit() })
    }

    /// Does it all, then goes.
    pub fn drive<T>(self, all: impl AsyncFnOnce(&Engine) -> T) -> T {
        let done = self.runtime.block_on(all(&self));
        // Threads that still work on files of a stopped run are not waited for.
        self.runtime.shutdown_background();
        done
    }
}

/// One run alone. `mode`: how much the person wants to see.
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

/// With less than this a run cannot even say what is wrong.
const LEAST_FILES: u64 = 64;

/// What stops a run from outside.
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

fn enough_room() -> Result<(), Complaint> {
    let files = tribunal_supervise::allow_many_files();
    if files < LEAST_FILES {
        return Err(Complaint::new(ENVIRONMENT, format!("only {files} files may be open at once"))
            .why(format!("A run needs {LEAST_FILES} at least; every agent takes five. Nothing was started."))
            .todo("allow more: ulimit -n 1024"));
    }
    match std::thread::Builder::new().spawn(|| {}).map(std::thread::JoinHandle::join) {
        Ok(_) => Ok(()),
        Err(cause) => Err(no_thread(&cause.to_string())),
    }
}

fn no_thread(cause: &str) -> Complaint {
    Complaint::new(ENVIRONMENT, format!("the system has no room for another thread: {cause}"))
        .why("What was recorded is kept.")
        .todo("end other programs, or allow more processes: ulimit -u")
        .todo("then: tribunal resume")
}

/// A library that we use gives up where the system refuses a thread.
pub(crate) fn is_about_threads(panic: &(dyn std::any::Any + Send)) -> Option<Complaint> {
    let text = panic.downcast_ref::<String>()?;
    text.contains("spawn worker thread").then(|| no_thread(text))
}

/// First Ctrl-C, or `tribunal stop`: what runs may finish. Second, or a request to terminate: end now. A hang-up: go on without a screen.
async fn interrupts(signals: Signals, say: watch::Sender<Stop>) {
    let Signals { mut interrupt, mut terminate, mut hang_up, mut asked } = signals;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                let next = if *say.borrow() == Stop::GoOn { Stop::Park } else { Stop::Now };
                say.send_replace(next);
            }
            _ = asked.recv() => {
                say.send_if_modified(|now| std::mem::replace(now, (*now).max(Stop::Park)) == Stop::GoOn);
            }
            _ = terminate.recv() => {
                say.send_replace(Stop::Now);
            }
            // The terminal is gone; the run is not.
            _ = hang_up.recv() => {}
        }
    }
}
