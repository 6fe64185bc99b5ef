//! `tribunal inspect story FILE`: shows what is read from a story's file, with line numbers, and what is wrong with
//! it.

use std::{
    io::{Write, stdout},
    path::Path,
};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_bmad::{
    problem::Weight,
    story::{self, FollowUp, Place, StatusLine, Story, Task},
};
use tribunal_report::escaped;

use crate::{
    bmad,
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents,
};

/// `tribunal inspect story --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoryFile {
    schema: &'static str,
    path: String,
    tasks_done: usize,
    tasks_all: usize,
    #[serde(flatten)]
    story: Story,
}

pub(super) fn run(file: &Path, context: &Context) -> Result<u8, Complaint> {
    let text = super::text_of(file, context)?;
    let path = file.display().to_string();
    let story = story::read(&path, &text);
    // A story with warnings can still be worked on; one with errors cannot.
    let wrong = story.problems.iter().any(|problem| problem.weight == Weight::Error);
    let (tasks_done, tasks_all) = story.progress();
    let seen = StoryFile { schema: "tribunal.inspect-story/1", path, tasks_done, tasks_all, story };
    if context.json {
        documents::print(&seen)?;
    } else {
        show(&mut stdout().lock(), &seen)?;
    }
    Ok(if wrong { NEGATIVE } else { 0 })
}

fn show(out: &mut impl Write, seen: &StoryFile) -> Result<(), Complaint> {
    let story = &seen.story;
    let said =
        |said: &Option<story::Said>| said.as_ref().map_or("-".into(), |said| placed(&said.text, said.line));
    writeln!(out, "key         {}", story.key.as_ref().map_or("-".into(), |key| escaped(&key.to_string())))?;
    writeln!(out, "title       {}", said(&story.title))?;
    writeln!(out, "status      {}", story.status.as_ref().map_or("-".into(), status))?;
    // Only late eras write the outcome of a review into the file.
    if story.outcome.is_some() {
        writeln!(out, "reviewed    {}", said(&story.outcome))?;
    }
    for (name, list) in [("depends on", &story.depends_on), ("closes", &story.closes_deferred)] {
        if !list.is_empty() {
            writeln!(out, "{name:<11} {}", escaped(&list.join(", ")))?;
        }
    }
    if let Some(baseline) = &story.baseline {
        writeln!(out, "began at    {}", escaped(baseline))?;
    }
    writeln!(out, "tasks       {} of {} done", seen.tasks_done, seen.tasks_all)?;
    for task in &story.tasks {
        show_task(out, task, 1)?;
    }
    writeln!(out, "criteria    {}", story.criteria.len())?;
    for criterion in &story.criteria {
        // A criterion may span several lines; the first is enough to recognize it.
        let first = criterion.text.lines().next().unwrap_or_default();
        let more = if criterion.text.lines().nth(1).is_some() { " …" } else { "" };
        writeln!(out, "  {:<3} {}{more}", criterion.number, placed(first, criterion.line))?;
    }
    writeln!(out, "files       {}", story.files.len())?;
    for file in &story.files {
        writeln!(out, "  {}", placed(&file.text, file.line))?;
    }
    let open = story.open_follow_ups().count();
    writeln!(out, "follow-ups  {open} of {} open", story.follow_ups.len())?;
    for item in &story.follow_ups {
        show_follow_up(out, item)?;
    }
    for problem in &story.problems {
        write!(out, "{}", bmad::draw(problem))?;
    }
    Ok(())
}

fn placed(text: &str, line: usize) -> String {
    format!("{} (line {line})", escaped(text))
}

/// Formats a status line: `done, from "Done" in the body (line 3)`.
fn status(line: &StatusLine) -> String {
    let place = if line.place == Place::Body { "in the body" } else { "in the front matter" };
    // A spec of a late era has states of its own, which no story status stands for.
    let meant = match (line.status, line.spec) {
        (Some(status), _) => status.as_str(),
        (None, Some(spec)) => spec.as_str(),
        (None, None) => "unknown",
    };
    let said = if line.said == meant { String::new() } else { format!(", from {:?}", line.said) };
    format!("{meant}{} {place} (line {})", escaped(&said), line.line)
}

fn show_task(out: &mut impl Write, task: &Task, depth: usize) -> Result<(), Complaint> {
    let tick = if task.done { "[x]" } else { "[ ]" };
    writeln!(
        out,
        "{:indent$}{tick} {:<5} {}",
        "",
        task.id,
        placed(&task.text, task.line),
        indent = depth * 2
    )?;
    // Subtasks nest without a fixed limit, each level two columns deeper.
    task.subtasks.iter().try_for_each(|sub| show_task(out, sub, depth + 1))
}

fn show_follow_up(out: &mut impl Write, item: &FollowUp) -> Result<(), Complaint> {
    let tick = if item.done { "[x]" } else { "[ ]" };
    let kind = item.kind.as_ref().map_or("-".into(), |kind| kind.label().to_lowercase());
    let place = item.place.as_ref().map(|place| format!(", {}", escaped(place))).unwrap_or_default();
    writeln!(out, "  {tick} {:<9} {}{place}", escaped(&kind), placed(&item.text, item.line))?;
    Ok(())
}
