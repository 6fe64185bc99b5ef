//! The steps of a story in the live view, as a strip.

use tribunal_engine::ids::Key;
use tribunal_workflows::{
    runs::view::RunView,
    story::event::{SessionOutcome, StoryEvent},
    tasks::brief::AgentTask,
};

use super::{StoryReporter, draw_strip};
use crate::{
    kind_reporter::{KindLive, KindReporter, LiveProgress, StageDescription, TaskDescription},
    live::worker_list::WorkerList,
    phrases::format_count,
};

/// How far the story is.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoryLive {
    /// Whether the workspace is ready.
    is_prepared: bool,
    /// The sessions that have ended.
    ended_count: u32,
    /// The key of the last session, to mark it when it is verified.
    session_key: Option<Key>,
}

impl KindLive<StoryReporter> for StoryLive {
    fn track_event(&mut self, event: &StoryEvent, workers: &mut WorkerList) {
        match event {
            StoryEvent::StoryPrepared { .. } => self.is_prepared = true,
            StoryEvent::StorySession { session, report, .. } => {
                self.ended_count = *session;
                let session_key = self.session_key.take();
                if let Some(worker) = session_key.and_then(|session_key| workers.find_worker(&session_key)) {
                    match report.outcome {
                        SessionOutcome::Completed => worker.mark_finished("verified"),
                        outcome => worker.mark_failed(&outcome.to_string()),
                    }
                }
            }
            _ => {}
        }
    }

    fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
        if workers.find_worker(task_key).is_none() {
            workers.clear_workers();
            let TaskDescription { worker, work } = StoryReporter::describe_task(task_key, task);
            workers.add_worker(task_key.task_key(), worker, work);
            self.session_key = Some(task_key.task_key());
        }
    }

    /// The last session is shown until the next one begins.
    fn end_stage(&mut self, _: &mut WorkerList) {}

    fn describe_stage(&self, _: &WorkerList) -> StageDescription {
        let word = if self.is_prepared { "working" } else { "preparing" };
        let place = format!("session {}", self.ended_count + 1);
        StageDescription {
            has_begun: self.is_prepared,
            word,
            text: word.to_string(),
            place: place.clone(),
            short_place: place,
        }
    }

    fn describe_progress(&self, run_view: &RunView) -> LiveProgress {
        let Some(story_view) = run_view.as_story() else { return LiveProgress::default() };
        let summary = &story_view.summary;
        let mut settled = vec![
            format_count(summary.sessions, "session"),
            format!("{} changed", format_count(summary.changed_files, "file")),
        ];
        if !summary.reviews.is_empty() {
            settled.push(format_count(summary.reviews.len() as u32, "review"));
        }
        LiveProgress {
            position: vec![draw_strip(story_view)],
            settled: vec![settled.join(" · ")],
            legend: "✓ done  ● under way  ○ left",
            ..LiveProgress::default()
        }
    }
}
