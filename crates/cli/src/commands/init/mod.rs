//! `tribunal init`: sets Tribunal up in a project, and takes its hooks out again.
//!
//! Everything that would change is planned first and shown as a diff; then all files are written, or none. The
//! contents of clients' files are the concern of `hook::install`, our own settings that of [`settings`], and ignored
//! files that of [`gitignore`]. No client is started: whether one is installed is seen on the search path.

mod document;
mod gitignore;
mod hooks;
mod settings;

use std::io::Write;

use tribunal_agents::hook::HookClient;
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    landing::landings::RenderedFileDiff,
    project::file_edits::{self, EditError, FileEdit},
};

use self::{
    document::{INIT_SCHEMA, InitClientRow, ManualEdit},
    settings::ReviewProfile,
};
use super::diff::{build_file_row, format_count, write_diff};
use crate::{
    bmad::BmadProject,
    clients::installed_clients::join_names,
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_ENVIRONMENT, EXIT_NEGATIVE, UserError},
    },
    terminal::{
        prompt::ask_yes_no,
        wrapped_output::{wrapped_stderr, wrapped_stdout},
    },
};

pub(crate) use document::InitReport;

#[derive(Debug, clap::Args)]
pub(crate) struct InitArguments {
    #[arg(long = "client", value_name = "NAME", help = client_help())]
    clients: Vec<HookClient>,
    /// Use settings files shared with other users of the project; hooks do nothing where Tribunal is missing
    #[arg(long)]
    shared: bool,
    /// Remove Tribunal's hooks
    #[arg(long, conflicts_with_all = ["shared", "profile"])]
    remove: bool,
    /// Show what would change without writing anything
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Review profile for a new tribunal.yaml
    #[arg(long, value_name = "PROFILE", value_enum)]
    profile: Option<ReviewProfile>,
}

fn client_help() -> String {
    format!("Only this client: {} (default: all found on the PATH)", join_names(&HookClient::all_ids(), "or"))
}

/// Everything that the command would do.
#[derive(Debug, Default)]
struct InitPlan {
    edits: Vec<FileEdit>,
    client_rows: Vec<InitClientRow>,
    bmad_dir: Option<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
    manual_edits: Vec<ManualEdit>,
}

pub(crate) fn run(arguments: &InitArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let mut init_plan = build_plan(arguments, context, &project)?;
    if !arguments.dry_run {
        file_edits::sweep_edit_leftovers(&project, &init_plan.edits);
    }
    // A second `init` plans the same edits, which then change nothing.
    init_plan.edits.retain(FileEdit::has_changes);
    if !context.wants_json {
        print_plan(&init_plan, context)?;
    }
    if init_plan.edits.is_empty() || arguments.dry_run {
        print_result(&init_plan, arguments, context, false)?;
        return Ok(0);
    }
    // Without a terminal and without `--yes` nothing is written: a script has to say explicitly that it may.
    if !arguments.yes {
        if !context.can_ask() {
            return Err(explain_missing_consent(arguments, context));
        }
        if !ask_for_consent(&init_plan, arguments)? {
            writeln!(wrapped_stderr(), "note: nothing was {}", participle_of(arguments))?;
            return Ok(EXIT_NEGATIVE);
        }
    }
    // The files are compared again when they are written, so an edit made during the question is not lost.
    file_edits::apply_edits(&project, &init_plan.edits).map_err(explain_edit_error)?;
    print_result(&init_plan, arguments, context, true)?;
    Ok(0)
}

fn build_plan(arguments: &InitArguments, context: &CommandContext, project: &Project) -> Result<InitPlan, UserError> {
    let mut init_plan = InitPlan { bmad_dir: BmadProject::read_project(project).layout.root, ..InitPlan::default() };
    // Removing takes out hooks only; settings and ignored lines may be in use by others.
    if arguments.remove {
        hooks::plan_removal(&mut init_plan, arguments, context, project)?;
        return Ok(init_plan);
    }
    hooks::plan_installation(&mut init_plan, arguments, context, project)?;
    settings::plan_settings_file(&mut init_plan, arguments, project)?;
    // Ignored lines come last: they depend on which files the steps before create.
    gitignore::plan_ignored_lines(&mut init_plan, arguments, project)?;
    Ok(init_plan)
}

/// Rebuilds the command line that the user typed, with extra flags behind it.
fn rebuild_command(arguments: &InitArguments, context: &CommandContext, extra_flags: &str) -> String {
    let mut command_line = format!("{} init", context.answer_screen.program_name);
    for client in &arguments.clients {
        command_line.push_str(&format!(" --client {}", client.client_id()));
    }
    for (is_given, flag) in [(arguments.shared, " --shared"), (arguments.remove, " --remove")] {
        command_line.push_str(if is_given { flag } else { "" });
    }
    if let Some(profile) = arguments.profile {
        command_line.push_str(&format!(" --profile {}", profile.as_str()));
    }
    command_line + extra_flags
}

/// What the command does to files, for sentences such as "nothing was written".
fn participle_of(arguments: &InitArguments) -> &'static str {
    if arguments.remove { "removed" } else { "written" }
}

fn explain_missing_consent(arguments: &InitArguments, context: &CommandContext) -> UserError {
    let purpose = if arguments.remove { "remove the hooks" } else { "write them" };
    UserError::usage("cannot ask for confirmation without a terminal")
        .with_reason(format!("Nothing was {}.", participle_of(arguments)))
        .with_step(format!("{purpose}: `{}`", rebuild_command(arguments, context, " --yes")))
        .with_step(format!("or only show the changes: `{}`", rebuild_command(arguments, context, " --dry-run")))
}

fn ask_for_consent(init_plan: &InitPlan, arguments: &InitArguments) -> Result<bool, UserError> {
    let file_count = format_count(init_plan.edits.len(), "file");
    let question =
        if arguments.remove { format!("remove hooks from {file_count}") } else { format!("write {file_count}") };
    Ok(ask_yes_no(&question)?)
}

/// Prints the exact changes, what they do, and what the user should know before agreeing.
fn print_plan(init_plan: &InitPlan, context: &CommandContext) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    for edit in &init_plan.edits {
        write_diff(&mut output, &context.answer_screen, &RenderedFileDiff::from_edit(edit).patch_text)?;
    }
    for client_row in &init_plan.client_rows {
        writeln!(output, "{}", escape_line(&client_row.summary_line()))?;
    }
    for manual_edit in &init_plan.manual_edits {
        writeln!(output, "{}", escape_line(&manual_edit.why))?;
        for text_line in manual_edit.text.lines() {
            writeln!(output, "    {}", escape_line(text_line))?;
        }
    }
    // The lock is released first, so that both streams appear in this order on a terminal.
    drop(output);
    let mut error_output = wrapped_stderr();
    for (prefix, messages) in [("warning", &init_plan.warnings), ("note", &init_plan.notes)] {
        for text_line in messages {
            writeln!(error_output, "{prefix}: {}", escape_line(text_line))?;
        }
    }
    Ok(())
}

fn print_result(
    init_plan: &InitPlan,
    arguments: &InitArguments,
    context: &CommandContext,
    was_written: bool,
) -> Result<(), UserError> {
    if context.wants_json {
        return Ok(json_documents::print_document(&document(init_plan, arguments, was_written))?);
    }
    let mut output = wrapped_stdout();
    let summary = match (init_plan.edits.is_empty(), was_written) {
        (true, _) if arguments.remove => "no hooks to remove".to_string(),
        (true, _) => "nothing to change".to_string(),
        (false, true) => describe_written_files(&init_plan.edits, arguments),
        (false, false) => {
            let command_line = rebuild_command(arguments, context, " --yes");
            let purpose = if arguments.remove { "remove them" } else { "write it" };
            format!("nothing was {}; to {purpose}, run `{command_line}`", participle_of(arguments))
        }
    };
    writeln!(output, "{}", escape_line(&summary))?;
    Ok(())
}

/// Says what happened to which files.
fn describe_written_files(edits: &[FileEdit], arguments: &InitArguments) -> String {
    // A file in which nothing but our hooks was left is deleted, also when hooks move to a shared file.
    let (deleted, written): (Vec<&FileEdit>, Vec<&FileEdit>) = edits.iter().partition(|edit| edit.new_text.is_none());
    let join_paths =
        |edits: &[&FileEdit]| edits.iter().map(|edit| edit.relative_path.as_str()).collect::<Vec<_>>().join(", ");
    let written_verb = if arguments.remove { "removed hooks from" } else { "wrote" };
    let phrases = [(written_verb, written), ("deleted", deleted)];
    let phrases: Vec<String> = phrases
        .iter()
        .filter(|(_, edits)| !edits.is_empty())
        .map(|(verb, edits)| format!("{verb} {}", join_paths(edits)))
        .collect();
    phrases.join("; ")
}

fn document(init_plan: &InitPlan, arguments: &InitArguments, was_written: bool) -> InitReport {
    InitReport {
        schema: INIT_SCHEMA,
        done: was_written,
        clients: init_plan.client_rows.clone(),
        files: init_plan.edits.iter().map(|edit| build_file_row(&RenderedFileDiff::from_edit(edit))).collect(),
        bmad: init_plan.bmad_dir.clone(),
        profile: arguments.profile.map(ReviewProfile::as_str),
        warnings: init_plan.warnings.clone(),
        notes: init_plan.notes.clone(),
        by_hand: init_plan.manual_edits.clone(),
    }
}

/// Reads a file of the project, and explains why it cannot be edited if it is not usable as it is.
pub(super) fn read_project_file(project: &Project, file_path: &str) -> Result<Option<String>, UserError> {
    file_edits::read_project_file(project, file_path).map_err(|read_failure| {
        let problem = read_failure.to_problem(file_path);
        // What the system refuses is a matter of this machine; every other cause can be corrected in the file.
        let exit_code = match read_failure {
            tribunal_bmad::project_files::UnreadableFile::Refused { .. } => EXIT_ENVIRONMENT,
            _ => crate::messages::user_errors::EXIT_USAGE,
        };
        let user_error = UserError::new(exit_code, problem.to_string()).with_reason("No file was changed.");
        if problem.todo.is_empty() { user_error } else { user_error.with_step(problem.todo) }
    })
}

pub(super) fn explain_edit_error(edit_error: EditError) -> UserError {
    let user_error = match &edit_error {
        EditError::ChangedMeanwhile { .. } => UserError::new(EXIT_NEGATIVE, edit_error.to_string())
            .with_step("find out which program is writing it, then try again"),
        EditError::Failed { .. } => UserError::new(EXIT_ENVIRONMENT, edit_error.to_string())
            .with_step("check the permissions of its directory, and that the disk is not full"),
    };
    // The guarantee holds for both errors: earlier files are restored when a later one fails.
    user_error.with_reason("Nothing was changed; either all files are written or none.")
}
