//! The workers that the live view shows: agents with their tasks, and child runs.

use tribunal_engine::ids::Key;

use super::worker::{LiveWorker, WorkerState};

/// The workers of the current stage, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerList {
    workers: Vec<LiveWorker>,
}

impl WorkerList {
    pub(crate) fn as_slice(&self) -> &[LiveWorker] {
        &self.workers
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// Adds a worker that waits for its turn. The key is that of its task, without suffixes.
    pub(crate) fn add_worker(&mut self, task_key: Key, worker_name: String, work: String) {
        self.workers.push(LiveWorker::new(task_key, worker_name, work));
    }

    pub(crate) fn clear_workers(&mut self) {
        self.workers.clear();
    }

    /// Keeps the first `kept_count` workers.
    pub(crate) fn truncate_workers(&mut self, kept_count: usize) {
        self.workers.truncate(kept_count);
    }

    /// Finds the worker of a task; all attempts at a task share one worker.
    pub(crate) fn find_worker(&mut self, effect_key: &Key) -> Option<&mut LiveWorker> {
        // A judge is shown in the line of the task whose change it looks at.
        let task_key = effect_key.judged_task().unwrap_or_else(|| effect_key.clone()).task_key();
        self.workers.iter_mut().find(|worker| worker.task_key == task_key)
    }

    /// The number of workers that have finished and of all workers: `2/5`.
    pub(crate) fn count_text(&self) -> String {
        let has_ended =
            |worker: &&LiveWorker| matches!(worker.state, WorkerState::Finished { .. } | WorkerState::Failed { .. });
        format!("{}/{}", self.workers.iter().filter(has_ended).count(), self.workers.len())
    }

    /// Counts the workers that work right now.
    pub(super) fn count_working(&self) -> usize {
        let is_working =
            |state: &WorkerState| matches!(state, WorkerState::Working { .. } | WorkerState::Landing { .. });
        self.workers.iter().filter(|worker| is_working(&worker.state)).count()
    }

    /// Returns whether a worker has not reported anything for long.
    pub(super) fn has_stalled(&self, now_ms: u64) -> bool {
        self.workers.iter().any(|worker| worker.stalled_ms(now_ms).is_some())
    }
}
