//! Takes a run from its start to its last line: runtime, view, interrupts. All commands that run something share it; several
//! runs of one command are handled in [`crate::runs::multi_run`].

use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};
use tribunal_engine::{
    ids::{BatchId, RunId},
    reason::RunReason,
};
use tribunal_report::DisplayMode;
use tribunal_runner::{
    CallRate, InspectedStory, Project, RunError, RunUpdate, Runner, SharedState, StopLevel, StoryInspection,
    UpdateCallback, masking::Masker,
};
use tribunal_workflows::{runs::plan::RunPlan, session::SessionAssignment};

use crate::{
    build_info::VERSION,
    context::CommandContext,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    settings::ThroughputLimits,
    terminal::progress_display::ProgressView,
};

/// What is to be done with a run.
pub(crate) enum RunJob {
    Start(Box<RunPlan>),
    /// Resumes a run, with changed settings if there are any.
    Resume(RunId, Option<Box<RunPlan>>),
    /// Does one of the others with a session that repairs the findings.
    InSession(Box<SessionAssignment>, Box<RunJob>),
}

impl RunJob {
    /// Adds a session, if there is one.
    pub fn bind_session(self, bound_session: Option<SessionAssignment>) -> RunJob {
        match bound_session {
            Some(bound_session) => RunJob::InSession(Box::new(bound_session), Box::new(self)),
            None => self,
        }
    }
}

/// A job and its project.
pub(crate) struct ProjectJob {
    pub project: Project,
    pub job: RunJob,
    /// The command that starts this run, if it starts several.
    pub batch_id: Option<BatchId>,
}

/// How a run ended.
pub(crate) struct RunEnd {
    pub run_id: RunId,
    pub reason: RunReason,
    /// How much was shown at the end; the user may have changed it.
    pub display_mode: DisplayMode,
}

impl RunEnd {
    /// The exit code that follows from the reason alone. [`crate::runs::run_verdict`] also looks at the findings.
    pub fn exit_code(&self) -> u8 {
        self.reason.exit_code()
    }
}

/// What one command needs once, however many runs it executes.
pub(crate) struct RunEngine {
    runtime: Runtime,
    /// Tells all runs what the user wants: go on, park, or end now.
    stop_sender: watch::Sender<StopLevel>,
    masker: Masker,
    shared_limits: SharedState,
}

impl RunEngine {
    pub fn new(command_context: &CommandContext, concurrency: ThroughputLimits) -> Result<RunEngine, UserError> {
        // The limits are checked before anything is started, while the reason can still be reported.
        check_system_limits()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| UserError::new(EXIT_ENVIRONMENT, format!("cannot start the async runtime: {cause}")))?;
        let (stop_sender, _) = watch::channel(StopLevel::Continue);
        let shared_limits = SharedState::new(concurrency.agents);
        {
            // Signals are handled from the first moment on, because taking locks and sweeping processes may take a while.
            let _inside = runtime.enter();
            if let Ok(stop_signals) = StopSignals::new() {
                runtime.spawn(forward_signals(stop_signals, stop_sender.clone(), shared_limits.clone()));
            }
        }
        // Without a home directory calls cannot be counted across runs, and then the hourly limit does not apply.
        let shared_limits = match command_context.state_home() {
            Ok(state_home) => shared_limits
                .with_rate_limit(CallRate { state_file: state_home.join("calls"), calls_per_hour: concurrency.calls }),
            Err(_) => shared_limits,
        };
        Ok(RunEngine { runtime, stop_sender, masker: command_context.secret_masker(), shared_limits })
    }

    /// Returns whether nothing new may start.
    pub fn is_stopping(&self) -> bool {
        *self.stop_sender.borrow() > StopLevel::Continue
    }

    /// The way to stop all runs of this command.
    pub fn stop_sender(&self) -> &watch::Sender<StopLevel> {
        &self.stop_sender
    }

    /// Takes a run to its end, or to the point where it parks. `progress_view` draws it, and `observer` sees the same updates.
    pub async fn run_to_end(
        &self,
        command_context: &CommandContext,
        project_job: ProjectJob,
        progress_view: &ProgressView,
        observer: &mut dyn FnMut(&RunId, &RunUpdate<'_>),
    ) -> Result<RunEnd, UserError> {
        let ProjectJob { project, job, batch_id } = project_job;
        // A session is unwrapped from around the job that it belongs to.
        let (session_binding, run_job) = match job {
            RunJob::InSession(bound_session, inner_job) => (Some(*bound_session), *inner_job),
            other_job => (None, other_job),
        };
        let runner = Runner { binding: session_binding, batch_id, ..self.new_runner(command_context, project)? };
        let update_sink = UpdateCallback::new(|run_id: &RunId, run_update: RunUpdate<'_>| {
            observer(run_id, &run_update);
            progress_view.show_update(run_id, &run_update);
        });
        let running = async {
            match run_job {
                RunJob::Start(plan) => runner.start_run(*plan, &update_sink).await,
                RunJob::Resume(run_id, changed_plan) => {
                    runner.resume_run(&run_id, changed_plan.map(|plan| *plan), &update_sink).await
                }
                // Jobs are bound only once, so this cannot happen; an error is still better than a panic.
                RunJob::InSession(..) => Err(RunError::NoRun { run: RunId::new("") }),
            }
        };
        // The view never ends by itself; the run always does.
        let final_result = tokio::select! {
            ended = running => ended,
            never = progress_view.drive(&self.stop_sender) => match never {},
        };
        // The region is removed before the caller prints anything.
        progress_view.close();
        let (run_id, ending) = final_result?;
        Ok(RunEnd { run_id, reason: ending.reason, display_mode: progress_view.current_mode() })
    }

    /// Checks the work on a story, as its run does. Returns `None` if the user ended the checks.
    pub async fn inspect_story(
        &self,
        command_context: &CommandContext,
        project: Project,
        inspection: StoryInspection,
    ) -> Result<Option<InspectedStory>, UserError> {
        Ok(self.new_runner(command_context, project)?.inspect_story(inspection).await?)
    }

    fn new_runner(&self, command_context: &CommandContext, project: Project) -> Result<Runner, UserError> {
        Ok(Runner {
            launch_env: command_context.launch_env(&project)?,
            clones_root: crate::context::clones_root(),
            project,
            masker: self.masker.clone(),
            build: format!("tribunal {VERSION}"),
            keeper: tribunal_supervise::own_program(),
            sandbox_support: tribunal_supervise::probe_sandbox(),
            stop: self.stop_sender.subscribe(),
            shared: self.shared_limits.clone(),
            binding: None,
            batch_id: None,
        })
    }

    /// Runs `work` to its end and shuts the runtime down.
    pub fn block_on_all<T>(self, work: impl AsyncFnOnce(&RunEngine) -> T) -> T {
        let work_result = self.runtime.block_on(work(&self));
        // Threads that still work on files of a stopped run are not awaited.
        self.runtime.shutdown_background();
        work_result
    }
}

/// Executes a single run.
pub(crate) fn execute_run(
    command_context: &CommandContext,
    project: Project,
    run_job: RunJob,
    display_mode: DisplayMode,
    concurrency: ThroughputLimits,
) -> Result<RunEnd, UserError> {
    let run_engine = RunEngine::new(command_context, concurrency)?;
    let progress_view = ProgressView::new(command_context, display_mode);
    run_engine.block_on_all(async |run_engine| {
        let project_job = ProjectJob { project, job: run_job, batch_id: None };
        run_engine.run_to_end(command_context, project_job, &progress_view, &mut |_, _| {}).await
    })
}

/// With fewer open files than this a run could not even report what is wrong.
const MIN_OPEN_FILES: u64 = 64;

/// Signals that stop a run.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    stop_request: Signal,
    /// The user wants to stop a child run alone; its inbox says which and how.
    child_stop_request: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            stop_request: signal(SignalKind::user_defined1())?,
            child_stop_request: signal(SignalKind::user_defined2())?,
        })
    }
}

/// Checks that the system lets us open enough files and start a thread.
pub(crate) fn check_system_limits() -> Result<(), UserError> {
    let open_files = tribunal_supervise::raise_file_limit();
    if open_files < MIN_OPEN_FILES {
        return Err(UserError::new(EXIT_ENVIRONMENT, format!("the limit of {open_files} open files is too low"))
            .with_reason(format!("A run needs at least {MIN_OPEN_FILES}; every agent uses five. Nothing was started."))
            .with_step("raise the limit: `ulimit -n 1024`"));
    }
    // The runtime starts threads later and panics if it cannot, so one is tried here.
    match std::thread::Builder::new().spawn(|| {}).map(std::thread::JoinHandle::join) {
        Ok(_) => Ok(()),
        Err(cause) => Err(no_thread_error(&cause.to_string()).with_reason("Nothing was started.")),
    }
}

/// The error for a system that refuses another thread.
fn no_thread_error(cause: &str) -> UserError {
    UserError::new(EXIT_ENVIRONMENT, format!("the system cannot start another thread: {cause}"))
        .with_step("stop other programs, or raise the limit of processes: `ulimit -u`")
}

/// Turns the panic of a library into an error if it could not start a thread.
pub(crate) fn thread_panic_error(panic_payload: &(dyn std::any::Any + Send)) -> Option<UserError> {
    let panic_text = panic_payload.downcast_ref::<String>()?;
    // A run may have been under way; `resume` says so if there is none.
    panic_text.contains("spawn worker thread").then(|| {
        no_thread_error(panic_text)
            .with_reason("Everything recorded so far is kept.")
            .with_step("then resume the run, if one had started: `tribunal resume`")
    })
}

/// Forwards signals. The first Ctrl-C, or `tribunal stop`, lets running agents finish; the second one, or a request to
/// terminate, ends them now. After a hang-up the run goes on without a screen.
async fn forward_signals(stop_signals: StopSignals, stop_sender: watch::Sender<StopLevel>, shared_state: SharedState) {
    let StopSignals { mut interrupt, mut terminate, mut hang_up, mut stop_request, mut child_stop_request } =
        stop_signals;
    loop {
        tokio::select! {
            _ = interrupt.recv() => {
                let next = if *stop_sender.borrow() == StopLevel::Continue { StopLevel::ParkRun } else { StopLevel::EndNow };
                stop_sender.send_replace(next);
            }
            _ = stop_request.recv() => {
                // A request to stop must not weaken an order to end now.
                stop_sender.send_if_modified(|now| std::mem::replace(now, (*now).max(StopLevel::ParkRun)) == StopLevel::Continue);
            }
            _ = terminate.recv() => {
                stop_sender.send_replace(StopLevel::EndNow);
            }
            _ = child_stop_request.recv() => shared_state.announce_stop_requests(),
            // The terminal is gone, but the run goes on.
            _ = hang_up.recv() => {}
        }
    }
}
