//! The board, `sprint-status.yaml`: the state of every epic, story and retrospective, and what is wrong with the file.
//!
//! [`edit`] moves entries, [`next_action`] finds what would run next. Files are read and written by the runner. A board that
//! is not valid YAML, or has a key twice, is reported with line and column and has no entries: which of two lines holds must
//! not be guessed.

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

/// The board's file name, in the folder for implementation artifacts.
pub const FILE: &str = "sprint-status.yaml";
/// The key that all entries are under.
pub const DEVELOPMENT: &str = "development_status";

/// The content of a board, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    pub path: String,
    pub entries: Vec<Entry>,
    pub action_items: Vec<ActionItem>,
    pub project: Option<String>,
    /// Where the board says that the stories are, as written.
    pub story_location: Option<String>,
    pub problems: Vec<Problem>,
    /// Whether the file could be read as a board.
    pub readable: bool,
}

/// One entry of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    /// The key as it is written: some have leading zeros in their numbers.
    pub name: String,
    /// The state; `None` if the written word is no state.
    pub state: Option<State>,
    /// The state as it is written, without quotes.
    pub said: String,
    pub line: usize,
}

/// A state, by the kind of entry that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum State {
    Epic(EpicStatus),
    Story(StoryStatus),
    Retrospective(RetroStatus),
}

/// A promise from a retrospective.
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
    /// Parses the state of an entry of this kind.
    pub fn parse(key: &Key, said: &str) -> Option<State> {
        match key {
            Key::Epic(_) => EpicStatus::parse(said).map(State::Epic),
            Key::Story(_) => StoryStatus::parse(said).map(State::Story),
            Key::Retrospective(_) => RetroStatus::parse(said).map(State::Retrospective),
        }
    }

    /// All states of an entry of this kind, in order.
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

    /// Every story with its entry, in the board's order.
    pub fn stories(&self) -> impl Iterator<Item = (&StoryKey, &Entry)> {
        self.entries.iter().filter_map(|entry| match &entry.key {
            Key::Story(story) => Some((story, entry)),
            _ => None,
        })
    }

    /// The numbers of all epics that are named or have a story, in order.
    pub fn epics(&self) -> BTreeSet<u32> {
        self.entries.iter().map(|entry| entry.key.epic()).collect()
    }

    pub fn open_action_items(&self) -> impl Iterator<Item = &ActionItem> {
        self.action_items.iter().filter(|item| item.status != "done")
    }
}

/// Reads a board; `board_path` is only used for problems.
pub fn read(path: &str, text: &str) -> Board {
    read_with_tree(path, text).0
}

/// Reads a board with its tree, whose positions an edit needs; a board that is not valid YAML has an empty tree.
fn read_with_tree(path: &str, text: &str) -> (Board, Node) {
    let mut board = Board { path: path.to_string(), ..Board::default() };
    let tree = match yaml::parse(text) {
        Ok(tree) => tree,
        Err(broken) => {
            // A merge conflict breaks the YAML, too, but then the advice is another one.
            board.problems.push(conflict(path, text).unwrap_or_else(|| broken_board(path, &broken)));
            return (board, Node::of(Form::Nothing));
        }
    };
    let own = |key: &str| tree.get(key).and_then(Node::text).map(String::from);
    board.project = own("project");
    // A template that was not filled in names itself.
    board.story_location = own("story_location").filter(|said| !said.contains("{story_location}"));
    match tree.get(DEVELOPMENT) {
        Some(Node { form: Form::Map(_), .. }) => board.readable = true,
        // A board without entries is no board: the missing part is named before anything else.
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

/// The problem of a merge conflict, which git leaves when two changes touch the same lines.
fn conflict(path: &str, text: &str) -> Option<Problem> {
    let line = 1 + text.lines().position(|line| line.starts_with("<<<<<<< "))?;
    let problem =
        Problem::error("board-conflict", path, "a merge conflict is not resolved here").at(line).column(1);
    Some(problem.todo("resolve it; nothing was written to the file"))
}

/// The problem of a board that is not valid YAML. A duplicate key gets its own rule, since only the user can resolve it.
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

/// Reads one entry. An unknown key is left out; an unknown state is kept, so that its story is still known.
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
    // Which states exist depends on the kind of key.
    let state = State::parse(&key, &said);
    match state {
        None => {
            let known: Vec<&str> = State::all(&key).into_iter().map(State::as_str).collect();
            // An entry without a value gets a message of its own, since an empty pair of backticks explains nothing.
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
        // An older name of a state is understood, but the user should know what it means today.
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
    // A key without a value is an empty list; anything else that is no list is a mistake.
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
        // The item is kept all the same: an unknown status counts as open.
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

/// Reports what no single line shows.
fn look_over(board: &mut Board) {
    let epics: BTreeSet<u32> = board
        .entries
        .iter()
        .filter_map(|entry| if let Key::Epic(number) = entry.key { Some(number) } else { None })
        .collect();
    let mut found = Vec::new();
    // The first entry of each number; a later one is reported against it.
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
        // Two stories with one number happen when a story was renamed and its old line stayed.
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
        // An epic in the backlog need not have stories yet.
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
    // A separate pass keeps the problems of one rule together; they are sorted by line below.
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
    // The problems were collected apart, since the board was still borrowed.
    board.problems.extend(found);
    board.problems.sort_by_key(|problem| problem.line);
}

#[cfg(test)]
mod tests;
