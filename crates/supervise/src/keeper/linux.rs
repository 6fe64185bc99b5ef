//! The keeper's own life.

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

/// Orphans that have ended are buried so often while the agent lives.
const ROUNDS: Duration = Duration::from_secs(2);
/// And so often its own end is looked for where the system does not tell.
const LOOK: Duration = Duration::from_millis(20);
/// What the agent left running when it ended gets this long to end by itself.
const LINGER: Duration = Duration::from_millis(500);
/// Between two looks at a tree that is ending.
const STEP: Duration = Duration::from_millis(5);
/// Processes that are still there after this long of killing are not ours to kill.
const PATIENCE: Duration = Duration::from_secs(3);

/// `NAME LINE LOCKS GRACE FILES PROGRAM [ARGUMENT…]`
struct Order {
    /// Read and written as a file: sandboxes of clients (Codex) let nobody send on a socket, not even on a pair like this one.
    line: File,
    _locks: Vec<OwnedFd>,
    grace: Duration,
    files: Option<u64>,
    program: OsString,
    arguments: Vec<OsString>,
}

pub(super) fn keep() -> ExitCode {
    let Some(order) = Order::read() else { return ExitCode::from(64) };
    // So that a list of processes shows us for what we are.
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

/// A descriptor that our parent left open for us, and for nobody after us.
fn inherited(number: RawFd) -> Option<OwnedFd> {
    if number <= 2 {
        return None;
    }
    // SAFETY: only asked whether it is open; nothing else in this process uses descriptors by number.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    let open = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(open, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, as was just seen, and each number is named once in our arguments.
    #[expect(unsafe_code, reason = "descriptors are inherited by number")]
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

struct Keeper {
    line: File,
    /// Held, not used: they are let go of when we end.
    _locks: Vec<OwnedFd>,
    grace: Duration,
    agent: Pid,
    /// How it ended, once it has.
    ended: bool,
    /// None: this system has no such thing (old kernels, some containers), and we look again and again.
    agent_handle: Option<OwnedFd>,
}

/// What woke us.
enum Woken {
    AgentEnded,
    /// Told to end it, or left alone.
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
        set_child_subreaper(Some(getpid())).map_err(|cause| fail(cause.raw_os_error()))?;
        if let Some(files) = order.files {
            resources::set_files(files);
        }
        let mut command = Command::new(&order.program);
        command.args(&order.arguments).process_group(0);
        die_with_the_keeper(&mut command);
        let child = command.spawn().map_err(|cause| fail(cause.raw_os_error().unwrap_or(no_errno)))?;
        let agent = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| fail(no_errno))?;
        let agent_handle = pidfd_open(agent, PidfdFlags::empty()).ok();
        let _ = line.write_all(Word::Started(agent.as_raw_nonzero().get()).line().as_bytes());
        let _ = let_go_of_streams();
        Ok(Keeper { line, _locks: order._locks, grace: order.grace, agent, ended: false, agent_handle })
    }

    fn run(&mut self) {
        let grace = loop {
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
        // Without a handle the line stands in both places: its news is then taken for what it is below.
        let agent = self.agent_handle.as_ref().map_or(line, AsFd::as_fd);
        let mut waits =
            [PollFd::from_borrowed_fd(agent, PollFlags::IN), PollFd::from_borrowed_fd(line, PollFlags::IN)];
        let timeout = Timespec::try_from(at_most).ok();
        // Interrupted or out of memory: look again later, never give up.
        if poll(&mut waits, timeout.as_ref()).is_err() {
            std::thread::sleep(STEP);
            return Woken::Time;
        }
        let [agent, line] = waits.map(|wait| !wait.revents().is_empty());
        if agent && self.agent_handle.is_some() {
            return Woken::AgentEnded;
        }
        // A byte is an order, and so are the line's end and its failing.
        if line
            && !matches!(self.line.read(&mut [0; 16]), Err(cause) if cause.kind() == io::ErrorKind::Interrupted)
        {
            return Woken::Told;
        }
        Woken::Time
    }

    /// Buries what has ended; true when no child is left.
    fn bury(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent && !self.ended => self.tell_the_end(status),
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
    }

    fn tell_the_end(&mut self, status: WaitStatus) {
        let word = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Word::Exited(code),
            (None, Some(signal)) => Word::Killed(signal),
            // Stopped, not ended.
            (None, None) => return,
        };
        self.ended = true;
        let _ = self.line.write_all(word.line().as_bytes());
    }

    /// Asks everything to end, waits the grace, kills; until no child is left.
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
            for process in table::descendants(getpid()) {
                let who = Identity::from(process);
                if waited >= grace {
                    who.signal(Signal::KILL);
                } else if !asked.contains(&process) {
                    asked.push(process);
                    who.signal(Signal::TERM);
                    // One that was stopped hears nothing until it goes on.
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

/// The agent itself does not outlive its keeper; what it started is found at the next start.
fn die_with_the_keeper(command: &mut Command) {
    let before_exec = || set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from);
    // SAFETY: between fork and exec one system call is made; it allocates nothing and takes no lock.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        command.pre_exec(before_exec);
    }
}

/// The streams are the agent's: as long as we had them open, nobody would see their end.
fn let_go_of_streams() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}
