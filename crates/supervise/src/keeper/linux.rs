//! The keeper process on Linux.

use std::{
    ffi::OsString,
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
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, set_child_subreaper,
        set_parent_process_death_signal, wait,
    },
};

use super::Word;
use crate::{identity::Identity, resources, table};

/// How often ended orphans are reaped while the agent runs.
const ROUNDS: Duration = Duration::from_secs(2);
/// How often the end of the agent is looked for where the system does not report it.
const LOOK: Duration = Duration::from_millis(20);
/// The time that processes left running by the agent get to end by themselves.
const LINGER: Duration = Duration::from_millis(500);
/// The time between two looks at a tree that is ending.
const STEP: Duration = Duration::from_millis(5);
/// The time of killing after which remaining processes count as ones that we may not kill.
const PATIENCE: Duration = Duration::from_secs(3);

/// The arguments of the keeper: `NAME CHANNEL LOCKS GRACE FILES PROGRAM [ARGUMENT…]`.
struct Order {
    /// Read and written as a file: the sandboxes of some clients (Codex) forbid sending on a socket, even on a socket pair.
    line: File,
    _locks: Vec<OwnedFd>,
    grace: Duration,
    files: Option<u64>,
    program: OsString,
    arguments: Vec<OsString>,
}

/// Runs this process as a keeper until no process of the tree is left.
pub(super) fn keep() -> ExitCode {
    let Some(order) = Order::read() else { return ExitCode::from(64) };
    // A list of processes then shows the keeper by its name.
    let _ = rustix::thread::set_name(c"tribunal-keeper");
    match Keeper::start(order) {
        Ok(mut keeper) => {
            keeper.run();
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

impl Order {
    fn read() -> Option<Order> {
        let mut words = std::env::args_os().skip(1);
        let mut next = || words.next()?.into_string().ok();
        let line = next()?.parse().ok()?;
        let locks = next()?;
        let grace = Duration::from_millis(next()?.parse().ok()?);
        let files = next()?.parse().ok();
        // `-` stands for no lock; it is not a number and is left out here.
        let locks = locks.split(',').filter_map(|number| inherited(number.parse().ok()?));
        Some(Order {
            _locks: locks.collect(),
            line: File::from(inherited(line)?),
            grace,
            files,
            program: words.next()?,
            arguments: words.collect(),
        })
    }
}

/// Takes over a descriptor that our parent left open for us, and closes it for our children.
fn inherited(number: RawFd) -> Option<OwnedFd> {
    // The standard streams are never passed this way.
    if number <= 2 {
        return None;
    }
    // SAFETY: the descriptor is only checked for being open; nothing else in this process uses descriptors by number.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    let open = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(open, FdFlags::CLOEXEC).ok()?;
    // SAFETY: the descriptor is open, as the call above has shown, and each number occurs once in our arguments.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A running keeper.
struct Keeper {
    line: File,
    /// The locks are only held; they are released when this process ends.
    _locks: Vec<OwnedFd>,
    grace: Duration,
    agent: Pid,
    /// Whether the agent has ended and its end was reported.
    ended: bool,
    /// A handle to wait for the agent. Some systems have none (old kernels, some containers); then the keeper polls.
    agent_handle: Option<OwnedFd>,
}

/// The reason why the keeper woke up.
enum Woken {
    AgentEnded,
    /// The parent asked to end the agent, or is gone.
    Told,
    Time,
}

impl Keeper {
    fn start(order: Order) -> Result<Keeper, ExitCode> {
        let mut line = order.line;
        let mut fail = |errno: i32| {
            let _ = line.write_all(Word::Refused(errno).line().as_bytes());
            ExitCode::FAILURE
        };
        let no_errno = 0;
        // Orphans are adopted only from now on, so this comes before the agent starts.
        set_child_subreaper(Some(getpid())).map_err(|cause| fail(cause.raw_os_error()))?;
        if let Some(files) = order.files {
            resources::set_files(files);
        }
        let mut command = Command::new(&order.program);
        command.args(&order.arguments).process_group(0);
        // If the keeper is killed, the kernel ends at least the agent itself.
        die_with_the_keeper(&mut command);
        let child = command.spawn().map_err(|cause| fail(cause.raw_os_error().unwrap_or(no_errno)))?;
        let agent = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| fail(no_errno))?;
        let agent_handle = pidfd_open(agent, PidfdFlags::empty()).ok();
        let _ = line.write_all(Word::Started(agent.as_raw_nonzero().get()).line().as_bytes());
        // A failure is accepted: the agent runs, and the parent would only wait a little longer for the end of its output.
        let _ = let_go_of_streams();
        Ok(Keeper { line, _locks: order._locks, grace: order.grace, agent, ended: false, agent_handle })
    }

    /// Waits for the end of the agent or for an order, then ends everything that is left.
    fn run(&mut self) {
        let grace = loop {
            // Without a handle the end of the agent is noticed only by reaping, so the keeper wakes up more often.
            let rounds = if self.agent_handle.is_some() { ROUNDS } else { LOOK };
            match self.wait_for_something(rounds) {
                Woken::AgentEnded => {
                    self.bury();
                    break LINGER;
                }
                Woken::Told => break self.grace,
                Woken::Time => {
                    self.bury();
                }
            }
            if self.ended {
                break LINGER;
            }
        };
        self.end_all(grace);
    }

    fn wait_for_something(&mut self, at_most: Duration) -> Woken {
        let line = self.line.as_fd();
        // Without a handle the channel takes both places; an event in the first place is ignored below.
        let agent = self.agent_handle.as_ref().map_or(line, AsFd::as_fd);
        let mut waits =
            [PollFd::from_borrowed_fd(agent, PollFlags::IN), PollFd::from_borrowed_fd(line, PollFlags::IN)];
        let timeout = Timespec::try_from(at_most).ok();
        // The call was interrupted or the system is out of memory: the keeper tries again and never gives up.
        if poll(&mut waits, timeout.as_ref()).is_err() {
            std::thread::sleep(STEP);
            return Woken::Time;
        }
        let [agent, line] = waits.map(|wait| !wait.revents().is_empty());
        if agent && self.agent_handle.is_some() {
            return Woken::AgentEnded;
        }
        // A byte is an order, and so are the end and the failure of the channel.
        if line
            && !matches!(self.line.read(&mut [0; 16]), Err(cause) if cause.kind() == io::ErrorKind::Interrupted)
        {
            return Woken::Told;
        }
        Woken::Time
    }

    /// Reaps ended children; the result is true if no child is left.
    fn bury(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent && !self.ended => self.tell_the_end(status),
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                // The only remaining error says that there is no child.
                Err(_) => return true,
            }
        }
    }

    fn tell_the_end(&mut self, status: WaitStatus) {
        let word = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Word::Exited(code),
            (None, Some(signal)) => Word::Killed(signal),
            // The process was stopped and has not ended.
            (None, None) => return,
        };
        self.ended = true;
        let _ = self.line.write_all(word.line().as_bytes());
    }

    /// Asks all descendants to end, waits for the grace period, and kills them, until no child is left.
    fn end_all(&mut self, grace: Duration) {
        let began = Instant::now();
        let mut asked = Vec::new();
        while !self.bury() {
            let waited = began.elapsed();
            if waited >= grace + PATIENCE {
                let left = table::descendants(getpid()).len();
                let _ = self.line.write_all(Word::Left(left).line().as_bytes());
                return;
            }
            // The tree is read anew each time: it may still grow while it is being ended.
            for process in table::descendants(getpid()) {
                let who = Identity::from(process);
                if waited >= grace {
                    who.signal(Signal::KILL);
                } else if !asked.contains(&process) {
                    asked.push(process);
                    who.signal(Signal::TERM);
                    // A stopped process cannot handle the signal before it continues.
                    who.signal(Signal::CONT);
                }
            }
            if self.bury() {
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Makes the kernel kill the agent if its keeper dies; what the agent started is found at the next start.
fn die_with_the_keeper(command: &mut Command) {
    let before_exec = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    // SAFETY: between fork and exec one system call is made; it allocates nothing and takes no lock.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        command.pre_exec(before_exec);
    }
}

/// Closes our copies of the agent's streams: as long as they are open, a reader does not see their end.
fn let_go_of_streams() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}
