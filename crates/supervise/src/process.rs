//! One process from its start to the end of its tree.

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

/// Output that somebody still holds open is waited for so long after the process itself ended.
const DRAIN: Duration = Duration::from_millis(500);
/// A thousand idle processes have two thousand buffers: they start small and grow for those who talk.
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

/// What to run.
pub struct Command {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    /// Added to our own environment.
    pub env: BTreeMap<String, OsString>,
    /// Taken out of it.
    pub without: Vec<String>,
    pub input: Vec<u8>,
    pub deadlines: Deadlines,
    /// Between asking the tree to end and killing it.
    pub grace: Duration,
    pub output: Output,
    /// The program that keeps the tree; none: a process group is all there is.
    pub keeper: Option<PathBuf>,
    /// Locks that stay held until the last process of the tree is gone.
    pub hold: Vec<Arc<File>>,
    /// True: end it now.
    pub stop: Option<watch::Receiver<bool>>,
}

/// What becomes of what it prints.
pub struct Output {
    /// Past this much on one stream it is ended as a flood.
    pub flood: u64,
    /// More than this within a second, on both streams, and it is ended as a flood, too; none: as fast as it likes.
    pub rate: Option<u64>,
    /// Sees standard output as it comes.
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

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    Killed(i32),
    /// Ended by us: it took too long.
    TimedOut,
    /// Ended by us: it gave no sign of life.
    Silent,
    /// Ended by us: it printed without end.
    Flooded,
    /// Ended by us: somebody wanted to stop.
    Stopped,
    /// Nobody knows: its keeper was killed.
    Lost,
}

#[derive(Debug)]
pub struct Ended {
    pub how: How,
    pub stdout: Captured,
    pub stderr: Captured,
    /// Processes of its tree that we may not end.
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
            // A missing working folder gives the same error as a missing program.
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

/// Runs a command to its end and to that of everything it started. Dropping the future ends the tree, too, but does not
/// wait for that.
pub async fn run(command: Command) -> Result<Ended, StartError> {
    let mut watch = Watch::start(command.deadlines, Moment::now());
    let mut tree = match timeout(command.deadlines.total, Tree::start(&command)).await {
        Ok(started) => started?,
        Err(_) => return Err(StartError::of(&command, &io::Error::other("it did not start in time"))),
    };
    if let Some(mut stdin) = tree.child().stdin.take() {
        let input = command.input;
        // A process that does not read its input has a right to; what it says counts.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
    }
    let (flood, rate) = (command.output.flood, command.output.rate);
    let alarm = Arc::new(Alarm { flood, rate, ..Alarm::default() });
    let stdout = Stream::read(tree.child().stdout.take(), command.output.seen, alarm.clone());
    let stderr = Stream::read(tree.child().stderr.take(), None, alarm.clone());
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
    let left = tree.gone().await;
    if (how == How::Lost || left.is_none())
        && let Some(mark) = command.env.get(strays::MARK).cloned()
    {
        // Nobody else will end what the keeper held.
        let _ = tokio::task::spawn_blocking(move || strays::sweep(|found| *found == *mark)).await;
    }
    let left = left.unwrap_or(0);
    Ok(Ended { how, stdout: stdout.finish().await, stderr: stderr.finish().await, left })
}

/// Returns when somebody wants to stop.
async fn told(stop: &mut Option<watch::Receiver<bool>>) {
    if let Some(stop) = stop
        && stop.wait_for(|now| *now).await.is_ok()
    {
        return;
    }
    // Nobody can say anything (any more).
    std::future::pending().await
}

/// What the readers of both streams tell whoever waits.
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

    /// The last sign of life.
    fn heard(&self) -> Option<Moment> {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream being read in the background.
struct Stream {
    captured: Arc<Mutex<Captured>>,
    reader: JoinHandle<()>,
}

impl Stream {
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
                let total = {
                    let mut captured = into.lock().unwrap_or_else(PoisonError::into_inner);
                    captured.push(bytes);
                    captured.total()
                };
                if total > alarm.flood {
                    alarm.flooded.notify_one();
                }
                if read == buffer.len() && read < LARGE {
                    buffer.resize(LARGE, 0);
                }
            }
        });
        Stream { captured, reader }
    }

    /// What was read; late output is waited for briefly, then the pipe is closed.
    async fn finish(mut self) -> Captured {
        if timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
