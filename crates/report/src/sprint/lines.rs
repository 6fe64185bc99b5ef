//! The lines of a sprint: one when a story is taken, and one for what became of it. The lines between are those of the story's own run.

use tribunal_engine::ids::Key;
use tribunal_workflows::{
    runs::{kinds::WorkflowEvent, types::RunEvent, view::RunView},
    sprint::{event::SprintEvent, standing::StoryStanding},
    tasks::brief::AgentTask,
};

use super::SprintReporter;
use crate::{
    kind_reporter::KindLines,
    line_buffer::LineBuffer,
    phrases::format_count,
    style::{LineMark, TextStyle},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct SprintLines;

impl KindLines<SprintReporter> for SprintLines {
    fn write_event(&mut self, event: &SprintEvent, _: &RunView, lines: &mut LineBuffer) {
        match event {
            SprintEvent::SprintBegun { open, done } => {
                let line_text = format!("board: {} open, {done} done", format_count(*open, "story"));
                lines.write_wrapped(0, TextStyle::Plain, &line_text);
            }
            SprintEvent::SprintStoryTaken { story, reason } => {
                lines.write_wrapped(0, TextStyle::Plain, &format!("story {story}: {reason}"));
            }
            // The line about its run has the details.
            SprintEvent::SprintStoryLeft { story, standing, child: Some(_), .. } => {
                lines.write_marked(2, mark_of(*standing), &format!("story {story}: {standing}"));
            }
            SprintEvent::SprintStoryLeft { story, standing, detail, child: None } => {
                lines.write_marked(2, mark_of(*standing), &format!("story {story}: {standing} ({detail})"));
            }
            SprintEvent::SprintLeftOut { stories } => {
                for left_out in stories {
                    lines.write_wrapped(2, TextStyle::Dim, &format!("left out: {}", left_out.describe()));
                }
            }
            SprintEvent::SprintRetrospective { epic, lesson: Some(lesson), detail } => {
                let line_text = format!("retrospective of epic {epic}: {}; {detail}", lesson.describe());
                lines.write_marked(2, LineMark::DONE, &line_text);
            }
            SprintEvent::SprintRetrospective { epic, lesson: None, detail } => {
                lines.write_marked(2, LineMark::WARNING, &format!("no retrospective of epic {epic}: {detail}"));
            }
            SprintEvent::SprintRequested { command } => {
                lines.write_wrapped(2, TextStyle::Plain, &format!("as you said: {}", command.describe()));
            }
        }
    }

    fn write_stage_end(&mut self, run_event: &RunEvent, _: &RunView, lines: &mut LineBuffer) {
        if let RunEvent::Workflow(WorkflowEvent::Sprint(SprintEvent::SprintStoryLeft { story, standing, .. })) =
            run_event
        {
            lines.write_wrapped(2, TextStyle::Plain, &format!("story {story}: {standing}"));
        }
    }

    fn name_worker(&self, _: &Key) -> Option<String> {
        Some("agent".into())
    }

    fn name_retried_worker(&self, _: &Key, _: &AgentTask) -> String {
        "agent".into()
    }
}

fn mark_of(standing: StoryStanding) -> LineMark {
    match standing {
        StoryStanding::Done => LineMark::DONE,
        StoryStanding::Waiting | StoryStanding::Answered | StoryStanding::Stopped => LineMark::RETRIED,
        StoryStanding::Skipped | StoryStanding::Refused | StoryStanding::Claimed => LineMark::WARNING,
    }
}
