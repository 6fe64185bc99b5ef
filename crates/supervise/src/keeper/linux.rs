//! The keeper process on Linux.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, FdFlags, fcntl_setfd},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, pidfd_open, set_child_subreaper,
        set_parent_process_death_signal, wait,
    },
};

use super::{KeeperJob, KeeperMessage};
use crate::{
    identity::ProcessIdentity, process_table, resources, sandbox::PreparedRules, search_path::secure_search_path,
};

/// How often ended orphans are reaped while the agent runs.
const REAP_INTERVAL: Duration = Duration::from_secs(2);
/// How often the end of the agent is looked for where the system does not report it.
const AGENT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The time that processes left running by the agent get to end by themselves.
const LINGER_TIME: Duration = Duration::from_millis(500);
/// The time between two looks at a tree that is ending.
const END_POLL_INTERVAL: Duration = Duration::from_millis(5);
const KILL_POLL_INTERVAL: Duration = Duration::from_micros(300);
/// The time of killing after which remaining processes that cannot be signalled count as ones that we may not kill.
const MAX_KILL_TIME: Duration = Duration::from_secs(3);
/// The time after which the keeper leaves the rest to its parent, even if the tree still changes: some agents start processes
/// faster than they can be found.
const MAX_END_TIME: Duration = Duration::from_secs(15);

/// The arguments of the keeper: `NAME CHANNEL LOCKS`.
struct KeeperArguments {
    /// It is read and written as a file: the sandboxes of some clients (Codex) forbid sending on a socket, even on a pair.
    control_channel: File,
    /// They are only held, and released when this process ends.
    locks: Vec<OwnedFd>,
}

/// Runs this process as a keeper until no process of the tree is left and no other job comes.
pub(super) fn run_keeper() -> ExitCode {
    let Some(arguments) = KeeperArguments::from_process_args() else { return ExitCode::from(64) };
    // A list of processes then shows the keeper by its name.
    let _ = rustix::thread::set_name(c"tribunal-keeper");
    close_for_children();
    let KeeperArguments { control_channel, locks: _held_locks } = arguments;
    let mut channel = control_channel;
    // The end of the channel says that the parent has ended, or needs no keeper any more.
    while let Some(job) = KeeperJob::read_from(&channel) {
        if job.streams.is_some_and(|stream_numbers| open_streams(stream_numbers).is_err()) {
            let _ = channel.write_all(KeeperMessage::NoStreams.to_line().as_bytes());
            return ExitCode::FAILURE;
        }
        let mut keeper = match Keeper::start_agent(channel, job) {
            Ok(keeper) => keeper,
            Err(exit_code) => return exit_code,
        };
        if !keeper.supervise_agent() {
            break;
        }
        channel = keeper.control_channel;
        if channel.write_all(KeeperMessage::Gone.to_line().as_bytes()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Takes over streams that the parent has open. A pipe that is opened by its name in `/proc` is the same pipe.
fn open_streams([stdin, stdout, stderr]: [RawFd; 3]) -> io::Result<()> {
    let parent_pid = getppid().ok_or(io::ErrorKind::NotFound)?;
    let stream_path = |fd_number: RawFd| format!("/proc/{parent_pid}/fd/{fd_number}");
    rustix::stdio::dup2_stdin(File::open(stream_path(stdin))?)?;
    let open_for_writing = |fd_number: RawFd| OpenOptions::new().write(true).open(stream_path(fd_number));
    rustix::stdio::dup2_stdout(open_for_writing(stdout)?)?;
    rustix::stdio::dup2_stderr(open_for_writing(stderr)?)?;
    Ok(())
}

impl KeeperArguments {
    fn from_process_args() -> Option<KeeperArguments> {
        let mut remaining_args = std::env::args_os().skip(1);
        let mut next_text = || remaining_args.next()?.into_string().ok();
        let channel_number = next_text()?.parse().ok()?;
        let lock_numbers = next_text()?;
        // `-` stands for no lock; it is not a number and is left out here.
        let lock_fds = lock_numbers.split(',').filter_map(|lock_number| take_inherited_fd(lock_number.parse().ok()?));
        Some(KeeperArguments {
            locks: lock_fds.collect(),
            control_channel: File::from(take_inherited_fd(channel_number)?),
        })
    }
}

/// Takes over a descriptor that our parent left open for us, and closes it for our children.
fn take_inherited_fd(fd_number: RawFd) -> Option<OwnedFd> {
    // The standard streams are never passed this way.
    if fd_number <= 2 {
        return None;
    }
    // SAFETY: the descriptor is only checked for being open; nothing else in this process uses descriptors by number.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    let borrowed_fd = unsafe { BorrowedFd::borrow_raw(fd_number) };
    fcntl_setfd(borrowed_fd, FdFlags::CLOEXEC).ok()?;
    // SAFETY: the descriptor is open, as the call above has shown, and each number occurs once in our arguments.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    Some(unsafe { OwnedFd::from_raw_fd(fd_number) })
}

/// Keeps descriptors that Tribunal itself has inherited from being inherited by agents.
fn close_for_children() {
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let fd_number = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(fd_number) = fd_number.filter(|fd_number| *fd_number > 2) {
            // SAFETY: only a flag is set, and a descriptor that is closed meanwhile is refused.
            #[expect(unsafe_code, reason = "descriptors are inherited by number")]
            let borrowed_fd = unsafe { BorrowedFd::borrow_raw(fd_number) };
            let _ = fcntl_setfd(borrowed_fd, FdFlags::CLOEXEC);
        }
    }
}

/// A running keeper.
struct Keeper {
    control_channel: File,
    grace_period: Duration,
    agent_pid: Pid,
    /// Whether the agent has ended and its end was reported.
    agent_ended: bool,
    /// A handle to wait for the agent. Some systems have none (old kernels, some containers); then the keeper polls.
    agent_handle: Option<OwnedFd>,
}

/// The reason why the keeper woke up.
enum WakeReason {
    AgentEnded,
    /// The parent asked to end the agent, or is gone.
    EndRequested,
    Timeout,
}

impl Keeper {
    fn start_agent(mut control_channel: File, job: KeeperJob) -> Result<Keeper, ExitCode> {
        let mut report_failure = |errno: i32| {
            let _ = control_channel.write_all(KeeperMessage::StartFailed(errno).to_line().as_bytes());
            ExitCode::FAILURE
        };
        let no_errno = 0;
        // Orphans are adopted only from now on, so this comes before the agent starts.
        set_child_subreaper(Some(getpid())).map_err(|cause| report_failure(cause.raw_os_error()))?;
        if let Some(file_limit) = job.file_limit {
            resources::set_file_limit(file_limit);
        }
        let mut command = Command::new(&job.program);
        command.args(&job.args).current_dir(&job.working_dir).env_clear().envs(job.environment).process_group(0);
        secure_search_path(&mut command);
        let prepared_rules = match &job.sandbox {
            Some(rules) => Some(PreparedRules::new(rules).map_err(|_| report_failure(Errno::INVAL.raw_os_error()))?),
            None => None,
        };
        prepare_agent(&mut command, prepared_rules);
        let child = command.spawn().map_err(|cause| report_failure(cause.raw_os_error().unwrap_or(no_errno)))?;
        let agent_pid =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| report_failure(no_errno))?;
        let agent_handle = pidfd_open(agent_pid, PidfdFlags::empty()).ok();
        let _ =
            control_channel.write_all(KeeperMessage::Started(agent_pid.as_raw_nonzero().get()).to_line().as_bytes());
        // A failure is accepted: the agent runs, and the parent would only wait a little longer for the end of its output.
        let _ = release_streams();
        Ok(Keeper { control_channel, grace_period: job.grace_period, agent_pid, agent_ended: false, agent_handle })
    }

    /// Waits for the end of the agent or for an order, then ends everything that is left. Returns whether that succeeded.
    fn supervise_agent(&mut self) -> bool {
        let end_grace = loop {
            // Without a handle the end of the agent is noticed only by reaping, so the keeper wakes up more often.
            let wake_interval = if self.agent_handle.is_some() { REAP_INTERVAL } else { AGENT_POLL_INTERVAL };
            match self.wait_for_wakeup(wake_interval) {
                WakeReason::AgentEnded => {
                    self.reap_children();
                    break LINGER_TIME;
                }
                WakeReason::EndRequested => break self.grace_period,
                WakeReason::Timeout => {
                    self.reap_children();
                }
            }
            if self.agent_ended {
                break LINGER_TIME;
            }
        };
        self.end_descendants(end_grace)
    }

    fn wait_for_wakeup(&mut self, max_wait: Duration) -> WakeReason {
        let channel = self.control_channel.as_fd();
        // Without a handle the channel takes both places; an event in the first place is ignored below.
        let agent = self.agent_handle.as_ref().map_or(channel, AsFd::as_fd);
        let mut poll_fds =
            [PollFd::from_borrowed_fd(agent, PollFlags::IN), PollFd::from_borrowed_fd(channel, PollFlags::IN)];
        let timeout = Timespec::try_from(max_wait).ok();
        // The call was interrupted or the system is out of memory: the keeper tries again and never gives up.
        if poll(&mut poll_fds, timeout.as_ref()).is_err() {
            std::thread::sleep(END_POLL_INTERVAL);
            return WakeReason::Timeout;
        }
        let [agent_ready, channel_ready] = poll_fds.map(|poll_fd| !poll_fd.revents().is_empty());
        if agent_ready && self.agent_handle.is_some() {
            return WakeReason::AgentEnded;
        }
        // A byte is an order, and so are the end and the failure of the channel.
        if channel_ready
            && !matches!(self.control_channel.read(&mut [0; 16]), Err(cause) if cause.kind() == io::ErrorKind::Interrupted)
        {
            return WakeReason::EndRequested;
        }
        WakeReason::Timeout
    }

    /// Reaps ended children; the result is true if no child is left.
    fn reap_children(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent_pid && !self.agent_ended => self.report_agent_end(status),
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                // The only remaining error says that there is no child.
                Err(_) => return true,
            }
        }
    }

    fn report_agent_end(&mut self, status: WaitStatus) {
        let message = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => KeeperMessage::Exited(code),
            (None, Some(signal)) => KeeperMessage::Killed(signal),
            // The process was stopped and has not ended.
            (None, None) => return,
        };
        self.agent_ended = true;
        let _ = self.control_channel.write_all(message.to_line().as_bytes());
    }

    /// Asks all descendants to end, waits for the grace period, and kills them, until no child is left. Returns whether that
    /// succeeded.
    fn end_descendants(&mut self, grace_period: Duration) -> bool {
        let start_time = Instant::now();
        let mut asked_processes = Vec::new();
        let mut has_killed = false;
        while !self.reap_children() {
            let elapsed_time = start_time.elapsed();
            let max_kill_time = if has_killed { MAX_END_TIME } else { MAX_KILL_TIME };
            if elapsed_time >= grace_period + max_kill_time {
                let remaining_count = process_table::find_descendants(getpid()).len();
                let _ = self.control_channel.write_all(KeeperMessage::Remaining(remaining_count).to_line().as_bytes());
                return false;
            }
            has_killed = false;
            // The tree is read anew each time: it may still grow while it is being ended.
            for process in process_table::find_descendants(getpid()) {
                let identity = ProcessIdentity::from(process);
                if elapsed_time >= grace_period {
                    has_killed |= identity.signal(Signal::KILL);
                } else if !asked_processes.contains(&process) {
                    asked_processes.push(process);
                    identity.signal(Signal::TERM);
                    // A stopped process cannot handle the signal before it continues.
                    identity.signal(Signal::CONT);
                }
            }
            if self.reap_children() {
                return true;
            }
            // A tree that may grow while it is killed gets little time to do so.
            std::thread::sleep(if has_killed { KILL_POLL_INTERVAL } else { END_POLL_INTERVAL });
        }
        true
    }
}

/// Lets the agent begin in its sandbox, and makes the kernel kill it if its keeper dies; what the agent started is found at the
/// next start.
fn prepare_agent(command: &mut Command, mut prepared_rules: Option<PreparedRules>) {
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        prepared_rules.take().map_or(Ok(()), PreparedRules::restrict_self)
    };
    // SAFETY: the keeper has a single thread, so no lock can be held by another one at the time of the fork.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        command.pre_exec(before_exec);
    }
}

/// Closes our copies of the agent's streams: as long as they are open, a reader does not see their end.
fn release_streams() -> io::Result<()> {
    let null_device = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null_device)?;
    rustix::stdio::dup2_stdout(&null_device)?;
    rustix::stdio::dup2_stderr(&null_device)?;
    Ok(())
}
