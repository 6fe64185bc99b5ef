//! Taking a run from its start to its last line: runtime, view, interrupts. Shared by all commands that run.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};
use tribunal_core::{ids::RunId, settings::Settings};
use tribunal_report::Mode;
use tribunal_runner::{Project, RunError, Runner, Seen, Stop};

use crate::{
    build::VERSION,
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
    view::View,
};

pub(crate) enum Job {
    Start(Box<Settings>),
    /// With changed settings, if there are any.
    Resume(RunId, Option<Box<Settings>>),
}

/// How a run ended, for whoever called.
pub(crate) struct Ended {
    pub run: RunId,
    pub exit: u8,
}

/// `mode`: how much the person wants to see, if they said so.
pub(crate) fn execute(
    context: &Context,
    project: Project,
    job: Job,
    mode: Option<Mode>,
) -> Result<Ended, Complaint> {
    enough_room()?;
    let (say, stop) = watch::channel(Stop::GoOn);
    let runner = Runner {
        at: context.whereabouts(&project)?,
        project,
        masker: context.masker(),
        build: format!("tribunal {VERSION}"),
        keeper: tribunal_supervise::own_program(),
        stop,
    };

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Complaint::new(ENVIRONMENT, format!("no runtime: {cause}")))?;
    let view = View::new(context, mode);
    let mut sink = |seen: Seen<'_>| view.see(&seen);
    let result: Result<_, RunError> = runtime.block_on(async {
        // Heard from the first moment on: taking locks and sweeping may take a while.
        if let Ok(signals) = Signals::new() {
            tokio::spawn(interrupts(signals, say.clone()));
        }
        let run = async {
            match job {
                Job::Start(settings) => runner.start(*settings, &mut sink).await,
                Job::Resume(run, changed) => {
                    runner.resume(&run, changed.map(|settings| *settings), &mut sink).await
                }
            }
        };
        tokio::select! {
            ended = run => ended,
            never = view.attend(&say) => match never {},
        }
    });
    view.close();
    // Threads that still work on files of a stopped run are not waited for.
    runtime.shutdown_background();
    let (run, ending) = result?;
    Ok(Ended { run, exit: ending.reason.exit() })
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
