//! The board, `sprint-status.yaml`: what it says of every epic, story and retrospective, and what is wrong with it.
//!
//! [`edit`] moves things on it, [`next`] says what would run next. Files are read and written by the runner. A board that is
//! no YAML, or has a key twice, is reported with line and column and has no entries: nobody may guess which of two lines holds.

pub mod edit;
pub mod next;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    keys::{EpicStatus, Key, Number, RetroStatus, StoryKey, StoryStatus},
    problem::Problem,
    yaml::{self, Form, Node},
};

/// Its name, in the folder for implementation artifacts.
pub const FILE: &str = "sprint-status.yaml";
/// The key that everything stands under.
pub const DEVELOPMENT: &str = "development_status";

/// What a board says, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    pub path: String,
    pub entries: Vec<Entry>,
    pub action_items: Vec<ActionItem>,
    pub project: Option<String>,
    /// Where it says that the stories are; as written.
    pub story_location: Option<String>,
    pub problems: Vec<Problem>,
    /// It could be read as a board.
    pub readable: bool,
}

/// One line of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    /// The key as it is written: some have zeros in front of their numbers.
    pub name: String,
    /// None: it says a word that is no state.
    pub state: Option<State>,
    /// As it stands there, without quotes.
    pub said: String,
    pub line: usize,
}

/// A state, by what has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum State {
    Epic(EpicStatus),
    Story(StoryStatus),
    Retrospective(RetroStatus),
}

/// What a retrospective promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActionItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epic: Option<String>,
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// open, in-progress or done.
    pub status: String,
    pub line: usize,
}

impl State {
    /// The state of that name that a thing of this kind can have.
    pub fn parse(key: &Key, said: &str) -> Option<State> {
        match key {
            Key::Epic(_) => EpicStatus::parse(said).map(State::Epic),
            Key::Story(_) => StoryStatus::parse(said).map(State::Story),
            Key::Retrospective(_) => RetroStatus::parse(said).map(State::Retrospective),
        }
    }

    /// All that a thing of this kind can have, in order.
    pub fn all(key: &Key) -> Vec<State> {
        match key {
            Key::Epic(_) => EpicStatus::ALL.map(State::Epic).to_vec(),
            Key::Story(_) => StoryStatus::ALL.map(State::Story).to_vec(),
            Key::Retrospective(_) => RetroStatus::ALL.map(State::Retrospective).to_vec(),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            State::Epic(state) => state.as_str(),
            State::Story(state) => state.as_str(),
            State::Retrospective(state) => state.as_str(),
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Board {
    pub fn entry(&self, key: &Key) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == *key)
    }

    /// Every story with its state, in the board's order.
    pub fn stories(&self) -> impl Iterator<Item = (&StoryKey, &Entry)> {
        self.entries.iter().filter_map(|entry| match &entry.key {
            Key::Story(story) => Some((story, entry)),
            _ => None,
        })
    }

    /// Every epic that is named or has a story, in number order.
    pub fn epics(&self) -> BTreeSet<u32> {
        self.entries.iter().map(|entry| entry.key.epic()).collect()
    }

    pub fn open_action_items(&self) -> impl Iterator<Item = &ActionItem> {
        self.action_items.iter().filter(|item| item.status != "done")
    }
}

/// Reads a board; `path` is for the problems.
pub fn read(path: &str, text: &str) -> Board {
    read_with_tree(path, text).0
}

/// With the places of its values; a board that is no YAML has none.
fn read_with_tree(path: &str, text: &str) -> (Board, Node) {
    let mut board = Board { path: path.to_string(), ..Board::default() };
    let tree = match yaml::parse(text) {
        Ok(tree) => tree,
        Err(broken) => {
            board.problems.push(conflict(path, text).unwrap_or_else(|| broken_board(path, &broken)));
            return (board, Node::of(Form::Nothing));
        }
    };
    let own = |key: &str| tree.get(key).and_then(Node::text).map(String::from);
    board.project = own("project");
    board.story_location = own("story_location").filter(|said| !said.contains("{story_location}"));
    match tree.get(DEVELOPMENT) {
        Some(Node { form: Form::Map(_), .. }) => board.readable = true,
        Some(other) => board.problems.push(
            Problem::error("board-empty", path, format!("`{DEVELOPMENT}` has no entries"))
                .at(other.line)
                .why("there is no story that anything could be said of")
                .todo("run sprint planning"),
        ),
        None => board.problems.push(
            Problem::error("board-empty", path, format!("there is no `{DEVELOPMENT}`"))
                .at(1)
                .why("epics and stories stand under it")
                .todo("run sprint planning"),
        ),
    }
    for entry in tree.get(DEVELOPMENT).map(Node::entries).unwrap_or_default() {
        read_entry(&mut board, entry);
    }
    read_action_items(&mut board, tree.get("action_items"));
    look_over(&mut board);
    (board, tree)
}

/// What git leaves when two changed the same lines.
fn conflict(path: &str, text: &str) -> Option<Problem> {
    let line = 1 + text.lines().position(|line| line.starts_with("<<<<<<< "))?;
    let problem =
        Problem::error("board-conflict", path, "a merge conflict is not resolved here").at(line).column(1);
    Some(problem.todo("resolve it; nothing was written to the file"))
}

fn broken_board(path: &str, broken: &yaml::Broken) -> Problem {
    let twice = broken.kind == yaml::BrokenKind::DuplicateKey;
    let rule = if twice { "board-duplicate-key" } else { "board-broken" };
    let why = if twice { "one of the two lines is wrong, and only a person knows which" } else { "" };
    let mut problem = Problem::error(rule, path, broken.what.clone()).why(why);
    problem.line = broken.line;
    problem.column = broken.column;
    problem.todo(if twice {
        "take one of them out"
    } else {
        "mend the line; nothing was written to the file"
    })
}

fn read_entry(board: &mut Board, entry: &yaml::Entry) {
    let path = board.path.clone();
    let Some(key) = Key::parse(&entry.key) else {
        let what = format!("`{}` is no key of an epic, a story or a retrospective", entry.key);
        board.problems.push(
            Problem::warning("board-unknown-key", &path, what)
                .at(entry.line)
                .column(entry.column)
                .why("it is left alone, and nothing is run for it")
                .todo("name it epic-N, N-M-words or epic-N-retrospective"),
        );
        return;
    };
    let said = entry.value.text().unwrap_or_default().to_string();
    let state = State::parse(&key, &said);
    match state {
        None => {
            let known: Vec<&str> = State::all(&key).into_iter().map(State::as_str).collect();
            let what = match said.as_str() {
                "" => format!("`{key}` has no state"),
                _ => format!("`{said}` is no state of `{key}`"),
            };
            board.problems.push(
                Problem::error("board-illegal-state", &path, what)
                    .at(entry.value.line)
                    .column(entry.value.column)
                    .why("nobody can tell what to do with it")
                    .todo(format!("write one of {}", known.join(", "))),
            );
        }
        Some(state) if state.as_str() != said => board.problems.push(
            Problem::note("board-older-word", &path, format!("`{said}` is read as `{state}`"))
                .at(entry.value.line),
        ),
        Some(_) => {}
    }
    board.entries.push(Entry { key, name: entry.key.clone(), state, said, line: entry.line });
}

fn read_action_items(board: &mut Board, items: Option<&Node>) {
    let path = board.path.clone();
    let warned = |line: usize, what: String| {
        Problem::warning("board-action-item", &path, what)
            .at(line)
            .todo("see BMAD's comment at the top of the file")
    };
    let Some(items) = items else { return };
    if let Form::Scalar(_) | Form::Map(_) = &items.form {
        board.problems.push(warned(items.line, "`action_items` is no list".into()));
    }
    for item in items.items() {
        let text = |key: &str| item.get(key).and_then(Node::text).map(String::from);
        let Some(action) = text("action") else {
            board.problems.push(warned(item.line, "an action item says no `action`".into()));
            continue;
        };
        let status = text("status").unwrap_or_default();
        if !["open", "in-progress", "done"].contains(&status.as_str()) {
            let what = format!("`{status}` is no state of an action item (open, in-progress, done)");
            board.problems.push(warned(item.line, what));
        }
        board.action_items.push(ActionItem {
            id: text("id"),
            epic: text("epic"),
            action,
            owner: text("owner"),
            status,
            line: item.line,
        });
    }
}

/// What no single line shows.
fn look_over(board: &mut Board) {
    let epics: BTreeSet<u32> = board
        .entries
        .iter()
        .filter_map(|entry| if let Key::Epic(number) = entry.key { Some(number) } else { None })
        .collect();
    let mut found = Vec::new();
    let mut numbers: BTreeMap<Number, &Entry> = BTreeMap::new();
    let with_stories: BTreeSet<u32> = board.stories().map(|(story, _)| story.epic).collect();
    for (story, entry) in board.stories() {
        if !epics.contains(&story.epic) {
            let what =
                format!("`{story}` belongs to epic {}, which has no line `epic-{}`", story.epic, story.epic);
            found.push(
                Problem::warning("board-orphan-story", &board.path, what)
                    .at(entry.line)
                    .why("its epic's state is unknown")
                    .todo(format!("add `epic-{}: backlog` above it, or run sprint planning", story.epic)),
            );
        }
        match numbers.get(&story.number()) {
            Some(first) => found.push(
                Problem::warning(
                    "board-same-number",
                    &board.path,
                    format!(
                        "`{story}` and `{}` (line {}) are both story {}",
                        first.key,
                        first.line,
                        story.number()
                    ),
                )
                .at(entry.line)
                .why("asked for by number, neither is meant")
                .todo("rename one of them, or take out what was left of a renamed story"),
            ),
            None => {
                numbers.insert(story.number(), entry);
            }
        }
    }
    for entry in &board.entries {
        let Key::Epic(number) = entry.key else { continue };
        if entry.state == Some(State::Epic(EpicStatus::InProgress)) && !with_stories.contains(&number) {
            found.push(
                Problem::warning(
                    "board-empty-epic",
                    &board.path,
                    format!("epic {number} is in progress and has no stories"),
                )
                .at(entry.line)
                .todo("run sprint planning"),
            );
        }
    }
    for entry in &board.entries {
        let Key::Epic(number) = entry.key else { continue };
        let open = || {
            let of_it = board.stories().filter(|(story, _)| story.epic == number);
            of_it.filter(|(_, entry)| entry.state != Some(State::Story(StoryStatus::Done))).count()
        };
        if entry.state == Some(State::Epic(EpicStatus::Done)) && open() > 0 {
            let what = format!("epic {number} is done, and {} of its stories are not", open());
            let todo = format!("finish them, or: tribunal board move epic-{number} in-progress --anyway");
            found.push(Problem::warning("board-epic-done", &board.path, what).at(entry.line).todo(todo));
        }
    }
    board.problems.extend(found);
    board.problems.sort_by_key(|problem| problem.line);
}

#[cfg(test)]
mod tests;
