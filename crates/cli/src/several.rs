//! Executes several runs of one command, side by side or one after the other, and collects how each of them ended.
//!
//! `runner` shares the agents between the runs. [`crate::engine`] handles Ctrl-C, which stops all of them.

use std::{
    cell::RefCell,
    future::poll_fn,
    io::{Write, stderr, stdout},
    pin::Pin,
    task::Poll,
};

use tribunal_core::{
    event::{Event, Summary},
    ids::RunId,
    reason::Reason,
    settings::Settings,
};
use tribunal_report::{Came, Close, Label, Mode, close, escaped_json};
use tribunal_runner::{Project, Seen};

use crate::{
    complaint::Complaint,
    context::Context,
    running::{Engine, Job, ProjectJob},
    settings::Share,
    view::View,
};

/// A run that is to be started.
pub(crate) struct Work {
    pub project: Project,
    pub settings: Settings,
    /// How much of it is shown.
    pub mode: Mode,
}

/// How one of the runs ended.
#[derive(Default)]
struct Done {
    run: Option<RunId>,
    summary: Option<Summary>,
    exit: u8,
    /// The reason why there is no summary.
    why: String,
}

type Lane<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Executes all runs and returns the worst exit code. A run that cannot start, or breaks off, does not stop the others.
pub(crate) fn execute_several(context: &Context, all: Vec<Work>, share: Share) -> Result<u8, Complaint> {
    let engine = Engine::new(context, share)?;
    let subjects: Vec<String> = all.iter().map(|work| work.settings.subject.title()).collect();
    let lanes = share.jobs.get();
    let names: Vec<String> = all.iter().map(|work| work.settings.subject.slug()).collect();
    // All lanes run on one thread, so a `RefCell` is enough.
    let done: RefCell<Vec<Done>> = RefCell::new(all.iter().map(|_| Done::default()).collect());
    let waiting = RefCell::new(all.into_iter().zip(Label::all(&names)).enumerate());
    engine.drive(async |engine| {
        // A lane takes the next waiting run whenever it is free.
        let lane = async || {
            loop {
                let next = waiting.borrow_mut().next();
                let Some((nth, (work, label))) = next else { break };
                let view = || match lanes {
                    // Runs that follow one another can use the live view; runs side by side share the screen as labelled lines.
                    1 => View::new(context, work.mode),
                    _ => View::beside(context, work.mode, label),
                };
                let ended = if engine.is_stopping() {
                    not_started()
                } else {
                    one(engine, context, &work, &view()).await
                };
                // The result is stored by position, because runs end in any order.
                done.borrow_mut()[nth] = ended;
            }
        };
        together((0..lanes).map(|_| Box::pin(lane()) as Lane<'_>).collect()).await;
    });
    let done = done.into_inner();
    // Programs have every ending in the event stream already.
    if !context.json {
        let rows: Vec<Close<'_>> =
            done.iter().zip(&subjects).map(|(done, subject)| done.row(subject)).collect();
        write!(stderr(), "\n{}", close(&rows, &context.progress))?;
    }
    Ok(done.iter().map(|done| done.exit).max().unwrap_or_default())
}

impl Done {
    fn row<'a>(&'a self, subject: &'a str) -> Close<'a> {
        // How far the run got decides between an ending, an abort and a run that never started.
        let came = match (&self.summary, &self.run) {
            (Some(summary), _) => Came::Ended(summary),
            (None, Some(_)) => Came::Broke(&self.why),
            (None, None) => Came::NotStarted(&self.why),
        };
        Close { run: self.run.as_ref(), subject, came }
    }
}

/// The result of a run that was not started. A user who interrupts some runs does not want the next ones.
fn not_started() -> Done {
    Done { exit: Reason::Stopped.exit(), why: "stopped before its turn".into(), ..Done::default() }
}

async fn one(engine: &Engine, context: &Context, work: &Work, view: &View) -> Done {
    let mut done = Done::default();
    let job = Job::Start(Box::new(work.settings.clone()));
    let job = ProjectJob { project: work.project.clone(), job };
    // The view draws the same updates; here only the id and the ending are remembered.
    let mut remember = |seen: &Seen<'_>| {
        if let Seen::Entry(entry) = seen {
            done.run.get_or_insert_with(|| entry.run.clone());
            if let Event::RunParked(summary) | Event::RunFinished(summary) = &entry.event {
                done.summary = Some(summary.clone());
            }
        }
    };
    match engine.run(context, job, view, &mut remember).await {
        Ok(ended) => done.exit = ended.exit,
        Err(complaint) => {
            view.complain(&complaint);
            if context.json {
                // A program that reads the events learns about the failed run from the same stream.
                let _ = writeln!(stdout(), "{}", escaped_json(&complaint.json().to_string()));
            }
            done.exit = complaint.exit;
            done.why = complaint.what;
        }
    }
    done
}

/// Polls all lanes until all have finished. There are few of them, and an idle one returns at once.
async fn together(mut lanes: Vec<Lane<'_>>) {
    poll_fn(|context| {
        // Finished lanes are dropped, so they are never polled again.
        lanes.retain_mut(|lane| lane.as_mut().poll(context).is_pending());
        if lanes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
