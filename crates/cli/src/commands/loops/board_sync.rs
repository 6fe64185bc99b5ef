//! Passes the progress of a fix plan on to the board: a story whose box was ticked moves to `review`, never further and never
//! back. A tick is the claim of an agent or of the user; only verification makes a story done.

use std::collections::BTreeSet;

use tribunal_bmad::{
    board::{Board, BoardEntryState, edit::BoardMove},
    keys::{BoardKey, StoryKey},
    project_files::ProjectFiles,
    ralph::{fix_plan_marks::story_plan_name, fix_plan_writer::find_new_ticks, project::locate_fix_plan},
    states::StoryStatus,
};
use tribunal_engine::reason::RunOutcome;
use tribunal_runner::Project;

use crate::{
    bmad::BmadProject,
    commands::board::move_story_forward,
    context::CommandContext,
    messages::user_errors::{EXIT_NEGATIVE, UserError},
    runs::engine::RunEnd,
};

/// What the ticks of a plan changed on the board, or would change.
#[derive(Debug, Default)]
pub(super) struct BoardSync {
    pub moves: Vec<BoardMove>,
    pub warnings: Vec<String>,
}

/// Moves the stories whose boxes were ticked since the plan was written.
pub(super) fn sync_board_from_plan(project: &Project, dry_run: bool) -> Result<BoardSync, UserError> {
    let bmad = BmadProject::read_project(project);
    let mut board_sync = BoardSync::default();
    let Some(board) = bmad.board.as_ref().filter(|board| board.is_readable) else { return Ok(board_sync) };
    let Ok(Some(plan_text)) = bmad.project_files.read_file(&locate_fix_plan(&bmad.project_files).plan) else {
        return Ok(board_sync);
    };
    for story_key in find_ticked_stories(board, &find_new_ticks(&plan_text), &mut board_sync.warnings) {
        match move_story_forward(project, &bmad, story_key, StoryStatus::Review, dry_run) {
            Ok(performed) => {
                board_sync.moves.extend(performed.moves);
                board_sync.warnings.extend(performed.notice);
            }
            // The other stories can still be moved. A lock or a full disk concerns all of them.
            Err(user_error) if user_error.exit_code == EXIT_NEGATIVE => {
                let warning = format!("{story_key} was not moved to review: {}", user_error.to_single_line());
                board_sync.warnings.push(warning);
            }
            Err(user_error) => return Err(user_error),
        }
    }
    Ok(board_sync)
}

/// Finds the ticked stories that the board has before `review`.
fn find_ticked_stories<'b>(
    board: &'b Board,
    ticked_names: &BTreeSet<String>,
    warnings: &mut Vec<String>,
) -> Vec<&'b StoryKey> {
    let mut story_keys = Vec::new();
    for ticked_name in ticked_names {
        let own_entries: Vec<_> =
            board.stories().filter(|(story_key, _)| story_plan_name(story_key) == *ticked_name).collect();
        match own_entries.as_slice() {
            [(story_key, board_entry)] => match board_entry.state {
                Some(BoardEntryState::Story(status)) if status < StoryStatus::Review => story_keys.push(*story_key),
                // It is there already, or the board says that no work is done on it.
                _ => {}
            },
            [] => {}
            _ => warnings.push(format!(
                "{ticked_name} was not moved to review: {} has several stories with this number",
                board.path
            )),
        }
    }
    story_keys
}

/// Describes a move for users.
pub(super) fn describe_move(board_move: &BoardMove, plan_path: &str) -> String {
    let BoardMove { key, from, to, .. } = board_move;
    match key {
        BoardKey::Story(_) => format!("{key}: {from} → {to} (ticked in {plan_path})"),
        // The epic of a story that is begun moves with it.
        BoardKey::Epic(_) | BoardKey::Retrospective(_) => format!("{key}: {from} → {to}"),
    }
}

/// Says what is left to do after stories were moved.
pub(super) fn describe_remaining_steps(program_name: &str) -> String {
    format!(
        "a ticked box moves a story to review and no further; check it with `{program_name} verify STORY`, finish it with \
         `{program_name} sprint STORY`"
    )
}

/// Moves the board after a loop has ended and its work has landed, and prints what was moved. The loop has ended well, so a board
/// that cannot be written is only a warning.
pub(in crate::commands) fn report_plan_progress(
    project: &Project,
    run_end: &RunEnd,
    context: &CommandContext,
) -> Result<(), UserError> {
    if run_end.reason.outcome() != Some(RunOutcome::Resolved) {
        return Ok(());
    }
    let board_sync = match sync_board_from_plan(project, false) {
        Ok(board_sync) => board_sync,
        Err(user_error) => {
            let warning = format!("the board was not moved: {}", user_error.to_single_line());
            return context.print_warning(&warning);
        }
    };
    for warning in &board_sync.warnings {
        context.print_warning(warning)?;
    }
    if board_sync.moves.is_empty() {
        return Ok(());
    }
    let plan_path = locate_fix_plan(&BmadProject::read_project(project).project_files).plan;
    for board_move in &board_sync.moves {
        context.print_note(&describe_move(board_move, &plan_path))?;
    }
    context.print_note(&describe_remaining_steps(context.program_name()))
}
