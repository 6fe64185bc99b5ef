//! Moves on the board: one value is replaced, every other byte stays as it is.
//!
//! The states of a story follow each other; a move that skips one or goes back has to be forced. The edited text is read
//! again and compared with the old one: if anything but the moved values would differ, nothing is changed. Locks and files
//! belong to the runner.

use std::{fmt, ops::Range};

use tribunal_json::{Serialize, schemars};

use super::{Board, BoardEntry, BoardEntryState, BoardTree, next_action, read_board, read_board_with_tree, tolerant};
use crate::{
    keys::BoardKey,
    markdown::apply_edits,
    states::{EpicStatus, RetroStatus, StoryStatus, find_state_word},
    yaml::{YamlContent, YamlNode},
};

/// How strictly a move has to follow the order of the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveMode {
    /// Only along the allowed transitions.
    InOrder,
    /// To any later state: states may be skipped, but nothing moves back.
    Forward,
    /// To any state that the user wants.
    Forced,
}

/// The board after a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedBoard {
    pub board_text: String,
    /// The values that were replaced, in the order of the file. The epic of a story that is begun may be among them. Empty if
    /// the entry already had that state.
    pub moves: Vec<BoardMove>,
}

/// One value that a move replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BoardMove {
    pub key: BoardKey,
    /// The bytes of the old state.
    #[serde(skip)]
    state_span: Option<Range<usize>>,
    pub from: BoardEntryState,
    pub to: BoardEntryState,
    pub line: usize,
}

/// Why nothing was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardMoveRefusal {
    /// The board cannot be used; its problems say why.
    BrokenBoard {
        board: Box<Board>,
    },
    UnknownKey {
        key: BoardKey,
    },
    /// The written value is no known state.
    NoKnownState {
        key: BoardKey,
        raw_state: String,
        line: usize,
    },
    /// An entry of this kind cannot have that state.
    WrongKind {
        key: BoardKey,
        target: BoardEntryState,
    },
    OutOfOrder {
        key: BoardKey,
        current: BoardEntryState,
        target: BoardEntryState,
        line: usize,
        violation: OrderViolation,
    },
    /// The value is written in a way that cannot be replaced: through an alias, or over several lines.
    NotPlainValue {
        key: BoardKey,
        line: usize,
    },
    /// The edited board would have changed something else, too.
    WouldChangeMore {
        key: BoardKey,
    },
}

/// Why a move does not follow the order of the states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderViolation {
    Backwards,
    Skips {
        skipped: Vec<BoardEntryState>,
    },
    /// An epic is done when all of its stories are.
    StoriesOpen {
        open: Vec<BoardKey>,
    },
}

/// Moves an entry to a state, and its epic with it where the story begins.
pub fn move_entry(
    board_text: &str,
    board_key: &BoardKey,
    target: BoardEntryState,
    move_mode: MoveMode,
) -> Result<MovedBoard, BoardMoveRefusal> {
    let (board, board_tree) = read_board_with_tree("", board_text);
    if !board.is_readable {
        return Err(BoardMoveRefusal::BrokenBoard { board: Box::new(board) });
    }
    let Some(board_entry) = board.find_entry(board_key) else {
        return Err(BoardMoveRefusal::UnknownKey { key: board_key.clone() });
    };
    // The type allows any state for any entry; parsing it again shows whether this kind can have it.
    if BoardEntryState::parse(board_key, target.as_str()) != Some(target) {
        return Err(BoardMoveRefusal::WrongKind { key: board_key.clone(), target });
    }
    let Some(current) = board_entry.state else {
        return Err(BoardMoveRefusal::NoKnownState {
            key: board_key.clone(),
            raw_state: board_entry.raw_state.clone(),
            line: board_entry.line,
        });
    };
    // Moving twice is no mistake: the second time changes nothing.
    if current == target {
        return Ok(MovedBoard { board_text: board_text.to_string(), moves: Vec::new() });
    }
    let violation = match move_mode {
        MoveMode::InOrder => find_violation(&board, board_key, current, target),
        // An entry on which no work is done comes after all others, so it is not moved either.
        MoveMode::Forward => (target < current).then_some(OrderViolation::Backwards),
        MoveMode::Forced => None,
    };
    if let Some(violation) = violation {
        return Err(BoardMoveRefusal::OutOfOrder {
            key: board_key.clone(),
            current,
            target,
            line: board_entry.line,
            violation,
        });
    }
    let mut moves = vec![BoardMove::of_entry(board_entry, &board, &board_tree, target)];
    moves.extend(start_epic(&board, &board_tree, board_key, target));
    moves.sort_by_key(|single_move| single_move.line);
    replace_values(board_text, &board_tree.root_node, moves)
}

/// The move of an epic to in-progress when its first story leaves the backlog.
fn start_epic(
    board: &Board,
    board_tree: &BoardTree,
    board_key: &BoardKey,
    target: BoardEntryState,
) -> Option<BoardMove> {
    let (BoardKey::Story(story), BoardEntryState::Story(story_state)) = (board_key, target) else {
        return None;
    };
    let epic = board.find_entry(&BoardKey::Story(story.clone()))?.epic.clone()?;
    let (backlog, in_progress) =
        (BoardEntryState::Epic(EpicStatus::Backlog), BoardEntryState::Epic(EpicStatus::InProgress));
    // An epic on two lines cannot be moved, and must not keep its story from moving.
    let can_start = |epic_entry: &&BoardEntry| epic_entry.state == Some(backlog) && epic_entry.twin_line.is_none();
    let epic_entry = board.find_entry(&BoardKey::Epic(epic)).filter(can_start)?;
    (story_state > StoryStatus::Backlog).then(|| BoardMove::of_entry(epic_entry, board, board_tree, in_progress))
}

impl BoardMove {
    /// The move of an entry, which must have a known state.
    fn of_entry(board_entry: &BoardEntry, board: &Board, board_tree: &BoardTree, to: BoardEntryState) -> BoardMove {
        let position = board.entries.iter().position(|entry| entry == board_entry);
        let state_spot = position.and_then(|position| board_tree.state_spots.get(position));
        BoardMove {
            key: board_entry.key.clone(),
            state_span: state_spot.and_then(|state_spot| state_spot.span.clone()),
            from: board_entry.state.unwrap_or(to),
            to,
            line: state_spot.map_or(board_entry.line, |state_spot| state_spot.line),
        }
    }
}

/// Why a move does not follow the order; `None` if it does.
fn find_violation(
    board: &Board,
    board_key: &BoardKey,
    current: BoardEntryState,
    target: BoardEntryState,
) -> Option<OrderViolation> {
    match (current, target) {
        (BoardEntryState::Story(current), BoardEntryState::Story(target)) => story_violation(current, target),
        (BoardEntryState::Epic(current), BoardEntryState::Epic(target)) if target < current => {
            Some(OrderViolation::Backwards)
        }
        (BoardEntryState::Epic(_), BoardEntryState::Epic(EpicStatus::Done))
            if !board_key.epic_id().is_some_and(|epic| next_action::is_epic_complete(board, epic)) =>
        {
            let own_stories = board_key.epic_id().into_iter().flat_map(|epic| board.stories_of(epic));
            let open_stories =
                own_stories.filter(|(_, board_entry)| !board_entry.state.is_some_and(BoardEntryState::is_over));
            Some(OrderViolation::StoriesOpen {
                open: open_stories.map(|(_, board_entry)| board_entry.key.clone()).collect(),
            })
        }
        // A retrospective looks back on a whole epic.
        (BoardEntryState::Retrospective(_), BoardEntryState::Retrospective(RetroStatus::Done)) => {
            let own_stories = board_key.epic_id().into_iter().flat_map(|epic| board.stories_of(epic));
            let open_stories: Vec<BoardKey> = own_stories
                .filter(|(_, board_entry)| !board_entry.state.is_some_and(BoardEntryState::is_over))
                .map(|(_, board_entry)| board_entry.key.clone())
                .collect();
            (!open_stories.is_empty()).then_some(OrderViolation::StoriesOpen { open: open_stories })
        }
        // BMAD itself moves retrospectives in both directions.
        (BoardEntryState::Retrospective(RetroStatus::Done), BoardEntryState::Retrospective(RetroStatus::Optional)) => {
            None
        }
        _ => None,
    }
}

/// A story moves one state on, or back to in-progress when its review left something to do. It starts from the backlog where
/// its era writes no story files.
fn story_violation(current: StoryStatus, target: StoryStatus) -> Option<OrderViolation> {
    use StoryStatus::{Backlog, InProgress, Review};
    let position_of = |story_state: StoryStatus| {
        StoryStatus::ALL.iter().position(|known_state| *known_state == story_state).unwrap_or(0)
    };
    match (current, target) {
        // These two are the exceptions to one state at a time.
        (Review, InProgress) | (Backlog, InProgress) => None,
        _ if position_of(target) < position_of(current) => Some(OrderViolation::Backwards),
        _ if position_of(target) == position_of(current) + 1 => None,
        _ => {
            let skipped = StoryStatus::ALL[position_of(current) + 1..position_of(target)]
                .iter()
                .copied()
                .map(BoardEntryState::Story);
            Some(OrderViolation::Skips { skipped: skipped.collect() })
        }
    }
}

/// Replaces the values of all moves and verifies the result.
fn replace_values(
    board_text: &str,
    root_node: &YamlNode,
    moves: Vec<BoardMove>,
) -> Result<MovedBoard, BoardMoveRefusal> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for board_move in &moves {
        let not_plain_value = || BoardMoveRefusal::NotPlainValue { key: board_move.key.clone(), line: board_move.line };
        let span = board_move.state_span.clone().ok_or_else(not_plain_value)?;
        let old_text = board_text.get(span.clone()).ok_or_else(not_plain_value)?;
        let new_text = replace_word(old_text, board_move.to.as_str()).ok_or_else(not_plain_value)?;
        edits.push((span, new_text));
    }
    // The epic may stand below its story, and edits must be in order.
    edits.sort_by_key(|(span, _)| span.start);
    let edited_text = apply_edits(board_text, &edits);
    let requested_state = |span: &Range<usize>| {
        moves.iter().find(|board_move| board_move.state_span.as_ref() == Some(span)).map(|board_move| board_move.to)
    };
    // Reading the result again is the only proof that YAML sees what was meant, with any quoting.
    match tolerant::parse_tolerantly(&edited_text) {
        Ok(edited_tree)
            if only_moves_differ(root_node, &edited_tree.root_node, &requested_state)
                && has_requested_states(&edited_text, &moves) =>
        {
            Ok(MovedBoard { board_text: edited_text, moves })
        }
        _ => Err(BoardMoveRefusal::WouldChangeMore { key: moves[0].key.clone() }),
    }
}

/// Whether the entries of a board have the states that they were moved to. A remark behind the word may say something else, and a
/// second line with the same key would contradict it.
fn has_requested_states(board_text: &str, moves: &[BoardMove]) -> bool {
    let board = read_board("", board_text);
    moves.iter().all(|board_move| {
        board.find_entry(&board_move.key).is_some_and(|board_entry| board_entry.state == Some(board_move.to))
    })
}

/// The value with the new state in place of the old word; quotes, marks and remarks stay. `None` if the old value is not a plain
/// scalar on one line.
fn replace_word(old_text: &str, new_state: &str) -> Option<String> {
    if old_text.contains(['\n', '\r']) || old_text.is_empty() {
        return None;
    }
    let quote = old_text.chars().next().filter(|character| matches!(character, '"' | '\''));
    if quote.is_some_and(|quote| old_text.len() < 2 || !old_text.ends_with(quote)) {
        return None;
    }
    let word_range = find_state_word(old_text).map(|(_, word_range)| word_range)?;
    Some(format!("{}{new_state}{}", &old_text[..word_range.start], &old_text[word_range.end..]))
}

/// Whether the new tree says what the old one said, except for the requested states, which must be exactly those.
fn only_moves_differ(
    old_node: &YamlNode,
    new_node: &YamlNode,
    requested_state: &dyn Fn(&Range<usize>) -> Option<BoardEntryState>,
) -> bool {
    match (&old_node.content, &new_node.content) {
        (YamlContent::Null, YamlContent::Null) => true,
        (YamlContent::Scalar(old_scalar), YamlContent::Scalar(new_scalar)) => {
            match old_node.span.as_ref().and_then(requested_state) {
                // The remark behind the word stays.
                Some(state) => replace_word(old_scalar, state.as_str()).as_deref() == Some(new_scalar),
                None => old_scalar == new_scalar,
            }
        }
        (YamlContent::Sequence(old_items), YamlContent::Sequence(new_items)) => {
            old_items.len() == new_items.len()
                && old_items
                    .iter()
                    .zip(new_items)
                    .all(|(old_item, new_item)| only_moves_differ(old_item, new_item, requested_state))
        }
        (YamlContent::Mapping(old_entries), YamlContent::Mapping(new_entries)) => {
            old_entries.len() == new_entries.len()
                && old_entries.iter().zip(new_entries).all(|(old_entry, new_entry)| {
                    old_entry.key == new_entry.key
                        && only_moves_differ(&old_entry.value, &new_entry.value, requested_state)
                })
        }
        _ => false,
    }
}

impl fmt::Display for OrderViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderViolation::Backwards => formatter.write_str("that moves it back"),
            OrderViolation::Skips { skipped } => {
                let skipped_names: Vec<&str> = skipped.iter().map(|state| state.as_str()).collect();
                write!(formatter, "that skips {}", skipped_names.join(" and "))
            }
            OrderViolation::StoriesOpen { open: open_stories } if open_stories.is_empty() => {
                formatter.write_str("it has no stories")
            }
            OrderViolation::StoriesOpen { open: open_stories } => {
                // Three names are enough to see what is meant; an epic may have dozens of stories.
                let first_names: Vec<String> = open_stories.iter().take(3).map(ToString::to_string).collect();
                let more_count = open_stories.len().saturating_sub(3);
                write!(formatter, "not all of its stories are done ({}", first_names.join(", "))?;
                if more_count > 0 { write!(formatter, " and {more_count} more)") } else { formatter.write_str(")") }
            }
        }
    }
}
