//! Keepers as their parent sees them: how one is started, and one that is kept for the next process.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, RawFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, setsid, waitid},
};
use tokio::process::Child;

use crate::{keeper::KEEPER_NAME, orphans::OwnKeeper, search_path::secure_search_path, strays::MARK_VARIABLE};

/// How the keepers of some processes are started.
#[derive(Clone, Debug)]
pub struct KeeperSetup {
    /// A program that is its own keeper (see [`crate::enter_keeper`]).
    pub program: PathBuf,
    /// Locks that stay held until the last process of a tree is gone.
    pub held_locks: Vec<Arc<File>>,
    /// A place for a keeper that has done its job and is kept for the next one; with `None` each process has its own.
    pub spare: Option<Arc<SpareKeeper>>,
}

impl KeeperSetup {
    /// Returns a setup without locks with this program as keeper; `None` on systems without keepers.
    pub fn of_own_program() -> Option<KeeperSetup> {
        crate::keeper::own_program().map(|program| KeeperSetup { program, held_locks: Vec::new(), spare: None })
    }

    /// Takes the spare keeper, if there is one that still runs.
    pub(crate) fn take_spare(&self) -> Option<KeeperProcess> {
        let spare_keeper = self.spare.as_ref()?.lock_state().keeper.take();
        spare_keeper.filter(KeeperProcess::is_running)
    }

    /// Whether a keeper may be kept.
    pub(crate) fn keeps_one(&self) -> bool {
        self.spare.as_ref().is_some_and(|spare| !spare.lock_state().is_closed)
    }

    /// Keeps a keeper that waits for its next job.
    pub(crate) fn keep_spare(&self, keeper: KeeperProcess) {
        let surplus_keeper = match &self.spare {
            Some(spare) => {
                let mut state = spare.lock_state();
                if state.is_closed { Some(keeper) } else { state.keeper.replace(keeper) }
            }
            None => Some(keeper),
        };
        surplus_keeper.into_iter().for_each(KeeperProcess::end_unused);
    }
}

/// A place for a keeper that waits for its next job. It holds its locks until [`SpareKeeper::close`].
#[derive(Debug, Default)]
pub struct SpareKeeper(Mutex<SpareState>);

#[derive(Debug, Default)]
struct SpareState {
    keeper: Option<KeeperProcess>,
    is_closed: bool,
}

impl SpareKeeper {
    fn lock_state(&self) -> MutexGuard<'_, SpareState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the keeper, and keeps no other one. After that no lock is held any more.
    pub fn close(&self) {
        let mut state = self.lock_state();
        state.is_closed = true;
        state.keeper.take().into_iter().for_each(KeeperProcess::end_unused);
    }
}

impl Drop for SpareKeeper {
    fn drop(&mut self) {
        self.close();
    }
}

/// A running keeper.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pub child: Child,
    pub _own_keeper: OwnKeeper,
    /// Our end of the control channel.
    pub channel: UnixStream,
}

impl KeeperProcess {
    /// Starts a keeper. The mark in its environment lets a later start of Tribunal find it.
    pub fn start(setup: &KeeperSetup, mark: Option<&OsStr>) -> io::Result<KeeperProcess> {
        let (own_end, keeper_end) = UnixStream::pair()?;
        own_end.set_nonblocking(true)?;
        let lock_fds: Vec<RawFd> = setup.held_locks.iter().map(|file| file.as_raw_fd()).collect();
        let lock_list = lock_fds.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",");
        let mut command = tokio::process::Command::new(&setup.program);
        command
            .arg0(KEEPER_NAME)
            .arg(keeper_end.as_raw_fd().to_string())
            .arg(if lock_list.is_empty() { "-" } else { &lock_list })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .envs(mark.map(|mark| (MARK_VARIABLE, mark)));
        // What the keeper starts inherits its search path.
        secure_search_path(command.as_std_mut());
        // The locks and the channel must survive the exec of the keeper, which closes all other descriptors but the streams.
        let inherited_fds: Vec<RawFd> = lock_fds.into_iter().chain([keeper_end.as_raw_fd()]).collect();
        prepare_own_session(&mut command, inherited_fds);
        let (child, own_keeper) = OwnKeeper::start(|| {
            let child = command.spawn()?;
            let pid = child.id();
            Ok::<_, io::Error>((child, pid))
        })?;
        // Only the keeper may hold its end: otherwise the end of the channel would never be seen. It is closed here.
        Ok(KeeperProcess { child, _own_keeper: own_keeper, channel: own_end })
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    /// Whether the keeper has not ended. It may have been killed while it waited.
    fn is_running(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.pid().is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    /// Ends a keeper that has started nothing, and waits for its end.
    fn end_unused(self) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
    }
}

/// Prepares a process to run in a session of its own, so that Ctrl-C reaches only us, and to inherit the given descriptors.
fn prepare_own_session(keeper_command: &mut tokio::process::Command, inherited_fds: Vec<RawFd>) {
    let before_exec = move || {
        setsid()?;
        for fd_number in &inherited_fds {
            // SAFETY: the files belong to the setup and its caller, which outlive the start.
            #[expect(unsafe_code, reason = "descriptors are inherited by number")]
            let borrowed_fd = unsafe { BorrowedFd::borrow_raw(*fd_number) };
            fcntl_setfd(borrowed_fd, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        keeper_command.pre_exec(before_exec);
    }
}
