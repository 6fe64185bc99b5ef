//! Starts git, reads its output and ends it when its time is up. No other module starts git.

use std::{
    borrow::BorrowMut,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{self, PollFd, PollFlags, Timespec},
    io::Errno,
};

#[cfg(test)]
use super::commands::test_config;
use super::{GitError, WORK_TIMEOUT};

/// The limit for the messages on stderr that are kept.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// What fits into an empty pipe on every system.
const MIN_PIPE_BYTES: usize = 4096;

/// Runs a command that must succeed, and returns its output.
pub(crate) fn run_checked(
    mut command: impl BorrowMut<Command>,
    stdin_bytes: Option<Vec<u8>>,
) -> Result<Vec<u8>, GitError> {
    let command = command.borrow_mut();
    let subcommand = subcommand_name(command);
    let output = run_git(command, stdin_bytes, WORK_TIMEOUT)?;
    if output.succeeded { Ok(output.stdout) } else { Err(output.to_error(&subcommand)) }
}

/// Runs a command and returns all of its output, however long it is.
pub(crate) fn run_git(
    mut command: impl BorrowMut<Command>,
    stdin_bytes: Option<Vec<u8>>,
    time_limit: Duration,
) -> Result<GitOutput, GitError> {
    let mut stdout_bytes = Vec::new();
    let (succeeded, stderr_text) = run_with_reader(command.borrow_mut(), stdin_bytes, time_limit, &mut |stdout| {
        stdout.read_to_end(&mut stdout_bytes).map(drop)
    })?;
    Ok(GitOutput { succeeded, stdout: stdout_bytes, stderr: stderr_text })
}

/// Lets one command read what another one writes, however much that is. Both must succeed.
pub(crate) fn run_piped(mut producer: Command, producer_input: &[u8], mut consumer: Command) -> Result<(), GitError> {
    let what = subcommand_name(&producer);
    let cannot_run = |cause| GitError::CannotRun { what: what.clone(), cause };
    let mut producer_process = spawn(producer.stdin(Stdio::piped()).stdout(Stdio::piped())).map_err(cannot_run)?;
    // The input is a few lines, which always fit into the pipe.
    let written = producer_process.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(producer_input));
    if let Some(stdout) = producer_process.stdout.take() {
        consumer.stdin(Stdio::from(stdout));
    }
    let consumed = run_checked(consumer, None);
    if consumed.is_err() || written.is_err() {
        // No process reads any more what it writes.
        let _ = producer_process.kill();
    }
    let produced = producer_process.wait().map_err(cannot_run)?;
    written.map_err(cannot_run)?;
    consumed?;
    match produced.success() {
        true => Ok(()),
        false => Err(GitError::CommandFailed { what, said: "its output is not complete".to_string() }),
    }
}

/// Passes an output of any length to `read_output` as it arrives, for as long as that wants more.
pub(crate) fn stream_output(
    mut command: Command,
    stdin_bytes: Option<Vec<u8>>,
    time_limit: Duration,
    read_output: &mut dyn FnMut(&mut dyn BufRead) -> io::Result<GitReadExtent>,
) -> Result<(), GitError> {
    let subcommand = subcommand_name(&command);
    let mut stopped_early = false;
    let (succeeded, message) = run_with_reader(&mut command, stdin_bytes, time_limit, &mut |stdout| {
        stopped_early = read_output(&mut BufReader::with_capacity(1 << 16, stdout))? == GitReadExtent::StoppedEarly;
        Ok(())
    })?;
    // A reader that stops early closes the pipe, which git reports as a failure.
    if succeeded || stopped_early { Ok(()) } else { Err(GitError::CommandFailed { what: subcommand, said: message }) }
}

/// Whether a reader consumed the whole output or stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitReadExtent {
    Complete,
    StoppedEarly,
}

#[derive(Debug)]
pub(crate) struct GitOutput {
    pub succeeded: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl GitOutput {
    /// The first line that git wrote to stderr; empty if there is none.
    pub fn first_message(&self) -> &str {
        self.stderr.lines().find(|stderr_line| !stderr_line.trim().is_empty()).unwrap_or_default()
    }

    /// Describes a command that failed.
    pub fn to_error(&self, subcommand: &str) -> GitError {
        // Git prints hints and warnings first; the first line with an error says what failed.
        let lines = || self.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_error = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
        let said = lines().find(is_error).or_else(|| lines().next_back()).unwrap_or("no error message").to_string();
        GitError::CommandFailed { what: subcommand.to_string(), said }
    }
}

/// Returns the output of a query that prints a single line.
pub(crate) fn to_trimmed_text(output_bytes: &[u8]) -> String {
    String::from_utf8_lossy(output_bytes).trim().to_string()
}

/// Returns the subcommand for error messages: the first argument that is not an option of git itself.
pub(crate) fn subcommand_name(command: &Command) -> String {
    let mut arguments = command.get_args().map(|argument| argument.to_string_lossy());
    while let Some(argument) = arguments.next() {
        if argument == "-c" {
            arguments.next();
        } else if !argument.starts_with('-') {
            return argument.into_owned();
        }
    }
    String::new()
}

/// Starts git, passes its output to `read_output`, and ends it when the reader is done or the time is up.
pub(super) fn run_with_reader(
    command: &mut Command,
    stdin_bytes: Option<Vec<u8>>,
    time_limit: Duration,
    read_output: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>,
) -> Result<(bool, String), GitError> {
    let subcommand = subcommand_name(command);
    // A missing program is the one failure that the user can fix with an installation.
    let cannot_run = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => GitError::NotInstalled,
        _ => GitError::CannotRun { what: subcommand.clone(), cause },
    };
    if stdin_bytes.is_some() {
        command.stdin(Stdio::piped());
    }
    let (mut git_process, stdin, mut output_streams) = start_process(command, time_limit).map_err(cannot_run)?;
    let (read_outcome, exit_outcome) = thread::scope(|scope| {
        if let Some((stdin, stdin_bytes)) = stdin.zip(stdin_bytes) {
            let is_short = stdin_bytes.len() <= MIN_PIPE_BYTES;
            let write_input = move || {
                let mut stdin = stdin;
                // A failing write means that git closed its input: it needs no more of it.
                let _ = stdin.write_all(&stdin_bytes);
            };
            // Writing a long input blocks until git has read it, and git may wait for us to read its output.
            if is_short { write_input() } else { drop(scope.spawn(write_input)) }
        }
        let read_outcome = read_output(&mut output_streams).and_then(|()| output_streams.drain_stderr());
        let exit_outcome = wait_or_kill(&mut git_process, read_outcome.is_err());
        (read_outcome, exit_outcome)
    });
    match (read_outcome, exit_outcome) {
        (Ok(()), Ok(succeeded)) => Ok((succeeded, String::from_utf8_lossy(&output_streams.stderr_bytes).into_owned())),
        (Err(cause), _) if cause.kind() == io::ErrorKind::TimedOut => {
            Err(GitError::TimedOut { what: subcommand, after: time_limit })
        }
        (Err(cause), _) | (_, Err(cause)) => Err(cannot_run(cause)),
    }
}

/// Starts git. This is the only place that does so.
fn spawn(command: &mut Command) -> io::Result<Child> {
    #[cfg(test)]
    test_config::STARTED.with(|started| started.set(started.get() + 1));
    command.spawn()
}

pub(super) fn start_process(
    command: &mut Command,
    time_limit: Duration,
) -> io::Result<(Child, Option<ChildStdin>, GitOutputStreams)> {
    let mut git_process = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdin = git_process.stdin.take();
    let output_streams = GitOutputStreams {
        stdout: git_process.stdout.take(),
        stderr: git_process.stderr.take(),
        stderr_bytes: Vec::new(),
        deadline: Instant::now() + time_limit,
    };
    Ok((git_process, stdin, output_streams))
}

/// The output of a running git process. Reading it reads stdout, and collects stderr meanwhile: git would block on a full pipe
/// that is not being read.
pub(super) struct GitOutputStreams {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The beginning of stderr. It is only shown, so the rest of a long message is dropped.
    pub stderr_bytes: Vec<u8>,
    deadline: Instant,
}

impl GitOutputStreams {
    /// Waits until stdout or stderr has something to read, and reads stderr if it has. Returns whether stdout is ready.
    fn wait_for_output(&mut self) -> io::Result<bool> {
        let remaining_time = self.deadline.saturating_duration_since(Instant::now());
        if remaining_time.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut poll_fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
        poll_fds.extend(self.stdout.as_ref().map(|stdout| PollFd::new(stdout, PollFlags::IN)));
        poll_fds.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        let timeout = Timespec::try_from(remaining_time).map_err(io::Error::other)?;
        match event::poll(&mut poll_fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
        let mut is_ready = poll_fds.iter().map(|poll_fd| !poll_fd.revents().is_empty());
        let stdout_ready = self.stdout.is_some() && is_ready.next().unwrap_or(false);
        let stderr_ready = self.stderr.is_some() && is_ready.next().unwrap_or(false);
        if stderr_ready {
            self.read_stderr()?;
        }
        Ok(stdout_ready)
    }

    fn read_stderr(&mut self) -> io::Result<()> {
        let Some(stderr) = &mut self.stderr else { return Ok(()) };
        let mut buffer = [0; 4096];
        match stderr.read(&mut buffer) {
            Ok(0) => self.stderr = None,
            Ok(count) => {
                let kept_count = count.min(MAX_MESSAGE_BYTES.saturating_sub(self.stderr_bytes.len()));
                self.stderr_bytes.extend_from_slice(&buffer[..kept_count]);
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
        Ok(())
    }

    /// Reads stderr to its end. Stdout is closed first: its reader wants no more of it.
    pub fn drain_stderr(&mut self) -> io::Result<()> {
        self.stdout = None;
        while self.stderr.is_some() {
            self.wait_for_output()?;
        }
        Ok(())
    }
}

impl Read for GitOutputStreams {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.wait_for_output()? {}
        self.stdout.as_mut().map_or(Ok(0), |stdout| stdout.read(buffer))
    }
}

/// Waits for git to exit and returns whether it succeeded. Its output has ended, so it exits soon, unless it timed out.
fn wait_or_kill(git_process: &mut Child, timed_out: bool) -> io::Result<bool> {
    if timed_out {
        git_process.kill()?;
    }
    git_process.wait().map(|status| status.success())
}
