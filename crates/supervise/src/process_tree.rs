//! A started process with everything that descends from it: held by a keeper or, on systems without keepers, by a process
//! group.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::write,
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Interest, Lines},
    net::{UnixStream, unix::pipe},
    process::Child,
    time::timeout,
};

use crate::{
    keeper::{KeeperJob, KeeperMessage},
    keeper_process::{KeeperProcess, KeeperSetup},
    process::{ExitReason, ProcessCommand, StartError},
    process_table, resources,
    search_path::secure_search_path,
    strays::MARK_VARIABLE,
};

/// How long after the grace period a keeper may take to end its tree. An agent may have stopped it, which is looked at earlier.
const KEEPER_END_LIMIT: Duration = Duration::from_secs(20);
const STOPPED_KEEPER_LIMIT: Duration = Duration::from_secs(6);

/// A running process tree. Dropping it ends the tree: a keeper sees the end of its channel, a group is killed.
pub(crate) struct ProcessTree {
    streams: AgentStreams,
    grace_period: Duration,
    control: TreeControl,
}

/// Our ends of the streams of a process.
#[derive(Default)]
pub(crate) struct AgentStreams {
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

impl AgentStreams {
    /// Takes the streams that a process was started with.
    fn take_from(child: &mut Child) -> AgentStreams {
        AgentStreams {
            stdin: child.stdin.take().map(|stdin| Box::new(stdin) as _),
            stdout: child.stdout.take().map(|stdout| Box::new(stdout) as _),
            stderr: child.stderr.take().map(|stderr| Box::new(stderr) as _),
        }
    }
}

/// New streams for a keeper that is used again: our ends, and those that it opens by their numbers.
struct NewStreams {
    own_ends: AgentStreams,
    agent_ends: [OwnedFd; 3],
}

impl NewStreams {
    fn create() -> io::Result<NewStreams> {
        let (agent_stdin, stdin) = io::pipe()?;
        let (stdout, agent_stdout) = io::pipe()?;
        let (stderr, agent_stderr) = io::pipe()?;
        let own_ends = AgentStreams {
            stdin: Some(Box::new(pipe::Sender::from_owned_fd(stdin.into())?)),
            stdout: Some(Box::new(pipe::Receiver::from_owned_fd(stdout.into())?)),
            stderr: Some(Box::new(pipe::Receiver::from_owned_fd(stderr.into())?)),
        };
        Ok(NewStreams { own_ends, agent_ends: [agent_stdin.into(), agent_stdout.into(), agent_stderr.into()] })
    }

    fn stream_numbers(&self) -> [RawFd; 3] {
        self.agent_ends.each_ref().map(AsRawFd::as_raw_fd)
    }
}

/// What a keeper says about its tree in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeEnd {
    Gone,
    /// So many processes could not be ended.
    Remaining(usize),
    /// The keeper itself did not end, and was killed.
    KeeperLost,
}

/// The means by which a tree is ended.
enum TreeControl {
    /// Messages come on the channel of the keeper. Orders are written to it as to a file, because the sandboxes of some clients
    /// (Codex) forbid sending on a socket.
    Keeper {
        messages: Lines<BufReader<UnixStream>>,
        keeper: KeeperProcess,
        /// Whether the keeper was told to end the tree.
        is_ending: bool,
    },
    Group {
        child: Child,
        group: ProcessGroup,
    },
}

/// The last message of a keeper about its tree.
enum LastMessage {
    Gone,
    Remaining(usize),
    /// The keeper has ended, and so has everything it kept.
    KeeperEnded,
}

/// A process group; its remaining processes are killed when this is dropped.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.send_signal(Signal::KILL);
    }
}

impl ProcessGroup {
    fn send_signal(&self, signal: Signal) {
        if let Some(group_id) = self.0 {
            let _ = kill_process_group(group_id, signal);
        }
    }
}

impl ProcessTree {
    /// Starts the tree; its first process has piped streams.
    pub async fn start(command: &ProcessCommand) -> Result<ProcessTree, StartError> {
        match &command.keeper {
            Some(keeper_setup) => ProcessTree::start_with_keeper(command, keeper_setup).await,
            None => ProcessTree::start_group(command),
        }
    }

    async fn start_with_keeper(
        command: &ProcessCommand,
        keeper_setup: &KeeperSetup,
    ) -> Result<ProcessTree, StartError> {
        let start_error = |cause: io::Error| StartError::from_io(command, &cause);
        let mut job = describe_job(command);
        if let Some(keeper) = keeper_setup.take_spare() {
            let new_streams = NewStreams::create().map_err(start_error)?;
            job.streams = Some(new_streams.stream_numbers());
            // The keeper has opened its ends as soon as it answers.
            match ProcessTree::start_job(command, &job, keeper, new_streams.own_ends).await? {
                Some(process_tree) => return Ok(process_tree),
                // A new keeper inherits its streams.
                None => job.streams = None,
            }
        }
        let mark = command.extra_env.get(MARK_VARIABLE).map(OsString::as_os_str);
        let mut keeper = KeeperProcess::start(keeper_setup, mark).map_err(start_error)?;
        let own_ends = AgentStreams::take_from(&mut keeper.child);
        let started = ProcessTree::start_job(command, &job, keeper, own_ends).await?;
        started.ok_or_else(|| start_error(io::Error::other("the keeper has no streams for it")))
    }

    /// Lets a keeper start its job. `None` if it could not open the streams.
    async fn start_job(
        command: &ProcessCommand,
        job: &KeeperJob,
        keeper: KeeperProcess,
        streams: AgentStreams,
    ) -> Result<Option<ProcessTree>, StartError> {
        let start_error = |cause: io::Error| StartError::from_io(command, &cause);
        let job_message = job.to_message().map_err(start_error)?;
        let channel = keeper.channel.try_clone().and_then(UnixStream::from_std).map_err(start_error)?;
        send_job(&channel, &job_message).await.map_err(start_error)?;
        let mut messages = BufReader::new(channel).lines();
        // The first message tells whether the program could be started. Without one the keeper was killed early, and it is lost
        // with everything it had started.
        let first_message = messages.next_line().await.ok().flatten();
        let first_message = first_message.as_deref().and_then(KeeperMessage::parse_line);
        if first_message == Some(KeeperMessage::NoStreams) {
            return Ok(None);
        }
        if let Some(KeeperMessage::StartFailed(errno)) = first_message {
            let cause = io::Error::from_raw_os_error(errno);
            // The kernel's error for rules that it does not accept says nothing about the sandbox.
            let is_sandbox_refused = command.sandbox.is_some() && cause.kind() == io::ErrorKind::InvalidInput;
            return Err(match is_sandbox_refused {
                true => start_error(io::Error::other("the sandbox could not be set up")),
                false => start_error(cause),
            });
        }
        let control = TreeControl::Keeper { messages, keeper, is_ending: false };
        Ok(Some(ProcessTree { streams, grace_period: command.deadlines.grace, control }))
    }

    fn start_group(command: &ProcessCommand) -> Result<ProcessTree, StartError> {
        // A sandbox that was asked for is never left out silently.
        if command.sandbox.is_some() {
            return Err(StartError::from_io(command, &io::Error::other("a sandbox needs a keeper")));
        }
        let mut direct_command = tokio::process::Command::new(&command.program);
        direct_command
            .args(&command.args)
            .current_dir(&command.working_dir)
            .envs(&command.extra_env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for variable_name in &command.removed_env {
            direct_command.env_remove(variable_name);
        }
        secure_search_path(direct_command.as_std_mut());
        let mut child = direct_command.spawn().map_err(|cause| StartError::from_io(command, &cause))?;
        let group = ProcessGroup(child_pid(&child));
        let streams = AgentStreams::take_from(&mut child);
        let control = TreeControl::Group { child, group };
        Ok(ProcessTree { streams, grace_period: command.deadlines.grace, control })
    }

    /// Returns our ends of the streams, once.
    pub fn take_streams(&mut self) -> AgentStreams {
        std::mem::take(&mut self.streams)
    }

    /// Waits for the first process to end. The future may be dropped and the method called again.
    pub async fn wait_for_exit(&mut self) -> ExitReason {
        match &mut self.control {
            TreeControl::Group { child, .. } => exit_reason_from_status(child.wait().await),
            TreeControl::Keeper { messages, .. } => loop {
                match messages.next_line().await.ok().flatten().as_deref().map(KeeperMessage::parse_line) {
                    Some(Some(KeeperMessage::Exited(code))) => return ExitReason::Exited(code),
                    Some(Some(KeeperMessage::Killed(signal))) => return ExitReason::Killed(signal),
                    // Other messages, also unknown ones, do not tell the end.
                    Some(_) => {}
                    None => return ExitReason::Lost,
                }
            },
        }
    }

    /// Asks the whole tree to end; after the grace period it is killed.
    pub async fn request_end(&mut self) {
        match &mut self.control {
            TreeControl::Keeper { keeper, is_ending, .. } => {
                *is_ending = true;
                // Only one order is ever written, so there is always room for it. If the write fails, the keeper has ended.
                let _ = write(&keeper.channel, b"end\n");
            }
            TreeControl::Group { child, group } => {
                group.send_signal(Signal::TERM);
                if timeout(self.grace_period, child.wait()).await.is_err() {
                    group.send_signal(Signal::KILL);
                }
            }
        }
    }

    /// Waits until no process of the tree is left. A keeper that has nothing left to do is kept if the setup says so.
    pub async fn wait_until_gone(self, keeper_setup: Option<&KeeperSetup>) -> TreeEnd {
        match self.control {
            TreeControl::Group { mut child, .. } => {
                let _ = child.wait().await;
                TreeEnd::Gone
            }
            TreeControl::Keeper { mut messages, mut keeper, is_ending } => {
                let keeper_pid = child_pid(&keeper.child);
                let first_wait = self.grace_period + STOPPED_KEEPER_LIMIT;
                let last_message = {
                    let mut last_message = pin!(read_last_message(&mut messages));
                    match timeout(first_wait, &mut last_message).await {
                        Ok(last_message) => Ok(last_message),
                        Err(elapsed) if keeper_pid.is_some_and(process_table::is_stopped) => Err(elapsed),
                        Err(_) => timeout(KEEPER_END_LIMIT - STOPPED_KEEPER_LIMIT, last_message).await,
                    }
                };
                let tree_end = match last_message {
                    Ok(LastMessage::Gone) => match keeper_setup.filter(|setup| setup.keeps_one() && !is_ending) {
                        Some(keeper_setup) => {
                            keeper_setup.keep_spare(keeper);
                            return TreeEnd::Gone;
                        }
                        None => TreeEnd::Gone,
                    },
                    Ok(LastMessage::KeeperEnded) => TreeEnd::Gone,
                    Ok(LastMessage::Remaining(count)) => TreeEnd::Remaining(count),
                    Err(_) => {
                        let _ = keeper.child.start_kill();
                        TreeEnd::KeeperLost
                    }
                };
                // Without its channel the keeper ends, and then its locks are free.
                drop((messages, keeper.channel));
                let _ = keeper.child.wait().await;
                tree_end
            }
        }
    }
}

/// Reads the messages of a keeper up to the last one about its tree.
async fn read_last_message(messages: &mut Lines<BufReader<UnixStream>>) -> LastMessage {
    while let Ok(Some(line)) = messages.next_line().await {
        match KeeperMessage::parse_line(&line) {
            Some(KeeperMessage::Remaining(count)) => return LastMessage::Remaining(count),
            Some(KeeperMessage::Gone) => return LastMessage::Gone,
            _ => {}
        }
    }
    LastMessage::KeeperEnded
}

fn child_pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

/// Sends a job. It is written as to a file: the sandboxes of some clients (Codex) forbid sending on a socket.
async fn send_job(channel: &UnixStream, job_message: &[u8]) -> io::Result<()> {
    let mut remaining = job_message;
    while !remaining.is_empty() {
        channel.writable().await?;
        let written = channel.try_io(Interest::WRITABLE, || write(channel, remaining).map_err(io::Error::from));
        match written {
            Ok(byte_count) => remaining = &remaining[byte_count..],
            // Another process may have been faster, or there was no room after all.
            Err(cause) if matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The keeper was killed. That is noticed where its first message is read.
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// Returns what a keeper has to start.
fn describe_job(command: &ProcessCommand) -> KeeperJob {
    let is_replaced = |name: &OsStr| {
        let is_named = |other_name: &String| name == other_name.as_str();
        command.extra_env.keys().any(is_named) || command.removed_env.iter().any(is_named)
    };
    let inherited_env = std::env::vars_os().filter(|(name, _)| !is_replaced(name));
    let is_removed = |name: &String| command.removed_env.contains(name);
    let added_env = command.extra_env.iter().filter(|(name, _)| !is_removed(name));
    let added_env = added_env.map(|(name, value)| (OsString::from(name), value.clone()));
    KeeperJob {
        streams: None,
        grace_period: command.deadlines.grace,
        file_limit: resources::child_file_limit(),
        sandbox: command.sandbox.clone(),
        working_dir: command.working_dir.clone(),
        environment: inherited_env.chain(added_env).collect(),
        program: command.program.clone(),
        args: command.args.clone(),
    }
}

/// Translates the exit status of a process without a keeper.
fn exit_reason_from_status(exit_status: io::Result<ExitStatus>) -> ExitReason {
    use std::os::unix::process::ExitStatusExt;
    match exit_status {
        Ok(exit_status) => match (exit_status.code(), exit_status.signal()) {
            (Some(code), _) => ExitReason::Exited(code),
            (None, Some(signal)) => ExitReason::Killed(signal),
            (None, None) => ExitReason::Lost,
        },
        Err(_) => ExitReason::Lost,
    }
}
