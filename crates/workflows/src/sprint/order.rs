//! What a sprint was asked to do. It is pinned in `run_started` and holds whenever the run is resumed.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::workspace::{DevelopmentPlace, TargetBranch},
    runs::run_kind::RunKind,
    sprint::{event::SprintEvent, plan_changes::EpicOutline, scope::SprintScope, standing::StoryStanding},
    story::order::StoryOrder,
    tasks::{client::JobKind, instructions::TaskOpening},
};
use tribunal_engine::limits::LimitShare;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SprintOrder {
    #[serde(default)]
    pub scope: SprintScope,
    /// What holds for every story; the story itself is filled in when its turn comes.
    pub story: Box<StoryOrder>,
    /// What one story may use.
    pub story_share: LimitShare,
    /// How an agent is asked for a retrospective, with `{epic}`; `None` if none is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrospective: Option<TaskOpening>,
    /// The epics whose retrospective an earlier sprint tried to hold and could not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_retrospectives: Vec<String>,
    /// The epics and stories of the plan when the sprint began: the next one says what has changed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<EpicOutline>,
}

impl SprintOrder {
    /// A sprint over all open stories, without retrospectives.
    pub fn new(story: StoryOrder, story_share: LimitShare) -> SprintOrder {
        SprintOrder {
            scope: SprintScope::default(),
            story: Box::new(story),
            story_share,
            retrospective: None,
            missed_retrospectives: Vec::new(),
            outline: Vec::new(),
        }
    }

    /// Whether the retrospective of an epic is tried once more, because an earlier sprint could not hold it. Who names stories, or another
    /// epic, does not ask for it; and a branch that does not exist yet begins with a story.
    pub fn repeats_retrospective(&self, epic: &str) -> bool {
        let is_meant = self.scope.stories.is_empty() && self.scope.epic.as_ref().is_none_or(|wanted| wanted == epic);
        is_meant
            && self.story.branch.created_at.is_none()
            && self.missed_retrospectives.iter().any(|missed| missed == epic)
    }

    /// The branch on which stories land. The first one that lands creates it, if it is a new one.
    pub fn story_branch(&self, has_landed: bool) -> TargetBranch {
        let mut branch = self.story.branch.clone();
        if has_landed {
            branch.created_at = None;
        }
        branch
    }
}

impl RunKind for SprintOrder {
    const NAME: &'static str = "sprint";
    const VERSION: u32 = 1;
    type Event = SprintEvent;
    type Summary = SprintSummary;
    type Topic = SprintTopic;

    fn title(&self) -> String {
        match (&self.scope.epic, self.scope.stories.as_slice()) {
            (Some(epic), []) => format!("epic {epic}"),
            (None, []) => String::from("all open stories"),
            (_, named) => named.join(", "),
        }
    }

    fn file_slug(&self) -> String {
        String::from("sprint")
    }

    fn exclusive_name(&self) -> Option<String> {
        // Two sprints would take the same stories.
        Some(String::from("the sprint"))
    }

    fn works_in_place(&self) -> bool {
        self.story.place == DevelopmentPlace::InPlace
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        self.story.needed_jobs()
    }

    fn trusts_answer_files(&self) -> bool {
        self.story.place == DevelopmentPlace::Clone
    }
}

/// What a sprint has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SprintSummary {
    pub done: u32,
    /// Stories that were begun and are not done.
    pub unfinished: u32,
    /// Open stories that were not begun.
    pub left_out: u32,
    /// The stories that were begun, with what came of them.
    pub stories: Vec<SprintStoryRow>,
    /// What the retrospectives say, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retrospectives: Vec<String>,
}

/// A story of the sprint, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SprintStoryRow {
    pub story: String,
    pub standing: StoryStanding,
    pub detail: String,
}

/// What the questions of a sprint are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum SprintTopic {
    /// A limit halted the sprint.
    SprintHalted,
}
