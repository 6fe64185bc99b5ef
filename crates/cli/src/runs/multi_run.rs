//! Executes several runs of one command, side by side or one after the other, and collects how each of them ended.
//!
//! `runner` shares the agents between the runs. [`crate::runs::engine`] handles Ctrl-C, which stops all of them.

use std::{
    cell::RefCell,
    future::poll_fn,
    io::{Write, stderr, stdout},
    pin::Pin,
    rc::Rc,
    task::Poll,
};

use tribunal_engine::{
    ids::{BatchId, RunId},
    reason::RunReason,
};
use tribunal_report::{
    DisplayMode, MultiRunEnding, MultiRunRow, RunLabel, escape_json,
    live::{MultiRunSubject, RunRowEnding},
    render_run_results, render_stopped_steps,
};
use tribunal_runner::{Project, RunUpdate};
use tribunal_workflows::{
    findings::finding::Severity,
    runs::types::{RunEvent, RunSummary},
};

use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    runs::engine::{ProjectJob, RunEnd, RunEngine, RunJob},
    settings::ThroughputLimits,
    terminal::{multi_run_view::MultiRunView, progress_display::ProgressView},
};

/// A run that is to be started or resumed.
pub(crate) struct PlannedRun {
    pub project: Project,
    /// What the run works on.
    pub title: String,
    /// A short name for what it works on.
    pub slug: String,
    pub job: RunJob,
    /// How much of it is shown; `None` if neither the user nor the settings say so.
    pub display_mode: Option<DisplayMode>,
    /// Which findings make the command fail.
    pub fail_on: Option<Severity>,
}

/// How one of several runs ended, for its command.
pub(crate) struct SeveralEnd {
    pub project: Project,
    /// `None` if the run was not started, or broke off.
    pub run_end: Option<RunEnd>,
    /// The exit code of a run that was not started, or broke off.
    pub failure_code: u8,
    /// Which findings make the command fail.
    pub fail_on: Option<Severity>,
}

impl SeveralEnd {
    /// Whether the user interrupted the run, or the command before the run started.
    pub fn was_interrupted(&self) -> bool {
        let exit_code = self.run_end.as_ref().map_or(self.failure_code, RunEnd::exit_code);
        exit_code == RunReason::Stopped.exit_code()
    }
}

/// How one of the runs ended.
#[derive(Default)]
struct FinishedRun {
    run_id: Option<RunId>,
    /// Whether this command recorded anything of the run.
    has_begun: bool,
    summary: Option<RunSummary>,
    /// `None` if the run was not started, or broke off.
    run_end: Option<RunEnd>,
    /// The exit code if there is no end.
    failure_code: u8,
    /// The reason why there is no summary.
    failure_reason: String,
}

type LaneFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Executes all runs and returns how each of them ended. A run that cannot start, or breaks off, does not stop the others.
/// `batch_id` is recorded in every run that is started, so that they can be resumed together.
pub(crate) fn execute_several(
    command_context: &CommandContext,
    planned_runs: Vec<PlannedRun>,
    concurrency: ThroughputLimits,
    batch_id: Option<BatchId>,
) -> Result<Vec<SeveralEnd>, UserError> {
    let run_engine = RunEngine::new(command_context, concurrency)?;
    let subjects = describe_subjects(&planned_runs);
    let projects: Vec<Project> = planned_runs.iter().map(|planned_run| planned_run.project.clone()).collect();
    let thresholds: Vec<Option<Severity>> = planned_runs.iter().map(|planned_run| planned_run.fail_on).collect();
    // Rows already show what each run does, so unless the user wants more, only its stages get lines above them.
    let live_mode = planned_runs.iter().find_map(|planned_run| planned_run.display_mode);
    let multi_run_view =
        MultiRunView::open(command_context, live_mode.unwrap_or(DisplayMode::Summary), &subjects).map(Rc::new);
    let run_displays = RunDisplays { command_context, multi_run_view, lane_count: concurrency.jobs.get() };
    // All lanes run on one thread, so a `RefCell` is enough.
    let finished_runs: RefCell<Vec<FinishedRun>> =
        RefCell::new(planned_runs.iter().map(|_| FinishedRun::default()).collect());
    let waiting_runs = RefCell::new(planned_runs.into_iter().enumerate());
    run_engine.block_on_all(async |run_engine| {
        // A lane takes the next waiting run whenever it is free.
        let run_lane = async || {
            loop {
                let next_run = waiting_runs.borrow_mut().next();
                let Some((run_index, planned_run)) = next_run else { break };
                let finished_run = if run_engine.is_stopping() {
                    not_started_result(&planned_run)
                } else {
                    run_displays.show_start(run_index);
                    let display_mode = planned_run.display_mode.unwrap_or_default();
                    let progress_view = run_displays.make_view(run_index, display_mode, &subjects[run_index].label);
                    let batch_id = batch_id.clone();
                    execute_one(run_engine, command_context, planned_run.with_batch(batch_id), &progress_view).await
                };
                run_displays.show_ending(run_index, &finished_run);
                // The result is stored by position, because runs end in any order.
                finished_runs.borrow_mut()[run_index] = finished_run;
            }
        };
        let all_lanes =
            poll_all((0..run_displays.lane_count).map(|_| Box::pin(run_lane()) as LaneFuture<'_>).collect());
        match &run_displays.multi_run_view {
            // The view never ends by itself; the runs always do.
            Some(multi_run_view) => tokio::select! {
                () = all_lanes => multi_run_view.close(),
                never = multi_run_view.drive(run_engine.stop_sender()) => match never {},
            },
            None => all_lanes.await,
        }
    });
    let finished_runs = finished_runs.into_inner();
    // Programs have every ending in the event stream already.
    if !command_context.wants_json && !command_context.is_silent() {
        print_results(&finished_runs, &subjects, command_context)?;
    }
    let describe_end = |((finished_run, project), fail_on): ((FinishedRun, Project), Option<Severity>)| SeveralEnd {
        project,
        run_end: finished_run.run_end,
        failure_code: finished_run.failure_code,
        fail_on,
    };
    Ok(finished_runs.into_iter().zip(projects).zip(thresholds).map(describe_end).collect())
}

fn describe_subjects(planned_runs: &[PlannedRun]) -> Vec<MultiRunSubject> {
    let subject_slugs: Vec<String> = planned_runs.iter().map(|planned_run| planned_run.slug.clone()).collect();
    let labels = RunLabel::for_subjects(&subject_slugs);
    let describe_subject =
        |(planned_run, label): (&PlannedRun, RunLabel)| MultiRunSubject { title: planned_run.title.clone(), label };
    planned_runs.iter().zip(labels).map(describe_subject).collect()
}

/// Prints one line for each run and, if some were stopped, how to go on with them.
fn print_results(
    finished_runs: &[FinishedRun],
    subjects: &[MultiRunSubject],
    command_context: &CommandContext,
) -> Result<(), UserError> {
    let result_rows: Vec<MultiRunRow<'_>> =
        finished_runs.iter().zip(subjects).map(|(finished_run, subject)| finished_run.to_row(&subject.title)).collect();
    let screen = &command_context.progress_screen;
    write!(stderr(), "\n{}{}", render_run_results(&result_rows, screen), render_stopped_steps(&result_rows, screen))?;
    Ok(())
}

/// How the runs are shown: in one live view, or each by itself.
struct RunDisplays<'a> {
    command_context: &'a CommandContext,
    multi_run_view: Option<Rc<MultiRunView>>,
    /// The number of runs that work at the same time.
    lane_count: usize,
}

impl RunDisplays<'_> {
    fn make_view(&self, run_index: usize, display_mode: DisplayMode, run_label: &RunLabel) -> ProgressView {
        match &self.multi_run_view {
            Some(multi_run_view) => ProgressView::new_shared(multi_run_view.clone(), run_index),
            // Lines of runs that follow one another need no labels.
            None if self.lane_count == 1 => ProgressView::new(self.command_context, display_mode),
            None => ProgressView::new_labelled(self.command_context, display_mode, run_label.clone()),
        }
    }

    fn show_start(&self, run_index: usize) {
        self.multi_run_view.iter().for_each(|multi_run_view| multi_run_view.start_run(run_index));
    }

    fn show_ending(&self, run_index: usize, finished_run: &FinishedRun) {
        let ending = match (&finished_run.summary, finished_run.has_begun) {
            (Some(_), _) => RunRowEnding::Recorded,
            (None, true) => RunRowEnding::BrokeOff,
            (None, false) => RunRowEnding::NotStarted,
        };
        self.multi_run_view.iter().for_each(|multi_run_view| multi_run_view.end_run(run_index, ending));
    }
}

impl PlannedRun {
    /// The run that is resumed; `None` if a new one is started.
    fn resumed_run(&self) -> Option<RunId> {
        match &self.job {
            RunJob::Resume(run_id, _) => Some(run_id.clone()),
            RunJob::Start(_) | RunJob::InSession(..) => None,
        }
    }

    fn with_batch(self, batch_id: Option<BatchId>) -> ProjectJob {
        ProjectJob { project: self.project, job: self.job, batch_id }
    }
}

impl FinishedRun {
    fn to_row<'a>(&'a self, subject_title: &'a str) -> MultiRunRow<'a> {
        // How far the run got decides between an ending, an abort and a run that never started.
        let ending = match (&self.summary, self.has_begun) {
            (Some(summary), _) => MultiRunEnding::Ended(summary),
            (None, true) => MultiRunEnding::BrokeOff(&self.failure_reason),
            (None, false) => MultiRunEnding::NotStarted(&self.failure_reason),
        };
        MultiRunRow { run_id: self.run_id.as_ref(), subject_name: subject_title, ending }
    }
}

/// The result of a run that was not started. A user who interrupts some runs does not want the next ones.
fn not_started_result(planned_run: &PlannedRun) -> FinishedRun {
    FinishedRun {
        run_id: planned_run.resumed_run(),
        failure_code: RunReason::Stopped.exit_code(),
        failure_reason: "stopped before it started".into(),
        ..FinishedRun::default()
    }
}

async fn execute_one(
    run_engine: &RunEngine,
    command_context: &CommandContext,
    project_job: ProjectJob,
    progress_view: &ProgressView,
) -> FinishedRun {
    let mut finished_run = FinishedRun::default();
    if let RunJob::Resume(run_id, _) = &project_job.job {
        finished_run.run_id = Some(run_id.clone());
    }
    // The view draws the same updates; here only the id and the ending are remembered.
    let mut note_update = |_: &RunId, run_update: &RunUpdate<'_>| {
        // Child runs are part of the run that the command started.
        if let RunUpdate::NewEntry(journal_entry) = run_update
            && finished_run.run_id.as_ref().is_none_or(|run_id| *run_id == journal_entry.run)
        {
            finished_run.has_begun = true;
            finished_run.run_id.get_or_insert_with(|| journal_entry.run.clone());
            if let RunEvent::RunParked(summary) | RunEvent::RunFinished(summary) = &journal_entry.event {
                finished_run.summary = Some(summary.clone());
            }
        }
    };
    let run_result = run_engine.run_to_end(command_context, project_job, progress_view, &mut note_update).await;
    match run_result {
        Ok(run_end) => finished_run.run_end = Some(run_end),
        Err(user_error) => {
            progress_view.show_error(&user_error);
            if command_context.wants_json {
                // A program that reads the events learns about the failed run from the same stream.
                let _ = writeln!(stdout(), "{}", escape_json(&user_error.to_json().to_string()));
            }
            finished_run.failure_code = user_error.exit_code;
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
