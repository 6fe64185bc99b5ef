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
    event::{RunEvent, RunSummary},
    ids::RunId,
    reason::RunReason,
    settings::Settings,
};
use tribunal_report::{DisplayMode, MultiRunEnding, MultiRunRow, RunLabel, escape_json, render_run_results};
use tribunal_runner::{Project, RunUpdate};

use crate::{
    context::CommandContext,
    engine::{ProjectJob, RunEngine, RunJob},
    progress_display::ProgressView,
    settings::ThroughputLimits,
    user_errors::UserError,
};

/// A run that is to be started.
pub(crate) struct PlannedRun {
    pub project: Project,
    pub settings: Settings,
    /// How much of it is shown.
    pub display_mode: DisplayMode,
}

/// How one of several runs ended, for its command.
pub(crate) struct SeveralEnd {
    pub project: Project,
    /// `None` if the run was not started.
    pub run_id: Option<RunId>,
    pub exit_code: u8,
    pub display_mode: DisplayMode,
}

/// How one of the runs ended.
#[derive(Default)]
struct FinishedRun {
    run_id: Option<RunId>,
    summary: Option<RunSummary>,
    exit_code: u8,
    /// The reason why there is no summary.
    failure_reason: String,
}

type LaneFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Executes all runs and returns how each of them ended. A run that cannot start, or breaks off, does not stop the others.
pub(crate) fn execute_several(
    command_context: &CommandContext,
    planned_runs: Vec<PlannedRun>,
    concurrency: ThroughputLimits,
) -> Result<Vec<SeveralEnd>, UserError> {
    let run_engine = RunEngine::new(command_context, concurrency)?;
    let subject_titles: Vec<String> =
        planned_runs.iter().map(|planned_run| planned_run.settings.subject.title()).collect();
    let lane_count = concurrency.jobs.get();
    let places: Vec<(Project, DisplayMode)> =
        planned_runs.iter().map(|planned_run| (planned_run.project.clone(), planned_run.display_mode)).collect();
    let subject_slugs: Vec<String> =
        planned_runs.iter().map(|planned_run| planned_run.settings.subject.file_slug()).collect();
    // All lanes run on one thread, so a `RefCell` is enough.
    let finished_runs: RefCell<Vec<FinishedRun>> =
        RefCell::new(planned_runs.iter().map(|_| FinishedRun::default()).collect());
    let waiting_runs = RefCell::new(planned_runs.into_iter().zip(RunLabel::for_subjects(&subject_slugs)).enumerate());
    run_engine.block_on_all(async |run_engine| {
        // A lane takes the next waiting run whenever it is free.
        let run_lane = async || {
            loop {
                let next_run = waiting_runs.borrow_mut().next();
                let Some((run_index, (planned_run, run_label))) = next_run else { break };
                let make_view = || match lane_count {
                    // Runs that follow one another can use the live view; runs side by side share the screen as labelled lines.
                    1 => ProgressView::new(command_context, planned_run.display_mode),
                    _ => ProgressView::new_labelled(command_context, planned_run.display_mode, run_label),
                };
                let finished_run = if run_engine.is_stopping() {
                    not_started_result()
                } else {
                    execute_one(run_engine, command_context, &planned_run, &make_view()).await
                };
                // The result is stored by position, because runs end in any order.
                finished_runs.borrow_mut()[run_index] = finished_run;
            }
        };
        poll_all((0..lane_count).map(|_| Box::pin(run_lane()) as LaneFuture<'_>).collect()).await;
    });
    let finished_runs = finished_runs.into_inner();
    // Programs have every ending in the event stream already.
    if !command_context.wants_json {
        let result_rows: Vec<MultiRunRow<'_>> = finished_runs
            .iter()
            .zip(&subject_titles)
            .map(|(finished_run, subject_title)| finished_run.to_row(subject_title))
            .collect();
        write!(stderr(), "\n{}", render_run_results(&result_rows, &command_context.progress_screen))?;
    }
    let several_ends = finished_runs.into_iter().zip(places).map(|(finished_run, (project, display_mode))| {
        SeveralEnd { project, run_id: finished_run.run_id, exit_code: finished_run.exit_code, display_mode }
    });
    Ok(several_ends.collect())
}

impl FinishedRun {
    fn to_row<'a>(&'a self, subject_title: &'a str) -> MultiRunRow<'a> {
        // How far the run got decides between an ending, an abort and a run that never started.
        let ending = match (&self.summary, &self.run_id) {
            (Some(summary), _) => MultiRunEnding::Ended(summary),
            (None, Some(_)) => MultiRunEnding::BrokeOff(&self.failure_reason),
            (None, None) => MultiRunEnding::NotStarted(&self.failure_reason),
        };
        MultiRunRow { run_id: self.run_id.as_ref(), subject_name: subject_title, ending }
    }
}

/// The result of a run that was not started. A user who interrupts some runs does not want the next ones.
fn not_started_result() -> FinishedRun {
    FinishedRun {
        exit_code: RunReason::Stopped.exit_code(),
        failure_reason: "stopped before it started".into(),
        ..FinishedRun::default()
    }
}

async fn execute_one(
    run_engine: &RunEngine,
    command_context: &CommandContext,
    planned_run: &PlannedRun,
    progress_view: &ProgressView,
) -> FinishedRun {
    let mut finished_run = FinishedRun::default();
    let run_job = RunJob::Start(Box::new(planned_run.settings.clone()));
    let project_job = ProjectJob { project: planned_run.project.clone(), job: run_job };
    // The view draws the same updates; here only the id and the ending are remembered.
    let mut note_update = |run_update: &RunUpdate<'_>| {
        if let RunUpdate::NewEntry(journal_entry) = run_update {
            finished_run.run_id.get_or_insert_with(|| journal_entry.run.clone());
            if let RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) = &journal_entry.event {
                finished_run.summary = Some(summary.clone());
            }
        }
    };
    match run_engine.run_to_end(command_context, project_job, progress_view, &mut note_update).await {
        Ok(run_end) => finished_run.exit_code = run_end.exit_code,
        Err(user_error) => {
            progress_view.show_error(&user_error);
            if command_context.wants_json {
                // A program that reads the events learns about the failed run from the same stream.
                let _ = writeln!(stdout(), "{}", escape_json(&user_error.to_json().to_string()));
            }
            finished_run.exit_code = user_error.exit_code;
            finished_run.failure_reason = user_error.message;
        }
    }
    finished_run
}

/// Polls all lanes until all have finished. There are few of them, and an idle one returns at once.
async fn poll_all(mut lane_futures: Vec<LaneFuture<'_>>) {
    poll_fn(|task_context| {
        // Finished lanes are dropped, so they are never polled again.
        lane_futures.retain_mut(|lane_future| lane_future.as_mut().poll(task_context).is_pending());
        if lane_futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
