//! `tribunal inspect project`: shows which BMAD is installed and how that was recognized, where documents are, how
//! each step is run, how far the project has come, and what is wrong with any of it.
//!
//! It works without BMAD, too: then there is little to show. Nothing is changed and nothing is started.

use std::{
    collections::BTreeMap,
    io::{Write, stdout},
};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_agents::clients::CLIENTS;
use tribunal_bmad::{
    commands::{self, Command, Step},
    config::{self, Config},
    field::{self, Field, Ground},
    layout::{self, Era, Layout},
    problem::{Problem, Weight},
    quick, roster,
    shelf::{self, Shelf},
    state::{self, Document, Found, Next, State},
    tier::{self, Levels, Suggestion},
};
use tribunal_report::escaped;
use tribunal_runner::shelf::Folder;

use crate::{
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The agent client whose commands are shown
    #[arg(long = "for", value_name = "CLIENT", default_value = CLIENTS[0].id)]
    client: String,
    /// What is to be done, in words: suggests a tier for it
    #[arg(long, value_name = "WORDS")]
    task: Option<String>,
    /// Which of the project's agents this name means
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// What Tribunal sees in a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProjectReport {
    schema: &'static str,
    root: String,
    /// How BMAD is installed.
    layout: Layout,
    /// The directories for output, planning, implementation, knowledge and tests, each with its origin.
    folders: BTreeMap<&'static str, Place>,
    client: String,
    /// How that client runs each step; a kind is slash, text or missing.
    commands: BTreeMap<Step, Command>,
    /// The project's own agents by their long names.
    roster: Vec<String>,
    /// The agent that `--agent` means.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    progress: Progress,
    field: Field,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Task>,
    problems: Vec<Trouble>,
}

/// A directory and where it is set.
#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    path: String,
    /// `FILE:LINE`, or `default`.
    origin: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Progress {
    state: State,
    reasons: Vec<String>,
    documents: Vec<Document>,
    next: Vec<Next>,
    todo: String,
}

/// What is known about the task that the user named.
#[derive(Debug, Serialize, JsonSchema)]
struct Task {
    suggestion: Suggestion,
    quick_dev: quick::Mode,
    weight: quick::Weight,
    /// The reasons why the task is not simple.
    because: Vec<String>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
struct Trouble {
    weight: Weight,
    rule: &'static str,
    /// `FILE:LINE:COLUMN: what`.
    what: String,
    why: String,
    todo: String,
}

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let shelf = Folder::at(&project);
    let mut report = report(&shelf, arguments, project.root().display().to_string());
    report.agent = arguments.agent.as_deref().map(|said| meant(&shelf, said)).transpose()?;
    if context.json {
        documents::print(&report)?;
    } else {
        show(&mut stdout().lock(), &report)?;
    }
    // Warnings and notes leave the exit code alone: the project can be used as it is.
    let negative = report.problems.iter().any(|problem| problem.weight == Weight::Error);
    Ok(if negative { NEGATIVE } else { 0 })
}

/// Describes an agent by any of its names; an ambiguous name is an error.
fn meant(shelf: &dyn Shelf, said: &str) -> Result<String, Complaint> {
    // Problems of the roster are part of the report already.
    let roster = roster::of(shelf, &mut Vec::new()).map(|(roster, _)| roster).unwrap_or_default();
    match roster.named(said) {
        Ok(member) => Ok(format!("{} ({}, {})", member.qualified(), member.name, member.title)),
        Err(why) => Err(Complaint::usage(format!("no agent is meant by `{said}`: {why}"))
            .todo("see the project's agents: tribunal inspect project")),
    }
}

fn report(shelf: &dyn Shelf, arguments: &Arguments, root: String) -> ProjectReport {
    let layout = layout::read(shelf);
    let config = config::read(shelf);
    let found = state::read(shelf, &layout, &config);
    let field = field::read(shelf, &config);
    let mut problems = [layout.problems.clone(), config.problems.clone(), found.problems.clone()].concat();
    let roster = roster::of(shelf, &mut problems).map(|(roster, _)| roster).unwrap_or_default();
    let client = arguments.client.as_str();
    // Commands are looked up for one client only: the others may have other files for the same step.
    let commands = Step::ALL.map(|step| (step, commands::of(&layout, step, client, shelf)));
    let task = arguments.task.as_deref().map(|words| task(words, shelf, &layout, &mut problems));
    // Several readers may report the same problem of one file.
    let mut seen = Vec::new();
    problems.retain(|problem| {
        let new = !seen.contains(problem);
        seen.push(problem.clone());
        new
    });
    // The sort is stable, so problems of the same weight keep the order in which the files were read.
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.weight));
    let Found { state, reasons, documents, next, todo, .. } = found;
    ProjectReport {
        schema: "tribunal.project/1",
        root,
        folders: folders(&config),
        client: client.to_string(),
        commands: commands.into_iter().collect(),
        agent: None,
        roster: roster.members.iter().map(roster::Member::qualified).collect(),
        progress: Progress { state, reasons, documents, next, todo },
        field,
        task,
        problems: problems.iter().map(trouble).collect(),
        layout,
    }
}

fn folders(config: &Config) -> BTreeMap<&'static str, Place> {
    let folders = &config.folders;
    let place = |path: &String, keys: &[&str]| {
        // The keys differ by BMAD's era; the first one that is set wins.
        let origin = keys.iter().find_map(|key| config.origin(key));
        let origin = origin.map_or("default".into(), |origin| format!("{}:{}", origin.path, origin.line));
        Place { path: if path.is_empty() { ".".into() } else { path.clone() }, origin }
    };
    let stories =
        ["implementation_artifacts", "sprint_artifacts", "dev_ephemeral_location", "dev_story_location"];
    BTreeMap::from([
        ("output", place(&folders.output, &["output_folder"])),
        ("planning", place(&folders.planning, &["planning_artifacts"])),
        ("implementation", place(&folders.implementation, &stories)),
        ("knowledge", place(&folders.knowledge, &["project_knowledge", "tech_docs"])),
        ("tests", place(&folders.tests, &["test_artifacts"])),
    ])
}

fn task(words: &str, shelf: &dyn Shelf, layout: &Layout, problems: &mut Vec<Problem>) -> Task {
    // Levels are optional: without the file, the built-in ones hold.
    let path = layout.root.as_ref().map(|root| format!("{root}/{}", tier::LEVELS));
    let text = path.as_ref().and_then(|path| shelf::read(shelf, path, problems));
    let levels = match (&path, &text) {
        (Some(path), Some(text)) => {
            let (levels, wrong) = Levels::read(path, text);
            problems.extend(wrong);
            levels
        }
        _ => Levels::default(),
    };
    let suggestion = tier::suggest(&tier::Task { words, ..tier::Task::default() }, &levels);
    let (weight, because) = quick::weight(words);
    Task { suggestion, quick_dev: quick::mode(words), weight, because }
}

fn trouble(problem: &Problem) -> Trouble {
    Trouble {
        weight: problem.weight,
        rule: problem.rule,
        what: problem.to_string(),
        why: problem.why.clone(),
        todo: problem.todo.clone(),
    }
}

fn show(out: &mut impl Write, report: &ProjectReport) -> Result<(), Complaint> {
    writeln!(out, "project    {}", escaped(&report.root))?;
    show_layout(out, &report.layout)?;
    writeln!(out, "\nfolders")?;
    for (name, place) in &report.folders {
        writeln!(out, "  {name:<14} {:<44} {}", escaped(&place.path), escaped(&place.origin))?;
    }
    // Without BMAD there are neither steps nor a roster.
    if report.layout.root.is_some() {
        writeln!(out, "\nsteps, for {}", escaped(&report.client))?;
        show_steps(out, &report.commands)?;
        writeln!(out, "\nroster     {}", roster_line(&report.roster))?;
        if let Some(agent) = &report.agent {
            writeln!(out, "agent      {}", escaped(agent))?;
        }
    }
    show_progress(out, report)?;
    if let Some(task) = &report.task {
        show_task(out, task)?;
    }
    show_problems(out, &report.problems)
}

fn show_steps(out: &mut impl Write, commands: &BTreeMap<Step, Command>) -> Result<(), Complaint> {
    // Most missing commands have the same reason and remedy, which is printed once at the end.
    let mut remedy = None;
    for (step, command) in commands {
        let said = match command {
            Command::Slash { text, .. } => text.clone(),
            Command::Text { file, .. } => format!("reads {file}"),
            Command::Missing { why, instead, by_installer: true } => {
                remedy = Some(instead);
                format!("- {why}")
            }
            Command::Missing { why, instead, .. } => format!("- {why}; {instead}"),
        };
        writeln!(out, "  {:<16} {}", step.as_str(), escaped(&said))?;
    }
    if let Some(remedy) = remedy {
        writeln!(out, "  for what is missing, {}", escaped(remedy))?;
    }
    Ok(())
}

fn show_layout(out: &mut impl Write, layout: &Layout) -> Result<(), Complaint> {
    let version = layout.version.as_deref().unwrap_or("of an unknown version");
    match (&layout.root, layout.era) {
        // Version 4 has another layout entirely; it is named so that the user knows that it was noticed.
        (None, _) if layout.v4 => writeln!(out, "BMAD       4, which is not read")?,
        (None, _) => writeln!(out, "BMAD       not installed")?,
        (Some(root), era) => {
            let era = era.map_or("no known era".into(), |era: Era| format!("era {era}, {}", era.versions()));
            writeln!(out, "BMAD       {} in {} ({era})", escaped(version), escaped(root))?;
        }
    }
    for reason in &layout.reasons {
        writeln!(out, "           {}", escaped(reason))?;
    }
    let modules = layout.modules.iter().map(|module| match &module.version {
        Some(version) => format!("{} {version}", module.name),
        None => module.name.clone(),
    });
    let modules: Vec<String> = modules.collect();
    if !modules.is_empty() {
        writeln!(out, "modules    {}", escaped(&modules.join(", ")))?;
    }
    for (index, client) in layout.clients.iter().enumerate() {
        // Only the first row has the label; the others are aligned below it.
        let head = if index == 0 { "clients" } else { "" };
        let line = format!("{head:<10} {}: {} in {}", client.name, client.count, client.folder);
        writeln!(out, "{}", escaped(&line))?;
    }
    if layout.shims {
        writeln!(out, "           with the workflows of earlier versions")?;
    }
    Ok(())
}

fn roster_line(roster: &[String]) -> String {
    match roster.len() {
        0 => "none; parties use the built-in personas".into(),
        count => {
            let noun = if count == 1 { "agent" } else { "agents" };
            // Eight names fit on a line; the count says how many there are in all.
            let shown = roster.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
            let more = if count > 8 { ", …" } else { "" };
            escaped(&format!("{count} {noun}: {shown}{more}"))
        }
    }
}

fn show_progress(out: &mut impl Write, report: &ProjectReport) -> Result<(), Complaint> {
    let progress = &report.progress;
    writeln!(out, "\nstate      {}", progress.state.as_str())?;
    for reason in &progress.reasons {
        writeln!(out, "           {}", escaped(reason))?;
    }
    if !progress.next.is_empty() {
        let next = progress.next.iter().map(|next| match next.required {
            true => format!("{} (required)", next.workflow),
            false => next.workflow.clone(),
        });
        writeln!(out, "next       {}", escaped(&next.collect::<Vec<_>>().join(", ")))?;
    }
    writeln!(out, "to do      {}", escaped(&progress.todo))?;
    let field = &report.field;
    let ground = match field.ground {
        Ground::Greenfield => "greenfield",
        Ground::Brownfield => "brownfield",
    };
    // Once stories are under way, their plans document the project.
    let begins = matches!(progress.state, State::Clean | State::Legacy);
    let first = if field.needs_documenting() && begins { "; document-project comes first" } else { "" };
    writeln!(out, "field      {ground}{first}")?;
    for reason in &field.reasons {
        writeln!(out, "           {}", escaped(reason))?;
    }
    Ok(())
}

fn show_task(out: &mut impl Write, task: &Task) -> Result<(), Complaint> {
    writeln!(out, "\ntier       {} ({}), suggested", task.suggestion.tier, task.suggestion.method)?;
    for reason in &task.suggestion.reasons {
        writeln!(out, "           {}", escaped(reason))?;
    }
    let mode = match &task.quick_dev {
        quick::Mode::TechSpec { path: Some(path) } => format!("carries out the spec {path}"),
        quick::Mode::TechSpec { path: None } => "carries out a spec, which is not named".into(),
        quick::Mode::Direct => match task.weight {
            quick::Weight::Simple => "can do it at once".into(),
            quick::Weight::Medium => "would better plan it first".into(),
            quick::Weight::Complex => "is not for this; take the full path".into(),
        },
    };
    writeln!(out, "quick-dev  {}", escaped(&mode))?;
    for reason in &task.because {
        writeln!(out, "           {}", escaped(reason))?;
    }
    Ok(())
}

fn show_problems(out: &mut impl Write, problems: &[Trouble]) -> Result<(), Complaint> {
    if !problems.is_empty() {
        writeln!(out)?;
    }
    for problem in problems {
        let sign = match problem.weight {
            Weight::Error => "[!]",
            Weight::Warning => "[W]",
            Weight::Note => "[i]",
        };
        writeln!(out, "{sign} {}", escaped(&problem.what))?;
        // The explanation and the remedy may both be missing.
        for line in [&problem.why, &problem.todo].into_iter().filter(|line| !line.is_empty()) {
            writeln!(out, "    {}", escaped(line))?;
        }
    }
    Ok(())
}
