//! Twenty thousand moves on boards of every odd form: each changes the values that it should change, and no other byte.

use proptest::{prelude::*, sample::Index, test_runner::Config};
use tribunal_bmad::{
    board::{
        self, BoardEntryState,
        edit::{BoardMove, BoardMoveRefusal, MoveMode, move_entry},
    },
    keys::BoardKey,
};

const BOARD_COUNT: u32 = 400;
const MOVES_PER_BOARD: usize = 50;

/// One line under `development_status`.
#[derive(Clone, Debug)]
enum BoardRow {
    Entry { key: String, space: String, quote: &'static str, state: String, after_state: String },
    OtherLine(String),
}

fn pick_state(key_text: &str, pick: usize) -> String {
    let Some(board_key) = BoardKey::parse(key_text) else { return "whatever".into() };
    let all_states = BoardEntryState::all_for(&board_key);
    // Boards also contain older names of states.
    match (&board_key, pick % 7) {
        (BoardKey::Story(_), 5) => "drafted".into(),
        (BoardKey::Epic(_), 5) => "contexted".into(),
        (_, pick) => all_states[pick % all_states.len()].to_string(),
    }
}

fn board_row() -> impl Strategy<Value = BoardRow> {
    let key = prop_oneof![
        6 => (1..4u32, 1..30u32, "[a-c]?", "[a-zé0-9][a-z0-9-]{0,8}").prop_map(|(e, s, l, slug)| format!("{e}-{s}{l}-{slug}")),
        2 => (1..4u32).prop_map(|epic| format!("epic-{epic}")),
        1 => (1..4u32).prop_map(|epic| format!("epic-{epic}-retrospective")),
    ];
    let space = prop_oneof![4 => Just(" ".to_string()), 1 => "[ ]{1,5}", 1 => Just("\t".to_string()), 1 => Just(" \t ".to_string())];
    let quote = prop_oneof![3 => Just(""), 1 => Just("\""), 1 => Just("'")];
    let after_state = prop_oneof![3 => Just(String::new()), 1 => "[ ]{1,4}", 2 => "[ ]{1,3}#[ a-z:é'\"{}*&-]{0,16}"];
    prop_oneof![
        8 => (key, space, quote, 0..100usize, after_state).prop_map(|(key, space, quote, pick, after_state)| {
            let state = pick_state(&key, pick);
            BoardRow::Entry { key, space, quote, state, after_state }
        }),
        1 => Just(BoardRow::OtherLine(String::new())),
        1 => "[ ]{0,6}#[ a-z0-9:é-]{0,20}".prop_map(BoardRow::OtherLine),
        1 => "  x[0-9]{4}: (\\[1, 2\\]|\\{a: done\\}|\"a: b # c\"|'it''s'|2024-01-01|~|)".prop_map(BoardRow::OtherLine),
    ]
}

/// A readable board without duplicate keys, and the number of its entries.
fn board_text() -> impl Strategy<Value = (String, usize)> {
    (prop::collection::vec(board_row(), 1..25), any::<bool>(), any::<bool>(), any::<bool>(), 2..5usize).prop_map(
        |(rows, has_crlf, has_byte_order_mark, ends_with_newline, indent)| {
            let mut seen_keys = std::collections::BTreeSet::new();
            let mut entry_count = 0;
            let mut lines = vec!["# generated: 05-06-2-2025".to_string(), "project: \"a: b\"".into(), String::new()];
            lines.push("development_status:   # all".into());
            for board_line in rows {
                match board_line {
                    BoardRow::Entry { key, space, quote, state, after_state } if seen_keys.insert(key.clone()) => {
                        let indentation = " ".repeat(indent);
                        entry_count += 1;
                        lines.push(format!("{indentation}{key}:{space}{quote}{state}{quote}{after_state}"));
                    }
                    BoardRow::OtherLine(line) if line.contains(':') && !line.trim_start().starts_with('#') => {
                        let key = line.trim_start().split(':').next().unwrap_or_default().to_string();
                        if seen_keys.insert(key) {
                            lines.push(format!("{}{}", " ".repeat(indent), line.trim_start()));
                        }
                    }
                    BoardRow::OtherLine(line) => lines.push(line),
                    BoardRow::Entry { .. } => {}
                }
            }
            lines.push(String::new());
            lines.push("action_items:\n  - {epic: 1, action: \"x: done\", status: open}".into());
            let mut file_text = lines.join("\n");
            if ends_with_newline {
                file_text.push('\n');
            }
            let file_text = if has_crlf { file_text.replace('\n', "\r\n") } else { file_text };
            (if has_byte_order_mark { format!("\u{feff}{file_text}") } else { file_text }, entry_count)
        },
    )
}

/// The expected text, line by line and without the reader that is tested: the old text with the states of the moved lines
/// replaced.
fn expected_text(old_text: &str, board_moves: &[BoardMove]) -> String {
    let expected_line =
        |(index, line): (usize, &str)| match board_moves.iter().find(|board_move| board_move.line == index + 1) {
            Some(board_move) => {
                let (key_part, value_part) = line.split_once(':').unwrap_or_default();
                let blank_length = value_part.len() - value_part.trim_start_matches([' ', '\t', '"', '\'']).len();
                let word_length = value_part[blank_length..]
                    .find(|character: char| !(character.is_ascii_lowercase() || character == '-'))
                    .unwrap_or(value_part.len() - blank_length);
                format!(
                    "{key_part}:{}{}{}",
                    &value_part[..blank_length],
                    board_move.to,
                    &value_part[blank_length + word_length..]
                )
            }
            None => line.to_string(),
        };
    old_text.split_inclusive('\n').enumerate().map(expected_line).collect()
}

/// Moves entries of a board one after the other, as the picks say.
fn move_stories(board: (String, usize), picks: Vec<(Index, usize, bool)>) -> Result<(), TestCaseError> {
    let (mut current_text, entry_count) = board;
    let mut board = board::read_board("b", &current_text);
    prop_assert!(board.is_readable || entry_count == 0, "{:?}\n{current_text}", board.problems);
    prop_assert_eq!(board.entries.len(), entry_count, "{}", current_text);
    for (picked_index, state_pick, is_forced) in picks {
        if board.entries.is_empty() {
            break;
        }
        let entry = picked_index.get(&board.entries).clone();
        let states = BoardEntryState::all_for(&entry.key);
        let target_state = states[state_pick % states.len()];
        let move_mode = if is_forced { MoveMode::Forced } else { MoveMode::InOrder };
        match move_entry(&current_text, &entry.key, target_state, move_mode) {
            Ok(moved_board) => {
                prop_assert_eq!(
                    &moved_board.board_text,
                    &expected_text(&current_text, &moved_board.moves),
                    "{:?}",
                    moved_board.moves
                );
                let new_board = board::read_board("b", &moved_board.board_text);
                prop_assert_eq!(new_board.find_entry(&entry.key).and_then(|entry| entry.state), Some(target_state));
                for old_entry in board
                    .entries
                    .iter()
                    .filter(|old_entry| moved_board.moves.iter().all(|one| one.key != old_entry.key))
                {
                    prop_assert_eq!(Some(old_entry), new_board.find_entry(&old_entry.key));
                }
                prop_assert_eq!(&new_board.action_items, &board.action_items);
                (current_text, board) = (moved_board.board_text, new_board);
            }
            Err(BoardMoveRefusal::OutOfOrder { .. }) => prop_assert!(!is_forced),
            Err(refusal) => prop_assert!(false, "{refusal:?}\n{current_text}"),
        }
    }
    Ok(())
}

/// Each test takes a quarter of the boards, so that they run in parallel.
macro_rules! quarters {
    ($($name:ident),+) => {
        proptest! {
            #![proptest_config(Config { cases: BOARD_COUNT / 4, max_shrink_iters: 2_000, ..Config::default() })]

            $(
                #[test]
                fn $name(
                    board in board_text(),
                    picks in prop::collection::vec((any::<Index>(), 0..5usize, any::<bool>()), MOVES_PER_BOARD),
                ) {
                    move_stories(board, picks)?;
                }
            )+
        }
    };
}

quarters!(every_other_byte_stays_1, every_other_byte_stays_2, every_other_byte_stays_3, every_other_byte_stays_4);
