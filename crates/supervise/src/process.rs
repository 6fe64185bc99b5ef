//! Runs one process from its start to the end of its tree.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::{Notify, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    capture::Captured,
    deadlines::{Deadlines, Moment, Verdict, Watch},
    pace::Pace,
    strays,
    tree::Tree,
};

/// How long to wait for output that another process still holds open after the process itself has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// The initial size of a read buffer. A thousand idle processes have two thousand buffers, so they start small and grow only
/// for processes that print a lot.
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

/// A process to run, with its limits.
pub struct Command {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    /// Variables that are added to our own environment.
    pub env: BTreeMap<String, OsString>,
    /// Variables that are removed from it.
    pub without: Vec<String>,
    pub input: Vec<u8>,
    pub deadlines: Deadlines,
    /// The time between asking the tree to end and killing it.
    pub grace: Duration,
    pub output: Output,
    /// The program that keeps the tree; with `None` there is only a process group.
    pub keeper: Option<PathBuf>,
    /// Locks that stay held until the last process of the tree is gone.
    pub hold: Vec<Arc<File>>,
    /// Ends the process as soon as the value becomes true.
    pub stop: Option<watch::Receiver<bool>>,
}

/// The limits on what a process prints.
pub struct Output {
    /// The number of bytes on one stream after which the process is ended as a flood.
    pub flood: u64,
    /// The number of bytes within a second, on both streams together, after which the process is ended as a flood; `None` means
    /// that its speed is not limited.
    pub rate: Option<u64>,
    /// A callback that gets standard output as it arrives.
    pub seen: Option<OnOutput>,
}

pub type OnOutput = Box<dyn Fn(&[u8]) + Send + Sync>;

impl Default for Output {
    fn default() -> Self {
        Output { flood: 1 << 30, rate: None, seen: None }
    }
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("flood", &self.flood).field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
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
pub struct Ended {
    pub how: How,
    pub stdout: Captured,
    pub stderr: Captured,
    /// The number of processes of its tree that we may not end.
    pub left: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("`{program}` was not found")]
    NotFound { program: String },
    #[error("`{program}` may not be executed")]
    NotExecutable { program: String },
    #[error("`{program}` could not be started: {what} ({cause})")]
    NoRoom { program: String, what: &'static str, cause: io::Error },
    #[error("`{program}` could not be started: {cause}")]
    Other { program: String, cause: io::Error },
}

impl StartError {
    pub(crate) fn of(command: &Command, cause: &io::Error) -> StartError {
        let program = command.program.to_string_lossy().into_owned();
        // An `io::Error` cannot be cloned; its number, or else its text, is enough for a new one.
        let cause = match cause.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::other(cause.to_string()),
        };
        let full = match cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::AGAIN) => Some("the system has no room for another process"),
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Some("too many files are open"),
            Some(rustix::io::Errno::NOMEM) => Some("the system is out of memory"),
            _ => None,
        };
        match (full, cause.kind()) {
            (Some(what), _) => StartError::NoRoom { program, what, cause },
            // A missing working directory gives the same error as a missing program.
            (None, io::ErrorKind::NotFound) if command.folder.is_dir() => StartError::NotFound { program },
            (None, io::ErrorKind::NotFound) => {
                let cause = io::Error::other(format!("its folder {} is gone", command.folder.display()));
                StartError::Other { program, cause }
            }
            (None, io::ErrorKind::PermissionDenied) => StartError::NotExecutable { program },
            _ => StartError::Other { program, cause },
        }
    }
}

/// Runs a command until it and everything it started have ended. Dropping the future ends the tree, too, but does not wait for
/// that.
pub async fn run(command: Command) -> Result<Ended, StartError> {
    // The deadlines begin before the start: a keeper that hangs must not hang us.
    let mut watch = Watch::start(command.deadlines, Moment::now());
    let mut tree = match timeout(command.deadlines.total, Tree::start(&command)).await {
        Ok(started) => started?,
        Err(_) => return Err(StartError::of(&command, &io::Error::other("it did not start in time"))),
    };
    if let Some(mut stdin) = tree.child().stdin.take() {
        let input = command.input;
        // A process need not read its input, so a failed write is not an error; its output counts.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
    }
    let (flood, rate) = (command.output.flood, command.output.rate);
    let alarm = Arc::new(Alarm { flood, rate, ..Alarm::default() });
    let stdout = Stream::read(tree.child().stdout.take(), command.output.seen, alarm.clone());
    let stderr = Stream::read(tree.child().stderr.take(), None, alarm.clone());
    // The loop wakes up for the exit, for a limit, for a stop, or at the next deadline; new output only moves the deadline.
    let mut stop = command.stop;
    let how = loop {
        if let Some(heard) = alarm.heard() {
            watch.heard(heard);
        }
        let rest = match watch.verdict(Moment::now()) {
            Verdict::Wait(rest) => rest,
            Verdict::TimedOut => break How::TimedOut,
            Verdict::Silent => break How::Silent,
        };
        tokio::select! {
            // The exit comes first: a process that ended by itself keeps its exit code even if a limit is reached at the same
            // time.
            biased;
            how = tree.exited() => break how,
            () = alarm.flooded.notified() => break How::Flooded,
            () = told(&mut stop) => break How::Stopped,
            () = sleep(rest) => {}
        }
    };
    if matches!(how, How::TimedOut | How::Silent | How::Flooded | How::Stopped) {
        tree.end().await;
    }
    // A process that ended by itself may have left children behind, so the tree is awaited in any case.
    let left = tree.gone().await;
    if (how == How::Lost || left.is_none())
        && let Some(mark) = command.env.get(strays::MARK).cloned()
    {
        // Without its keeper, nothing else would end the processes that it held.
        let _ = tokio::task::spawn_blocking(move || strays::sweep(|found| *found == *mark)).await;
    }
    let left = left.unwrap_or(0);
    Ok(Ended { how, stdout: stdout.finish().await, stderr: stderr.finish().await, left })
}

/// Returns when the caller asks to stop; without such a request it never returns.
async fn told(stop: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop) = stop
        && stop.wait_for(|now| *now).await.is_ok()
    {
        return;
    }
    // There is no sender (any more), so no request can arrive.
    std::future::pending().await
}

/// Connects the readers of both streams with the loop that waits for the process.
#[derive(Debug, Default)]
struct Alarm {
    flood: u64,
    rate: Option<u64>,
    pace: Mutex<Pace>,
    flooded: Notify,
    heard: Mutex<Option<Moment>>,
}

impl Alarm {
    fn hear(&self, bytes: usize) {
        let now = Moment::now();
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        if let Some(rate) = self.rate {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            if pace.exceeds(rate, now.awake, bytes as u64) {
                self.flooded.notify_one();
            }
        }
    }

    /// The moment of the last output on either stream.
    fn heard(&self) -> Option<Moment> {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An output stream that is read in the background.
struct Stream {
    captured: Arc<Mutex<Captured>>,
    reader: JoinHandle<()>,
}

impl Stream {
    /// Starts reading a stream until its end.
    fn read<R: AsyncRead + Unpin + Send + 'static>(
        from: Option<R>,
        seen: Option<OnOutput>,
        alarm: Arc<Alarm>,
    ) -> Stream {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let into = captured.clone();
        let reader = tokio::spawn(async move {
            let Some(mut from) = from else { return };
            let mut buffer = vec![0; SMALL];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                alarm.hear(read);
                let bytes = &buffer[..read];
                if let Some(see) = &seen {
                    see(bytes);
                }
                // The lock is released before the monitor is notified; the waiting loop takes it when it collects the output.
                let total = {
                    let mut captured = into.lock().unwrap_or_else(PoisonError::into_inner);
                    captured.push(bytes);
                    captured.total()
                };
                // Reading goes on: the tail of a flood is kept until the process has ended.
                if total > alarm.flood {
                    alarm.flooded.notify_one();
                }
                // A full buffer means that more is waiting.
                if read == buffer.len() && read < LARGE {
                    buffer.resize(LARGE, 0);
                }
            }
        });
        Stream { captured, reader }
    }

    /// Returns the captured output. Late output is awaited briefly, then the pipe is closed.
    async fn finish(mut self) -> Captured {
        if timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
