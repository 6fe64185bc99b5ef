//! The stories of a sprint in the live view: those that are over as a list, and the one under way. What its run does is drawn
//! from the board of that run.

use tribunal_engine::ids::Key;
use tribunal_workflows::{runs::view::RunView, sprint::event::SprintEvent, tasks::brief::AgentTask};

use super::{SprintReporter, list_rows};
use crate::{
    escape_line,
    kind_reporter::{KindLive, KindReporter, LiveProgress, StageDescription, TaskDescription},
    live::worker_list::WorkerList,
};

/// Which story is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct SprintLive {
    current: Option<String>,
}

impl KindLive<SprintReporter> for SprintLive {
    fn track_event(&mut self, event: &SprintEvent, workers: &mut WorkerList) {
        match event {
            SprintEvent::SprintStoryTaken { story, .. } => {
                self.current = Some(story.clone());
                workers.clear_workers();
            }
            // The list of the stories says what became of it.
            SprintEvent::SprintStoryLeft { .. } => {
                self.current = None;
                workers.clear_workers();
            }
            SprintEvent::SprintRetrospective { .. } => workers.clear_workers(),
            _ => {}
        }
    }

    /// The agents of the stories work in runs of their own. Only a retrospective is held in the run of the sprint.
    fn track_task(&mut self, task_key: &Key, task: &AgentTask, workers: &mut WorkerList) {
        if workers.find_worker(task_key).is_none() {
            workers.clear_workers();
            let TaskDescription { worker, work } = SprintReporter::describe_task(task_key, task);
            workers.add_worker(task_key.task_key(), worker, work);
        }
    }

    fn end_stage(&mut self, _: &mut WorkerList) {}

    fn describe_stage(&self, _: &WorkerList) -> StageDescription {
        let word = if self.current.is_some() { "working" } else { "reading the board" };
        let place = self.current.as_ref().map(|story| format!("story {story}")).unwrap_or_default();
        StageDescription {
            has_begun: self.current.is_some(),
            word,
            text: word.to_string(),
            place: place.clone(),
            short_place: place,
        }
    }

    fn describe_progress(&self, run_view: &RunView) -> LiveProgress {
        let Some(sprint_view) = run_view.as_sprint() else { return LiveProgress::default() };
        // A story that has a run is shown with that run.
        let is_running = run_view.children.values().any(|standing| standing.outcome.is_none());
        let current = sprint_view.current.as_ref().filter(|_| !is_running);
        LiveProgress {
            position: current.map(|story| format!("● story {}", escape_line(story))).into_iter().collect(),
            items: list_rows(sprint_view),
            settled: vec![SprintReporter::describe_result(&sprint_view.summary)],
            shows_child_limits: true,
            legend: "✓ done  ● under way  ? waits  – left out  ○ left",
            ..LiveProgress::default()
        }
    }
}
