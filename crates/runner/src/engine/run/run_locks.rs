//! The locks of a run: which process works on a run, and how this process takes the run and its subject for itself.
//!
//! The lock files themselves live in [`crate::engine::locks`].

use std::{io, path::Path, time::Duration};

use tokio::sync::mpsc::unbounded_channel;
use tribunal_engine::ids::RunId;
use tribunal_supervise::{ProcessIdentity, sweep_strays};
use tribunal_workflows::runs::kinds::RunOrder;

use super::{RunError, Runner};
use crate::{
    effects::END_GRACE,
    engine::updates::{RunUpdate, UpdateSink},
    locks::{self, HeldLock, LockFailure},
    project::Project,
    shared::stop_level::StopLevel,
};

/// The time that the processes of a killed run get to end: the grace period of its agents, and a little more.
const LOCK_PATIENCE: Duration = Duration::from_secs(END_GRACE.as_secs() + 5);

/// Whether processes of a run are left, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunHold {
    Free,
    /// This process works on the run.
    HeldBy(ProcessIdentity),
    /// The process that worked on the run is dead; its keepers are still ending its agents.
    EndingAgents,
    /// The holder did not record its process.
    UnknownHolder,
}

impl Runner {
    /// Whether a process works on the run right now.
    pub fn is_live(project: &Project, run_id: &RunId) -> bool {
        Runner::running_process(project, run_id).is_some()
    }

    /// Returns the process that works on the run.
    pub fn running_process(project: &Project, run_id: &RunId) -> Option<ProcessIdentity> {
        // A lock without a living holder is held by keepers, which do not work on the run.
        locks::living_holder(&project.locks_dir(), &run_lock_name(run_id))?.process
    }

    /// Returns what holds the run right now.
    pub fn read_hold(project: &Project, run_id: &RunId) -> RunHold {
        let (locks, lock_name) = (project.locks_dir(), run_lock_name(run_id));
        if !locks::is_held(&locks, &lock_name) {
            return RunHold::Free;
        }
        match locks::living_holder(&locks, &lock_name) {
            Some(holder) => holder.process.map_or(RunHold::UnknownHolder, RunHold::HeldBy),
            None => RunHold::EndingAgents,
        }
    }

    /// Waits until no process of the run is left; returns false if some are still there after the patience has ended.
    pub fn wait_until_gone(project: &Project, run_id: &RunId) -> bool {
        locks::wait_until_free(&project.locks_dir(), &run_lock_name(run_id), LOCK_PATIENCE)
    }

    /// Takes the lock of the run, then the lock of what only one run at a time may work on.
    pub(super) async fn take_locks(
        &self,
        run_id: &RunId,
        order: &RunOrder,
        update_sink: &dyn UpdateSink,
    ) -> Result<Vec<HeldLock>, RunError> {
        let locks = &self.project.locks_dir();
        // The run's lock comes first, so that a run that is being worked on is reported as that and not as a busy subject.
        let mut guards = vec![self.take_run_lock(run_id, update_sink).await?];
        if let Some(lock_name) = exclusive_lock_name(order) {
            let subject_guard =
                self.take_lock(locks, lock_name, run_id, update_sink).await.map_err(|locked| match locked {
                    LockFailure::HeldBy(holder) => {
                        RunError::SubjectLocked { subject: order.title(), by: holder.run_id }
                    }
                    LockFailure::IoFailed(cause) => RunError::Project { project: locks.clone(), cause },
                })?;
            guards.push(subject_guard);
        }
        Ok(guards)
    }

    /// Takes the lock of the run alone.
    pub(super) async fn take_run_lock(
        &self,
        run_id: &RunId,
        update_sink: &dyn UpdateSink,
    ) -> Result<HeldLock, RunError> {
        let locks = &self.project.locks_dir();
        self.take_lock(locks, run_lock_name(run_id), run_id, update_sink).await.map_err(|locked| match locked {
            LockFailure::HeldBy(_) => RunError::RunLocked { run: run_id.clone() },
            LockFailure::IoFailed(cause) => RunError::Project { project: locks.clone(), cause },
        })
    }

    async fn take_lock(
        &self,
        locks: &Path,
        lock_name: String,
        run_id: &RunId,
        update_sink: &dyn UpdateSink,
    ) -> Result<HeldLock, LockFailure> {
        let mut was_told = false;
        loop {
            match take_lock_in_background(locks, &lock_name, run_id, update_sink).await {
                // The holder is dead, and its keepers did not end in time. All processes of its run are ended by their mark.
                Err(LockFailure::HeldBy(holder)) if holder.is_dead() => {
                    let stray_mark = self.run_mark(&holder.run_id);
                    sweep_strays(|process_mark| process_mark.starts_with(&stray_mark));
                    return take_lock_in_background(locks, &lock_name, run_id, update_sink).await;
                }
                // `tribunal verify` has checks run on the work. They have timeouts, so it ends; every attempt takes a moment.
                Err(LockFailure::HeldBy(holder)) if holder.is_inspecting && !self.is_stopping() => {
                    if !std::mem::replace(&mut was_told, true) {
                        update_sink.send_update(run_id, RunUpdate::WaitingForInspection);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether the user wants this run to stop.
    fn is_stopping(&self) -> bool {
        *self.stop.borrow() > StopLevel::Continue
    }
}

/// Takes a lock on a separate thread, so that other runs of this process go on meanwhile.
async fn take_lock_in_background(
    locks: &Path,
    lock_name: &str,
    run_id: &RunId,
    update_sink: &dyn UpdateSink,
) -> Result<HeldLock, LockFailure> {
    let (wait_sender, mut wait_receiver) = unbounded_channel();
    let waiting_run = run_id;
    let (locks, lock_name, run_id) = (locks.to_path_buf(), lock_name.to_string(), run_id.clone());
    let take_lock = move || {
        locks::take_lock(&locks, &lock_name, &run_id, LOCK_PATIENCE, &mut || {
            let _ = wait_sender.send(());
        })
    };
    let mut lock_task = tokio::task::spawn_blocking(take_lock);
    loop {
        tokio::select! {
            taken = &mut lock_task => {
                return taken.unwrap_or_else(|broke| Err(LockFailure::IoFailed(io::Error::other(broke))));
            }
            Some(()) = wait_receiver.recv() => update_sink.send_update(waiting_run, RunUpdate::WaitingForKeepers),
        }
    }
}

/// Names the lock that is held while a process works on a run.
pub(crate) fn run_lock_name(run_id: &RunId) -> String {
    format!("run {run_id}")
}

/// Names the lock that is held while any run works on the same thing; `None` if such runs do not exclude each other.
pub(crate) fn exclusive_lock_name(order: &RunOrder) -> Option<String> {
    order.exclusive_name().map(|name| format!("subject {name}"))
}
