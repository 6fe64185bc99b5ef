//! What a sprint records, besides what every run records.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    runs::run_kind::KindEvent,
    sprint::{facts::EpicLesson, requests::SprintCommand, selection::LeftOut, standing::StoryStanding},
};
use tribunal_engine::ids::RunId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SprintEvent {
    /// The board was read for the first time.
    SprintBegun { open: u32, done: u32 },
    /// A story is begun, or continued after an answer.
    SprintStoryTaken {
        story: String,
        /// Why it is this one.
        reason: String,
    },
    /// A story has ended or waits.
    SprintStoryLeft {
        story: String,
        standing: StoryStanding,
        detail: String,
        /// Its run; `None` if it was never started. The field is not called `run`: every entry of a journal has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<RunId>,
    },
    /// Stories that are not begun, and why.
    SprintLeftOut { stories: Vec<LeftOut> },
    /// A retrospective was held at the end of an epic, or could not be.
    SprintRetrospective {
        epic: String,
        /// What it says; `None` if it could not be held.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lesson: Option<EpicLesson>,
        /// Where the document is, or why there is none.
        detail: String,
    },
    /// A remark of the user was understood as a request.
    SprintRequested { command: SprintCommand },
}

impl KindEvent for SprintEvent {
    const KIND_NAMES: &'static [&'static str] = &[
        "sprint_begun",
        "sprint_story_taken",
        "sprint_story_left",
        "sprint_left_out",
        "sprint_retrospective",
        "sprint_requested",
    ];

    fn kind_name(&self) -> &'static str {
        match self {
            SprintEvent::SprintBegun { .. } => "sprint_begun",
            SprintEvent::SprintStoryTaken { .. } => "sprint_story_taken",
            SprintEvent::SprintStoryLeft { .. } => "sprint_story_left",
            SprintEvent::SprintLeftOut { .. } => "sprint_left_out",
            SprintEvent::SprintRetrospective { .. } => "sprint_retrospective",
            SprintEvent::SprintRequested { .. } => "sprint_requested",
        }
    }

    fn subject_name(&self) -> String {
        match self {
            SprintEvent::SprintStoryTaken { story, .. } | SprintEvent::SprintStoryLeft { story, .. } => story.clone(),
            SprintEvent::SprintRetrospective { epic, .. } => epic.clone(),
            SprintEvent::SprintBegun { .. }
            | SprintEvent::SprintLeftOut { .. }
            | SprintEvent::SprintRequested { .. } => String::new(),
        }
    }
}
