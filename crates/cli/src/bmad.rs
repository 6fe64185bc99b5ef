//! A project's BMAD files as commands need them: what the user types is found on the board, or the error says what to do.

pub(crate) mod sprint;
mod sprint_forecast;
mod sprint_next;
pub(crate) mod sprint_runs;

use tribunal_bmad::{
    board::{self, Board},
    keys::{self, BoardKey, StoryKey},
    problem::{FileProblem, ProblemWeight},
};
use tribunal_report::escape_line;
pub(crate) use tribunal_runner::project::bmad_project::BmadProject;

use crate::{
    messages::user_errors::{EXIT_NEGATIVE, UserError},
    settings::nearest_name,
};

/// Finds what the user typed, with errors that say what to do.
pub(crate) trait BoardLookup {
    /// The board, or the error that says why there is none.
    fn require_board(&self) -> Result<&Board, UserError>;

    /// Finds the key that the user typed: as the board spells it, as a number, or as a file name.
    fn find_key(&self, typed_key: &str) -> Result<BoardKey, UserError>;

    /// Refuses an entry whose key stands on two lines: moving one of them would make them contradict each other.
    fn require_single_line(&self, board_key: &BoardKey) -> Result<(), UserError>;

    /// Finds the file of a story by what the user typed, without the board. `None` if no file is named like that.
    fn find_file_by_name(&self, typed_name: &str) -> Result<Option<String>, UserError>;
}

impl BoardLookup for BmadProject {
    fn require_board(&self) -> Result<&Board, UserError> {
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

    fn find_key(&self, typed_key: &str) -> Result<BoardKey, UserError> {
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
                Err(broken_line.map_or_else(|| unknown_key(typed_key, board), |problem| unusable_board(&[problem])))
            }
            several_stories => {
                let matching_keys: Vec<String> = several_stories.iter().map(ToString::to_string).collect();
                Err(UserError::usage(format!("`{typed_key}` is ambiguous: it matches {}", matching_keys.join(" and ")))
                    .with_step("use the full key"))
            }
        }
    }

    fn require_single_line(&self, board_key: &BoardKey) -> Result<(), UserError> {
        let Some(board) = &self.board else { return Ok(()) };
        let raw_key = board.find_entry(board_key).map(|board_entry| format!("`{}`", board_entry.raw_key));
        let duplicate = board.problems.iter().find(|problem| {
            problem.rule == "board-duplicate-key"
                && raw_key.as_ref().is_some_and(|raw_key| problem.to_string().contains(raw_key))
        });
        duplicate.map_or(Ok(()), |duplicate| Err(unusable_board(std::slice::from_ref(duplicate))))
    }

    fn find_file_by_name(&self, typed_name: &str) -> Result<Option<String>, UserError> {
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
}

fn unknown_key(typed_key: &str, board: &Board) -> UserError {
    // All keys of the board are candidates, not only stories.
    let known_keys: Vec<String> = board.entries.iter().map(|board_entry| board_entry.key.to_string()).collect();
    let nearest_key = nearest_name(typed_key, &known_keys.iter().map(String::as_str).collect::<Vec<_>>());
    let user_error = UserError::usage(format!("`{typed_key}` not found in {}", board.path));
    match nearest_key {
        Some(nearest_key) => user_error.with_step(format!("did you mean `{nearest_key}`?")),
        None => user_error.with_step("list its stories: `tribunal status`"),
    }
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
