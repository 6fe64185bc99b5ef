//! What a sprint knows between two stories.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    runs::types::UserDialog,
    sprint::{facts::EpicLesson, requests::names_story, selection::LeftOut, standing::StoryStanding},
};
use tribunal_engine::{children::ChildLedger, limits::RunUsage, reason::RunEnding, tier::ProcessTier};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SprintState {
    #[serde(flatten)]
    pub dialog: UserDialog,
    pub spent: RunUsage,
    pub ledger: ChildLedger,
    /// The stages so far; they number the keys.
    pub stages: u32,
    /// The stories that were begun.
    pub begun: u32,
    pub done: u32,
    /// The stories that were begun and are not done, by their keys. Those that are done are on the board.
    pub standings: BTreeMap<String, StoryStanding>,
    /// How many runs of a story have ended, by its key. A story that is open again gets a new run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ended: BTreeMap<String, u32>,
    /// How the rest of the sprint differs from what was asked.
    pub wishes: SprintWishes,
    /// What was last said to be left out, so that it is said once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The epics that this sprint has worked on.
    pub epics: EpicMemory,
    /// The ending that waits for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RunEnding>,
}

/// What a sprint remembers about epics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct EpicMemory {
    /// Those with a story that this sprint has done, and that have had no retrospective yet.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub worked_on: BTreeSet<String>,
    /// Those whose retrospective this sprint has tried to hold.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tried: BTreeSet<String>,
    /// What the retrospectives of this sprint say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<EpicLesson>,
}

/// What the user asked for during the sprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SprintWishes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ProcessTier>,
    /// What the user wants to skip, as typed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// No further story is begun.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub stop_after_story: bool,
}

impl SprintState {
    /// The name of the child run of a story: another one each time that a run of it has ended.
    pub fn child_name(&self, key: &str) -> String {
        match self.ended.get(key) {
            None => format!("story-{key}"),
            Some(count) => format!("story-{key}-{}", count + 1),
        }
    }

    /// The first story that the user has answered.
    pub fn find_answered(&self) -> Option<String> {
        self.standings.iter().find(|(_, standing)| **standing == StoryStanding::Answered).map(|(key, _)| key.clone())
    }

    /// The stories that were begun and could go on, and that the user wants to skip.
    pub fn list_skipped(&self) -> Vec<String> {
        let can_go_on = |standing: &StoryStanding| {
            matches!(standing, StoryStanding::Waiting | StoryStanding::Answered | StoryStanding::Stopped)
        };
        let is_skipped = |key: &str| self.wishes.skipped.iter().any(|typed| names_story(typed, key));
        let skipped = self.standings.iter().filter(|(key, standing)| can_go_on(standing) && is_skipped(key));
        skipped.map(|(key, _)| key.clone()).collect()
    }

    /// The stories that wait for the user.
    pub fn list_waiting(&self) -> Vec<&str> {
        let is_waiting = |standing: &StoryStanding| matches!(standing, StoryStanding::Waiting | StoryStanding::Stopped);
        self.standings.iter().filter(|(_, standing)| is_waiting(standing)).map(|(key, _)| key.as_str()).collect()
    }
}
