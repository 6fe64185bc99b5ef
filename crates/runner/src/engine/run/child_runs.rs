//! Child runs: a run that a workflow asks for is driven on the same thread as its parent, as one more future of the parent's
//! host.
//!
//! A drive is local (its workflow is not `Send`), while effects are spawned as tasks. A future in the host needs no local set and
//! no thread of its own: the parent waits for its effects and its children in one place, dropping the parent drops them, and both
//! see the same stop. What takes time in a child, its effects, runs beside it as in every run.

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::sync::watch;
use tribunal_engine::{
    children::MAX_DEPTH,
    fault::{Fault, FaultKind},
    ids::RunId,
};
use tribunal_store::Store;
use tribunal_workflows::runs::{
    plan::RunPlan,
    run_kind::RunDriver,
    settings::Settings,
    user_request::UserRequest,
    view::{RunPhase, RunView},
};

use super::{RunError, Runner};
use crate::{
    effects::environment_fault,
    engine::{
        host::{ChildDriver, ChildPlan},
        updates::UpdateSink,
    },
    project::Project,
    shared::{
        stop_level::StopLevel,
        user_words::{RequestJudgement, UserWordWatch},
    },
};

impl ChildDriver for Runner {
    fn drive_child<'a>(
        &self,
        child: ChildPlan,
        update_sink: &'a dyn UpdateSink,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>> {
        let runner = self.clone();
        Box::pin(async move {
            let child_id = child.child_id.clone();
            runner.run_child(child, update_sink).await.map_err(|cause| to_fault(&child_id, &cause))
        })
    }
}

/// Describes why a child could not be driven. A parent that has other work passes over a child whose subject is taken.
fn to_fault(child_id: &RunId, cause: &RunError) -> Fault {
    match cause {
        RunError::SubjectLocked { by, .. } => Fault::new(FaultKind::SubjectBusy, format!("run {by} works on it")),
        _ => environment_fault(format!("child run {child_id}: {cause}")),
    }
}

impl Runner {
    /// Drives the child until it ends or parks. It stops with its parent, or alone if the user asks for that.
    async fn run_child(mut self, child: ChildPlan, update_sink: &dyn UpdateSink) -> Result<(), RunError> {
        let ChildPlan { child_id, parent, plan, resumed, tree, parent_end } = child;
        let runner = &mut self;
        if let Some(tree) = tree {
            runner.project = runner.project.with_tree(tree);
        }
        if parent.depth > MAX_DEPTH {
            return Err(RunError::TooDeep { run: child_id, depth: parent.depth });
        }
        if plan.order.run_driver() != RunDriver::Host {
            return Err(RunError::DrivenBySession { run: child_id });
        }
        let parent_stop = runner.stop.clone();
        let (stop_sender, stop_receiver) = watch::channel(*parent_stop.borrow());
        runner.stop = stop_receiver;
        // A session of the user and a batch of runs belong to the root alone.
        runner.binding = None;
        runner.batch_id = None;
        let stop_watch = StopWatch {
            project: runner.project.clone(),
            child_id: child_id.clone(),
            user_words: runner.shared.user_words.clone(),
        };
        let stop_requests = runner.shared.stop_requests();
        let drive = async {
            let store = Store::reopen_read_only(&runner.project.home_dir())?;
            let entries = store.entries_for_resume(&child_id)?;
            drop(store);
            let child_view = RunView::from_entries(&entries);
            match &child_view.phase {
                // The child was named, and its process ended before it started.
                _ if entries.is_empty() => {
                    runner.start_child_run(&child_id, plan, parent, update_sink).await?;
                }
                // It came to its end, and the process ended before the parent knew.
                RunPhase::Finished(_) => {
                    let _ = std::fs::remove_dir_all(runner.project.work_dir(&child_id));
                }
                RunPhase::Parked(summary) if resumed && summary.outcome.is_some() => {}
                RunPhase::Running | RunPhase::Parked(_) => {
                    let changed_plan = changed_plan(&child_view, plan.settings);
                    runner.resume_child_run(&child_id, changed_plan, update_sink).await?;
                }
            }
            Ok(())
        };
        tokio::select! {
            ended = drive => ended,
            never = forward_stops(&stop_watch, [parent_stop, parent_end], stop_requests, &stop_sender) => match never {},
        }
    }
}

/// Returns the plan of a child that is continued with other settings than before; `None` if they are the same. The parent gives
/// its own settings and a share: the share may have grown, and the user may have read the settings again.
fn changed_plan(child_view: &RunView, settings: Settings) -> Option<RunPlan> {
    let is_changed = child_view.settings.as_ref() != Some(&settings);
    let order = child_view.order.clone().filter(|_| is_changed)?;
    Some(RunPlan { settings, order })
}

/// Passes on the stops of the parent, because it was stopped or because it ends, and those that the user requested for this child
/// alone.
async fn forward_stops(
    stop_watch: &StopWatch,
    [mut parent_stop, mut parent_end]: [watch::Receiver<StopLevel>; 2],
    mut stop_requests: watch::Receiver<u64>,
    stop_sender: &watch::Sender<StopLevel>,
) -> std::convert::Infallible {
    let raise_to = |level: StopLevel| {
        stop_sender.send_if_modified(|current| {
            let is_higher = level > *current;
            *current = (*current).max(level);
            is_higher
        });
    };
    loop {
        tokio::select! {
            Ok(()) = parent_stop.changed() => raise_to(*parent_stop.borrow_and_update()),
            Ok(()) = parent_end.changed() => raise_to(*parent_end.borrow_and_update()),
            Ok(()) = stop_requests.changed() => raise_to(stop_watch.requested_stop()),
            // Both senders are gone only when the process ends.
            else => std::future::pending().await,
        }
    }
}

/// Looks for requests to stop one child.
struct StopWatch {
    project: Project,
    child_id: RunId,
    user_words: Arc<UserWordWatch>,
}

impl StopWatch {
    /// Reads how far the user wants the run to stop.
    fn requested_stop(&self) -> StopLevel {
        let pending =
            Store::reopen_read_only(&self.project.home_dir()).and_then(|store| store.pending_requests(&self.child_id));
        let pending = pending.unwrap_or_default().into_iter();
        let requests = pending
            .filter(|stored| self.user_words.judge_request(&self.child_id, stored) != RequestJudgement::Refused)
            .map(|stored| stored.request);
        let levels = requests.map(|request| match request {
            UserRequest::Stop { now: true } => StopLevel::EndNow,
            UserRequest::Stop { now: false } => StopLevel::ParkRun,
            _ => StopLevel::Continue,
        });
        levels.max().unwrap_or_default()
    }
}
