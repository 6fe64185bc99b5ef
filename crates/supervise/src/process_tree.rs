//! A started process with everything that descends from it: held by a keeper or, on systems without keepers, by a process
//! group.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::OwnedFd,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::write,
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Interest, Lines},
    net::UnixStream,
    process::Child,
    time::timeout,
};

use crate::{
    keeper::{KeeperJob, KeeperMessage},
    keeper_process::{KeeperProcess, KeeperSetup},
    orphans::OwnKeeper,
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
    /// The keeper, or the process itself.
    child: Child,
    grace_period: Duration,
    control: TreeControl,
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
    /// Both fields are our end of the control channel. Orders are written as to a file, because the sandboxes of some clients
    /// (Codex) forbid sending on a socket.
    Keeper {
        messages: Lines<BufReader<UnixStream>>,
        orders_fd: OwnedFd,
        _own_keeper: OwnKeeper,
    },
    Group(ProcessGroup),
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
        let job_message = describe_job(command).to_message().map_err(start_error)?;
        let mark = command.extra_env.get(MARK_VARIABLE).map(OsString::as_os_str);
        let KeeperProcess { child, own_keeper, channel } = keeper_setup.take_keeper(mark).map_err(start_error)?;
        let orders_fd = OwnedFd::from(channel.try_clone().map_err(start_error)?);
        let channel = UnixStream::from_std(channel).map_err(start_error)?;
        send_job(&channel, &job_message).await.map_err(start_error)?;
        let mut messages = BufReader::new(channel).lines();
        // The first message tells whether the program could be started. Without one the keeper was killed early, and it is lost
        // with everything it had started.
        let first_message = messages.next_line().await.ok().flatten();
        if let Some(KeeperMessage::StartFailed(errno)) = first_message.as_deref().and_then(KeeperMessage::parse_line) {
            let cause = io::Error::from_raw_os_error(errno);
            // The kernel's error for rules that it does not accept says nothing about the sandbox.
            let is_sandbox_refused = command.sandbox.is_some() && cause.kind() == io::ErrorKind::InvalidInput;
            return Err(match is_sandbox_refused {
                true => start_error(io::Error::other("the sandbox could not be set up")),
                false => start_error(cause),
            });
        }
        Ok(ProcessTree {
            child,
            grace_period: command.deadlines.grace,
            control: TreeControl::Keeper { messages, orders_fd, _own_keeper: own_keeper },
        })
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
        let child = direct_command.spawn().map_err(|cause| StartError::from_io(command, &cause))?;
        let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        Ok(ProcessTree { child, grace_period: command.deadlines.grace, control: TreeControl::Group(group) })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the first process to end. The future may be dropped and the method called again.
    pub async fn wait_for_exit(&mut self) -> ExitReason {
        match &mut self.control {
            TreeControl::Group(_) => exit_reason_from_status(self.child.wait().await),
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
            TreeControl::Keeper { orders_fd, .. } => {
                // Only one order is ever written, so there is always room for it. If the write fails, the keeper has ended.
                let _ = write(orders_fd, b"end\n");
            }
            TreeControl::Group(group) => {
                group.send_signal(Signal::TERM);
                if timeout(self.grace_period, self.child.wait()).await.is_err() {
                    group.send_signal(Signal::KILL);
                }
            }
        }
    }

    /// Waits until no process of the tree is left.
    pub async fn wait_until_gone(mut self) -> TreeEnd {
        let keeper_pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let first_wait = self.grace_period + STOPPED_KEEPER_LIMIT;
        let survivors = {
            let mut final_messages = pin!(self.read_final_messages());
            match timeout(first_wait, &mut final_messages).await {
                Ok(survivors) => Ok(survivors),
                Err(elapsed) if keeper_pid.is_some_and(process_table::is_stopped) => Err(elapsed),
                Err(_) => timeout(KEEPER_END_LIMIT - STOPPED_KEEPER_LIMIT, final_messages).await,
            }
        };
        match survivors {
            Ok(None) => TreeEnd::Gone,
            Ok(Some(count)) => TreeEnd::Remaining(count),
            Err(_) => {
                let _ = self.child.start_kill();
                let _ = self.child.wait().await;
                TreeEnd::KeeperLost
            }
        }
    }

    /// Reads the remaining messages of the keeper and waits for its end. Returns how many processes it could not end, if any: it
    /// may not have been able to count them.
    async fn read_final_messages(&mut self) -> Option<usize> {
        let mut survivors = None;
        if let TreeControl::Keeper { messages, .. } = &mut self.control {
            while let Ok(Some(line)) = messages.next_line().await {
                if let Some(KeeperMessage::Remaining(count)) = KeeperMessage::parse_line(&line) {
                    survivors = Some(count);
                }
            }
        }
        let _ = self.child.wait().await;
        survivors
    }
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
