//! What the board and the plan say about a sprint, and what a story of it needs to be run.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    story::{
        facts::{StoryName, StoryStage},
        order::{StoryFilePlan, StorySteps},
    },
    tasks::client::ModelSize,
};
use tribunal_engine::{
    fault::Fault,
    ids::RunId,
    text::{format_count, word_table::words},
    tier::ProcessTier,
};

/// The most open stories that are listed: a board of any length makes entries of about the same size in the journal.
pub const MAX_LISTED_STORIES: usize = 200;

/// Reads the board of the sprint and what its open stories depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadSprint {
    /// The branch on which stories land: its board counts, unless git ignores the board.
    pub branch: String,
    /// The stories that were begun: it is said which of them are done, and which are not on the board any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SprintReading {
    Read(Box<SprintFacts>),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// The open stories of a sprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SprintFacts {
    /// In the order of the board; at most [`MAX_LISTED_STORIES`].
    pub open: Vec<OpenStory>,
    /// How many stories are not done in all.
    pub open_count: u32,
    pub done_count: u32,
    /// The watched stories about which nothing is left to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// The watched stories that are not on the board any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// The epics whose stories are all done, and whose retrospective has not been held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finished_epics: Vec<String>,
    /// The epics whose retrospective has not been held, whether their stories are done or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_retrospectives: Vec<String>,
    /// What the retrospectives of earlier epics say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<EpicLesson>,
    /// What the user should know about the files of open stories, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl SprintFacts {
    pub fn find_story(&self, key: &str) -> Option<&OpenStory> {
        self.open.iter().find(|story| story.key == key)
    }
}

/// A story that is not done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct OpenStory {
    pub key: String,
    /// The epic, as the board numbers it; empty if it belongs to none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub epic: String,
    /// `None` if the board's word is no stage: `blocked`, for instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StoryStage>,
    /// The board's word.
    pub word: String,
    /// Whether the board says that it will be done later: the other stories of its epic do not wait for it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_deferred: bool,
    /// The stories that it says it depends on, done or not; `None` if it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    /// What it says it depends on and is not on the board, as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_needs: Vec<String>,
    /// The two lines of the board that have its key; then its state cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin_lines: Option<TwinLines>,
}

/// Two lines of the board with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TwinLines {
    pub first_line: u32,
    pub second_line: u32,
}

/// What the retrospective of an epic says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct EpicLesson {
    pub epic: String,
    /// `None` in the versions of BMAD that give none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<EpicVerdict>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub action_items: Vec<String>,
}

impl EpicLesson {
    /// Describes it in one line: `epic 1 was accepted, 2 action items`.
    pub fn describe(&self) -> String {
        let items_text = format_count(self.action_items.len() as u32, "action item");
        match self.verdict {
            Some(verdict) => format!("epic {} was {verdict}, {items_text}", self.epic),
            None => format!("epic {}: {items_text}", self.epic),
        }
    }
}

/// The verdict of a retrospective about its epic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpicVerdict {
    Accepted,
    AcceptedWithOpenItems,
    Rejected,
}

words!(EpicVerdict {
    Accepted = "accepted",
    AcceptedWithOpenItems = "accepted with open items",
    Rejected = "rejected",
});

/// Reads the retrospective that an agent has written in a workspace, and marks it as held on the board. What git ignores is
/// copied to the checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FinishRetrospective {
    pub workspace: String,
    pub epic: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RetrospectiveOutcome {
    Held {
        path: String,
        lesson: EpicLesson,
        /// Whether git ignores the document, so that there may be nothing to commit.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        is_ignored: bool,
    },
    /// The agent wrote no document about this epic.
    Missing {
        /// The files that it changed instead.
        changed: Vec<String>,
    },
    /// The agent changed files that are no documents: nothing of it is taken.
    Strayed { paths: Vec<String> },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// Finds out how a story is run: its files, and the commands of its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanStory {
    pub story: String,
    /// The tier that the user asked for during the sprint; `None` takes that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProcessTier>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StoryPlanning {
    Planned(Box<PlannedStory>),
    /// The story cannot be run as it is.
    Refused {
        detail: String,
    },
    /// Another run works on it, or waits with it for the user.
    Claimed {
        claimant: RunId,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What is known about a story before it is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedStory {
    pub name: StoryName,
    pub files: StoryFilePlan,
    pub steps: StorySteps,
    /// The size of the model that the story is worth.
    pub size: ModelSize,
}
