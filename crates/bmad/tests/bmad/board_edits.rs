//! A hundred thousand moves on boards of every odd form: each changes the values that it should change, and no other byte.

use proptest::{prelude::*, sample::Index, test_runner::Config};
use tribunal_bmad::{
    board::{
        self, State,
        edit::{Move, Refused, Way, moved},
    },
    keys::Key,
};

const BOARDS: u32 = 2_000;
const MOVES: usize = 50;

/// One line under `development_status`.
#[derive(Clone, Debug)]
enum Row {
    Entry { key: String, gap: String, quote: &'static str, state: String, behind: String },
    Other(String),
}

fn state_of(key: &str, pick: usize) -> String {
    let Some(key) = Key::parse(key) else { return "whatever".into() };
    let all = State::all(&key);
    // Boards also contain older names of states.
    match (&key, pick % 7) {
        (Key::Story(_), 5) => "drafted".into(),
        (Key::Epic(_), 5) => "contexted".into(),
        (_, pick) => all[pick % all.len()].to_string(),
    }
}

fn row() -> impl Strategy<Value = Row> {
    let key = prop_oneof![
        6 => (1..4u32, 1..30u32, "[a-c]?", "[a-zé0-9][a-z0-9-]{0,8}").prop_map(|(e, s, l, slug)| format!("{e}-{s}{l}-{slug}")),
        2 => (1..4u32).prop_map(|epic| format!("epic-{epic}")),
        1 => (1..4u32).prop_map(|epic| format!("epic-{epic}-retrospective")),
    ];
    let gap = prop_oneof![4 => Just(" ".to_string()), 1 => "[ ]{1,5}", 1 => Just("\t".to_string()), 1 => Just(" \t ".to_string())];
    let quote = prop_oneof![3 => Just(""), 1 => Just("\""), 1 => Just("'")];
    let behind =
        prop_oneof![3 => Just(String::new()), 1 => "[ ]{1,4}", 2 => "[ ]{1,3}#[ a-z:é'\"{}*&-]{0,16}"];
    prop_oneof![
        8 => (key, gap, quote, 0..100usize, behind).prop_map(|(key, gap, quote, pick, behind)| {
            let state = state_of(&key, pick);
            Row::Entry { key, gap, quote, state, behind }
        }),
        1 => Just(Row::Other(String::new())),
        1 => "[ ]{0,6}#[ a-z0-9:é-]{0,20}".prop_map(Row::Other),
        1 => "  x[0-9]{4}: (\\[1, 2\\]|\\{a: done\\}|\"a: b # c\"|'it''s'|2024-01-01|~|)".prop_map(Row::Other),
    ]
}

/// A readable board without duplicate keys, and the number of its entries.
fn text() -> impl Strategy<Value = (String, usize)> {
    (prop::collection::vec(row(), 1..25), any::<bool>(), any::<bool>(), any::<bool>(), 2..5usize).prop_map(
        |(rows, crlf, mark, last, indent)| {
            let mut seen = std::collections::BTreeSet::new();
            let mut entries = 0;
            let mut lines =
                vec!["# generated: 05-06-2-2025".to_string(), "project: \"a: b\"".into(), String::new()];
            lines.push("development_status:   # all".into());
            for row in rows {
                match row {
                    Row::Entry { key, gap, quote, state, behind } if seen.insert(key.clone()) => {
                        let pad = " ".repeat(indent);
                        entries += 1;
                        lines.push(format!("{pad}{key}:{gap}{quote}{state}{quote}{behind}"));
                    }
                    Row::Other(line) if line.contains(':') && !line.trim_start().starts_with('#') => {
                        let key = line.trim_start().split(':').next().unwrap_or_default().to_string();
                        if seen.insert(key) {
                            lines.push(format!("{}{}", " ".repeat(indent), line.trim_start()));
                        }
                    }
                    Row::Other(line) => lines.push(line),
                    Row::Entry { .. } => {}
                }
            }
            lines.push(String::new());
            lines.push("action_items:\n  - {epic: 1, action: \"x: done\", status: open}".into());
            let mut text = lines.join("\n");
            if last {
                text.push('\n');
            }
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            (if mark { format!("\u{feff}{text}") } else { text }, entries)
        },
    )
}

/// The expected text, line by line and without the reader that is tested: the old text with the states of the moved lines
/// replaced.
fn expected(before: &str, moves: &[Move]) -> String {
    let line = |(index, line): (usize, &str)| match moves.iter().find(|one| one.line == index + 1) {
        Some(one) => {
            let (head, rest) = line.split_once(':').unwrap_or_default();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'']).len();
            let word = rest[blank..]
                .find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
                .unwrap_or(rest.len() - blank);
            format!("{head}:{}{}{}", &rest[..blank], one.to, &rest[blank + word..])
        }
        None => line.to_string(),
    };
    before.split_inclusive('\n').enumerate().map(line).collect()
}

/// Moves entries of a board one after the other, as the picks say.
fn move_on(board: (String, usize), picks: Vec<(Index, usize, bool)>) -> Result<(), TestCaseError> {
    let (mut text, rows) = board;
    let mut board = board::read("b", &text);
    prop_assert!(board.readable || rows == 0, "{:?}\n{text}", board.problems);
    prop_assert_eq!(board.entries.len(), rows, "{}", text);
    for (which, to, anyway) in picks {
        if board.entries.is_empty() {
            break;
        }
        let entry = which.get(&board.entries).clone();
        let states = State::all(&entry.key);
        let to = states[to % states.len()];
        let way = if anyway { Way::Anyway } else { Way::Along };
        match moved(&text, &entry.key, to, way) {
            Ok(out) => {
                prop_assert_eq!(&out.text, &expected(&text, &out.moves), "{:?}", out.moves);
                let after = board::read("b", &out.text);
                prop_assert_eq!(after.entry(&entry.key).and_then(|entry| entry.state), Some(to));
                for old in board.entries.iter().filter(|old| out.moves.iter().all(|one| one.key != old.key)) {
                    prop_assert_eq!(Some(old), after.entry(&old.key));
                }
                prop_assert_eq!(&after.action_items, &board.action_items);
                (text, board) = (out.text, after);
            }
            Err(Refused::Against { .. }) => prop_assert!(!anyway),
            Err(other) => prop_assert!(false, "{other:?}\n{text}"),
        }
    }
    Ok(())
}

/// Each test takes a quarter of the boards, so that they run in parallel.
macro_rules! quarters {
    ($($name:ident),+) => {
        proptest! {
            #![proptest_config(Config { cases: BOARDS / 4, max_shrink_iters: 2_000, ..Config::default() })]

            $(
                #[test]
                fn $name(
                    board in text(),
                    picks in prop::collection::vec((any::<Index>(), 0..5usize, any::<bool>()), MOVES),
                ) {
                    move_on(board, picks)?;
                }
            )+
        }
    };
}

quarters!(
    every_other_byte_stays_1,
    every_other_byte_stays_2,
    every_other_byte_stays_3,
    every_other_byte_stays_4
);
