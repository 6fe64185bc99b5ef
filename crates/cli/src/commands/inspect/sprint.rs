//! `tribunal inspect sprint [FILE]`: shows how each line of a board is read, and what is wrong with it.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_bmad::{
    board::{self, ActionItem, Board, State},
    keys::Key,
    problem::{Problem, Weight},
};
use tribunal_report::escaped;

use crate::{
    bmad::{self, Bmad},
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A board; else the project's
    file: Option<PathBuf>,
}

/// `tribunal inspect sprint --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SprintFile {
    schema: &'static str,
    path: String,
    /// Whether it could be read as a board.
    readable: bool,
    entries: Vec<Seen>,
    action_items: Vec<ActionItem>,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Seen {
    line: usize,
    key: Key,
    /// The state as it is written in the file.
    said: String,
    /// None if the text is not a state.
    state: Option<State>,
}

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let board = match &arguments.file {
        Some(file) => read(file, context)?,
        None => {
            let bmad = Bmad::of(&context.project());
            // The board is shown even if it is broken, since this command exists to explain why.
            match bmad.board.clone() {
                Some(board) => board,
                // `require_board` explains why there is no board; its result is an error here.
                None => return bmad.require_board().map(|_| 0),
            }
        }
    };
    let wrong = board.problems.iter().any(|problem| problem.weight == Weight::Error);
    if context.json {
        let seen = |entry: board::Entry| Seen {
            line: entry.line,
            key: entry.key,
            said: entry.said,
            state: entry.state,
        };
        documents::print(&SprintFile {
            schema: "tribunal.inspect-sprint/1",
            path: board.path,
            readable: board.readable,
            entries: board.entries.into_iter().map(seen).collect(),
            action_items: board.action_items,
            problems: board.problems,
        })?;
    } else {
        show(&mut stdout().lock(), &board)?;
    }
    Ok(if wrong { NEGATIVE } else { 0 })
}

fn read(file: &Path, context: &Context) -> Result<Board, Complaint> {
    Ok(board::read(&file.display().to_string(), &super::text_of(file, context)?))
}

fn show(out: &mut impl Write, board: &Board) -> Result<(), Complaint> {
    let stories = board.stories().count();
    let items = board.open_action_items().count();
    let counts = format!(
        "{}: {} lines, {stories} of them stories; {} epics, {items} open action items",
        board.path,
        board.entries.len(),
        board.epics().len(),
    );
    writeln!(out, "{}", escaped(&counts))?;
    for entry in &board.entries {
        let state = entry.state.map_or("no state", State::as_str);
        // The raw text is worth showing only where it differs from how it was understood.
        let said = if state == entry.said { String::new() } else { format!("  (says `{}`)", entry.said) };
        writeln!(out, "{}", escaped(&format!("{:>5}  {:<13}  {}{said}", entry.line, state, entry.key)))?;
    }
    for problem in &board.problems {
        write!(out, "{}", bmad::draw(problem))?;
    }
    Ok(())
}
