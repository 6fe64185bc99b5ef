//! A started process with everything that descends from it: held by a keeper or, on systems without keepers, by a process
//! group.

use std::{
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::net::UnixStream as StdStream,
    },
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    io::{FdFlags, fcntl_setfd, write},
    process::{Pid, Signal, kill_process_group, setsid},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::UnixStream,
    process::Child,
    time::timeout,
};

use crate::{
    keeper::{NAME, Word},
    process::{Command, How, StartError},
    resources,
};

/// How long after the grace period a keeper may take to end its tree.
const KEEPERS_PATIENCE: Duration = Duration::from_secs(6);

/// A running process tree. Dropping it ends the tree: a keeper sees the end of its channel, a group is killed.
pub(crate) struct Tree {
    /// The keeper, or the process itself.
    child: Child,
    grace: Duration,
    hold: Hold,
}

/// The means by which a tree is ended.
enum Hold {
    /// Both ends are the same channel. Orders are written as to a file, because the sandboxes of some clients (Codex) forbid
    /// sending on a socket.
    Line {
        words: Lines<BufReader<UnixStream>>,
        orders: OwnedFd,
    },
    Group(Group),
}

/// A process group; its remaining processes are killed when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Tree {
    /// Starts the tree; its first process has piped streams.
    pub async fn start(command: &Command) -> Result<Tree, StartError> {
        match &command.keeper {
            Some(keeper) => Tree::start_kept(command, keeper).await,
            None => Tree::start_group(command),
        }
    }

    async fn start_kept(command: &Command, keeper: &Path) -> Result<Tree, StartError> {
        let failed = |cause: io::Error| StartError::of(command, &cause);
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let mut build = tokio::process::Command::new(keeper);
        let locks: Vec<RawFd> = command.hold.iter().map(|file| file.as_raw_fd()).collect();
        let list = locks.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",");
        build
            .arg0(NAME)
            .arg(theirs.as_raw_fd().to_string())
            .arg(if list.is_empty() { "-" } else { &list })
            .arg(command.grace.as_millis().to_string())
            .arg(resources::files_of_a_child().map_or("-".to_string(), |files| files.to_string()))
            .arg(&command.program)
            .args(&command.args);
        // The locks and the channel must survive the exec of the keeper; all other descriptors are closed by it.
        let left_open: Vec<RawFd> = locks.into_iter().chain([theirs.as_raw_fd()]).collect();
        in_own_session(&mut build, left_open);
        let child = spawn(build, command)?;
        // Only the keeper may hold its end: otherwise the end of the channel would never be seen.
        drop(theirs);
        let orders = OwnedFd::from(ours.try_clone().map_err(failed)?);
        let mut words = BufReader::new(UnixStream::from_std(ours).map_err(failed)?).lines();
        // The first message tells whether the program could be started. Without one the keeper was killed early, and it is lost
        // with everything it had started.
        let first = words.next_line().await.ok().flatten();
        if let Some(Word::Refused(errno)) = first.as_deref().and_then(Word::parse) {
            return Err(failed(io::Error::from_raw_os_error(errno)));
        }
        Ok(Tree { child, grace: command.grace, hold: Hold::Line { words, orders } })
    }

    fn start_group(command: &Command) -> Result<Tree, StartError> {
        let mut build = tokio::process::Command::new(&command.program);
        build.args(&command.args).process_group(0).kill_on_drop(true);
        let child = spawn(build, command)?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        Ok(Tree { child, grace: command.grace, hold: Hold::Group(group) })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the first process to end. The future may be dropped and the method called again.
    pub async fn exited(&mut self) -> How {
        match &mut self.hold {
            Hold::Group(_) => ending(self.child.wait().await),
            Hold::Line { words, .. } => loop {
                match words.next_line().await.ok().flatten().as_deref().map(Word::parse) {
                    Some(Some(Word::Exited(code))) => return How::Exited(code),
                    Some(Some(Word::Killed(signal))) => return How::Killed(signal),
                    // Other messages, also unknown ones, do not tell the end.
                    Some(_) => {}
                    None => return How::Lost,
                }
            },
        }
    }

    /// Asks the whole tree to end; after the grace period it is killed.
    pub async fn end(&mut self) {
        match &mut self.hold {
            Hold::Line { orders, .. } => {
                // Only one order is ever written, so there is always room for it. If the write fails, the keeper has ended.
                let _ = write(orders, b"end\n");
            }
            Hold::Group(group) => {
                group.signal(Signal::TERM);
                if timeout(self.grace, self.child.wait()).await.is_err() {
                    group.signal(Signal::KILL);
                }
            }
        }
    }

    /// Waits until no process of the tree is left, and returns how many could not be ended. `None` means that the keeper itself
    /// did not end (an agent may have stopped it) and was killed.
    pub async fn gone(mut self) -> Option<usize> {
        let patience = self.grace + KEEPERS_PATIENCE;
        let left = timeout(patience, self.last_words()).await.ok();
        if left.is_none() {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
        }
        left
    }

    /// Reads the remaining messages of the keeper and waits for its end.
    async fn last_words(&mut self) -> usize {
        let mut left = 0;
        if let Hold::Line { words, .. } = &mut self.hold {
            while let Ok(Some(line)) = words.next_line().await {
                if let Some(Word::Left(number)) = Word::parse(&line) {
                    left = number;
                }
            }
        }
        let _ = self.child.wait().await;
        left
    }
}

/// Starts a process with the directory, environment and pipes of the command.
fn spawn(mut build: tokio::process::Command, command: &Command) -> Result<Child, StartError> {
    build
        .current_dir(&command.folder)
        .envs(&command.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in &command.without {
        build.env_remove(name);
    }
    build.spawn().map_err(|cause| StartError::of(command, &cause))
}

/// Prepares a process to run in a session of its own, so that Ctrl-C reaches only us, and to inherit the given descriptors.
fn in_own_session(build: &mut tokio::process::Command, left_open: Vec<RawFd>) {
    let before_exec = move || {
        setsid()?;
        for number in &left_open {
            // SAFETY: the files belong to the command, which outlives the start.
            #[expect(unsafe_code, reason = "descriptors are inherited by number")]
            let open = unsafe { BorrowedFd::borrow_raw(*number) };
            fcntl_setfd(open, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        build.pre_exec(before_exec);
    }
}

/// Translates the exit status of a process without a keeper.
fn ending(status: io::Result<ExitStatus>) -> How {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => How::Exited(code),
            (None, Some(signal)) => How::Killed(signal),
            (None, None) => How::Lost,
        },
        Err(_) => How::Lost,
    }
}
