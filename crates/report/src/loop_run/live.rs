//! The stage of a headless loop in the live view.

use tribunal_engine::ids::Key;
use tribunal_workflows::{loop_run::event::LoopEvent, runs::view::RunView, tasks::brief::AgentTask};

use super::{LoopReporter, describe_plan};
use crate::{
    kind_reporter::{KindLive, KindReporter, LiveProgress, StageDescription, TaskDescription},
    live::worker_list::WorkerList,
    phrases::format_count,
};

/// How far the loop is.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopLive {
    /// Whether the workspace is ready.
    is_prepared: bool,
    /// The iterations that have ended.
    ended_count: u32,
}

impl KindLive<LoopReporter> for LoopLive {
    fn track_event(&mut self, event: &LoopEvent, workers: &mut WorkerList) {
        match event {
            LoopEvent::LoopPrepared { .. } => self.is_prepared = true,
            LoopEvent::IterationEnded { iteration, report } => {
                self.ended_count = *iteration;
                if let Some(worker) = workers.find_worker(&turn_key(*iteration)) {
                    match report.fault.as_str() {
                        "" => worker.mark_finished(if report.progress { "made changes" } else { "changed nothing" }),
                        fault => worker.mark_failed(fault),
                    }
                }
            }
            _ => {}
        }
    }

    fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
        if workers.find_worker(task_key).is_none() {
            workers.clear_workers();
            let TaskDescription { worker, work } = LoopReporter::describe_task(task_key, task);
            workers.add_worker(task_key.task_key(), worker, work);
        }
    }

    /// The last iteration is shown until the next one begins.
    fn end_stage(&mut self, _: &mut WorkerList) {}

    fn describe_stage(&self, _: &WorkerList) -> StageDescription {
        let word = if self.is_prepared { "working" } else { "preparing" };
        let place = format!("iteration {}", self.ended_count + 1);
        StageDescription {
            has_begun: self.is_prepared,
            word,
            text: word.to_string(),
            place: place.clone(),
            short_place: place,
        }
    }

    fn describe_progress(&self, run_view: &RunView) -> LiveProgress {
        let Some(loop_view) = run_view.as_loop() else { return LiveProgress::default() };
        let summary = &loop_view.summary;
        let max_iterations = loop_view.order.as_ref().map_or(0, |order| order.pacing.max_iterations);
        let position = format!("iteration {} of at most {max_iterations}", self.ended_count + 1);
        let mut settled = vec![
            format!("{} changed", format_count(summary.changed_files, "file")),
            format_count(summary.commits, "commit"),
        ];
        settled.extend(summary.plan.map(describe_plan));
        LiveProgress { position: vec![position], settled: vec![settled.join(" · ")], ..LiveProgress::default() }
    }
}

fn turn_key(iteration: u32) -> Key {
    Key::new(format!("iteration-{iteration}/turn"))
}
