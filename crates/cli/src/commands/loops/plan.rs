//! `tribunal loop plan`: writes the stories of a BMAD project into a fix plan, with a prompt and copies of the planning
//! documents beside it, so that `tribunal loop run` can work on them. Run again, it adds what is new, keeps what is ticked, and
//! moves ticked stories on the board.

use std::io::{Write, stdout};

use tribunal_bmad::{
    board::edit::BoardMove,
    ralph::{
        fix_plan_writer::{FixPlanChanges, write_fix_plan},
        project::{FIX_PLAN_PROMPT, locate_fix_plan},
        spec_copies::SPECS_FOLDER,
    },
};
use tribunal_engine::text::format_count;
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    project::file_edits::{self, FileEdit},
};

use super::{
    board_sync::{BoardSync, describe_move, describe_remaining_steps, sync_board_from_plan},
    plan_commit::{PlanPaths, build_commit_command},
    plan_files::{plan_prompt, plan_specs},
    plan_stories::gather_stories,
};
use crate::{
    bmad::BmadProject,
    commands::init::{explain_edit_error, read_project_file},
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::{wrapped_stderr, wrapped_stdout},
};

#[derive(Debug, clap::Args)]
pub(crate) struct LoopPlanArguments {
    /// Show what would be written and moved, without changing anything
    #[arg(long)]
    pub(in crate::commands) dry_run: bool,
    /// Also replace specs that were edited by hand
    #[arg(long)]
    force: bool,
}

/// The document of `tribunal loop plan`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LoopPlanDocument {
    schema: &'static str,
    /// Whether nothing was written or moved; then this is what would be.
    dry_run: bool,
    /// The path of the plan, relative to the project's root.
    plan: String,
    /// The file with the task of the loop.
    prompt: String,
    /// The files that were written.
    written: Vec<String>,
    /// Specs that were edited by hand and not replaced.
    kept: Vec<String>,
    stories: FixPlanChanges,
    /// What moved on the board because boxes were ticked.
    board: Vec<BoardMove>,
    warnings: Vec<String>,
    /// The commands to run next.
    next: Vec<String>,
}

pub(super) fn run_plan(arguments: &LoopPlanArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    let stories = gather_stories(&bmad)?;
    let place = locate_fix_plan(&bmad.project_files);
    let old_plan = read_project_file(&project, &place.plan)?;
    let written_plan =
        write_fix_plan(old_plan.as_deref().unwrap_or_default(), &stories.epics, &place.plan).map_err(|problem| {
            UserError::new(EXIT_NEGATIVE, problem.to_string())
                .with_reason(format!("{} No file was changed.", problem.why))
                .with_step(problem.todo.clone())
        })?;
    if written_plan.changes.done + written_plan.changes.open == 0 {
        return Err(UserError::usage("no stories to work on")
            .with_reason("The board says that all of them are blocked, deferred or dropped. No file was changed.")
            .with_step("move one back: `tribunal board move STORY ready-for-dev --anyway`"));
    }
    let mut specs = plan_specs(&project, &bmad, &stories.epics, arguments.force)?;
    let prompt_edit = plan_prompt(&project, &place)?;
    // The board moves first: the new plan says that its ticks are counted.
    let board_sync = sync_board_from_plan(&project, arguments.dry_run)?;
    if !board_sync.moves.is_empty() {
        // The status in the file of a story moves with the board, so its copy is another one now.
        specs = plan_specs(&project, &bmad, &stories.epics, arguments.force)?;
    }
    let plan_edit =
        FileEdit { relative_path: place.plan.clone(), old_text: old_plan, new_text: Some(written_plan.text) };
    let mut edits: Vec<FileEdit> = [plan_edit].into_iter().chain(prompt_edit).chain(specs.edits).collect();
    edits.retain(FileEdit::has_changes);
    if !arguments.dry_run {
        write_files(&project, &edits, &board_sync)?;
    }
    let mut document = LoopPlanDocument {
        schema: "tribunal.loop-plan/1",
        dry_run: arguments.dry_run,
        prompt: place.prompt.unwrap_or_else(|| FIX_PLAN_PROMPT.to_string()),
        plan: place.plan,
        written: edits.into_iter().map(|edit| edit.relative_path).collect(),
        kept: specs.kept,
        stories: written_plan.changes,
        warnings: [stories.warnings, specs.warnings, board_sync.warnings].concat(),
        board: board_sync.moves,
        next: Vec::new(),
    };
    let planning_paths: Vec<String> = specs.sources.into_iter().chain([bmad.board_path()]).collect();
    let plan_paths = PlanPaths { plan: &document.plan, prompt: &document.prompt, planning: &planning_paths };
    let commit_command = match document.dry_run {
        true => None,
        false => build_commit_command(&project, &bmad, &plan_paths),
    };
    document.next = list_next_commands(&document, commit_command, context.program_name());
    if context.wants_json {
        json_documents::print_document(&document)?;
    } else {
        print_plan(&document, context)?;
    }
    Ok(0)
}

fn write_files(project: &Project, edits: &[FileEdit], board_sync: &BoardSync) -> Result<(), UserError> {
    file_edits::sweep_edit_leftovers(project, edits);
    file_edits::apply_edits(project, edits).map_err(|edit_error| {
        let user_error = explain_edit_error(edit_error);
        match board_sync.moves.is_empty() {
            true => user_error,
            false => {
                user_error.with_reason("The board was moved, but the plan and the files beside it were not written.")
            }
        }
    })
}

/// The commands that come next.
fn list_next_commands(document: &LoopPlanDocument, commit_command: Option<String>, program_name: &str) -> Vec<String> {
    if document.dry_run {
        return vec![format!("{program_name} loop plan")];
    }
    let last_command = match document.stories.open {
        0 => format!("{program_name} verify STORY"),
        _ => format!("{program_name} loop run"),
    };
    commit_command.into_iter().chain([last_command]).collect()
}

fn print_plan(document: &LoopPlanDocument, context: &CommandContext) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let (written_verb, moved_verb) =
        if document.dry_run { ("would write", "would move") } else { ("✓ wrote", "✓") };
    for board_move in &document.board {
        writeln!(output, "{moved_verb} {}", escape_line(&describe_move(board_move, &document.plan)))?;
    }
    let specs_prefix = format!("{SPECS_FOLDER}/");
    let (spec_paths, other_paths): (Vec<&String>, Vec<&String>) =
        document.written.iter().partition(|path| path.starts_with(&specs_prefix));
    for path in other_paths {
        writeln!(output, "{written_verb} {}", escape_line(path))?;
    }
    if !spec_paths.is_empty() {
        writeln!(output, "{written_verb} {} in {SPECS_FOLDER}", format_count(to_count(spec_paths.len()), "file"))?;
    }
    if document.written.is_empty() {
        writeln!(output, "nothing to write: {} and the files beside it are up to date", escape_line(&document.plan))?;
    }
    writeln!(output, "stories: {}", escape_line(&describe_changes(&document.stories)))?;
    // The lock is released first, so that both streams appear in this order on a terminal.
    drop(output);
    let mut error_output = wrapped_stderr();
    for warning in &document.warnings {
        writeln!(error_output, "warning: {}", escape_line(warning))?;
    }
    for note in list_notes(document, context.program_name()) {
        writeln!(error_output, "note: {}", escape_line(&note))?;
    }
    drop(error_output);
    // Commands are not wrapped: a line break in what the user copies would cut a command in two.
    let mut output = stdout().lock();
    let mut label = "next:";
    for command in &document.next {
        writeln!(output, "{label} {}", escape_line(command))?;
        label = "     ";
    }
    Ok(())
}

/// Counts the stories: `3 new, 1 changed (1-2: the acceptance criteria), 5 done, 2 open`.
fn describe_changes(changes: &FixPlanChanges) -> String {
    let mut phrases = Vec::new();
    if !changes.new.is_empty() {
        phrases.push(format!("{} new", changes.new.len()));
    }
    if !changes.changed.is_empty() {
        let changed_parts: Vec<String> =
            changes.changed.iter().map(|changed| format!("{}: {}", changed.story, changed.describe_parts())).collect();
        phrases.push(format!("{} changed ({})", changes.changed.len(), changed_parts.join("; ")));
    }
    phrases.push(format!("{} done", changes.done));
    phrases.push(format!("{} open", changes.open));
    phrases.join(", ")
}

/// Says what the user should look at.
fn list_notes(document: &LoopPlanDocument, program_name: &str) -> Vec<String> {
    let plan_path = &document.plan;
    let mut notes = Vec::new();
    for changed in document.stories.changed.iter().filter(|changed| changed.done) {
        notes.push(format!("{} has changed and stays ticked; untick it if it has to be done again", changed.story));
    }
    for story in &document.stories.vanished {
        notes.push(format!(
            "{story} is in {plan_path}, but neither in the epics nor on the board; its item was kept, remove it if it is not needed"
        ));
    }
    for parked in &document.stories.parked {
        notes.push(match parked.in_plan {
            true => format!("{} is {} on the board, but still in {plan_path}", parked.story, parked.state),
            false => format!("{} is {} on the board and was left out", parked.story, parked.state),
        });
    }
    for spec_path in &document.kept {
        notes.push(format!(
            "{spec_path} was edited by hand and kept; replace it with `{program_name} loop plan --force`"
        ));
    }
    if !document.board.is_empty() {
        notes.push(describe_remaining_steps(program_name));
    }
    notes
}

fn to_count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
