//! The board, `sprint-status.yaml`: the state of every epic, story and retrospective, and what is wrong with the file.
//!
//! [`edit`] moves entries, [`next_action`] finds what would run next. Files are read and written by the runner. [`shapes`]
//! finds the entries, in BMAD's own form and in others that users have. A line that is no valid YAML is left out and reported
//! ([`tolerant`]); of two lines with the same key and different states neither holds, since that must not be guessed ([`twins`]).

mod consistency;
pub mod edit;
pub mod next_action;
mod shapes;
mod tolerant;
mod twins;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::Range,
};

use tribunal_json::{Serialize, schemars};

use crate::{
    config::ProjectFolders,
    epic_id::EpicId,
    keys::{BoardKey, StoryKey},
    problem::FileProblem,
    states::{EpicStatus, ParkedState, RetroStatus, StateMeaning, StoryStatus},
    yaml::{self, YamlContent, YamlNode},
};
use shapes::{EntryRole, ShapedEntry};
use tolerant::TolerantTree;

/// The board's file name, in the folder for implementation artifacts.
pub const BOARD_FILE: &str = "sprint-status.yaml";
/// The key that all entries are under.
pub const DEVELOPMENT_KEY: &str = "development_status";

/// The places where a board may be, the most likely first: the folder of the settings, then those of earlier versions and users.
pub fn candidate_paths(folders: &ProjectFolders) -> Vec<String> {
    let places = [
        folders.implementation.as_str(),
        &folders.output,
        "docs/implementation-artifacts",
        "docs/sprint-artifacts",
        "docs/stories",
        "docs",
        "_bmad-output/implementation-artifacts",
        "_bmad-output",
        "",
    ];
    let mut board_paths: Vec<String> = Vec::new();
    for place in places {
        let board_path = if place.is_empty() { BOARD_FILE.to_string() } else { format!("{place}/{BOARD_FILE}") };
        if !board_paths.contains(&board_path) {
            board_paths.push(board_path);
        }
    }
    board_paths
}

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
    /// The epic that it belongs to: the one in its number, or the one above it.
    pub epic: Option<EpicId>,
    pub line: usize,
    /// Another line with the same key: then the entry cannot be moved, and with another state neither of them holds. The other line
    /// is no entry.
    pub twin_line: Option<usize>,
}

/// A state, by the kind of entry that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum BoardEntryState {
    Epic(EpicStatus),
    Story(StoryStatus),
    Retrospective(RetroStatus),
    /// No work is done on it. Such states are only read.
    Parked(ParkedState),
}

/// A promise from a retrospective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
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
        let meaning = StateMeaning::parse(state_text)?;
        if let StateMeaning::Parked(parked_state) = meaning {
            return Some(BoardEntryState::Parked(parked_state));
        }
        match board_key {
            BoardKey::Epic(_) => EpicStatus::from_meaning(meaning).map(BoardEntryState::Epic),
            // A story that need not be done is left for later.
            BoardKey::Story(_) if meaning == StateMeaning::Optional => {
                Some(BoardEntryState::Parked(ParkedState::Deferred))
            }
            BoardKey::Story(_) => StoryStatus::from_meaning(meaning).map(BoardEntryState::Story),
            BoardKey::Retrospective(_) => RetroStatus::from_meaning(meaning).map(BoardEntryState::Retrospective),
        }
    }

    /// Whether nothing is left to do.
    pub fn is_over(self) -> bool {
        matches!(
            self,
            BoardEntryState::Epic(EpicStatus::Done)
                | BoardEntryState::Story(StoryStatus::Done)
                | BoardEntryState::Retrospective(RetroStatus::Done)
                | BoardEntryState::Parked(ParkedState::Dropped)
        )
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
            BoardEntryState::Parked(state) => state.as_str(),
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

    /// The stories of an epic with their entries, in the board's order.
    pub fn stories_of<'b>(&'b self, epic: &'b EpicId) -> impl Iterator<Item = (&'b StoryKey, &'b BoardEntry)> {
        self.stories().filter(move |(_, board_entry)| board_entry.epic.as_ref() == Some(epic))
    }

    /// All epics that are named or have a story, in order.
    pub fn epic_ids(&self) -> BTreeSet<EpicId> {
        self.entries.iter().filter_map(|board_entry| board_entry.epic.clone()).collect()
    }

    pub fn open_action_items(&self) -> impl Iterator<Item = &ActionItem> {
        self.action_items.iter().filter(|action_item| action_item.status != "done")
    }
}

/// Reads a board; `board_path` is only used for problems.
pub fn read_board(board_path: &str, board_text: &str) -> Board {
    read_board_with_tree(board_path, board_text).0
}

/// What an edit of a board needs besides its entries.
struct BoardTree {
    root_node: YamlNode,
    /// Where the state of each entry is written.
    state_spots: Vec<StateSpot>,
}

/// Where a state is written.
struct StateSpot {
    /// Its bytes; `None` where it cannot be replaced.
    span: Option<Range<usize>>,
    line: usize,
}

/// Reads a board with its tree, whose positions an edit needs; a board that cannot be read has an empty tree.
fn read_board_with_tree(board_path: &str, board_text: &str) -> (Board, BoardTree) {
    let mut board = Board { path: board_path.to_string(), ..Board::default() };
    let empty_tree = BoardTree { root_node: YamlNode::from_content(YamlContent::Null), state_spots: Vec::new() };
    // A merge conflict breaks the YAML, too, but then the advice is another one, and no line of it holds.
    if let Some(conflict) = tolerant::find_merge_conflict(board_path, board_text) {
        board.problems.push(conflict);
        return (board, empty_tree);
    }
    let TolerantTree { root_node, omitted } = match tolerant::parse_tolerantly(board_text) {
        Ok(tree) => tree,
        Err(parse_error) => {
            board.problems.push(parse_error_problem(board_path, &parse_error));
            return (board, empty_tree);
        }
    };
    let text_of = |key: &str| root_node.get(key).and_then(YamlNode::scalar_text).map(String::from);
    board.project = text_of("project");
    // A template that was not filled in names itself.
    board.story_location =
        text_of("story_location").filter(|story_location| !story_location.contains("{story_location}"));
    let state_spots = match shapes::find_entries(&root_node) {
        Some(raw_entries) => {
            board.is_readable = true;
            read_entries(&mut board, board_text, raw_entries)
        }
        None => {
            // Without entries the lines that were left out are what is wrong.
            let problem = omitted.first().map_or_else(
                || unknown_shape_problem(board_path, &root_node),
                |line| parse_error_problem(board_path, &line.error),
            );
            board.problems.push(problem);
            return (board, empty_tree);
        }
    };
    twins::report_omitted(&mut board, &omitted);
    read_action_items(&mut board, root_node.get("action_items"));
    consistency::check_consistency(&mut board);
    (board, BoardTree { root_node, state_spots })
}

/// The problem of a file without anything that could be an entry.
fn unknown_shape_problem(board_path: &str, root_node: &YamlNode) -> FileProblem {
    let (message, line) = match root_node.get(DEVELOPMENT_KEY) {
        Some(status_node) => (format!("`{DEVELOPMENT_KEY}` has no entries"), status_node.line),
        None => (format!("missing key `{DEVELOPMENT_KEY}`"), 1),
    };
    FileProblem::error("board-empty", board_path, message)
        .at_line(line)
        .with_reason("All epics and stories are listed under this key.")
        .with_advice("run BMAD's sprint planning")
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

/// Reads the entries of a board and finds out which epic each belongs to. Returns where their states are written.
fn read_entries(board: &mut Board, board_text: &str, raw_entries: Vec<ShapedEntry>) -> Vec<StateSpot> {
    let parse_epic = |raw_entry: &ShapedEntry| match parse_key(raw_entry, &BTreeSet::new()) {
        Some(BoardKey::Epic(epic)) => Some(epic),
        _ => None,
    };
    let epics: BTreeSet<EpicId> = raw_entries.iter().filter_map(parse_epic).collect();
    let commented_epics = find_commented_epics(board_text);
    let mut epic_above = None;
    let mut state_spots = Vec::new();
    // The positions of stories in lists; a mapping with the same key twice is no valid YAML.
    let mut listed_stories: BTreeMap<(usize, usize, BoardKey), usize> = BTreeMap::new();
    for raw_entry in raw_entries {
        let commented_epic = commented_epics.iter().rev().find(|(comment_line, _)| *comment_line < raw_entry.line);
        // A comment names the epic only where the board has no entries for epics.
        if let Some((_, epic)) = commented_epic.filter(|_| epics.is_empty()) {
            epic_above = Some(epic.clone());
        }
        let Some(board_key) = parse_key(&raw_entry, &epics)
            .map(|board_key| drop_epic_title(board_key, &epics))
            .filter(|board_key| is_entry(board_key, &raw_entry))
        else {
            report_unknown_key(board, &raw_entry);
            continue;
        };
        if let BoardKey::Epic(epic) = &board_key {
            epic_above = Some(epic.clone());
        }
        if let (BoardKey::Story(_), Some(list)) = (&board_key, &raw_entry.list) {
            match listed_stories.entry((list.start, list.end, board_key.clone())) {
                Entry::Occupied(first_position) => {
                    twins::report_list_twin(board, *first_position.get(), &raw_entry);
                    continue;
                }
                Entry::Vacant(position) => position.insert(board.entries.len()),
            };
        }
        let epic = board_key.epic_id().or(epic_above.as_ref()).cloned();
        state_spots.push(StateSpot { span: raw_entry.state_span.clone(), line: raw_entry.state_line });
        add_entry(board, board_key, epic, raw_entry);
    }
    state_spots
}

/// An epic with a title in its key, `epic-1-user-accounts`, is epic 1, unless the board has another epic 1.
fn drop_epic_title(board_key: BoardKey, epics: &BTreeSet<EpicId>) -> BoardKey {
    let find_short_id = |epic: &EpicId| {
        let short_id = epic.without_title()?;
        let is_same = |other: &&EpicId| **other == short_id || other.without_title().as_ref() == Some(&short_id);
        (epics.iter().filter(is_same).count() <= 1).then_some(short_id)
    };
    match board_key {
        BoardKey::Epic(epic) => BoardKey::Epic(find_short_id(&epic).unwrap_or(epic)),
        BoardKey::Retrospective(epic) => BoardKey::Retrospective(find_short_id(&epic).unwrap_or(epic)),
        story_key @ BoardKey::Story(_) => story_key,
    }
}

/// The epics that comments name, with their lines: `# Epic 3: Reports`.
fn find_commented_epics(board_text: &str) -> Vec<(usize, EpicId)> {
    let parse_comment = |line_text: &str| {
        let comment = line_text.trim().strip_prefix('#')?.trim_matches(['#', '=', '-', ' ', '─', '═']);
        let after_word = comment.get(..5).filter(|word| word.eq_ignore_ascii_case("epic ")).map(|_| &comment[5..])?;
        let id_end = after_word.find(|character: char| !(character.is_alphanumeric() || character == '.'));
        let id_text = &after_word[..id_end.unwrap_or(after_word.len())];
        id_text.starts_with(|character: char| character.is_ascii_digit()).then(|| EpicId::parse(id_text)).flatten()
    };
    let lines = board_text.lines().enumerate();
    lines.filter_map(|(index, line_text)| Some((index + 1, parse_comment(line_text)?))).collect()
}

/// Parses the key of an entry, by its place and by the epics of the board.
fn parse_key(raw_entry: &ShapedEntry, epics: &BTreeSet<EpicId>) -> Option<BoardKey> {
    let key_text = raw_entry.key_text.as_str();
    let as_epic = |text: &str| match BoardKey::parse(text) {
        Some(BoardKey::Epic(epic)) => Some(epic),
        _ => EpicId::parse(text),
    };
    match raw_entry.role {
        EntryRole::Epic => as_epic(key_text).map(BoardKey::Epic),
        EntryRole::Retrospective => as_epic(key_text).map(BoardKey::Retrospective),
        EntryRole::Story => StoryKey::parse_on_board(key_text, epics).map(BoardKey::Story),
        EntryRole::ByKey => match BoardKey::parse(key_text)? {
            BoardKey::Story(story) => {
                let on_board = StoryKey::parse_on_board(key_text, epics);
                Some(BoardKey::Story(on_board.filter(|key| key.story_number().is_some()).unwrap_or(story)))
            }
            epic_key => Some(epic_key),
        },
    }
}

/// Whether an entry is one of the board. A key of words is a story only if its value is a state, and if it is no run of one of
/// BMAD's own skills.
fn is_entry(board_key: &BoardKey, raw_entry: &ShapedEntry) -> bool {
    const SKILL_PREFIXES: [&str; 3] = ["tea-", "testarch-", "bmad-"];
    match board_key {
        BoardKey::Story(story) if story.story_number().is_none() => {
            // A single word is the name of something else: `note`, `retro`.
            let is_name = story.as_str().contains(|character: char| character.is_ascii_digit())
                || story.as_str().matches('-').count() > 1;
            BoardEntryState::parse(board_key, &raw_entry.state_text).is_some()
                && (is_name || raw_entry.role == EntryRole::Story)
                && !SKILL_PREFIXES.iter().any(|prefix| story.as_str().starts_with(prefix))
        }
        _ => true,
    }
}

fn report_unknown_key(board: &mut Board, raw_entry: &ShapedEntry) {
    let message = format!("`{}` is not a key of an epic, story or retrospective", raw_entry.key_text);
    board.problems.push(
        FileProblem::warning("board-unknown-key", &board.path, message)
            .at_line(raw_entry.line)
            .at_column(raw_entry.column)
            .with_reason("Tribunal ignores this entry.")
            .with_advice("rename it to `epic-N`, `N-M-words` or `epic-N-retrospective`"),
    );
}

/// Adds an entry. An unknown state is kept, so that its story is still known.
fn add_entry(board: &mut Board, board_key: BoardKey, epic: Option<EpicId>, raw_entry: ShapedEntry) {
    let ShapedEntry { key_text, state_text, line, state_line, state_column, .. } = raw_entry;
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
                FileProblem::warning("board-illegal-state", &board.path, message)
                    .at_line(state_line)
                    .at_column(state_column)
                    .with_reason("Tribunal cannot tell how far along it is, so nothing is done about it.")
                    .with_advice(format!("use one of {}", known_states.join(", "))),
            );
        }
        // Another word for a state is understood, but the user should know what it means here.
        Some(state) if state.as_str() != state_text => board.problems.push(
            FileProblem::note("board-older-word", &board.path, format!("`{state_text}` is read as `{state}`"))
                .at_line(state_line),
        ),
        Some(_) => {}
    }
    board.entries.push(BoardEntry {
        key: board_key,
        raw_key: key_text,
        state,
        raw_state: state_text,
        epic,
        line,
        twin_line: None,
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

#[cfg(test)]
mod tests;
