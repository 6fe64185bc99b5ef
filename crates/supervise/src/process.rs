//! Runs one process from its start to the end of its tree.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    capture::CapturedOutput,
    deadlines::{DeadlineVerdict, DeadlineWatch, Deadlines, Moment},
    keeper_process::KeeperSetup,
    orphans,
    output_rate::OutputRate,
    process_tree::{AgentStreams, ProcessTree, TreeEnd},
    sandbox::SandboxRules,
    strays,
};

/// How long to wait for output that another process still holds open after the process itself has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The initial size of a read buffer. A thousand idle processes have two thousand buffers, so they start small and grow only
/// for processes that print a lot.
const INITIAL_BUFFER: usize = 4 << 10;
const LARGE_BUFFER: usize = 64 << 10;

/// A process to run, with its limits.
pub struct ProcessCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub working_dir: PathBuf,
    /// Variables that are added to our own environment.
    pub extra_env: BTreeMap<String, OsString>,
    /// Variables that are removed from it.
    pub removed_env: Vec<String>,
    pub stdin_bytes: Vec<u8>,
    pub deadlines: Deadlines,
    pub output_limits: OutputLimits,
    /// What the kernel lets the tree do; `None` leaves it as it is. Only a keeper can set it up.
    pub sandbox: Option<SandboxRules>,
    /// How the tree gets a keeper; with `None` there is only a process group.
    pub keeper: Option<KeeperSetup>,
    /// Ends the process as soon as the value becomes true.
    pub stop_signal: Option<watch::Receiver<bool>>,
}

/// The limits on what a process prints.
pub struct OutputLimits {
    /// The number of bytes on one stream after which the process is ended as a flood.
    pub max_stream_bytes: u64,
    /// The number of bytes within a second, on both streams together, after which the process is ended as a flood; `None` means
    /// that its speed is not limited.
    pub max_bytes_per_second: Option<u64>,
    /// A callback that gets standard output as it arrives. With [`ControlFlow::Break`] it ends the process as a flood.
    pub on_stdout: Option<OutputCallback>,
}

pub type OutputCallback = Box<dyn Fn(&[u8]) -> ControlFlow<()> + Send + Sync>;

impl Default for OutputLimits {
    fn default() -> Self {
        OutputLimits { max_stream_bytes: 1 << 30, max_bytes_per_second: None, on_stdout: None }
    }
}

impl std::fmt::Debug for ProcessCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OutputLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputLimits")
            .field("flood", &self.max_stream_bytes)
            .field("rate", &self.max_bytes_per_second)
            .finish_non_exhaustive()
    }
}

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    Exited(i32),
    Killed(i32),
    /// We ended it: it took too long.
    TimedOut,
    /// We ended it: it printed nothing for too long.
    Silent,
    /// We ended it: it printed without end.
    Flooded,
    /// We ended it: the caller asked for it.
    Stopped,
    /// The end is not known, because the keeper was killed.
    Lost,
}

/// What is known of a process after its end.
#[derive(Debug)]
pub struct ProcessOutcome {
    pub exit_reason: ExitReason,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    /// The number of processes of its tree that we may not end.
    pub survivors: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("command `{program}` not found")]
    NotFound { program: String },
    #[error("no permission to run `{program}`")]
    NotExecutable { program: String },
    #[error("could not start `{program}`: {what} ({cause})")]
    NoRoom { program: String, what: &'static str, cause: io::Error },
    #[error("could not start `{program}`: {cause}")]
    Other { program: String, cause: io::Error },
}

impl StartError {
    pub(crate) fn from_io(command: &ProcessCommand, cause: &io::Error) -> StartError {
        let program = command.program.to_string_lossy().into_owned();
        // An `io::Error` cannot be cloned; its number, or else its text, is enough for a new one.
        let cause = match cause.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::other(cause.to_string()),
        };
        let shortage = match cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::AGAIN) => Some("too many processes are running"),
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Some("too many files are open"),
            Some(rustix::io::Errno::NOMEM) => Some("the system is out of memory"),
            _ => None,
        };
        match (shortage, cause.kind()) {
            (Some(what), _) => StartError::NoRoom { program, what, cause },
            // A missing working directory gives the same error as a missing program.
            (None, io::ErrorKind::NotFound) if command.working_dir.is_dir() => StartError::NotFound { program },
            (None, io::ErrorKind::NotFound) => {
                let message = format!("its working directory {} no longer exists", command.working_dir.display());
                let cause = io::Error::other(message);
                StartError::Other { program, cause }
            }
            (None, io::ErrorKind::PermissionDenied) => StartError::NotExecutable { program },
            _ => StartError::Other { program, cause },
        }
    }
}

/// Runs a command until it and everything it started have ended. Dropping the future ends the tree, too, but does not wait for
/// that.
pub async fn run_process(command: ProcessCommand) -> Result<ProcessOutcome, StartError> {
    // The deadlines begin before the start: a keeper that hangs must not hang us.
    let mut deadline_watch = DeadlineWatch::start(command.deadlines, Moment::now());
    let mut process_tree = match timeout(command.deadlines.total, ProcessTree::start(&command)).await {
        Ok(started) => started?,
        Err(_) => return Err(StartError::from_io(&command, &io::Error::other("it did not start in time"))),
    };
    let AgentStreams { stdin, stdout, stderr } = process_tree.take_streams();
    if let Some(mut stdin) = stdin {
        let stdin_bytes = command.stdin_bytes;
        // A process need not read its input, so a failed write is not an error; its output counts.
        tokio::spawn(async move {
            let _ = stdin.write_all(&stdin_bytes).await;
        });
    }
    let (max_stream_bytes, max_rate) =
        (command.output_limits.max_stream_bytes, command.output_limits.max_bytes_per_second);
    let output_monitor = Arc::new(OutputMonitor { max_stream_bytes, max_rate, ..OutputMonitor::default() });
    let stdout = StreamReader::start_reading(stdout, command.output_limits.on_stdout, output_monitor.clone());
    let stderr = StreamReader::start_reading(stderr, None, output_monitor.clone());
    let mark_value = command.extra_env.get(strays::MARK_VARIABLE).cloned();
    // The loop wakes up for the exit, for a limit, for a stop, or at the next deadline; new output only moves the deadline.
    let mut stop_signal = command.stop_signal;
    let exit_reason = loop {
        if let Some(last_output) = output_monitor.last_output() {
            deadline_watch.record_activity(last_output);
        }
        let wait_time = match deadline_watch.check_deadlines(Moment::now()) {
            DeadlineVerdict::Wait(wait_time) => wait_time,
            DeadlineVerdict::TimedOut => break ExitReason::TimedOut,
            DeadlineVerdict::Silent => break ExitReason::Silent,
        };
        tokio::select! {
            // The exit comes first: a process that ended by itself keeps its exit code even if a limit is reached at the same
            // time.
            biased;
            how = process_tree.wait_for_exit() => break how,
            () = output_monitor.flooded.notified() => break ExitReason::Flooded,
            () = wait_for_stop(&mut stop_signal) => break ExitReason::Stopped,
            () = sleep(wait_time) => {}
        }
    };
    if matches!(exit_reason, ExitReason::TimedOut | ExitReason::Silent | ExitReason::Flooded | ExitReason::Stopped) {
        process_tree.request_end().await;
    }
    // A process that ended by itself may have left children behind, so the tree is awaited in any case.
    let tree_end = process_tree.wait_until_gone(command.keeper.as_ref()).await;
    if exit_reason == ExitReason::Lost || tree_end != TreeEnd::Gone {
        // What a keeper has left is ours now, and nothing else would end it.
        end_in_background(mark_value).await;
    }
    let survivors = if let TreeEnd::Remaining(count) = tree_end { count } else { 0 };
    Ok(ProcessOutcome { exit_reason, stdout: stdout.finish().await, stderr: stderr.finish().await, survivors })
}

/// Ends leftovers in a thread of its own, or in this one if there is no room for another.
async fn end_in_background(mark_value: Option<OsString>) {
    let (end_sender, end_receiver) = oneshot::channel();
    let thread_mark = mark_value.clone();
    let end_processes = move || {
        end_leftovers(thread_mark.as_deref());
        let _ = end_sender.send(());
    };
    match std::thread::Builder::new().name("orphans".into()).spawn(end_processes) {
        Ok(_) => drop(end_receiver.await),
        // The leftovers themselves may be what takes the room.
        Err(_) => end_leftovers(mark_value.as_deref()),
    }
}

/// Ends what a keeper has left behind.
fn end_leftovers(mark_value: Option<&OsStr>) {
    if let Some(mark_value) = mark_value {
        strays::sweep_by_mark(|found_mark| *found_mark == *mark_value);
    }
    // A process may have been started without the mark.
    orphans::end_orphans();
}

/// Returns when the caller asks to stop; without such a request it never returns.
async fn wait_for_stop(stop_signal: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop_signal) = stop_signal
        && stop_signal.wait_for(|is_stopped| *is_stopped).await.is_ok()
    {
        return;
    }
    // There is no sender (any more), so no request can arrive.
    std::future::pending().await
}

/// Connects the readers of both streams with the loop that waits for the process.
#[derive(Debug, Default)]
struct OutputMonitor {
    max_stream_bytes: u64,
    max_rate: Option<u64>,
    output_rate: Mutex<OutputRate>,
    flooded: Notify,
    last_output: Mutex<Option<Moment>>,
}

impl OutputMonitor {
    fn record_output(&self, byte_count: usize) {
        let current_moment = Moment::now();
        *self.last_output.lock().unwrap_or_else(PoisonError::into_inner) = Some(current_moment);
        if let Some(max_rate) = self.max_rate {
            let mut output_rate = self.output_rate.lock().unwrap_or_else(PoisonError::into_inner);
            if output_rate.exceeds_limit(max_rate, current_moment.awake, byte_count as u64) {
                self.flooded.notify_one();
            }
        }
    }

    /// The moment of the last output on either stream.
    fn last_output(&self) -> Option<Moment> {
        *self.last_output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An output stream that is read in the background.
struct StreamReader {
    captured: Arc<Mutex<CapturedOutput>>,
    reader_task: JoinHandle<()>,
}

impl StreamReader {
    /// Starts reading a stream until its end.
    fn start_reading<R: AsyncRead + Unpin + Send + 'static>(
        source: Option<R>,
        on_output: Option<OutputCallback>,
        output_monitor: Arc<OutputMonitor>,
    ) -> StreamReader {
        let captured = Arc::new(Mutex::new(CapturedOutput::default()));
        let shared_capture = captured.clone();
        let reader_task = tokio::spawn(async move {
            let Some(mut source) = source else { return };
            let mut buffer = vec![0; INITIAL_BUFFER];
            while let Ok(byte_count @ 1..) = source.read(&mut buffer).await {
                output_monitor.record_output(byte_count);
                let bytes = &buffer[..byte_count];
                if on_output.as_ref().is_some_and(|callback| callback(bytes).is_break()) {
                    output_monitor.flooded.notify_one();
                }
                // The lock is held no longer than needed: `finish` takes it to collect the output.
                let total_bytes = {
                    let mut captured = shared_capture.lock().unwrap_or_else(PoisonError::into_inner);
                    captured.push_bytes(bytes);
                    captured.total_bytes()
                };
                // Reading goes on: the tail of a flood is kept until the process has ended.
                if total_bytes > output_monitor.max_stream_bytes {
                    output_monitor.flooded.notify_one();
                }
                // A full buffer means that more is waiting.
                if byte_count == buffer.len() && byte_count < LARGE_BUFFER {
                    buffer.resize(LARGE_BUFFER, 0);
                }
            }
        });
        StreamReader { captured, reader_task }
    }

    /// Returns the captured output. Late output is awaited briefly, then the pipe is closed.
    async fn finish(mut self) -> CapturedOutput {
        if timeout(DRAIN_TIMEOUT, &mut self.reader_task).await.is_err() {
            self.reader_task.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
