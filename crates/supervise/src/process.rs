//! One process from its start to the end of its group.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Child,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::capture::Captured;

/// Past this much output a process is ended as a flood.
const FLOOD: u64 = 1 << 30;
/// Output that a descendant still holds open is waited for so long after the process itself ended.
const DRAIN: Duration = Duration::from_millis(500);

/// What to run.
pub struct Command {
    pub program: String,
    pub args: Vec<String>,
    pub folder: PathBuf,
    /// Added to our own environment.
    pub env: BTreeMap<String, String>,
    /// Taken out of it.
    pub without: Vec<String>,
    pub input: Vec<u8>,
    pub deadline: Duration,
    /// Between asking the group to end and killing it.
    pub grace: Duration,
    /// Sees standard output as it comes.
    pub on_output: Option<OnOutput>,
}

type OnOutput = Box<dyn Fn(&[u8]) + Send + Sync>;

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Exited(i32),
    Killed(i32),
    /// Ended by us: the deadline had passed.
    TimedOut,
    /// Ended by us: it printed without end.
    Flooded,
}

#[derive(Debug)]
pub struct Ended {
    pub how: How,
    pub stdout: Captured,
    pub stderr: Captured,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("`{program}` was not found")]
    NotFound { program: String },
    #[error("`{program}` may not be executed")]
    NotExecutable { program: String },
    #[error("`{program}` could not be started: {cause}")]
    Other { program: String, cause: io::Error },
}

/// Runs a command to its end. Dropping the future kills the process group.
pub async fn run(command: Command) -> Result<Ended, StartError> {
    let deadline = Instant::now() + command.deadline;
    let mut child = start(&command)?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    if let Some(mut stdin) = child.stdin.take() {
        let input = command.input;
        // A process that does not read its input has a right to; what it says counts.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
    }
    let stdout = Stream::read(child.stdout.take(), command.on_output);
    let stderr = Stream::read(child.stderr.take(), None);
    let how = tokio::select! {
        status = child.wait() => ending(status),
        () = sleep_until(deadline) => How::TimedOut,
        () = stdout.flood() => How::Flooded,
        () = stderr.flood() => How::Flooded,
    };
    if matches!(how, How::TimedOut | How::Flooded) {
        group.end(&mut child, command.grace).await;
    }
    let ended = Ended { how, stdout: stdout.finish().await, stderr: stderr.finish().await };
    drop(group);
    Ok(ended)
}

fn start(command: &Command) -> Result<Child, StartError> {
    let mut build = tokio::process::Command::new(&command.program);
    build
        .args(&command.args)
        .current_dir(&command.folder)
        .envs(&command.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for name in &command.without {
        build.env_remove(name);
    }
    die_with_parent(&mut build);
    build.spawn().map_err(|cause| {
        let program = command.program.clone();
        match cause.kind() {
            // A missing working folder gives the same error as a missing program.
            io::ErrorKind::NotFound if command.folder.is_dir() => StartError::NotFound { program },
            io::ErrorKind::PermissionDenied => StartError::NotExecutable { program },
            _ => StartError::Other { program, cause },
        }
    })
}

/// The kernel ends the child when the thread that started it ends: our one runtime thread, which is as good as us.
#[cfg(target_os = "linux")]
fn die_with_parent(build: &mut tokio::process::Command) {
    let before_exec =
        || rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    // SAFETY: between fork and exec only one system call is made; it allocates nothing and takes no lock.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        build.pre_exec(before_exec);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut tokio::process::Command) {}

fn ending(status: io::Result<std::process::ExitStatus>) -> How {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, Some(signal)) => How::Killed(signal),
            (None, None) => How::Exited(-1),
        },
        Err(_) => How::Exited(-1),
    }
}

/// The process group; whatever is left of it is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    async fn end(&self, child: &mut Child, grace: Duration) {
        self.signal(Signal::TERM);
        if timeout(grace, child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = child.wait().await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A stream being read in the background.
struct Stream {
    captured: Arc<Mutex<Captured>>,
    flooded: Arc<tokio::sync::Notify>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn read<R: AsyncRead + Unpin + Send + 'static>(from: Option<R>, on_output: Option<OnOutput>) -> Stream {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let flooded = Arc::new(tokio::sync::Notify::new());
        let (into, alarm) = (captured.clone(), flooded.clone());
        let reader = tokio::spawn(async move {
            let Some(mut from) = from else { return };
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                let bytes = &buffer[..read];
                if let Some(see) = &on_output {
                    see(bytes);
                }
                let mut captured = into.lock().unwrap_or_else(PoisonError::into_inner);
                captured.push(bytes);
                if captured.total() > FLOOD {
                    alarm.notify_one();
                }
            }
        });
        Stream { captured, flooded, reader }
    }

    async fn flood(&self) {
        self.flooded.notified().await;
    }

    /// What was read; late output is waited for briefly, then the pipe is closed.
    async fn finish(mut self) -> Captured {
        if timeout(DRAIN, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
