//! `tribunal inspect sprint [FILE]`: shows how each line of a board is read, and what is wrong with it.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use tribunal_bmad::{
    board::{self, ActionItem, Board, BoardEntryState},
    keys::BoardKey,
    problem::{FileProblem, ProblemWeight},
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;

use crate::{
    bmad::{self, BmadProject, BoardLookup},
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct InspectSprintArguments {
    /// Board file (default: the project's board)
    file: Option<PathBuf>,
}

/// `tribunal inspect sprint --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SprintFileReport {
    schema: &'static str,
    path: String,
    /// Whether it could be read as a board.
    readable: bool,
    entries: Vec<BoardEntryRow>,
    action_items: Vec<ActionItem>,
    problems: Vec<FileProblem>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct BoardEntryRow {
    line: usize,
    key: BoardKey,
    /// The state as it is written in the file.
    said: String,
    /// None if the text is not a state.
    state: Option<BoardEntryState>,
}

pub(super) fn run(arguments: &InspectSprintArguments, context: &CommandContext) -> Result<u8, UserError> {
    let board = match &arguments.file {
        Some(board_file) => read_board(board_file, context)?,
        None => {
            let bmad = BmadProject::read_project(&context.current_project());
            // The board is shown even if it is broken, since this command exists to explain why.
            match bmad.board.clone() {
                Some(board) => board,
                // `require_board` explains why there is no board; its result is an error here.
                None => return bmad.require_board().map(|_| 0),
            }
        }
    };
    let has_errors = board.problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
    if context.wants_json {
        let to_row = |board_entry: board::BoardEntry| BoardEntryRow {
            line: board_entry.line,
            key: board_entry.key,
            said: board_entry.raw_state,
            state: board_entry.state,
        };
        json_documents::print_document(&SprintFileReport {
            schema: "tribunal.inspect-sprint/1",
            path: board.path,
            readable: board.is_readable,
            entries: board.entries.into_iter().map(to_row).collect(),
            action_items: board.action_items,
            problems: board.problems,
        })?;
    } else {
        print_board(&mut wrapped_stdout(), &board)?;
    }
    Ok(if has_errors { EXIT_NEGATIVE } else { 0 })
}

fn read_board(board_file: &Path, context: &CommandContext) -> Result<Board, UserError> {
    Ok(board::read_board(&board_file.display().to_string(), &super::read_input(board_file, context)?))
}

fn print_board(output: &mut impl Write, board: &Board) -> Result<(), UserError> {
    let story_count = board.stories().count();
    let item_count = board.open_action_items().count();
    let summary = format!(
        "{}: {} entries, {story_count} of them stories; {} epics, {item_count} open action items",
        board.path,
        board.entries.len(),
        board.epic_ids().len(),
    );
    writeln!(output, "{}", escape_line(&summary))?;
    for board_entry in &board.entries {
        let state_name = board_entry.state.map_or("unknown", BoardEntryState::as_str);
        // The raw text is worth showing only where it differs from how it was understood.
        let raw_state = if state_name == board_entry.raw_state {
            String::new()
        } else {
            format!("  (written as `{}`)", board_entry.raw_state)
        };
        writeln!(
            output,
            "{}",
            escape_line(&format!("{:>5}  {:<13}  {}{raw_state}", board_entry.line, state_name, board_entry.key))
        )?;
    }
    for problem in &board.problems {
        write!(output, "{}", bmad::draw_problem(problem))?;
    }
    Ok(())
}
