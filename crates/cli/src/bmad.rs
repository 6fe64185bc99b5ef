//! A project's BMAD files as commands need them: layout, settings, board. A project without BMAD has none of them.

pub(crate) mod sprint;

use tribunal_bmad::{
    board::{self, Board},
    config::{self, BmadConfig},
    documents::{self, DocumentKind, ProjectDocument},
    epics::{self, EpicsDocument},
    keys::{self, BoardKey, StoryKey},
    layout::{self, BmadLayout},
    problem::{FileProblem, ProblemWeight},
    project_files::{self, ProjectFiles},
    story_files::{self, StoryFiles},
};
use tribunal_report::escape_line;
use tribunal_runner::{Project, project::project_files::ProjectDirectory};

use crate::{
    messages::user_errors::{EXIT_NEGATIVE, UserError},
    settings::nearest_name,
};

/// The BMAD part of a project.
#[derive(Debug)]
pub(crate) struct BmadProject {
    pub shelf: ProjectDirectory,
    pub layout: BmadLayout,
    pub config: BmadConfig,
    /// The board; `None` if there is none, or none that can be opened.
    pub board: Option<Board>,
    pub story_files: StoryFiles,
    /// Why files could not be opened.
    pub problems: Vec<FileProblem>,
}

impl BmadProject {
    pub fn read_project(project: &Project) -> BmadProject {
        let shelf = ProjectDirectory::open_project(project);
        let layout = layout::read_layout(&shelf);
        let config = config::read_config(&shelf);
        let mut problems = Vec::new();
        // The first place that has a board wins.
        let board = board::candidate_paths(&config.folders).into_iter().find_map(|board_path| {
            let board_text = project_files::read_or_report(&shelf, &board_path, &mut problems)?;
            Some(board::read_board(&board_path, &board_text))
        });
        let mut board = board;
        if let Some(board) = &mut board {
            board.problems.extend(find_other_board(&shelf, &config, &board.path));
        }
        let story_files = story_files::find_story_files(&shelf, &config.folders, board.as_ref());
        BmadProject { shelf, layout, config, board, story_files, problems }
    }

    /// The path of the board, or where one would be written.
    pub fn board_path(&self) -> String {
        self.board.as_ref().map_or_else(
            || join_path(&self.config.folders.implementation, board::BOARD_FILE),
            |board| board.path.clone(),
        )
    }

    /// Problems with the directories that BMAD is set to, such as one outside the project. Tribunal then looks in the default
    /// directory, where BMAD's workflows do not work.
    pub fn misplaced_folders(&self) -> impl Iterator<Item = &FileProblem> {
        self.config
            .problems
            .iter()
            .filter(|problem| problem.rule == "config-folder" && problem.weight == ProblemWeight::Error)
    }

    /// The board, or the error that says why there is none.
    pub fn require_board(&self) -> Result<&Board, UserError> {
        let misplaced_problems: Vec<FileProblem> = self.misplaced_folders().cloned().collect();
        if !misplaced_problems.is_empty() {
            return Err(unusable_board(&misplaced_problems));
        }
        match &self.board {
            Some(board) if board.is_readable => Ok(board),
            Some(board) => Err(unusable_board(&board.problems)),
            None if !self.problems.is_empty() => Err(unusable_board(&self.problems)),
            None => Err(UserError::usage(format!("no {} in this project", board::BOARD_FILE))
                .with_reason(format!(
                    "Tribunal looked for {}.",
                    board::candidate_paths(&self.config.folders).join(", ")
                ))
                .with_step("run BMAD's sprint planning, or pass the project directory with `-C DIR`")),
        }
    }

    /// Finds the key that the user typed: as the board spells it, as a number, or as a file name.
    pub fn find_key(&self, typed_key: &str) -> Result<BoardKey, UserError> {
        let board = self.require_board()?;
        // An exact key wins, even if it is also a part of another one.
        if let Some(parsed_key) = BoardKey::parse(typed_key).filter(|parsed_key| board.find_entry(parsed_key).is_some())
        {
            return require_one_state(board, parsed_key);
        }
        let board_stories: Vec<&StoryKey> = board.stories().map(|(story_key, _)| story_key).collect();
        match keys::match_stories(typed_key, board_stories.iter().copied()).as_slice() {
            [story_key] => require_one_state(board, BoardKey::Story((*story_key).clone())),
            [] => {
                // The key may stand on a line that cannot be read.
                let broken_line = board.problems.iter().find(|problem| problem.rule == "board-broken").cloned();
                Err(broken_line
                    .map_or_else(|| self.unknown_key(typed_key, board), |problem| unusable_board(&[problem])))
            }
            several_stories => {
                let matching_keys: Vec<String> = several_stories.iter().map(ToString::to_string).collect();
                Err(UserError::usage(format!("`{typed_key}` is ambiguous: it matches {}", matching_keys.join(" and ")))
                    .with_step("use the full key"))
            }
        }
    }

    /// Refuses an entry whose key stands on two lines: moving one of them would make them contradict each other.
    pub fn require_single_line(&self, board_key: &BoardKey) -> Result<(), UserError> {
        let Some(board) = &self.board else { return Ok(()) };
        let raw_key = board.find_entry(board_key).map(|board_entry| format!("`{}`", board_entry.raw_key));
        let duplicate = board.problems.iter().find(|problem| {
            problem.rule == "board-duplicate-key"
                && raw_key.as_ref().is_some_and(|raw_key| problem.to_string().contains(raw_key))
        });
        duplicate.map_or(Ok(()), |duplicate| Err(unusable_board(std::slice::from_ref(duplicate))))
    }

    /// Finds the file of a story by what the user typed, without the board. `None` if no file is named like that.
    pub fn find_file_by_name(&self, typed_name: &str) -> Result<Option<String>, UserError> {
        let story_keys =
            self.story_files.all().filter(|story_file| !story_file.is_archived).map(|story_file| &story_file.key);
        let mut matching_keys = keys::match_stories(typed_name, story_keys);
        matching_keys.dedup();
        match matching_keys.as_slice() {
            [] => Ok(None),
            [story_key] => Ok(self.find_story_file(story_key)),
            several_stories => {
                let key_names: Vec<String> = several_stories.iter().map(ToString::to_string).collect();
                Err(UserError::usage(format!("`{typed_name}` is ambiguous: it matches {}", key_names.join(" and ")))
                    .with_step("use the full key"))
            }
        }
    }

    fn unknown_key(&self, typed_key: &str, board: &Board) -> UserError {
        // All keys of the board are candidates, not only stories.
        let known_keys: Vec<String> = board.entries.iter().map(|board_entry| board_entry.key.to_string()).collect();
        let nearest_key = nearest_name(typed_key, &known_keys.iter().map(String::as_str).collect::<Vec<_>>());
        let user_error = UserError::usage(format!("`{typed_key}` not found in {}", board.path));
        match nearest_key {
            Some(nearest_key) => user_error.with_step(format!("did you mean `{nearest_key}`?")),
            None => user_error.with_step("list its stories: `tribunal status`"),
        }
    }

    /// Directories of plans, settings and skills, which no story's change is about.
    pub fn bookkeeping_folders(&self) -> Vec<String> {
        let mut all_folders = self.document_folders();
        all_folders.extend(self.layout.root.clone());
        all_folders.extend(self.layout.clients.iter().map(|client_layout| client_layout.folder.clone()));
        // An empty path would cover the whole project.
        all_folders.retain(|folder| !folder.is_empty());
        all_folders
    }

    /// The folders of plans, stories and boards.
    pub fn document_folders(&self) -> Vec<String> {
        let folders = &self.config.folders;
        let all_folders = [&folders.output, &folders.planning, &folders.implementation];
        all_folders.into_iter().filter(|folder| !folder.is_empty()).cloned().collect()
    }

    /// Reads all files with epics as one plan.
    pub fn read_epics(&self) -> EpicsDocument {
        let found_documents = documents::find_documents(&self.shelf, &self.config.folders);
        let paths = found_documents.of_kind(DocumentKind::Epics).flat_map(ProjectDocument::paths);
        let read_file = |path: &str| Some((path.to_string(), self.shelf.read_file(path).ok().flatten()?));
        let texts: Vec<(String, String)> = paths.filter_map(read_file).collect();
        let parts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        epics::read_epics(&parts)
    }

    /// The path of a story's file.
    pub fn find_story_file(&self, story_key: &StoryKey) -> Option<String> {
        self.story_files.find_file(story_key, self.board.as_ref()).map(|story_file| story_file.path.clone())
    }

    /// The path at which a story's file would be written.
    pub fn new_story_path(&self, story_key: &StoryKey) -> String {
        join_path(&self.config.folders.implementation, &format!("{story_key}.md"))
    }

    /// The client whose commands are shown: the first one that has any.
    pub fn command_client(&self) -> &str {
        match self.layout.clients.first().map(|client| client.name.as_str()) {
            // The shared `agents` directory is what Codex reads.
            Some("agents") => "codex",
            Some(client_name) => client_name,
            None => "claude-code",
        }
    }
}

/// Reports a second board: agents may work with either.
fn find_other_board(shelf: &ProjectDirectory, config: &BmadConfig, board_path: &str) -> Option<FileProblem> {
    let other_paths = board::candidate_paths(&config.folders).into_iter().filter(|path| path != board_path);
    let other_path = other_paths.into_iter().find(|path| shelf.read_file(path).is_ok_and(|text| text.is_some()))?;
    let problem =
        FileProblem::warning("board-second", board_path, format!("this board is used, but there is also {other_path}"));
    Some(problem.with_reason("Agents may work with either of them.").with_advice("remove the one that is out of date"))
}

/// Refuses a key that stands on two lines with different states.
fn require_one_state(board: &Board, board_key: BoardKey) -> Result<BoardKey, UserError> {
    let is_ambiguous = board.find_entry(&board_key).is_some_and(|board_entry| board_entry.state.is_none());
    let duplicate = board
        .problems
        .iter()
        .find(|problem| problem.rule == "board-duplicate-key" && problem.weight == ProblemWeight::Error);
    match duplicate.filter(|_| is_ambiguous) {
        Some(duplicate) => Err(unusable_board(std::slice::from_ref(duplicate))),
        None => Ok(board_key),
    }
}

/// Joins a directory and a name.
fn join_path(folder: &str, file_name: &str) -> String {
    if folder.is_empty() { file_name.to_string() } else { format!("{folder}/{file_name}") }
}

/// The error for a board that the user has to repair first.
fn unusable_board(problems: &[FileProblem]) -> UserError {
    let Some(problem) = problems.first() else {
        return UserError::new(EXIT_NEGATIVE, "the board cannot be used");
    };
    let user_error = UserError::new(EXIT_NEGATIVE, problem.to_string()).with_reason(problem.why.clone());
    if problem.todo.is_empty() { user_error } else { user_error.with_step(problem.todo.clone()) }
}

/// Draws a problem: `error: path:line:column: message`, with the reason and the remedy below it.
pub(crate) fn draw_problem(problem: &FileProblem) -> String {
    let weight_mark = match problem.weight {
        ProblemWeight::Error => "error",
        ProblemWeight::Warning => "warning",
        ProblemWeight::Note => "note",
    };
    let mut rendered = format!("{weight_mark}: {}\n", escape_line(&problem.to_string()));
    for (label, detail_line) in [("", &problem.why), ("help: ", &problem.todo)] {
        if !detail_line.is_empty() {
            rendered.push_str(&format!("  {label}{}\n", escape_line(detail_line)));
        }
    }
    rendered
}
