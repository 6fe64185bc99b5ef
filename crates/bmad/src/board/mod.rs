//! The board, `sprint-status.yaml`: the state of every epic, story and retrospective, and what is wrong with the file.
//!
//! [`edit`] moves entries, [`next_action`] finds what would run next. Files are read and written by the runner. A board that
//! is not valid YAML, or has a key twice, is reported with line and column and has no entries: which of two lines holds must
//! not be guessed.

pub mod edit;
pub mod next_action;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    keys::{BoardKey, EpicStatus, RetroStatus, StoryKey, StoryNumber, StoryStatus},
    problem::FileProblem,
    yaml::{self, YamlContent, YamlNode},
};

/// The board's file name, in the folder for implementation artifacts.
pub const BOARD_FILE: &str = "sprint-status.yaml";
/// The key that all entries are under.
pub const DEVELOPMENT_KEY: &str = "development_status";

/// The content of a board, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    pub path: String,
    pub entries: Vec<BoardEntry>,
    pub action_items: Vec<ActionItem>,
    pub project: Option<String>,
    /// Where the board says that the stories are, as written.
    pub story_location: Option<String>,
    pub problems: Vec<FileProblem>,
    /// Whether the file could be read as a board.
    pub is_readable: bool,
}

/// One entry of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardEntry {
    pub key: BoardKey,
    /// The key as it is written: some have leading zeros in their numbers.
    pub raw_key: String,
    /// The state; `None` if the written word is no state.
    pub state: Option<BoardEntryState>,
    /// The state as it is written, without quotes.
    pub raw_state: String,
    pub line: usize,
}

/// A state, by the kind of entry that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BoardEntryState {
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

impl BoardEntryState {
    /// Parses the state of an entry of this kind.
    pub fn parse(board_key: &BoardKey, state_text: &str) -> Option<BoardEntryState> {
        match board_key {
            BoardKey::Epic(_) => EpicStatus::parse(state_text).map(BoardEntryState::Epic),
            BoardKey::Story(_) => StoryStatus::parse(state_text).map(BoardEntryState::Story),
            BoardKey::Retrospective(_) => RetroStatus::parse(state_text).map(BoardEntryState::Retrospective),
        }
    }

    /// All states of an entry of this kind, in order.
    pub fn all_for(board_key: &BoardKey) -> Vec<BoardEntryState> {
        match board_key {
            BoardKey::Epic(_) => EpicStatus::ALL.map(BoardEntryState::Epic).to_vec(),
            BoardKey::Story(_) => StoryStatus::ALL.map(BoardEntryState::Story).to_vec(),
            BoardKey::Retrospective(_) => RetroStatus::ALL.map(BoardEntryState::Retrospective).to_vec(),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            BoardEntryState::Epic(state) => state.as_str(),
            BoardEntryState::Story(state) => state.as_str(),
            BoardEntryState::Retrospective(state) => state.as_str(),
        }
    }
}

impl std::fmt::Display for BoardEntryState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Board {
    pub fn find_entry(&self, board_key: &BoardKey) -> Option<&BoardEntry> {
        self.entries.iter().find(|board_entry| board_entry.key == *board_key)
    }

    /// Every story with its entry, in the board's order.
    pub fn stories(&self) -> impl Iterator<Item = (&StoryKey, &BoardEntry)> {
        self.entries.iter().filter_map(|board_entry| match &board_entry.key {
            BoardKey::Story(story) => Some((story, board_entry)),
            _ => None,
        })
    }

    /// The numbers of all epics that are named or have a story, in order.
    pub fn epic_numbers(&self) -> BTreeSet<u32> {
        self.entries.iter().map(|board_entry| board_entry.key.epic_number()).collect()
    }

    pub fn open_action_items(&self) -> impl Iterator<Item = &ActionItem> {
        self.action_items.iter().filter(|action_item| action_item.status != "done")
    }
}

/// Reads a board; `board_path` is only used for problems.
pub fn read_board(board_path: &str, board_text: &str) -> Board {
    read_board_with_tree(board_path, board_text).0
}

/// Reads a board with its tree, whose positions an edit needs; a board that is not valid YAML has an empty tree.
fn read_board_with_tree(board_path: &str, board_text: &str) -> (Board, YamlNode) {
    let mut board = Board { path: board_path.to_string(), ..Board::default() };
    let root_node = match yaml::parse_yaml(board_text) {
        Ok(root_node) => root_node,
        Err(parse_error) => {
            // A merge conflict breaks the YAML, too, but then the advice is another one.
            board.problems.push(
                find_merge_conflict(board_path, board_text)
                    .unwrap_or_else(|| parse_error_problem(board_path, &parse_error)),
            );
            return (board, YamlNode::from_content(YamlContent::Null));
        }
    };
    let text_of = |key: &str| root_node.get(key).and_then(YamlNode::scalar_text).map(String::from);
    board.project = text_of("project");
    // A template that was not filled in names itself.
    board.story_location =
        text_of("story_location").filter(|story_location| !story_location.contains("{story_location}"));
    match root_node.get(DEVELOPMENT_KEY) {
        Some(YamlNode { content: YamlContent::Mapping(_), .. }) => board.is_readable = true,
        // A board without entries is no board: the missing part is named before anything else.
        Some(status_node) => board.problems.push(
            FileProblem::error("board-empty", board_path, format!("`{DEVELOPMENT_KEY}` has no entries"))
                .at_line(status_node.line)
                .with_reason("All epics and stories are listed under this key.")
                .with_advice("run BMAD's sprint planning"),
        ),
        None => board.problems.push(
            FileProblem::error("board-empty", board_path, format!("missing key `{DEVELOPMENT_KEY}`"))
                .at_line(1)
                .with_reason("All epics and stories are listed under this key.")
                .with_advice("run BMAD's sprint planning"),
        ),
    }
    for yaml_entry in root_node.get(DEVELOPMENT_KEY).map(YamlNode::entries).unwrap_or_default() {
        read_entry(&mut board, yaml_entry);
    }
    read_action_items(&mut board, root_node.get("action_items"));
    check_consistency(&mut board);
    (board, root_node)
}

/// The problem of a merge conflict, which git leaves when two changes touch the same lines.
fn find_merge_conflict(board_path: &str, board_text: &str) -> Option<FileProblem> {
    let line_number = 1 + board_text.lines().position(|line_number| line_number.starts_with("<<<<<<< "))?;
    let problem =
        FileProblem::error("board-conflict", board_path, "unresolved merge conflict").at_line(line_number).at_column(1);
    Some(problem.with_advice("resolve the conflict (Tribunal did not change the file)"))
}

/// The problem of a board that is not valid YAML. A duplicate key gets its own rule, since only the user can resolve it.
fn parse_error_problem(board_path: &str, parse_error: &yaml::YamlError) -> FileProblem {
    let is_duplicate_key = parse_error.kind == yaml::YamlErrorKind::DuplicateKey;
    let rule = if is_duplicate_key { "board-duplicate-key" } else { "board-broken" };
    let reason = if is_duplicate_key { "Tribunal cannot tell which of the two lines is right." } else { "" };
    let mut problem = FileProblem::error(rule, board_path, parse_error.message.clone()).with_reason(reason);
    problem.line = parse_error.line;
    problem.column = parse_error.column;
    problem.with_advice(if is_duplicate_key {
        "remove one of the two lines"
    } else {
        "fix the line (Tribunal did not change the file)"
    })
}

/// Reads one entry. An unknown key is left out; an unknown state is kept, so that its story is still known.
fn read_entry(board: &mut Board, yaml_entry: &yaml::YamlEntry) {
    let board_path = board.path.clone();
    let Some(board_key) = BoardKey::parse(&yaml_entry.key) else {
        let message = format!("`{}` is not a key of an epic, story or retrospective", yaml_entry.key);
        board.problems.push(
            FileProblem::warning("board-unknown-key", &board_path, message)
                .at_line(yaml_entry.line)
                .at_column(yaml_entry.column)
                .with_reason("Tribunal ignores this entry.")
                .with_advice("rename it to `epic-N`, `N-M-words` or `epic-N-retrospective`"),
        );
        return;
    };
    let state_text = yaml_entry.value.scalar_text().unwrap_or_default().to_string();
    // Which states exist depends on the kind of key.
    let state = BoardEntryState::parse(&board_key, &state_text);
    match state {
        None => {
            let known_states: Vec<&str> =
                BoardEntryState::all_for(&board_key).into_iter().map(BoardEntryState::as_str).collect();
            // An entry without a value gets a message of its own, since an empty pair of backticks explains nothing.
            let message = match state_text.as_str() {
                "" => format!("`{board_key}` has no state"),
                _ => format!("unknown state `{state_text}` for `{board_key}`"),
            };
            board.problems.push(
                FileProblem::error("board-illegal-state", &board_path, message)
                    .at_line(yaml_entry.value.line)
                    .at_column(yaml_entry.value.column)
                    .with_reason("Tribunal cannot tell how far along it is.")
                    .with_advice(format!("use one of {}", known_states.join(", "))),
            );
        }
        // An older name of a state is understood, but the user should know what it means today.
        Some(state) if state.as_str() != state_text => board.problems.push(
            FileProblem::note("board-older-word", &board_path, format!("`{state_text}` is read as `{state}`"))
                .at_line(yaml_entry.value.line),
        ),
        Some(_) => {}
    }
    board.entries.push(BoardEntry {
        key: board_key,
        raw_key: yaml_entry.key.clone(),
        state,
        raw_state: state_text,
        line: yaml_entry.line,
    });
}

fn read_action_items(board: &mut Board, list_node: Option<&YamlNode>) {
    let board_path = board.path.clone();
    let item_problem = |line_number: usize, message: String| {
        FileProblem::warning("board-action-item", &board_path, message)
            .at_line(line_number)
            .with_advice("check the format in the comment at the top of the file")
    };
    let Some(list_node) = list_node else { return };
    // A key without a value is an empty list; anything else that is no list is a mistake.
    if let YamlContent::Scalar(_) | YamlContent::Mapping(_) = &list_node.content {
        board.problems.push(item_problem(list_node.line, "`action_items` is not a list".into()));
    }
    for item_node in list_node.items() {
        let text_of = |key: &str| item_node.get(key).and_then(YamlNode::scalar_text).map(String::from);
        let Some(action) = text_of("action") else {
            board.problems.push(item_problem(item_node.line, "action item without `action`".into()));
            continue;
        };
        let status = text_of("status").unwrap_or_default();
        // The item is kept all the same: an unknown status counts as open.
        if !["open", "in-progress", "done"].contains(&status.as_str()) {
            let message = format!("unknown action item status `{status}` (expected open, in-progress or done)");
            board.problems.push(item_problem(item_node.line, message));
        }
        board.action_items.push(ActionItem {
            id: text_of("id"),
            epic: text_of("epic"),
            action,
            owner: text_of("owner"),
            status,
            line: item_node.line,
        });
    }
}

/// Reports what no single line shows.
fn check_consistency(board: &mut Board) {
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
    let named_epics: BTreeSet<u32> = board
        .entries
        .iter()
        .filter_map(
            |board_entry| {
                if let BoardKey::Epic(epic_number) = board_entry.key { Some(epic_number) } else { None }
            },
        )
        .collect();
    let mut found_problems = Vec::new();
    // The first entry of each number; a later one is reported against it.
    let mut first_by_number: BTreeMap<StoryNumber, &BoardEntry> = BTreeMap::new();
    for (story, board_entry) in board.stories() {
        if !named_epics.contains(&story.epic) {
            let message =
                format!("`{story}` belongs to epic {}, but there is no `epic-{}` entry", story.epic, story.epic);
            found_problems.push(
                FileProblem::warning("board-orphan-story", &board.path, message)
                    .at_line(board_entry.line)
                    .with_reason("The state of its epic is unknown.")
                    .with_advice(format!("add `epic-{}: backlog` above it, or run BMAD's sprint planning", story.epic)),
            );
        }
        // Two stories with one number happen when a story was renamed and its old line stayed.
        match first_by_number.get(&story.story_number()) {
            Some(first_entry) => found_problems.push(
                FileProblem::warning(
                    "board-same-number",
                    &board.path,
                    format!(
                        "`{story}` and `{}` (line {}) are both story {}",
                        first_entry.key,
                        first_entry.line,
                        story.story_number()
                    ),
                )
                .at_line(board_entry.line)
                .with_reason("The number alone does not identify either of them.")
                .with_advice("rename one of them, or remove the old entry of a renamed story"),
            ),
            None => {
                first_by_number.insert(story.story_number(), board_entry);
            }
        }
    }
    found_problems
}

/// The problems of epics that are in progress and have no stories.
fn find_empty_epics(board: &Board) -> Vec<FileProblem> {
    let mut found_problems = Vec::new();
    let with_stories: BTreeSet<u32> = board.stories().map(|(story, _)| story.epic).collect();
    for board_entry in &board.entries {
        let BoardKey::Epic(epic_number) = board_entry.key else { continue };
        // An epic in the backlog need not have stories yet.
        if board_entry.state == Some(BoardEntryState::Epic(EpicStatus::InProgress))
            && !with_stories.contains(&epic_number)
        {
            found_problems.push(
                FileProblem::warning(
                    "board-empty-epic",
                    &board.path,
                    format!("epic {epic_number} is in progress but has no stories"),
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
        let BoardKey::Epic(epic_number) = board_entry.key else { continue };
        let count_open = || {
            let own_stories = board.stories().filter(|(story, _)| story.epic == epic_number);
            own_stories
                .filter(|(_, board_entry)| board_entry.state != Some(BoardEntryState::Story(StoryStatus::Done)))
                .count()
        };
        if board_entry.state == Some(BoardEntryState::Epic(EpicStatus::Done)) && count_open() > 0 {
            let message = format!("epic {epic_number} is done, but not all of its stories are ({} open)", count_open());
            let advice = format!(
                "finish them, or reopen the epic: `tribunal board move epic-{epic_number} in-progress --anyway`"
            );
            found_problems.push(
                FileProblem::warning("board-epic-done", &board.path, message)
                    .at_line(board_entry.line)
                    .with_advice(advice),
            );
        }
    }
    found_problems
}

#[cfg(test)]
mod tests;
