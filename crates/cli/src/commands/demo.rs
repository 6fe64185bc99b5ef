//! `tribunal demo`: a full review with no account, no network and no set-up.

use std::{
    fs,
    io::{Write, stderr},
    path::{Path, PathBuf},
};

use tribunal_engine::text::shell_quote;
use tribunal_report::DisplayMode;
use tribunal_runner::Project;
use tribunal_workflows::findings::subject::Subject;

use crate::{
    context::CommandContext,
    demo_project::{DEMO_FILES, DEMO_SUBJECT},
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    runs::engine::{RunEnd, RunJob, execute_run},
    settings::{ResolvedSettings, RunInputs, resolve_settings},
    terminal::progress_display::ProgressArgs,
};

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArguments {
    /// Directory for the demo project, new or empty (default: a temporary directory)
    #[arg(long)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) fn run(arguments: DemoArguments, context: &CommandContext) -> Result<u8, UserError> {
    let display_mode = arguments.progress.typed_mode().unwrap_or_default();
    if display_mode == DisplayMode::Silent {
        context.silence_notices();
    }
    let demo_dir = prepare_demo_dir(arguments.dir, context)?;
    write_demo_files(&demo_dir).map_err(|cause| {
        UserError::new(EXIT_ENVIRONMENT, format!("cannot write the demo to {}: {cause}", demo_dir.display()))
            .with_step("choose a writable directory: `tribunal demo --dir DIR`")
    })?;
    print_introduction(&demo_dir, context)?;
    // The user's settings are left out on purpose: the demo shows the same to every user. Only the pace can be
    // changed.
    let run_inputs = RunInputs { is_paced: RunInputs::from_environment(context).is_paced, ..RunInputs::default() };
    let ResolvedSettings { plan, share, .. } =
        resolve_settings(&demo_dir, Subject::from_path(DEMO_SUBJECT, None), &run_inputs)?;
    let job = RunJob::Start(Box::new(plan.into_run()));
    // From here on the demo is an ordinary run: the same executor, journal and reporters as a real review.
    let finished_run = execute_run(context, Project::from_root(&demo_dir), job, display_mode, share)?;
    if !context.wants_json && !context.is_silent() {
        print_next_steps(&demo_dir, &finished_run, context)?;
    }
    Ok(finished_run.exit_code())
}

fn print_next_steps(demo_dir: &Path, finished_run: &RunEnd, context: &CommandContext) -> Result<(), UserError> {
    let mut progress_output = stderr().lock();
    let run_id = &finished_run.run_id;
    // A demo that was stopped has a journal like any other run, so it can be resumed.
    if finished_run.exit_code() != 0 {
        let quoted_dir = shell_quote(&demo_dir.to_string_lossy());
        writeln!(progress_output, "\nResume it: cd {quoted_dir} && tribunal resume {run_id}")?;
        return Ok(());
    }
    writeln!(progress_output, "\nTry these next:")?;
    writeln!(progress_output, "  cd {}", shell_quote(&demo_dir.to_string_lossy()))?;
    for (command_line, purpose) in [
        ("less _bmad-output/reviews/prd-issues.md", "the tracker: every finding with its evidence and fix"),
        (&format!("tribunal findings {run_id}"), "the same in the terminal (or as JSON: --json)"),
        (&format!("tribunal log {run_id}"), "the log of this run, from its journal"),
        ("tribunal demo --dir again", "kill it halfway, then: tribunal -C again resume"),
    ] {
        match context.progress_screen.max_columns {
            // The two columns need about 100 characters; below that, the purpose goes on a line of its own.
            Some(screen_width) if screen_width < 100 => {
                writeln!(progress_output, "  {command_line}\n{}", context.progress_screen.wrap_text(6, purpose))?
            }
            _ => writeln!(progress_output, "  {command_line:<42} {purpose}")?,
        }
    }
    // The commands above would fail when pasted, so the full path is shown.
    if let Some(program_path) = context.own_program_off_path() {
        writeln!(progress_output, "(`tribunal` is not on your PATH; use {})", program_path.display())?;
    }
    Ok(())
}

fn prepare_demo_dir(requested_dir: Option<PathBuf>, context: &CommandContext) -> Result<PathBuf, UserError> {
    let Some(requested_dir) = requested_dir else {
        let temp_dir = tempfile::Builder::new().prefix("tribunal-demo-").tempdir();
        let temp_dir = temp_dir.map_err(|cause| {
            UserError::new(EXIT_ENVIRONMENT, format!("cannot create a temporary directory: {cause}"))
                .with_step("choose a directory: `tribunal demo --dir DIR`")
        })?;
        // The directory must outlive this process: the user is invited to look around in it.
        return Ok(temp_dir.keep());
    };
    let demo_dir = context.resolve_path(&requested_dir);
    // A directory that cannot be listed counts as occupied: nothing that belongs to the user may be overwritten.
    let is_occupied = match fs::read_dir(&demo_dir) {
        Ok(mut dir_entries) => dir_entries.next().is_some(),
        Err(_) => demo_dir.exists(),
    };
    if is_occupied {
        return Err(UserError::usage(format!("{} is not empty", requested_dir.display()))
            .with_reason("The demo creates its own project and never overwrites your files.")
            .with_step("choose a new directory: `tribunal demo --dir DIR`"));
    }
    Ok(demo_dir)
}

fn write_demo_files(demo_dir: &Path) -> std::io::Result<()> {
    for (relative_path, file_text) in DEMO_FILES {
        let file_path = demo_dir.join(relative_path);
        if let Some(parent_dir) = file_path.parent() {
            fs::create_dir_all(parent_dir)?;
        }
        fs::write(file_path, file_text)?;
    }
    Ok(())
}

fn print_introduction(demo_dir: &Path, context: &CommandContext) -> Result<(), UserError> {
    // Programs have no use for an introduction.
    if context.wants_json || context.is_silent() {
        return Ok(());
    }
    let mut progress_output = stderr().lock();
    let introduction = "This is a demo. The agents are scripted (demo/court.yaml): no model is called, and tokens and \
                costs are made up. Everything else is real: processes, journal, checks and fixes.";
    writeln!(progress_output, "{}", context.progress_screen.wrap_text(0, introduction))?;
    writeln!(progress_output, "Project directory: {}\n", demo_dir.display())?;
    Ok(())
}
