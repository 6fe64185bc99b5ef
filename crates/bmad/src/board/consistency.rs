//! What is wrong with a board that no single line shows: stories without an epic, numbers that are used twice, epics that are
//! done too early.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, BoardEntry, BoardEntryState};
use crate::{
    epic_id::EpicId,
    keys::{BoardKey, StoryKey, StoryNumber},
    problem::FileProblem,
    states::EpicStatus,
};

/// Reports what no single line shows.
pub(super) fn check_consistency(board: &mut Board) {
    // Each rule has a pass of its own, so its problems come together; sorting puts them in the order of the file.
    let mut found_problems = find_story_problems(board);
    found_problems.extend(find_empty_epics(board));
    found_problems.extend(find_unfinished_epics(board));
    // The problems were collected apart, since the board was still borrowed.
    board.problems.extend(found_problems);
    board.problems.sort_by_key(|problem| problem.line);
}

/// The problems of stories whose epic has no line, and of stories that share a number.
fn find_story_problems(board: &Board) -> Vec<FileProblem> {
    let named_epics: BTreeSet<&EpicId> = board
        .entries
        .iter()
        .filter_map(|board_entry| if let BoardKey::Epic(epic) = &board_entry.key { Some(epic) } else { None })
        .collect();
    let mut found_problems = Vec::new();
    // The first entry of each number; a later one is reported against it.
    let mut first_by_number: BTreeMap<&StoryNumber, &BoardEntry> = BTreeMap::new();
    for (story, board_entry) in board.stories() {
        // A board without any epic groups its stories in another way.
        if let Some(epic) = story.epic_id().filter(|epic| !named_epics.is_empty() && !named_epics.contains(epic)) {
            let message = format!("`{story}` belongs to epic {epic}, but there is no `epic-{epic}` entry");
            found_problems.push(
                FileProblem::warning("board-orphan-story", &board.path, message)
                    .at_line(board_entry.line)
                    .with_reason("The state of its epic is unknown.")
                    .with_advice(format!("add `epic-{epic}: backlog` above it, or run BMAD's sprint planning")),
            );
        }
        // Two stories with one number happen when a story was renamed and its old line stayed.
        let Some(story_number) = story.story_number() else { continue };
        match first_by_number.get(story_number) {
            Some(first_entry) => found_problems.push(
                FileProblem::warning(
                    "board-same-number",
                    &board.path,
                    format!(
                        "`{story}` and `{}` (line {}) are both story {story_number}",
                        first_entry.key, first_entry.line,
                    ),
                )
                .at_line(board_entry.line)
                .with_reason("The number alone does not identify either of them.")
                .with_advice("rename one of them, or remove the old entry of a renamed story"),
            ),
            None => {
                first_by_number.insert(story_number, board_entry);
            }
        }
    }
    found_problems
}

/// The problems of epics that are in progress and have no stories.
fn find_empty_epics(board: &Board) -> Vec<FileProblem> {
    let mut found_problems = Vec::new();
    let with_stories: BTreeSet<&EpicId> =
        board.stories().filter_map(|(_, board_entry)| board_entry.epic.as_ref()).collect();
    for board_entry in &board.entries {
        let BoardKey::Epic(epic) = &board_entry.key else { continue };
        // An epic in the backlog need not have stories yet.
        if board_entry.state == Some(BoardEntryState::Epic(EpicStatus::InProgress)) && !with_stories.contains(epic) {
            found_problems.push(
                FileProblem::warning(
                    "board-empty-epic",
                    &board.path,
                    format!("epic {epic} is in progress but has no stories"),
                )
                .at_line(board_entry.line)
                .with_advice("run BMAD's sprint planning"),
            );
        }
    }
    found_problems
}

/// The problems of epics that are done although some of their stories are not.
fn find_unfinished_epics(board: &Board) -> Vec<FileProblem> {
    let mut found_problems = Vec::new();
    for board_entry in &board.entries {
        let BoardKey::Epic(epic) = &board_entry.key else { continue };
        let is_open =
            |(_, story_entry): &(&StoryKey, &BoardEntry)| !story_entry.state.is_some_and(BoardEntryState::is_over);
        let open_count = board.stories_of(epic).filter(is_open).count();
        if board_entry.state == Some(BoardEntryState::Epic(EpicStatus::Done)) && open_count > 0 {
            let message = format!("epic {epic} is done, but not all of its stories are ({open_count} open)");
            let advice =
                format!("finish them, or reopen the epic: `tribunal board move epic-{epic} in-progress --anyway`");
            found_problems.push(
                FileProblem::warning("board-epic-done", &board.path, message)
                    .at_line(board_entry.line)
                    .with_advice(advice),
            );
        }
    }
    found_problems
}
