//! `tribunal board move KEY STATE`: moves an entry of the board on the user's request, under the file's lock and
//! along the allowed transitions.

use std::{io::Write, time::Duration};

use tribunal_bmad::{
    board::{
        BoardEntryState,
        edit::{BoardMove, BoardMoveRefusal, MoveMode, MovedBoard, move_entry},
    },
    commands::{self, BmadStep},
    keys::{BoardKey, StoryKey},
    project_files::{ProjectFiles, UnreadableFile},
    states::StoryStatus,
    story::{self, edit::set_status},
};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    project::locked_edit::{EditFileError, FileLockFailure, edit_file},
};

use crate::{
    bmad::{BmadProject, BoardLookup},
    context::CommandContext,
    messages::{
        json_documents::{self, BoardMoves},
        user_errors::{EXIT_ENVIRONMENT, EXIT_NEGATIVE, UserError},
    },
    settings::nearest_name,
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
};

/// No process of Tribunal holds a lock for as long as this, so an older lock deserves a closer look.
const STALE_LOCK_AGE: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BoardCommand {
    /// Move a story, epic or retrospective to another state, leaving the rest of the file untouched
    Move(MoveArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveArguments {
    /// Key (1-2-log-in, epic-1), story number (1.2) or story file
    key: String,
    /// New state: backlog, ready-for-dev, in-progress, review or done; for a retrospective, optional or done
    state: String,
    /// Allow moving backwards or skipping states
    #[arg(long)]
    anyway: bool,
    /// Show what would change without writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
}

pub(crate) fn run(board_command: &BoardCommand, context: &CommandContext) -> Result<u8, UserError> {
    let BoardCommand::Move(arguments) = board_command;
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    // The key is resolved before the state is parsed: which states exist depends on whether it is a story, an epic or
    // a retrospective.
    let board_key = bmad.find_key(&arguments.key)?;
    bmad.require_single_line(&board_key)?;
    let target_state = parse_state(&board_key, &arguments.state)?;
    let move_mode = if arguments.anyway { MoveMode::Forced } else { MoveMode::InOrder };
    let move_request = MoveRequest { board_key: &board_key, target_state, move_mode };
    let performed = perform_move(&project, &bmad, move_request, arguments.dry_run)?;
    if let Some(notice) = &performed.notice {
        writeln!(wrapped_stderr(), "note: {}", escape_line(notice))?;
    }
    let move_document = BoardMoves {
        schema: "tribunal.board/1",
        path: bmad.board_path(),
        moves: performed.moves,
        story: performed.updated_story,
        dry_run: arguments.dry_run,
    };
    if context.wants_json {
        json_documents::print_document(&move_document)?;
    } else {
        print_moves(&move_document, move_request)?;
    }
    Ok(0)
}

/// Moves a story forward on the board, never back, and the status in its file with it.
pub(super) fn move_story_forward(
    project: &Project,
    bmad: &BmadProject,
    story_key: &StoryKey,
    target_status: StoryStatus,
    dry_run: bool,
) -> Result<PerformedMove, UserError> {
    let board_key = BoardKey::Story(story_key.clone());
    bmad.require_single_line(&board_key)?;
    let target_state = BoardEntryState::Story(target_status);
    let move_request = MoveRequest { board_key: &board_key, target_state, move_mode: MoveMode::Forward };
    perform_move(project, bmad, move_request, dry_run)
}

/// What a move changed, or would change.
pub(super) struct PerformedMove {
    pub moves: Vec<BoardMove>,
    /// The story's file, if its status was changed as well.
    updated_story: Option<String>,
    /// What the user should know about the story's file.
    pub notice: Option<String>,
}

fn perform_move(
    project: &Project,
    bmad: &BmadProject,
    move_request: MoveRequest<'_>,
    dry_run: bool,
) -> Result<PerformedMove, UserError> {
    let MoveRequest { board_key, target_state, move_mode } = move_request;
    let file_path = bmad.board_path();
    // A preview without the lock finds refusals before any file is touched.
    let board_moves = preview_moves(bmad, &file_path, move_request)?;
    if move_mode == MoveMode::InOrder {
        require_story_file(bmad, board_key, &board_moves)?;
    }
    // The story's file is written before the board: the board is what other tools go by, so it changes last.
    let story_update = match board_moves.iter().find(|board_move| board_move.key == *board_key) {
        Some(board_move) => {
            let story_move = StoryMove { board_key, from_state: board_move.from, to_state: target_state };
            update_story_status(project, bmad, story_move, dry_run)?
        }
        None => StoryFileUpdate::Unchanged,
    };
    let moves = match dry_run {
        true => board_moves,
        // When the board cannot be written, the story's status is put back, so that the two files keep agreeing.
        false => {
            write_moves(project, &file_path, move_request).inspect_err(|_| restore_story(project, &story_update))?
        }
    };
    let (updated_story, notice) = match story_update {
        StoryFileUpdate::Updated(rewritten) => (Some(rewritten.file_path), None),
        StoryFileUpdate::LeftAlone { story_path, status_text } => {
            (None, Some(format!("{story_path} was not changed: its status `{status_text}` differs from the board")))
        }
        StoryFileUpdate::Unchanged => (None, None),
    };
    Ok(PerformedMove { moves, updated_story, notice })
}

/// Prints what was moved, or would be, one line for each change.
fn print_moves(move_document: &BoardMoves, move_request: MoveRequest<'_>) -> Result<(), UserError> {
    let MoveRequest { board_key, target_state, .. } = move_request;
    let BoardMoves { path: file_path, moves: board_moves, story: updated_story, dry_run, .. } = move_document;
    if let Some(updated_story) = updated_story {
        let prefix = if *dry_run { "would set" } else { "✓" };
        writeln!(wrapped_stdout(), "{}", escape_line(&format!("{prefix} Status: {target_state} · {updated_story}")))?;
    }
    if board_moves.is_empty() {
        writeln!(wrapped_stdout(), "{board_key} is already {target_state}")?;
    }
    // Moving one story can move its epic, too, so there may be more moves than the one that was asked for.
    for BoardMove { key: board_key, from: from_state, to: target_state, line: line_number, .. } in board_moves {
        let prefix = if *dry_run { "would move" } else { "✓" };
        writeln!(
            wrapped_stdout(),
            "{}",
            escape_line(&format!("{prefix} {board_key}: {from_state} → {target_state} · {file_path}:{line_number}"))
        )?;
    }
    Ok(())
}

/// Refuses to start a story without a file, where the project has a command that writes stories ahead of development.
fn require_story_file(bmad: &BmadProject, board_key: &BoardKey, board_moves: &[BoardMove]) -> Result<(), UserError> {
    let (BoardKey::Story(story_key), Some(story_move)) =
        (board_key, board_moves.iter().find(|board_move| board_move.key == *board_key))
    else {
        return Ok(());
    };
    // Only the jump over `ready-for-dev` skips the step in which the file is written.
    let skips_writing = story_move.from == BoardEntryState::Story(StoryStatus::Backlog)
        && story_move.to == BoardEntryState::Story(StoryStatus::InProgress);
    let create_command =
        commands::find_command(&bmad.layout, BmadStep::CreateStory, bmad.command_client(), &bmad.project_files);
    match create_command.to_prompt(story_key.as_str()) {
        // An era without a command to create stories has no prompt here, and then a missing file is normal.
        Some(prompt) if skips_writing && bmad.find_story_file(story_key).is_none() => {
            let problem = format!("cannot move {board_key} from backlog to in-progress: it has no story file");
            let user_error =
                UserError::new(EXIT_NEGATIVE, problem).with_step(format!("have an agent write it: `{prompt}`"));
            Err(user_error.with_step("or move it anyway: add `--anyway`"))
        }
        _ => Ok(()),
    }
}

/// A move as the user asked for it.
#[derive(Clone, Copy)]
struct MoveRequest<'a> {
    board_key: &'a BoardKey,
    target_state: BoardEntryState,
    move_mode: MoveMode,
}

impl MoveRequest<'_> {
    fn apply_to(self, board_text: &str) -> Result<MovedBoard, BoardMoveRefusal> {
        move_entry(board_text, self.board_key, self.target_state, self.move_mode)
    }
}

/// A move of a story on the board, which the status line of its own file should follow.
#[derive(Clone, Copy)]
struct StoryMove<'a> {
    board_key: &'a BoardKey,
    from_state: BoardEntryState,
    to_state: BoardEntryState,
}

/// What happened to the story's own file.
enum StoryFileUpdate {
    Updated(RewrittenFile),
    /// The file said something else than the board did before the move; the user has to say which of the two is
    /// right.
    LeftAlone {
        story_path: String,
        status_text: String,
    },
    /// There is no file, it has no status line, or the line has the new status already.
    Unchanged,
}

/// A file's text before and after it was rewritten.
struct RewrittenFile {
    file_path: String,
    old_text: String,
    new_text: String,
}

/// Sets the status in a story's own file, provided that it agreed with the board before.
fn update_story_status(
    project: &Project,
    bmad: &BmadProject,
    story_move: StoryMove<'_>,
    dry_run: bool,
) -> Result<StoryFileUpdate, UserError> {
    // Epics and retrospectives have no file of their own.
    let (BoardKey::Story(story_key), BoardEntryState::Story(from_status), BoardEntryState::Story(to_status)) =
        (story_move.board_key, story_move.from_state, story_move.to_state)
    else {
        return Ok(StoryFileUpdate::Unchanged);
    };
    let Some(story_path) = bmad.find_story_file(story_key) else { return Ok(StoryFileUpdate::Unchanged) };
    let rewrite_status = |story_text: &str| -> Result<(String, StoryFileUpdate), story::edit::StoryEditRefusal> {
        let leave_text = |file_update: StoryFileUpdate| Ok((story_text.to_string(), file_update));
        let Some(status_line) = story::read_story(&story_path, story_text).status else {
            return leave_text(StoryFileUpdate::Unchanged);
        };
        if status_line.status == Some(to_status) {
            return leave_text(StoryFileUpdate::Unchanged);
        }
        if status_line.status != Some(from_status) {
            return leave_text(StoryFileUpdate::LeftAlone {
                story_path: story_path.clone(),
                status_text: status_line.said,
            });
        }
        let new_text = set_status(story_text, to_status)?;
        Ok((
            new_text.clone(),
            StoryFileUpdate::Updated(RewrittenFile {
                file_path: story_path.clone(),
                old_text: story_text.to_string(),
                new_text,
            }),
        ))
    };
    let explain_edit_refusal = |refusal: story::edit::StoryEditRefusal| {
        UserError::new(
            EXIT_NEGATIVE,
            format!("nothing was moved because {story_path} could not be changed: {}", refusal.reason),
        )
        .with_step(refusal.advice)
    };
    // A dry run applies the same rule to the text as it is read, without taking the lock.
    if dry_run {
        // Nothing is shown about a file that cannot be read; the move itself would fail on it.
        return match bmad.project_files.read_file(&story_path) {
            Ok(Some(story_text)) => {
                rewrite_status(&story_text).map(|(_, file_update)| file_update).map_err(explain_edit_refusal)
            }
            _ => Ok(StoryFileUpdate::Unchanged),
        };
    }
    edit_file(project, &story_path, rewrite_status).map_err(|write_error| match write_error {
        EditFileError::Refused { why: refusal, .. } => explain_edit_refusal(refusal),
        write_failure => explain_write_error(&write_failure),
    })
}

/// Puts the old status back into a story whose board could not be moved, unless the file was edited in between. If
/// that fails, the two files differ, which `validate` reports; the error about the board is the one that the user has
/// to read now.
fn restore_story(project: &Project, story_update: &StoryFileUpdate) {
    let StoryFileUpdate::Updated(rewritten) = story_update else { return };
    let RewrittenFile { file_path: story_path, old_text, new_text } = rewritten;
    // Comparing under the lock makes sure that an edit that was made meanwhile is not overwritten.
    let restore_text = |current_text: &str| {
        Ok::<_, ()>((if current_text == new_text { old_text.clone() } else { current_text.to_string() }, ()))
    };
    // The result is ignored on purpose: the error about the board is on its way already.
    let _ = edit_file(project, story_path, restore_text);
}

fn parse_state(board_key: &BoardKey, state_name: &str) -> Result<BoardEntryState, UserError> {
    let state_names: Vec<&str> = BoardEntryState::all_for(board_key).into_iter().map(BoardEntryState::as_str).collect();
    BoardEntryState::parse(board_key, state_name).ok_or_else(|| {
        let user_error = UserError::usage(format!("`{state_name}` is not a valid state for {board_key}"))
            .with_reason(format!("Valid states: {}.", state_names.join(", ")));
        match nearest_name(state_name, &state_names) {
            Some(suggestion) => user_error.with_step(format!("did you mean `{suggestion}`?")),
            None => user_error,
        }
    })
}

/// Computes what would move. It takes no lock and writes nothing.
fn preview_moves(
    bmad: &BmadProject,
    board_path: &str,
    move_request: MoveRequest<'_>,
) -> Result<Vec<BoardMove>, UserError> {
    let board_text = match bmad.project_files.read_file(board_path) {
        Ok(Some(board_text)) => board_text,
        Ok(None) => {
            return Err(explain_write_error(&EditFileError::<()>::Missing { path: board_path.to_string() }));
        }
        Err(reason) => {
            return Err(explain_write_error(&EditFileError::<()>::Unreadable {
                path: board_path.to_string(),
                why: reason,
            }));
        }
    };
    move_request
        .apply_to(&board_text)
        .map(|edited_board| edited_board.moves)
        .map_err(|reason| explain_refusal(board_path, reason))
}

fn write_moves(
    project: &Project,
    board_path: &str,
    move_request: MoveRequest<'_>,
) -> Result<Vec<BoardMove>, UserError> {
    // The rule is applied again to the text under the lock: another process may have changed the board since the
    // preview.
    let write_result = edit_file(project, board_path, |board_text| {
        let edited_board = move_request.apply_to(board_text)?;
        Ok((edited_board.board_text, edited_board.moves))
    });
    write_result.map_err(|write_error| match write_error {
        EditFileError::Refused { why: refusal, .. } => explain_refusal(board_path, refusal),
        write_failure => explain_write_error(&write_failure),
    })
}

/// Explains why a file of the project could not be written.
pub(crate) fn explain_write_error<E>(write_error: &EditFileError<E>) -> UserError {
    match write_error {
        EditFileError::Missing { path: file_path } => UserError::usage(format!("{file_path} not found")),
        EditFileError::Unreadable { path: file_path, why: read_failure } => {
            let problem = read_failure.to_problem(file_path);
            // What the system refuses is a matter of this machine; every other cause is in the file itself.
            let exit_code =
                if matches!(read_failure, UnreadableFile::Refused { .. }) { EXIT_ENVIRONMENT } else { EXIT_NEGATIVE };
            UserError::new(exit_code, problem.to_string()).with_reason(problem.why).with_step(problem.todo)
        }
        EditFileError::LockedByOther {
            path: file_path,
            locked: FileLockFailure::HeldBy { holder, lock: lock_path },
        } => {
            let user_error = UserError::new(EXIT_ENVIRONMENT, format!("{file_path} is locked: {holder}"));
            let lock_path = lock_path.display();
            match holder.process {
                // A dead holder's lock is cleared after a grace period, so there is nothing to remove by hand.
                Some(_) if holder.is_dead() => user_error
                    .with_step("try again in 30 seconds; the lock of an exited process is removed automatically"),
                // A process of another container is not visible here, so its age is the only sign that it may be
                // gone.
                Some(_) if holder.age >= STALE_LOCK_AGE => user_error
                    .with_reason("It may belong to a process in another container, which cannot be checked from here.")
                    .with_step(format!(
                        "make sure that no program is writing the file, then remove the lock: `rm {lock_path}`"
                    )),
                Some(_) => user_error.with_step("try again when it is done"),
                None => user_error
                    .with_reason("Only the program that created the lock knows whether it is still needed.")
                    .with_step(format!(
                        "make sure that no program is writing the file, then remove the lock: `rm {lock_path}`"
                    )),
            }
        }
        EditFileError::LockedByOther {
            path: file_path,
            locked: FileLockFailure::IoFailed { cause, lock: lock_path },
        } => {
            let cause = cause.kind();
            UserError::new(EXIT_ENVIRONMENT, format!("{file_path} cannot be locked ({}: {cause})", lock_path.display()))
                .with_step("check the permissions of its directory")
        }
        EditFileError::AlwaysChanged { path: file_path } => UserError::new(
            EXIT_ENVIRONMENT,
            format!("{file_path} was changed by another program on every attempt to write it"),
        )
        .with_reason("Nothing was written; the other program's changes are kept.")
        .with_step("find out which program is writing it, then try again"),
        EditFileError::Failed { path: file_path, cause } => {
            UserError::new(EXIT_ENVIRONMENT, format!("{file_path} cannot be written: {cause}"))
                .with_step("check the permissions of its directory, and that the disk is not full")
        }
        EditFileError::Refused { path: file_path, .. } => {
            UserError::new(EXIT_NEGATIVE, format!("{file_path} was not changed"))
        }
    }
}

fn explain_refusal(board_path: &str, reason: BoardMoveRefusal) -> UserError {
    match reason {
        // One problem is enough to act on; `validate` lists all of them.
        BoardMoveRefusal::BrokenBoard { board } => match board.problems.into_iter().next() {
            Some(mut problem) => {
                problem.path = board_path.to_string();
                UserError::new(EXIT_NEGATIVE, problem.to_string()).with_reason(problem.why).with_step(problem.todo)
            }
            None => UserError::new(EXIT_NEGATIVE, format!("{board_path} is not a sprint board")),
        },
        BoardMoveRefusal::UnknownKey { key: board_key } => {
            UserError::usage(format!("{board_key} is not in {board_path}"))
        }
        BoardMoveRefusal::NoKnownState { key: board_key, raw_state: state_text, line: line_number } => UserError::new(
            EXIT_NEGATIVE,
            match state_text.as_str() {
                "" => format!("{board_path}:{line_number}: {board_key} has no state"),
                state_text => {
                    format!("{board_path}:{line_number}: `{state_text}` is not a valid state for {board_key}")
                }
            },
        )
        .with_reason("Whether it can be moved depends on its current state.")
        .with_step("fix its current state in the file by hand"),
        BoardMoveRefusal::WrongKind { key: board_key, target: to_state } => {
            UserError::usage(format!("{board_key} cannot be {to_state}"))
        }
        // Going back or skipping a state is possible, but only with `--anyway`.
        BoardMoveRefusal::OutOfOrder {
            key: board_key,
            current: from_state,
            target: to_state,
            line: line_number,
            violation: reason,
        } => UserError::new(
            EXIT_NEGATIVE,
            format!("{board_path}:{line_number}: cannot move {board_key} from {from_state} to {to_state}: {reason}"),
        )
        .with_step("to move it anyway: add `--anyway`"),
        BoardMoveRefusal::NotPlainValue { key: board_key, line: line_number } => UserError::new(
            EXIT_NEGATIVE,
            format!("{board_path}:{line_number}: the state of {board_key} is not a plain YAML value"),
        )
        .with_reason("An alias or multi-line value cannot be replaced without changing more.")
        .with_step("write the state as a plain value, or move it by hand"),
        BoardMoveRefusal::WouldChangeMore { key: board_key } => {
            UserError::new(EXIT_NEGATIVE, format!("{board_path}: moving {board_key} would also change another entry"))
                .with_reason("Its line has a YAML anchor that another line refers to.")
                .with_step("write both states as plain values, or move it by hand")
        }
    }
}
