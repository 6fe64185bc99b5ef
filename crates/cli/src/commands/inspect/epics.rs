//! `tribunal inspect epics [FILE…]`: shows the epics and stories of a plan as they are read.

use std::{io::Write, path::PathBuf};

use tribunal_bmad::{
    documents::{self, DocumentKind, ProjectDocument},
    epic_id::EpicId,
    epics::{self, Epic, EpicStory, EpicsDocument},
    keys::{StoryKey, StoryNumber},
    problem::{FileProblem, ProblemWeight},
    project_files,
};
use tribunal_engine::text::format_count;
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;

use crate::{
    bmad::{self, BmadProject},
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::wrapped_stdout,
};

#[derive(Debug, clap::Args)]
pub(crate) struct InspectEpicsArguments {
    /// Files with epics (default: those of the project)
    files: Vec<PathBuf>,
}

/// `tribunal inspect epics --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct EpicsReport {
    schema: &'static str,
    epics: Vec<EpicReport>,
    problems: Vec<FileProblem>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct EpicReport {
    epic: EpicId,
    title: String,
    path: String,
    line: usize,
    stories: Vec<EpicsStory>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct EpicsStory {
    number: StoryNumber,
    key: StoryKey,
    title: String,
    path: String,
    line: usize,
    /// The number of its acceptance criteria.
    criteria: usize,
    requirements: Vec<String>,
    /// The stories that it says it depends on.
    depends_on: Vec<StoryNumber>,
    /// How complex it says it is, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    complexity: Option<String>,
}

pub(super) fn run(arguments: &InspectEpicsArguments, context: &CommandContext) -> Result<u8, UserError> {
    let mut problems = Vec::new();
    let texts = match arguments.files.as_slice() {
        [] => read_project_epics(context, &mut problems)?,
        files => files
            .iter()
            .map(|file| Ok((file.display().to_string(), super::read_input(file, context)?)))
            .collect::<Result<_, UserError>>()?,
    };
    let parts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let EpicsDocument { epics, problems: epic_problems, .. } = epics::read_epics(&parts);
    problems.extend(epic_problems);
    let has_errors = problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
    let report = EpicsReport {
        schema: "tribunal.inspect-epics/1",
        epics: epics.into_iter().map(describe_epic).collect(),
        problems,
    };
    match context.wants_json {
        true => json_documents::print_document(&report)?,
        false => print_epics(&mut wrapped_stdout(), &report)?,
    }
    Ok(if has_errors { EXIT_NEGATIVE } else { 0 })
}

/// Reads all files with epics of the current project.
fn read_project_epics(
    context: &CommandContext,
    problems: &mut Vec<FileProblem>,
) -> Result<Vec<(String, String)>, UserError> {
    let bmad = BmadProject::read_project(&context.current_project());
    let found_documents = documents::find_documents(&bmad.project_files, &bmad.config.folders);
    let paths = found_documents.of_kind(DocumentKind::Epics).flat_map(ProjectDocument::paths);
    let read_file =
        |path: &str| Some((path.to_string(), project_files::read_or_report(&bmad.project_files, path, problems)?));
    let texts: Vec<(String, String)> = paths.filter_map(read_file).collect();
    if texts.is_empty() && problems.is_empty() {
        return Err(UserError::usage("no epics found in this project")
            .with_reason(format!("Tribunal looked in {}.", bmad.config.folders.planning))
            .with_step("name the file: `tribunal inspect epics FILE`"));
    }
    Ok(texts)
}

fn describe_epic(epic: Epic) -> EpicReport {
    let describe_story = |story: EpicStory| EpicsStory {
        number: story.number,
        key: story.key,
        title: story.title,
        path: story.path,
        line: story.line,
        criteria: story.criteria.len(),
        requirements: story.requirements,
        depends_on: story.depends_on,
        complexity: story.complexity,
    };
    EpicReport {
        epic: epic.number,
        title: epic.title,
        path: epic.path,
        line: epic.line,
        stories: epic.stories.into_iter().map(describe_story).collect(),
    }
}

fn print_epics(output: &mut impl Write, report: &EpicsReport) -> Result<(), UserError> {
    for epic in &report.epics {
        let place = format!("{}:{}", epic.path, epic.line);
        writeln!(output, "{}", escape_line(&format!("epic {} {} · {place}", epic.epic, epic.title)))?;
        for story in &epic.stories {
            let mut details = vec![format_criteria(story.criteria)];
            if !story.depends_on.is_empty() {
                let numbers: Vec<String> = story.depends_on.iter().map(ToString::to_string).collect();
                details.push(format!("depends on {}", numbers.join(", ")));
            }
            details.extend(story.complexity.iter().map(|complexity| format!("complexity {complexity}")));
            if !story.requirements.is_empty() {
                details.push(story.requirements.join(" "));
            }
            let story_text = format!("  {}  {} · line {}", story.key, details.join(" · "), story.line);
            writeln!(output, "{}", escape_line(&story_text))?;
        }
    }
    for problem in &report.problems {
        write!(output, "{}", bmad::draw_problem(problem))?;
    }
    Ok(())
}

fn format_criteria(count: usize) -> String {
    // The helper only appends an `s`.
    format_count(u32::try_from(count).unwrap_or(u32::MAX), "criterion").replace("criterions", "criteria")
}
