//! `tribunal inspect project`: shows which BMAD is installed and how that was recognized, where documents are, how
//! each step is run, how far the project has come, and what is wrong with any of it.
//!
//! It works without BMAD, too: then there is little to show. Nothing is changed and nothing is started.

use std::{collections::BTreeMap, io::Write};

use tribunal_agents::clients::CLIENTS;
use tribunal_bmad::{
    commands::{self, BmadStep, StepCommand},
    config::{self, BmadConfig},
    field_type::{self, FieldType, ProjectField},
    layout::{self, BmadLayout, Era},
    problem::{FileProblem, ProblemWeight},
    project_files::{self, ProjectFiles},
    project_state::{self, NextWorkflow, ProjectState, ProjectSurvey, StepDocument},
    quick_dev, roster,
    tier::{self, TierLevels, TierSuggestion},
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;
use tribunal_runner::project::project_files::ProjectDirectory;

use crate::{
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct InspectProjectArguments {
    /// Client whose commands are shown
    #[arg(long = "for", value_name = "CLIENT", default_value = CLIENTS[0].id)]
    client: String,
    /// Description of a task, to suggest a tier for it
    #[arg(long, value_name = "WORDS")]
    task: Option<String>,
    /// Show which of the project's agents this name refers to
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// A step of BMAD's method: what it is for, and how a client runs it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StepReport {
    purpose: &'static str,
    #[serde(flatten)]
    command: StepCommand,
}

/// What Tribunal sees in a project.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ProjectReport {
    schema: &'static str,
    root: String,
    /// How BMAD is installed.
    layout: BmadLayout,
    /// The directories for output, planning, implementation, knowledge and tests, each with its origin.
    folders: BTreeMap<&'static str, FolderOrigin>,
    client: String,
    /// How that client runs each step; a kind is slash, text or missing.
    commands: BTreeMap<BmadStep, StepReport>,
    /// The project's own agents by their long names.
    roster: Vec<String>,
    /// The agent that `--agent` means.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    progress: ProjectProgress,
    field: ProjectField,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskAssessment>,
    problems: Vec<ProjectProblem>,
}

/// A directory and where it is set.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct FolderOrigin {
    path: String,
    /// `FILE:LINE`, or `default`.
    origin: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ProjectProgress {
    state: ProjectState,
    reasons: Vec<String>,
    documents: Vec<StepDocument>,
    next: Vec<NextWorkflow>,
    todo: String,
}

/// What is known about the task that the user named.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct TaskAssessment {
    suggestion: TierSuggestion,
    quick_dev: quick_dev::QuickDevMode,
    weight: quick_dev::QuickDevWeight,
    /// The reasons why the task is not simple.
    because: Vec<String>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ProjectProblem {
    weight: ProblemWeight,
    rule: &'static str,
    /// `FILE:LINE:COLUMN: what`.
    what: String,
    why: String,
    todo: String,
}

pub(super) fn run(arguments: &InspectProjectArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let project_files = ProjectDirectory::open_project(&project);
    let mut project_report = build_report(&project_files, arguments, project.root().display().to_string());
    project_report.agent =
        arguments.agent.as_deref().map(|agent_name| describe_agent(&project_files, agent_name)).transpose()?;
    if context.wants_json {
        json_documents::print_document(&project_report)?;
    } else {
        print_report(&mut wrapped_stdout(), &project_report)?;
    }
    // Warnings and notes leave the exit code alone: the project can be used as it is.
    let has_errors = project_report.problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
    Ok(if has_errors { EXIT_NEGATIVE } else { 0 })
}

/// Describes an agent by any of its names; an ambiguous name is an error.
fn describe_agent(project_files: &dyn ProjectFiles, agent_name: &str) -> Result<String, UserError> {
    // Problems of the roster are part of the report already.
    let roster = roster::find_roster(project_files, &mut Vec::new()).map(|(roster, _)| roster).unwrap_or_default();
    match roster.find_member(agent_name) {
        Ok(member) => Ok(format!("{} ({}, {})", member.qualified_name(), member.name, member.title)),
        Err(lookup_error) => Err(UserError::usage(format!("no agent for `{agent_name}`: {lookup_error}"))
            .with_step("list the project's agents: `tribunal inspect project`")),
    }
}

fn build_report(
    project_files: &dyn ProjectFiles,
    arguments: &InspectProjectArguments,
    project_root: String,
) -> ProjectReport {
    let layout = layout::read_layout(project_files);
    let config = config::read_config(project_files);
    let project_state = project_state::survey_project(project_files, &layout, &config);
    let field = field_type::read_field(project_files, &config);
    let mut problems = [layout.problems.clone(), config.problems.clone(), project_state.problems.clone()].concat();
    let roster = roster::find_roster(project_files, &mut problems).map(|(roster, _)| roster).unwrap_or_default();
    let client = arguments.client.as_str();
    // Commands are looked up for one client only: the others may have other files for the same step.
    let commands = BmadStep::ALL.map(|step| {
        let command = commands::find_command(&layout, step, client, project_files);
        (step, StepReport { purpose: step.purpose_text(), command })
    });
    let task =
        arguments.task.as_deref().map(|task_words| assess_task(task_words, project_files, &layout, &mut problems));
    // Several readers may report the same problem of one file.
    let mut seen_problems = Vec::new();
    problems.retain(|problem| {
        let is_new = !seen_problems.contains(problem);
        seen_problems.push(problem.clone());
        is_new
    });
    // The sort is stable, so problems of the same weight keep the order in which the files were read.
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.weight));
    let ProjectSurvey { state, reasons, documents, next_workflows: next, advice: todo, .. } = project_state;
    ProjectReport {
        schema: "tribunal.project/1",
        root: project_root,
        folders: list_folders(&config),
        client: client.to_string(),
        commands: commands.into_iter().collect(),
        agent: None,
        roster: roster.members.iter().map(roster::RosterMember::qualified_name).collect(),
        progress: ProjectProgress { state, reasons, documents, next, todo },
        field,
        task,
        problems: problems.iter().map(to_project_problem).collect(),
        layout,
    }
}

fn list_folders(config: &BmadConfig) -> BTreeMap<&'static str, FolderOrigin> {
    let folders = &config.folders;
    let folder_origin = |folder_path: &String, config_keys: &[&str]| {
        // The keys differ by BMAD's era; the first one that is set wins.
        let origin = config_keys.iter().find_map(|config_key| config.origin(config_key));
        let origin_text = origin.map_or("default".into(), |origin| format!("{}:{}", origin.path, origin.line));
        FolderOrigin {
            path: if folder_path.is_empty() { ".".into() } else { folder_path.clone() },
            origin: origin_text,
        }
    };
    let story_keys = ["implementation_artifacts", "sprint_artifacts", "dev_ephemeral_location", "dev_story_location"];
    BTreeMap::from([
        ("output", folder_origin(&folders.output, &["output_folder"])),
        ("planning", folder_origin(&folders.planning, &["planning_artifacts"])),
        ("implementation", folder_origin(&folders.implementation, &story_keys)),
        ("knowledge", folder_origin(&folders.knowledge, &["project_knowledge", "tech_docs"])),
        ("tests", folder_origin(&folders.tests, &["test_artifacts"])),
    ])
}

fn assess_task(
    task_words: &str,
    project_files: &dyn ProjectFiles,
    layout: &BmadLayout,
    problems: &mut Vec<FileProblem>,
) -> TaskAssessment {
    // Levels are optional: without the file, the built-in ones hold.
    let levels_path = layout.root.as_ref().map(|bmad_dir| format!("{bmad_dir}/{}", tier::LEVELS_FILE));
    let levels_text = levels_path
        .as_ref()
        .and_then(|levels_path| project_files::read_or_report(project_files, levels_path, problems));
    let levels = match (&levels_path, &levels_text) {
        (Some(levels_path), Some(levels_text)) => {
            let (levels, level_problems) = TierLevels::from_yaml(levels_path, levels_text);
            problems.extend(level_problems);
            levels
        }
        _ => TierLevels::default(),
    };
    let suggestion =
        tier::suggest_tier(&tier::TierInput { description: task_words, ..tier::TierInput::default() }, &levels);
    let (weight, because) = quick_dev::assess_weight(task_words);
    TaskAssessment { suggestion, quick_dev: quick_dev::detect_mode(task_words), weight, because }
}

fn to_project_problem(problem: &FileProblem) -> ProjectProblem {
    ProjectProblem {
        weight: problem.weight,
        rule: problem.rule,
        what: problem.to_string(),
        why: problem.why.clone(),
        todo: problem.todo.clone(),
    }
}

fn print_report(output: &mut impl Write, project_report: &ProjectReport) -> Result<(), UserError> {
    writeln!(output, "project    {}", escape_line(&project_report.root))?;
    print_layout(output, &project_report.layout)?;
    writeln!(output, "\ndirectories")?;
    for (folder_name, folder_origin) in &project_report.folders {
        writeln!(
            output,
            "  {folder_name:<14} {:<44} {}",
            escape_line(&folder_origin.path),
            escape_line(&folder_origin.origin)
        )?;
    }
    // Without BMAD there are neither steps nor a roster.
    if project_report.layout.root.is_some() {
        writeln!(output, "\nsteps, for {}", escape_line(&project_report.client))?;
        print_steps(output, &project_report.commands)?;
        writeln!(output, "\nroster     {}", format_roster(&project_report.roster))?;
        if let Some(agent) = &project_report.agent {
            writeln!(output, "agent      {}", escape_line(agent))?;
        }
    }
    print_progress(output, project_report)?;
    if let Some(task) = &project_report.task {
        print_task(output, task)?;
    }
    print_problems(output, &project_report.problems)
}

fn print_steps(output: &mut impl Write, commands: &BTreeMap<BmadStep, StepReport>) -> Result<(), UserError> {
    // Commands that the installer would bring share one remedy, which is printed once at the end.
    let mut remedy = None;
    for (step, StepReport { purpose, command }) in commands {
        let step_text = match command {
            StepCommand::Slash { text: command_text, .. } => format!("{command_text:<34} {purpose}"),
            StepCommand::Text { file: workflow_file, .. } => format!("{purpose}; reads {workflow_file}"),
            StepCommand::Missing { why: reason, instead, by_installer: true } => {
                remedy = Some(instead);
                format!("- {reason}")
            }
            StepCommand::Missing { why: reason, instead, .. } => format!("- {reason}; {instead}"),
        };
        writeln!(output, "  {:<22} {}", step.as_str(), escape_line(&step_text))?;
    }
    if let Some(remedy) = remedy {
        writeln!(output, "  for missing steps, {}", escape_line(remedy))?;
    }
    Ok(())
}

fn print_layout(output: &mut impl Write, layout: &BmadLayout) -> Result<(), UserError> {
    let version = layout.version.as_deref().unwrap_or("unknown version");
    match (&layout.root, layout.era) {
        // Version 4 has another layout entirely; it is named so that the user knows that it was noticed.
        (None, _) if layout.v4 => writeln!(output, "BMAD       4 (not supported)")?,
        (None, _) => writeln!(output, "BMAD       not installed")?,
        (Some(bmad_dir), era) => {
            let era = era.map_or("unknown era".into(), |era: Era| format!("era {era}, {}", era.version_range()));
            writeln!(output, "BMAD       {} in {} ({era})", escape_line(version), escape_line(bmad_dir))?;
        }
    }
    for reason in &layout.reasons {
        writeln!(output, "           {}", escape_line(reason))?;
    }
    let modules = layout.modules.iter().map(|module| match &module.version {
        Some(version) => format!("{} {version}", module.name),
        None => module.name.clone(),
    });
    let modules: Vec<String> = modules.collect();
    if !modules.is_empty() {
        writeln!(output, "modules    {}", escape_line(&modules.join(", ")))?;
    }
    for (index, client) in layout.clients.iter().enumerate() {
        // Only the first row has the label; the others are aligned below it.
        let row_label = if index == 0 { "clients" } else { "" };
        let client_line = format!("{row_label:<10} {}: {} in {}", client.name, client.count, client.folder);
        writeln!(output, "{}", escape_line(&client_line))?;
    }
    if layout.shims {
        writeln!(output, "           including workflows of earlier versions")?;
    }
    Ok(())
}

fn format_roster(roster: &[String]) -> String {
    match roster.len() {
        0 => "none; parties use the built-in personas".into(),
        count => {
            let noun = if count == 1 { "agent" } else { "agents" };
            // Eight names fit on a line; the count says how many there are in all.
            let shown_names = roster.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let ellipsis = if count > 8 { ", …" } else { "" };
            escape_line(&format!("{count} {noun}: {shown_names}{ellipsis}"))
        }
    }
}

fn print_progress(output: &mut impl Write, project_report: &ProjectReport) -> Result<(), UserError> {
    let progress = &project_report.progress;
    writeln!(output, "\nstate      {}", progress.state.as_str())?;
    for reason in &progress.reasons {
        writeln!(output, "           {}", escape_line(reason))?;
    }
    if !progress.next.is_empty() {
        let next_names = progress.next.iter().map(|next_workflow| match next_workflow.required {
            true => format!("{} (required)", next_workflow.workflow),
            false => next_workflow.workflow.clone(),
        });
        writeln!(output, "next       {}", escape_line(&next_names.collect::<Vec<_>>().join(", ")))?;
    }
    writeln!(output, "to do      {}", escape_line(&progress.todo))?;
    let field = &project_report.field;
    let field_type_name = match field.ground {
        FieldType::Greenfield => "greenfield",
        FieldType::Brownfield => "brownfield",
    };
    // Documenting comes before planning, so there is no hint once planning has begun.
    let has_no_stories = matches!(progress.state, ProjectState::Clean | ProjectState::Legacy);
    let documentation_hint =
        if field.needs_documenting() && has_no_stories { "; run document-project first" } else { "" };
    writeln!(output, "field      {field_type_name}{documentation_hint}")?;
    for reason in &field.reasons {
        writeln!(output, "           {}", escape_line(reason))?;
    }
    Ok(())
}

fn print_task(output: &mut impl Write, assessment: &TaskAssessment) -> Result<(), UserError> {
    writeln!(output, "\ntier       {} ({}), suggested", assessment.suggestion.tier, assessment.suggestion.method)?;
    for reason in &assessment.suggestion.reasons {
        writeln!(output, "           {}", escape_line(reason))?;
    }
    let mode_text = match &assessment.quick_dev {
        quick_dev::QuickDevMode::TechSpec { path: Some(spec_path) } => {
            format!("implements the spec {spec_path}")
        }
        quick_dev::QuickDevMode::TechSpec { path: None } => "implements a spec, but none is named".into(),
        quick_dev::QuickDevMode::Direct => match assessment.weight {
            quick_dev::QuickDevWeight::Simple => "can do it directly".into(),
            quick_dev::QuickDevWeight::Medium => "should plan it first".into(),
            quick_dev::QuickDevWeight::Complex => "is not suitable; use the full workflow".into(),
        },
    };
    writeln!(output, "quick-dev  {}", escape_line(&mode_text))?;
    for reason in &assessment.because {
        writeln!(output, "           {}", escape_line(reason))?;
    }
    Ok(())
}

fn print_problems(output: &mut impl Write, problems: &[ProjectProblem]) -> Result<(), UserError> {
    if !problems.is_empty() {
        writeln!(output)?;
    }
    for problem in problems {
        let prefix = match problem.weight {
            ProblemWeight::Error => "error:",
            ProblemWeight::Warning => "warning:",
            ProblemWeight::Note => "note:",
        };
        writeln!(output, "{prefix} {}", escape_line(&problem.what))?;
        // The explanation and the remedy may both be missing.
        for detail_line in [&problem.why, &problem.todo].into_iter().filter(|detail_line| !detail_line.is_empty()) {
            writeln!(output, "    {}", escape_line(detail_line))?;
        }
    }
    Ok(())
}
