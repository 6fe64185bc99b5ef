//! What would run next, and why: work that has begun comes before new work, in the order of the board. Nothing is run
//! here, and which command runs it in which era is decided by `commands`.

use tribunal_json::{Serialize, schemars};

use super::{Board, BoardEntryState};
use crate::{
    epic_id::EpicId,
    keys::{BoardKey, StoryKey},
    states::{EpicStatus, RetroStatus, StoryStatus},
};

/// What to do next, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NextBoardAction {
    pub what: NextBoardActionKind,
    pub key: BoardKey,
    pub reason: String,
}

/// The kinds of work that a board can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NextBoardActionKind {
    CreateStory,
    Develop,
    Review,
    Retrospective,
}

impl NextBoardActionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            NextBoardActionKind::CreateStory => "create",
            NextBoardActionKind::Develop => "develop",
            NextBoardActionKind::Review => "review",
            NextBoardActionKind::Retrospective => "retrospective",
        }
    }
}

/// Finds what to do next; `None` if everything is done. `creates_story_files` says whether this era writes a story's file
/// before it is developed.
pub fn find_next_action(board: &Board, creates_story_files: bool) -> Option<NextBoardAction> {
    // Work that was begun is finished before new work starts.
    let state_order = [StoryStatus::InProgress, StoryStatus::Review, StoryStatus::ReadyForDev, StoryStatus::Backlog];
    for story_state in state_order {
        if let Some(story_key) = first_story_at(board, story_state) {
            let (action_kind, reason) = match story_state {
                StoryStatus::InProgress => (NextBoardActionKind::Develop, "already in progress"),
                StoryStatus::Review => (NextBoardActionKind::Review, "developed and waiting for review"),
                StoryStatus::ReadyForDev => (NextBoardActionKind::Develop, "first story that is ready"),
                _ if creates_story_files => {
                    (NextBoardActionKind::CreateStory, "first in the backlog; its story file has to be written first")
                }
                _ => (NextBoardActionKind::Develop, "first in the backlog"),
            };
            return Some(NextBoardAction {
                what: action_kind,
                key: BoardKey::Story(story_key),
                reason: reason.to_string(),
            });
        }
    }
    // With all stories done, only retrospectives are left. An epic without stories needs none.
    let open_epics = board.entries.iter().filter_map(|board_entry| match (&board_entry.key, board_entry.state) {
        (BoardKey::Retrospective(epic), Some(BoardEntryState::Retrospective(RetroStatus::Optional))) => Some(epic),
        _ => None,
    });
    let open_epic = open_epics.filter(|epic| board.stories_of(epic).next().is_some()).min()?.clone();
    let reason = format!("all stories are done, but epic {open_epic} has no retrospective yet");
    Some(NextBoardAction { what: NextBoardActionKind::Retrospective, key: BoardKey::Retrospective(open_epic), reason })
}

fn first_story_at(board: &Board, story_state: StoryStatus) -> Option<StoryKey> {
    // A story on two lines is left alone until one of them is removed.
    let mut stories = board.stories().filter(|(_, board_entry)| {
        board_entry.state == Some(BoardEntryState::Story(story_state)) && board_entry.twin_line.is_none()
    });
    stories.next().map(|(story, _)| story.clone())
}

/// Whether every story of an epic is done; an epic without stories is not complete.
pub fn is_epic_complete(board: &Board, epic: &EpicId) -> bool {
    let mut own_stories = board.stories_of(epic).peekable();
    own_stories.peek().is_some()
        && own_stories.all(|(_, board_entry)| board_entry.state.is_some_and(BoardEntryState::is_over))
}

/// The state of an epic's own entry.
pub fn epic_state(board: &Board, epic: &EpicId) -> Option<EpicStatus> {
    match board.find_entry(&BoardKey::Epic(epic.clone()))?.state? {
        BoardEntryState::Epic(state) => Some(state),
        _ => None,
    }
}
