//! Taking a run from its start to its last line: runtime, reporter, interrupts. Shared by all commands that run.

use std::io::{Write, stderr, stdout};

use tokio::sync::watch;
use tribunal_core::{ids::RunId, settings::Settings};
use tribunal_report::{JsonLines, Lines, Reporter};
use tribunal_runner::{Project, RunError, Runner, Seen, Stop};

use crate::{
    build::VERSION,
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
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

pub(crate) fn execute(context: &Context, project: Project, job: Job) -> Result<Ended, Complaint> {
    let (say, stop) = watch::channel(Stop::GoOn);
    let runner = Runner {
        at: context.whereabouts(&project)?,
        project,
        masker: context.masker(),
        build: format!("tribunal {VERSION}"),
        stop,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|cause| Complaint::new(ENVIRONMENT, format!("no runtime: {cause}")))?;
    let mut reporter: Box<dyn Reporter> = if context.json {
        Box::new(JsonLines::new(stdout()))
    } else {
        Box::new(Lines::new(stderr(), context.progress.clone()))
    };
    let mut sink = |seen: Seen<'_>| {
        let drawn = match seen {
            Seen::Past(entry) => {
                reporter.past(entry);
                Ok(())
            }
            Seen::Entry(entry) => reporter.entry(entry),
            Seen::Progress(progress) => reporter.progress(progress),
            Seen::Stopping(0) => Ok(()),
            Seen::Stopping(running) => {
                let agents = if running == 1 { "1 agent".to_string() } else { format!("{running} agents") };
                writeln!(stderr(), "[i] stopping: {agents} may finish; Ctrl-C again ends it now")
            }
        };
        // A screen that is gone does not stop a run: everything is in the journal.
        let _ = drawn;
    };
    let result: Result<_, RunError> = runtime.block_on(async {
        tokio::spawn(interrupts(say));
        match job {
            Job::Start(settings) => runner.start(*settings, &mut sink).await,
            Job::Resume(run, changed) => {
                runner.resume(&run, changed.map(|settings| *settings), &mut sink).await
            }
        }
    });
    // Threads that still work on files of a stopped run are not waited for.
    runtime.shutdown_background();
    let (run, ending) = result?;
    Ok(Ended { run, exit: ending.reason.exit() })
}

/// First Ctrl-C: what runs may finish. Second, or a request to terminate: end now. A hang-up: go on without a screen.
async fn interrupts(say: watch::Sender<Stop>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                let next = if *say.borrow() == Stop::GoOn { Stop::Park } else { Stop::Now };
                say.send_replace(next);
            }
            _ = terminate.recv() => {
                say.send_replace(Stop::Now);
            }
            // The terminal is gone; the run is not.
            _ = hang_up.recv() => {}
        }
    }
}
