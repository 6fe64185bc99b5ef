//! What would run next, and why: work that has begun comes before new work, in the order of the story numbers. Nothing is run
//! here, and which command runs it in which era is decided by `commands`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Board, State};
use crate::keys::{EpicStatus, Key, RetroStatus, StoryKey, StoryStatus};

/// What to do next, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    pub what: What,
    pub key: Key,
    pub reason: String,
}

/// The kinds of work that a board can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    CreateStory,
    Develop,
    Review,
    Retrospective,
}

impl What {
    pub fn as_str(self) -> &'static str {
        match self {
            What::CreateStory => "create",
            What::Develop => "develop",
            What::Review => "review",
            What::Retrospective => "retrospective",
        }
    }
}

/// Finds what to do next; `None` if everything is done. `creates_story_files` says whether this era writes a story's file
/// before it is developed.
pub fn next(board: &Board, creates: bool) -> Option<Next> {
    // Work that was begun is finished before new work starts.
    let order =
        [StoryStatus::InProgress, StoryStatus::Review, StoryStatus::ReadyForDev, StoryStatus::Backlog];
    for state in order {
        if let Some(story) = first(board, state) {
            let (what, reason) = match state {
                StoryStatus::InProgress => (What::Develop, "it was begun and is not finished"),
                StoryStatus::Review => (What::Review, "it is finished and waits for its review"),
                StoryStatus::ReadyForDev => (What::Develop, "it is the first that is ready"),
                _ if creates => {
                    (What::CreateStory, "it is the first in the backlog, and has to be written first")
                }
                _ => (What::Develop, "it is the first in the backlog"),
            };
            return Some(Next { what, key: Key::Story(story), reason: reason.to_string() });
        }
    }
    // With all stories done, only retrospectives are left. An epic without stories needs none.
    let open = board.entries.iter().filter_map(|entry| match (&entry.key, entry.state) {
        (Key::Retrospective(epic), Some(State::Retrospective(RetroStatus::Optional))) => Some(*epic),
        _ => None,
    });
    let open = open.filter(|epic| board.stories().any(|(story, _)| story.epic == *epic)).min()?;
    let reason = format!("all stories are done, and epic {open} has not been looked back on");
    Some(Next { what: What::Retrospective, key: Key::Retrospective(open), reason })
}

fn first(board: &Board, state: StoryStatus) -> Option<StoryKey> {
    let stories = board.stories().filter(|(_, entry)| entry.state == Some(State::Story(state)));
    stories.map(|(story, _)| story).min_by_key(|story| story.number()).cloned()
}

/// Whether every story of an epic is done; an epic without stories is not complete.
pub fn is_complete(board: &Board, epic: u32) -> bool {
    let mut of_it = board.stories().filter(|(story, _)| story.epic == epic).peekable();
    of_it.peek().is_some() && of_it.all(|(_, entry)| entry.state == Some(State::Story(StoryStatus::Done)))
}

/// The state of an epic's own entry.
pub fn epic_state(board: &Board, epic: u32) -> Option<EpicStatus> {
    match board.entry(&Key::Epic(epic))?.state? {
        State::Epic(state) => Some(state),
        _ => None,
    }
}
