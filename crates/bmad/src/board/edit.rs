//! Moves on the board: one value is replaced, every other byte stays as it is.
//!
//! The states of a story follow each other; a move that skips one or goes back has to be forced. The edited text is read
//! again and compared with the old one: if anything but the moved values would differ, nothing is changed. Locks and files
//! belong to the runner.

use std::{fmt, ops::Range};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Board, DEVELOPMENT, State, next, read_with_tree};
use crate::{
    keys::{EpicStatus, Key, RetroStatus, StoryStatus},
    page::spliced,
    yaml::{self, Form, Node},
};

/// How strictly a move has to follow the order of the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Only along the allowed transitions.
    Along,
    /// To any state that the user wants.
    Anyway,
}

/// The board after a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub text: String,
    /// The values that were replaced, in the order of the file. The epic of a story that is begun may be among them. Empty if
    /// the entry already had that state.
    pub moves: Vec<Move>,
}

/// One value that a move replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Move {
    pub key: Key,
    #[serde(skip)]
    name: String,
    pub from: State,
    pub to: State,
    pub line: usize,
}

/// Why nothing was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The board cannot be used; its problems say why.
    Broken {
        board: Box<Board>,
    },
    Unknown {
        key: Key,
    },
    /// The written value is no known state.
    NoState {
        key: Key,
        said: String,
        line: usize,
    },
    /// An entry of this kind cannot have that state.
    NotOfItsKind {
        key: Key,
        to: State,
    },
    Against {
        key: Key,
        from: State,
        to: State,
        line: usize,
        why: Arrow,
    },
    /// The value is written in a way that cannot be replaced: through an alias, or over several lines.
    NotPlain {
        key: Key,
        line: usize,
    },
    /// The edited board would have changed something else, too.
    Unsafe {
        key: Key,
    },
}

/// Why a move does not follow the order of the states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrow {
    Back,
    Skips {
        over: Vec<State>,
    },
    /// An epic is done when all of its stories are.
    StoriesLeft {
        open: Vec<Key>,
    },
}

/// Moves an entry to a state, and its epic with it where the story begins.
pub fn moved(text: &str, key: &Key, to: State, way: Way) -> Result<Moved, Refused> {
    let (board, tree) = read_with_tree("", text);
    if !board.readable {
        return Err(Refused::Broken { board: Box::new(board) });
    }
    let Some(entry) = board.entry(key) else { return Err(Refused::Unknown { key: key.clone() }) };
    // The type allows any state for any entry; parsing it again shows whether this kind can have it.
    if State::parse(key, to.as_str()) != Some(to) {
        return Err(Refused::NotOfItsKind { key: key.clone(), to });
    }
    let Some(from) = entry.state else {
        return Err(Refused::NoState { key: key.clone(), said: entry.said.clone(), line: entry.line });
    };
    // Moving twice is no mistake: the second time changes nothing.
    if from == to {
        return Ok(Moved { text: text.to_string(), moves: Vec::new() });
    }
    if let (Way::Along, Some(why)) = (way, against(&board, key, from, to)) {
        return Err(Refused::Against { key: key.clone(), from, to, line: entry.line, why });
    }
    let mut moves = vec![Move { key: key.clone(), name: entry.name.clone(), from, to, line: entry.line }];
    moves.extend(begun_epic(&board, key, to));
    moves.sort_by_key(|one| one.line);
    exchange(text, &tree, moves)
}

/// The move of an epic to in-progress when its first story leaves the backlog.
fn begun_epic(board: &Board, key: &Key, to: State) -> Option<Move> {
    let (Key::Story(story), State::Story(state)) = (key, to) else { return None };
    let epic = Key::Epic(story.epic);
    let entry = board.entry(&epic).filter(|entry| entry.state == Some(State::Epic(EpicStatus::Backlog)))?;
    (state > StoryStatus::Backlog).then_some(Move {
        key: epic,
        name: entry.name.clone(),
        from: State::Epic(EpicStatus::Backlog),
        to: State::Epic(EpicStatus::InProgress),
        line: entry.line,
    })
}

/// Why a move does not follow the order; `None` if it does.
fn against(board: &Board, key: &Key, from: State, to: State) -> Option<Arrow> {
    match (from, to) {
        (State::Story(from), State::Story(to)) => story_arrow(from, to),
        (State::Epic(from), State::Epic(to)) if to < from => Some(Arrow::Back),
        (State::Epic(_), State::Epic(EpicStatus::Done)) if !next::is_complete(board, key.epic()) => {
            let of_it = board.stories().filter(|(story, _)| story.epic == key.epic());
            let open = of_it.filter(|(_, entry)| entry.state != Some(State::Story(StoryStatus::Done)));
            Some(Arrow::StoriesLeft { open: open.map(|(_, entry)| entry.key.clone()).collect() })
        }
        // BMAD itself moves retrospectives in both directions.
        (State::Retrospective(RetroStatus::Done), State::Retrospective(RetroStatus::Optional)) => None,
        _ => None,
    }
}

/// A story moves one state on, or back to in-progress when its review left something to do. It starts from the backlog where
/// its era writes no story files.
fn story_arrow(from: StoryStatus, to: StoryStatus) -> Option<Arrow> {
    use StoryStatus::{Backlog, InProgress, Review};
    let at = |state: StoryStatus| StoryStatus::ALL.iter().position(|one| *one == state).unwrap_or(0);
    match (from, to) {
        // These two are the exceptions to one state at a time.
        (Review, InProgress) | (Backlog, InProgress) => None,
        _ if at(to) < at(from) => Some(Arrow::Back),
        _ if at(to) == at(from) + 1 => None,
        _ => {
            let over = StoryStatus::ALL[at(from) + 1..at(to)].iter().copied().map(State::Story);
            Some(Arrow::Skips { over: over.collect() })
        }
    }
}

/// Replaces the values of all moves and verifies the result.
fn exchange(text: &str, tree: &Node, moves: Vec<Move>) -> Result<Moved, Refused> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for one in &moves {
        // The entry is found by the key as it is written: `01-1-a` and `1-1-a` are the same story.
        let value = tree.get(DEVELOPMENT).and_then(|all| all.get(&one.name));
        let not_plain = || Refused::NotPlain { key: one.key.clone(), line: one.line };
        let span = value.and_then(|value| value.span.clone()).ok_or_else(not_plain)?;
        let old = text.get(span.clone()).ok_or_else(not_plain)?;
        let new = as_before(old, one.to.as_str()).ok_or_else(not_plain)?;
        edits.push((span, new));
    }
    // The epic may stand below its story, and edits must be in order.
    edits.sort_by_key(|(span, _)| span.start);
    let out = spliced(text, &edits);
    let asked = |key: &str| moves.iter().find(|one| one.name == key).map(|one| one.to.as_str());
    // Reading the result again is the only proof that YAML sees what was meant, with any quoting.
    match yaml::parse(&out) {
        Ok(after) if differs_only(tree, &after, &asked) => Ok(Moved { text: out, moves }),
        _ => Err(Refused::Unsafe { key: moves[0].key.clone() }),
    }
}

/// The new state in the quotes of the old one; `None` if the old value is not a plain scalar on one line.
fn as_before(old: &str, new: &str) -> Option<String> {
    let quote = old.chars().next().filter(|c| matches!(c, '"' | '\''));
    match quote {
        _ if old.contains(['\n', '\r']) || old.is_empty() => None,
        Some(quote) if old.len() > 1 && old.ends_with(quote) => Some(format!("{quote}{new}{quote}")),
        Some(_) => None,
        None => Some(new.to_string()),
    }
}

/// Whether the new tree says what the old one said, except for the requested states.
fn differs_only(before: &Node, after: &Node, asked: &dyn Fn(&str) -> Option<&'static str>) -> bool {
    let (old, new) = (before.entries(), after.entries());
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            old.key == new.key
                && match old.key == DEVELOPMENT {
                    true => same_but(&old.value, &new.value, asked),
                    false => same(&old.value, &new.value),
                }
        })
}

/// Whether two mappings are equal except for the keys with a requested state, which must have exactly that.
fn same_but(old: &Node, new: &Node, asked: &dyn Fn(&str) -> Option<&'static str>) -> bool {
    let (old, new) = (old.entries(), new.entries());
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            old.key == new.key
                && match asked(&old.key) {
                    Some(state) => new.value.text() == Some(state),
                    None => same(&old.value, &new.value),
                }
        })
}

/// Whether two nodes have the same content, wherever they are in the file.
fn same(old: &Node, new: &Node) -> bool {
    match (&old.form, &new.form) {
        (Form::Nothing, Form::Nothing) => true,
        (Form::Scalar(old), Form::Scalar(new)) => old == new,
        (Form::List(old), Form::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new))
        }
        (Form::Map(old), Form::Map(new)) => {
            old.len() == new.len()
                && old.iter().zip(new).all(|(old, new)| old.key == new.key && same(&old.value, &new.value))
        }
        _ => false,
    }
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrow::Back => f.write_str("that goes back"),
            Arrow::Skips { over } => {
                let over: Vec<&str> = over.iter().map(|state| state.as_str()).collect();
                write!(f, "that skips {}", over.join(" and "))
            }
            Arrow::StoriesLeft { open } if open.is_empty() => f.write_str("it has no stories"),
            Arrow::StoriesLeft { open } => {
                // Three names are enough to see what is meant; an epic may have dozens of stories.
                let named: Vec<String> = open.iter().take(3).map(ToString::to_string).collect();
                let more = open.len().saturating_sub(3);
                write!(f, "not all of its stories are done: {}", named.join(", "))?;
                if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
        }
    }
}
