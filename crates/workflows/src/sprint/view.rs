//! A sprint as users see it.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    runs::kind_view::{KindView, ViewedKind},
    sprint::{
        event::SprintEvent,
        order::{SprintOrder, SprintStoryRow, SprintSummary},
        selection::LeftOut,
        standing::StoryStanding,
    },
};
use tribunal_engine::timestamp::Timestamp;

#[derive(Clone, Debug, Default)]
pub struct SprintView {
    pub order: Option<Box<SprintOrder>>,
    /// Open and done stories of the board at the start.
    pub open_at_start: u32,
    pub done_at_start: u32,
    /// The story that is being worked on.
    pub current: Option<String>,
    /// The open stories that were said to be left out last.
    pub left_out: Vec<LeftOut>,
    pub summary: SprintSummary,
}

impl ViewedKind for SprintOrder {
    type View = SprintView;
}

impl KindView<SprintOrder> for SprintView {
    fn apply_order(&mut self, order: &SprintOrder) {
        self.order = Some(Box::new(order.clone()));
    }

    fn apply_event(&mut self, event: &SprintEvent, _: Timestamp) {
        match event {
            SprintEvent::SprintBegun { open, done } => (self.open_at_start, self.done_at_start) = (*open, *done),
            SprintEvent::SprintStoryTaken { story, .. } => {
                self.current = Some(story.clone());
                // What is begun after all is not left out.
                self.left_out.retain(|left_out| left_out.story != *story);
                self.summary.left_out = self.left_out.len() as u32;
            }
            SprintEvent::SprintRetrospective { lesson: Some(lesson), .. } => {
                self.summary.retrospectives.push(lesson.describe());
            }
            SprintEvent::SprintStoryLeft { story, standing, detail, .. } => {
                self.current = None;
                let row = SprintStoryRow { story: story.clone(), standing: *standing, detail: detail.clone() };
                match self.summary.stories.iter_mut().find(|row| row.story == *story) {
                    Some(known_row) => *known_row = row,
                    None => self.summary.stories.push(row),
                }
                let is_done = |row: &&SprintStoryRow| row.standing == StoryStanding::Done;
                self.summary.done = self.summary.stories.iter().filter(is_done).count() as u32;
                self.summary.unfinished = self.summary.stories.len() as u32 - self.summary.done;
            }
            SprintEvent::SprintLeftOut { stories } => {
                self.left_out.clone_from(stories);
                self.summary.left_out = stories.len() as u32;
            }
            SprintEvent::SprintRetrospective { lesson: None, .. } | SprintEvent::SprintRequested { .. } => {}
        }
    }

    fn apply_summary(&mut self, summary: &SprintSummary) {
        self.summary = summary.clone();
    }

    fn build_summary(&self) -> SprintSummary {
        self.summary.clone()
    }
}
