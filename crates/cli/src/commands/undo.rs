//! `tribunal undo RUN[.FINDING]`: undoes what a run changed.

use std::{
    collections::BTreeMap,
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use tribunal_engine::{
    ids::{FindingId, RunId},
    text::shell_quote,
};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    landing::{
        landings::{FileChangeKind, LandingsDiff, RenderedFileDiff},
        undo::{UndoPlan, UndoResult, join_finding_ids, landings_log_command, preview_undo, undo_landings},
    },
};

use tribunal_store::Store;

use super::diff::{
    build_file_row, build_landing_row, explain_empty_diff, find_repairing_run, format_count, split_run_and_finding,
    write_diff,
};
use crate::{
    context::{CommandContext, find_run},
    messages::{
        json_documents::{self, ChangedFile, UndoDocument},
        user_errors::UserError,
    },
};

/// Where copies of the files are kept as they were before the undo.
type ParkedFiles = BTreeMap<String, PathBuf>;

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArguments {
    /// Run, or a finding of it: RUN.F3, or just F3 if only one run fixed an F3
    #[arg(value_name = "RUN[.FINDING]")]
    what: String,
    /// Undo the changes instead of only showing them
    #[arg(long)]
    pub(super) yes: bool,
    /// Also undo other findings that the same change fixed
    #[arg(long)]
    together: bool,
}

/// Refuses to undo what a review changed in the workspace of a story: it is part of the story's commit, or of its workspace.
fn refuse_within_story(project: &Project, run_id: &RunId) -> Result<(), UserError> {
    let store = Store::open_read_only(&project.home_dir())?;
    let view_of = |run_id: &RunId| Ok::<_, UserError>(store.read_view(run_id)?);
    let Some(parent) = view_of(run_id)?.parent else { return Ok(()) };
    let parent_view = view_of(&parent.run)?;
    let Some(story_view) = parent_view.as_story() else { return Ok(()) };
    let problem = UserError::usage(format!("run {run_id} worked in the workspace of the story run {}", parent.run));
    Err(match &story_view.summary.commit {
        Some(commit) => problem
            .with_reason("Its changes are part of the story's commit.")
            .with_step(format!("undo the whole story: `git revert {}`", commit.short_hex())),
        None => problem.with_reason("Its changes have not landed in your files."),
    })
}

pub(crate) fn run(arguments: &UndoArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let (run_id, finding_id) = parse_target(&arguments.what, &project, context)?;
    refuse_within_story(&project, &run_id)?;
    // Without `--yes` nothing is locked and nothing is written.
    let (undo_plan, parked_files) = if arguments.yes {
        let UndoResult { plan: undo_plan, parked_files } =
            undo_landings(&project, &run_id, finding_id, arguments.together)?;
        (undo_plan, parked_files)
    } else {
        (preview_undo(&project, &run_id, finding_id)?, ParkedFiles::new())
    };
    // The preview names a command with which the user can look at each landing before deciding.
    let log_command = if arguments.yes { None } else { landings_log_command(&project, &run_id) };
    if context.wants_json {
        let mut document = build_document(&undo_plan, arguments.yes, &parked_files);
        document.log_command = log_command;
        json_documents::print_document(&document)?;
        return Ok(0);
    }
    let mut output = stdout().lock();
    // Everything may have been undone before, which is a result and not an error.
    if undo_plan.landings_to_undo.is_empty() {
        writeln!(
            output,
            "{}",
            escape_line(&explain_empty_diff(&run_id, finding_id, &undo_plan.landings.landings_for(finding_id)?))
        )?;
    } else if arguments.yes {
        let result_text = format_result(&undo_plan, &parked_files, &project, context);
        write!(output, "{}", context.answer_screen.wrap_block(&result_text))?;
    } else {
        write_diff(&mut output, &context.answer_screen, &undo_plan.preview_diff().patch_text())?;
        let preview_text = format_preview(&undo_plan, log_command.as_deref(), context);
        write!(output, "{}", context.answer_screen.wrap_block(&preview_text))?;
    }
    Ok(0)
}

fn parse_target(
    typed_target: &str,
    project: &Project,
    context: &CommandContext,
) -> Result<(RunId, Option<FindingId>), UserError> {
    let no_runs_error =
        || UserError::usage("this project has no runs yet").with_step("start one: `tribunal review FILE`");
    let store = context.open_journal(project)?.ok_or_else(no_runs_error)?;
    // The name is split before any lookup: `F3` alone may be a finding of any run.
    match split_run_and_finding(typed_target) {
        (Some(run_name), finding_id) => Ok((find_run(&store, run_name)?, finding_id)),
        (None, Some(finding_id)) => Ok((find_repairing_run(&store, project, finding_id)?, Some(finding_id))),
        (None, None) => Err(UserError::usage("no run given").with_step("name one: `tribunal undo RUN`")),
    }
}

fn build_document(undo_plan: &UndoPlan, was_done: bool, parked_files: &ParkedFiles) -> UndoDocument {
    let diff = undo_plan.preview_diff();
    let find_parked =
        |file_path: &str| parked_files.get(file_path).map(|parked_path| parked_path.display().to_string());
    let build_row = |file_diff: &RenderedFileDiff| ChangedFile {
        parked: find_parked(&file_diff.relative_path),
        ..build_file_row(file_diff)
    };
    UndoDocument {
        schema: "tribunal.undo/1",
        run: undo_plan.landings.run_id.clone(),
        finding: undo_plan.finding_id,
        path: undo_plan.single_path().map(String::from),
        // Nothing to undo means that nothing was done, even with `--yes`.
        done: was_done && !undo_plan.landings_to_undo.is_empty(),
        landings: undo_plan.landings_to_undo.iter().map(build_landing_row).collect(),
        findings: undo_plan.repaired_findings.clone(),
        diff: diff.patch_text(),
        parked: undo_plan.single_path().and_then(find_parked),
        files: diff.file_diffs.iter().map(build_row).collect(),
        log_command: None,
        run_has_ended: undo_plan.landings.is_finished(),
    }
}

/// Formats the preview, before anything is undone.
fn format_preview(undo_plan: &UndoPlan, log_command: Option<&str>, context: &CommandContext) -> String {
    let change_count = format_count(undo_plan.landings_to_undo.len(), "change");
    let diff = undo_plan.preview_diff();
    let mut output_lines = vec![match diff.file_diffs.is_empty() {
        true => format!("{change_count} to undo, but {} any of it", files_have(undo_plan)),
        false => format!("{change_count} to undo in {} (diff above)", describe_files(undo_plan, &diff)),
    }];
    // A single file is named in the first line already.
    if undo_plan.file_plans.len() > 1 {
        output_lines.extend(diff.file_diffs.iter().map(|file_diff| match file_diff.file_change {
            // The diff undoes the change, so a file that the run deleted is made again, and the other way round.
            FileChangeKind::Modified => format!("  {}", file_diff.relative_path),
            FileChangeKind::Created => format!("  {} (restored)", file_diff.relative_path),
            FileChangeKind::Deleted => format!("  {} (deleted)", file_diff.relative_path),
        }));
    }
    // Changes are undone as a whole, so findings that were repaired by the same one reopen together.
    let other_findings = undo_plan.other_findings();
    if let (Some(finding_id), [_, ..]) = (undo_plan.finding_id, other_findings.as_slice()) {
        output_lines.push(format!(
            "the change that fixed {finding_id} also fixed {}; they can only be undone together",
            join_finding_ids(&other_findings)
        ));
    }
    output_lines.extend(describe_consequence(undo_plan, "would be"));
    output_lines.extend(log_command.map(|log_command| format!("to see each landing: {log_command}")));
    let finding_suffix = undo_plan.finding_id.map_or_else(String::new, |finding_id| format!(".{finding_id}"));
    let together_flag = if other_findings.is_empty() { "" } else { " --together" };
    let (program, run_id) = (&context.answer_screen.program_name, &undo_plan.landings.run_id);
    output_lines.push(format!(
        "nothing was changed; to undo it, run `{program} undo {run_id}{finding_suffix}{together_flag} --yes`"
    ));
    join_lines(&output_lines)
}

/// Formats the result, after the undo.
fn format_result(
    undo_plan: &UndoPlan,
    parked_files: &ParkedFiles,
    project: &Project,
    context: &CommandContext,
) -> String {
    let change_count = format_count(undo_plan.landings_to_undo.len(), "change");
    let diff = undo_plan.preview_diff();
    let mut output_lines = vec![match diff.file_diffs.is_empty() {
        true => {
            let were = if undo_plan.file_plans.len() > 1 { "were" } else { "was" };
            format!("undid {change_count}; {} any of it and {were} not changed", files_had(undo_plan))
        }
        false => format!("undid {change_count} in {}; later edits were kept", describe_files(undo_plan, &diff)),
    }];
    for (file_path, parked_path) in parked_files {
        let [source_path, target_path] =
            [parked_path, Path::new(file_path)].map(|path| quote_for_working_dir(path, project, context));
        // A file name such as `-x` would be taken for an option of `cp`.
        let target_path = if target_path.starts_with('-') { format!("./{target_path}") } else { target_path };
        output_lines.push(format!(
            "saved the previous version as {}; restore it with `cp {source_path} {target_path}`",
            parked_path.display()
        ));
    }
    output_lines.extend(describe_consequence(undo_plan, "will be"));
    let (program, run_id) = (&context.answer_screen.program_name, &undo_plan.landings.run_id);
    // A finished run cannot be resumed, so the next step is a new review.
    match (undo_plan.landings.is_finished(), undo_plan.landings.subject_path()) {
        (true, Some(file_path)) => output_lines.push(format!("next: {program} review {}", shell_quote(file_path))),
        (true, None) => {}
        (false, _) => output_lines.push(format!("next: {program} resume {run_id}")),
    }
    join_lines(&output_lines)
}

/// Describes the files: `plan.md`, `3 files`.
fn describe_files(undo_plan: &UndoPlan, diff: &LandingsDiff) -> String {
    undo_plan.single_path().map_or_else(|| format_count(diff.file_diffs.len(), "file"), String::from)
}

fn files_have(undo_plan: &UndoPlan) -> String {
    let single_path = undo_plan.single_path();
    single_path.map_or_else(|| "the files no longer have".to_string(), |path| format!("{path} no longer has"))
}

fn files_had(undo_plan: &UndoPlan) -> String {
    format!("{} no longer had", undo_plan.single_path().unwrap_or("the files"))
}

/// Describes what happens to the findings.
fn describe_consequence(undo_plan: &UndoPlan, verb: &str) -> Option<String> {
    let (run_id, finding_list) = (&undo_plan.landings.run_id, join_finding_ids(&undo_plan.repaired_findings));
    match (undo_plan.repaired_findings.is_empty(), undo_plan.landings.is_finished()) {
        (true, _) => None,
        // The journal of a finished run is never changed.
        (false, true) => Some(format!("run {run_id} has finished; its journal still lists {finding_list} as fixed")),
        (false, false) => Some(format!("{finding_list} {verb} reopened when run {run_id} is resumed")),
    }
}

/// Quotes a file of the project as a command in the working directory has to name it.
fn quote_for_working_dir(file_path: &Path, project: &Project, context: &CommandContext) -> String {
    let is_project_root = context.resolve_path(Path::new("")).canonicalize().ok() == project.root().canonicalize().ok();
    let file_path = if is_project_root { file_path.to_path_buf() } else { project.root().join(file_path) };
    shell_quote(&file_path.to_string_lossy())
}

fn join_lines(output_lines: &[String]) -> String {
    output_lines.iter().map(|line| escape_line(line) + "\n").collect()
}
