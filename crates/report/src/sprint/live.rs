//! The stories of a sprint in the live view.

use tribunal_core::{
    engine::{ids::Key, view::RunView},
    sprint::event::SprintEvent,
    tasks::brief::AgentTask,
};

use super::SprintReporter;
use crate::{
    kind_reporter::{KindLive, KindReporter, LiveProgress, StageDescription},
    live::worker_list::WorkerList,
};

/// Which story is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct SprintLive {
    current: Option<String>,
}

impl KindLive<SprintReporter> for SprintLive {
    fn track_event(&mut self, event: &SprintEvent, _: &mut WorkerList) {
        match event {
            SprintEvent::SprintStoryTaken { story, .. } => self.current = Some(story.clone()),
            SprintEvent::SprintStoryLeft { .. } => self.current = None,
            _ => {}
        }
    }

    /// A sprint has no agents of its own.
    fn track_task(&mut self, _: &Key, _: &AgentTask, _: &mut WorkerList) {}

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
        LiveProgress {
            position: SprintReporter::list_status_lines(sprint_view),
            settled: vec![SprintReporter::describe_result(&sprint_view.summary)],
            legend: "✓ done  ● under way  ? waits  – left out",
            ..LiveProgress::default()
        }
    }
}
