//! `tribunal validate [--for WORKFLOW]`: checks whether the project's documents, board, stories and settings fit
//! together, and whether a step of BMAD's method can be run. It only reads. Problems are reported with their position
//! and a remedy.

use std::{io::Write, path::Path};

use tribunal_bmad::{
    check::{self, CheckInput, ReadinessReport},
    commands::BmadStep,
    documents,
    problem::{FileProblem, ProblemWeight},
    project_files::{self, ProjectFiles},
};
use tribunal_report::escape_line;
use tribunal_runner::project::SettingsFileChoice;

use crate::{
    bmad::{BmadProject, draw_problem},
    context::CommandContext,
    messages::{
        json_documents::{ValidationDocument, print_document},
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    settings::{self, ReadMode, nearest_name},
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArguments {
    /// Also check whether this workflow can run: prd, architecture, epics, readiness, sprint-planning, dev-story, …
    #[arg(long = "for", value_name = "WORKFLOW")]
    step: Option<String>,
}

pub(crate) fn run(arguments: &ValidateArguments, context: &CommandContext) -> Result<u8, UserError> {
    let step = arguments.step.as_deref().map(parse_step).transpose()?;
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    let found_documents = documents::find_documents(&bmad.project_files, &bmad.config.folders);
    let board_path = bmad.board_path();
    let check_input = CheckInput {
        project_files: &bmad.project_files,
        layout: &bmad.layout,
        config: &bmad.config,
        board: bmad.board.as_ref(),
        board_path: &board_path,
        documents: &found_documents,
    };
    // `check_project` sees BMAD's files only; problems of reading them and of the settings are added here.
    let mut report = check::check_project(&check_input, step);
    report.problems.extend_from_slice(&bmad.problems);
    report.problems.extend(find_settings_problems(project.root(), &bmad.project_files));
    check::sort_problems(&mut report.problems);
    // An added error makes a project unready even if the step itself would be possible.
    report.ready &= report.problems.iter().all(|problem| problem.weight < ProblemWeight::Error);
    let exit_code = if report.ready { 0 } else { EXIT_NEGATIVE };
    if context.wants_json {
        let step = step.map(BmadStep::as_str);
        print_document(&ValidationDocument { schema: "tribunal.validate/1", step, report })?;
    } else {
        let mut output = wrapped_stdout();
        output.write_all(render_report(&report, step, &context.answer_screen.program_name).as_bytes())?;
    }
    Ok(exit_code)
}

fn parse_step(typed_name: &str) -> Result<BmadStep, UserError> {
    BmadStep::from_name(typed_name).ok_or_else(|| {
        let step_names = BmadStep::ALL.map(BmadStep::as_str);
        let user_error = UserError::usage(format!("unknown workflow `{typed_name}`"))
            .with_reason(format!("Known workflows: {}.", step_names.join(", ")));
        match nearest_name(typed_name, &step_names) {
            Some(suggestion) => user_error.with_step(format!("did you mean `{suggestion}`?")),
            None => user_error,
        }
    })
}

/// Finds what is wrong in the project's settings, as `tribunal inspect settings` explains it.
fn find_settings_problems(project_root: &Path, project_files: &dyn ProjectFiles) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    let SettingsFileChoice { file_name, ignored_name } = SettingsFileChoice::from_root(project_root);
    if let Some(ignored_name) = ignored_name {
        let message = settings::describe_ignored_file(file_name, ignored_name);
        problems.push(FileProblem::warning("settings-ignored", ignored_name, message));
    }
    // BMAD's file has keys of its own, which are no mistakes there.
    for (settings_path, manner) in [(file_name, ReadMode::Strict), (tribunal_bmad::CONFIG_PATH, ReadMode::Lenient)] {
        let Some(settings_text) = project_files::read_or_report(project_files, settings_path, &mut problems) else {
            continue;
        };
        for setting_problem in settings::read_settings(settings_path, &settings_text, manner).problems {
            let mut problem = FileProblem::error("settings", settings_path, setting_problem.message)
                .with_reason("no run can start with these settings");
            problem.line = setting_problem.line_number;
            problem.todo = setting_problem.hint.unwrap_or_default();
            problems.push(problem);
        }
    }
    problems
}

fn render_report(report: &ReadinessReport, step: Option<BmadStep>, program: &str) -> String {
    let mut rendered = format!("{}\n", escape_line(&describe_scope(report)));
    for problem in &report.problems {
        rendered.push_str(&draw_problem(problem));
    }
    for missing_document in &report.missing {
        rendered.push_str(&escape_line(&format!(
            "error: missing {}, expected at {}",
            missing_document.document, missing_document.path
        )));
        rendered.push('\n');
    }
    rendered.push_str(&format!("{}\n", format_verdict(report, step)));
    // This is advice only: the user may run the step in spite of it.
    if let (Some(suggestion), Some(step)) = (&report.suggestion, step) {
        rendered.push_str(&format!("    {}\n", escape_line(&suggestion.why)));
        rendered.push_str(&format!("    [1] run {} first: {}\n", suggestion.step, escape_line(&suggestion.command)));
        rendered.push_str(&format!("        then check again: {program} validate --for {step}\n"));
        rendered.push_str("    [2] continue anyway\n    [3] stop here\n");
    }
    rendered
}

fn describe_scope(report: &ReadinessReport) -> String {
    let checked_scope = &report.looked_at;
    // A file that cannot be read is there all the same.
    if checked_scope.is_empty() && report.problems.is_empty() {
        return format!("no BMAD found: nothing in {} or {}", checked_scope.planning, checked_scope.implementation);
    }
    let version = checked_scope.version.as_deref().unwrap_or("of unknown version");
    // Documents may be there without an installation, for instance in a clone.
    let bmad_text = match &checked_scope.era {
        Some(era) => format!("BMAD {version} (era {era})"),
        None => "BMAD documents, but no known BMAD installation".to_string(),
    };
    let mut counts = vec![format_count(checked_scope.documents, "document", "documents")];
    counts.push(format_count(checked_scope.epics, "epic", "epics"));
    counts.push(format_count(checked_scope.stories, "story file", "story files"));
    match checked_scope.on_board {
        Some(story_count) => counts.push(format!("{} on the board", format_count(story_count, "story", "stories"))),
        None => counts.push("no board".into()),
    }
    format!("{bmad_text} · {} · {} · {}", checked_scope.planning, checked_scope.implementation, counts.join(", "))
}

fn format_verdict(report: &ReadinessReport, step: Option<BmadStep>) -> String {
    let count_weight =
        |weight: ProblemWeight| report.problems.iter().filter(|problem| problem.weight == weight).count();
    let counts = [
        format_count(count_weight(ProblemWeight::Error), "error", "errors"),
        format_count(count_weight(ProblemWeight::Warning), "warning", "warnings"),
        format_count(count_weight(ProblemWeight::Note), "note", "notes"),
    ];
    let step_suffix = step.map(|step| format!(" for {step}")).unwrap_or_default();
    // Notes need no action, so a project with notes only is called clean.
    let has_only_notes = report.problems.iter().all(|problem| problem.weight == ProblemWeight::Note);
    let verdict_text = match (report.ready, step) {
        (true, None) if has_only_notes => "✓ no problems",
        (true, None) => "✓ usable",
        (true, Some(_)) => "✓ ready",
        (false, _) => "✗ NOT READY",
    };
    let missing = match report.missing.len() {
        0 => String::new(),
        missing => format!("{missing} missing, "),
    };
    format!("{verdict_text}{step_suffix}: {missing}{}", counts.join(", "))
}

fn format_count(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}
