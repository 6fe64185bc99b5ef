//! `tribunal inspect story FILE`: shows what is read from a story's file, with line numbers, and what is wrong with
//! it.

use std::{io::Write, path::Path};

use tribunal_bmad::{
    problem::ProblemWeight,
    story::{self, FollowUp, StatusPlace, Story, StoryStatusLine, StoryTask},
};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;

use crate::{
    bmad,
    context::CommandContext,
    messages::{
        json_documents,
        user_errors::{EXIT_NEGATIVE, UserError},
    },
    terminal::wrapped_output::wrapped_stdout,
};

/// `tribunal inspect story --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StoryFileReport {
    schema: &'static str,
    path: String,
    tasks_done: usize,
    tasks_all: usize,
    #[serde(flatten)]
    story: Story,
}

pub(super) fn run(story_file: &Path, context: &CommandContext) -> Result<u8, UserError> {
    let story_text = super::read_input(story_file, context)?;
    let story_path = story_file.display().to_string();
    let story = story::read_story(&story_path, &story_text);
    // A story with warnings can still be worked on; one with errors cannot.
    let has_errors = story.problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
    let (tasks_done, tasks_all) = story.task_progress();
    let story_report =
        StoryFileReport { schema: "tribunal.inspect-story/1", path: story_path, tasks_done, tasks_all, story };
    if context.wants_json {
        json_documents::print_document(&story_report)?;
    } else {
        print_story(&mut wrapped_stdout(), &story_report)?;
    }
    Ok(if has_errors { EXIT_NEGATIVE } else { 0 })
}

fn print_story(output: &mut impl Write, story_report: &StoryFileReport) -> Result<(), UserError> {
    let story = &story_report.story;
    let format_optional = |optional_text: &Option<story::LocatedText>| {
        optional_text
            .as_ref()
            .map_or("-".into(), |located_text| format_with_line(&located_text.text, located_text.line))
    };
    writeln!(output, "key         {}", story.key.as_ref().map_or("-".into(), |key| escape_line(&key.to_string())))?;
    writeln!(output, "title       {}", format_optional(&story.title))?;
    writeln!(output, "status      {}", story.status.as_ref().map_or("-".into(), format_status))?;
    // A story without a review has no outcome, and then the line is left out.
    if story.outcome.is_some() {
        writeln!(output, "reviewed    {}", format_optional(&story.outcome))?;
    }
    let links = &story.links;
    for (label, link_texts) in [
        ("depends on", &links.depends_on),
        ("closes", &links.closes_deferred),
        ("operator", &links.operator_actions),
        ("deferred", &links.deferred),
    ] {
        if !link_texts.is_empty() {
            writeln!(output, "{label:<11} {}", escape_line(&link_texts.join(", ")))?;
        }
    }
    if let Some(baseline) = &story.baseline {
        writeln!(output, "baseline    {}", escape_line(baseline))?;
    }
    writeln!(output, "tasks       {} of {} done", story_report.tasks_done, story_report.tasks_all)?;
    for task in &story.tasks {
        print_task(output, task, 1)?;
    }
    writeln!(output, "criteria    {}", story.criteria.len())?;
    for criterion in &story.criteria {
        // A criterion may span several lines; the first is enough to recognize it.
        let first_line = criterion.text.lines().next().unwrap_or_default();
        let ellipsis = if criterion.text.lines().nth(1).is_some() { " …" } else { "" };
        writeln!(output, "  {:<3} {}{ellipsis}", criterion.number, format_with_line(first_line, criterion.line))?;
    }
    writeln!(output, "files       {}", story.files.len())?;
    for changed_file in &story.files {
        writeln!(output, "  {}", format_with_line(&changed_file.text, changed_file.line))?;
    }
    let open_count = story.open_follow_ups().count();
    writeln!(output, "follow-ups  {open_count} of {} open", story.follow_ups.len())?;
    for follow_up in &story.follow_ups {
        print_follow_up(output, follow_up)?;
    }
    for problem in &story.problems {
        write!(output, "{}", bmad::draw_problem(problem))?;
    }
    Ok(())
}

fn format_with_line(text: &str, line_number: usize) -> String {
    format!("{} (line {line_number})", escape_line(text))
}

/// Formats a status line: `done, from "Done" in the body (line 3)`.
fn format_status(status_line: &StoryStatusLine) -> String {
    let place_text = if status_line.place == StatusPlace::Body { "in the body" } else { "in the front matter" };
    // A spec of a late era has states of its own, which no story status stands for.
    let status_name = match (status_line.status, status_line.spec) {
        (Some(status), _) => status.as_str(),
        (None, Some(spec)) => spec.as_str(),
        (None, None) => "unknown",
    };
    let raw_status =
        if status_line.said == status_name { String::new() } else { format!(", from {:?}", status_line.said) };
    format!("{status_name}{} {place_text} (line {})", escape_line(&raw_status), status_line.line)
}

fn print_task(output: &mut impl Write, task: &StoryTask, depth: usize) -> Result<(), UserError> {
    let checkbox = if task.done { "[x]" } else { "[ ]" };
    writeln!(
        output,
        "{:indent$}{checkbox} {:<5} {}",
        "",
        task.id,
        format_with_line(&task.text, task.line),
        indent = depth * 2
    )?;
    // Each level is two columns deeper; the reader limits their number, which bounds the recursion.
    task.subtasks.iter().try_for_each(|subtask| print_task(output, subtask, depth + 1))
}

fn print_follow_up(output: &mut impl Write, follow_up: &FollowUp) -> Result<(), UserError> {
    let checkbox = if follow_up.done { "[x]" } else { "[ ]" };
    let kind_label = follow_up.kind.as_ref().map_or("-".into(), |kind| kind.label().to_lowercase());
    let place_text = follow_up.place.as_ref().map(|place| format!(", {}", escape_line(place))).unwrap_or_default();
    writeln!(
        output,
        "  {checkbox} {:<9} {}{place_text}",
        escape_line(&kind_label),
        format_with_line(&follow_up.text, follow_up.line)
    )?;
    Ok(())
}
