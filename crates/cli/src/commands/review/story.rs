//! `tribunal review --story KEY`: reviews a story's file, and what changed since its work began against its
//! acceptance criteria.

use std::{
    io::{Write, stderr},
    path::PathBuf,
};

use tribunal_bmad::{
    commands::{self, Step},
    keys::Key,
    shelf::Shelf,
    story,
};
use tribunal_core::text::count;
use tribunal_report::escaped;
use tribunal_runner::{changes::Asked, subject};

use super::{
    Prepared,
    change::{self, Wanted},
};
use crate::{
    bmad::Bmad,
    complaint::Complaint,
    context::{Context, quoted},
    settings::Wishes,
};

/// What stories of late eras write as their baseline where there is no git.
const NO_GIT: &str = "NO_VCS";

/// Finds the file of a story: a path is taken as it is, anything else is looked up on the board.
pub(crate) fn file(typed: &str, context: &Context) -> Result<PathBuf, Complaint> {
    let path = context.path(typed.as_ref());
    // A name with a slash is a path even if it is missing; the reader then reports that path.
    if path.is_file() || typed.contains('/') {
        return Ok(PathBuf::from(typed));
    }
    let project = context.project();
    let bmad = Bmad::of(&project);
    let missing = |key: &str, path: &str| {
        let complaint = Complaint::usage(format!("{key} has no file yet: {path} is not there"));
        // Where BMAD can write the story, its command is the best advice.
        match commands::of(&bmad.layout, Step::CreateStory, bmad.client(), &bmad.shelf).prompt(key) {
            Some(prompt) => complaint.todo(format!("have it written: {prompt}")),
            None => complaint.todo("name its file: tribunal review --story FILE"),
        }
    };
    let Key::Story(key) = bmad.key(typed)? else {
        return Err(Complaint::usage(format!("{typed} is no story")).todo("see the stories: tribunal status"));
    };
    match bmad.story_file(&key) {
        Some(relative) => Ok(project.root().join(relative)),
        None => Err(missing(&key.to_string(), &bmad.story_path(&key))),
    }
}

/// Prepares the runs that a story takes: one for its file, and those of its change.
pub(super) fn prepare(
    typed: &str,
    paths: &[PathBuf],
    wishes: &Wishes,
    context: &Context,
) -> Result<Vec<Prepared>, Complaint> {
    let file = file(typed, context)?;
    // A story is good enough without critical findings; the rest becomes follow-up work. A goal of the user takes
    // precedence.
    let settled = wishes.given.flags.iter().any(|flag| flag.path == "goal");
    let goal = (!settled).then(|| "critical-only".to_string());
    let wishes = wishes.clone().flag("--story", "goal", goal);
    let own = super::prepare(&file, None, &wishes, context)?;
    let relative = subject::relative(own.project.root(), &context.path(&file))?;
    let bmad = Bmad::of(&own.project);
    let text = bmad.shelf.read(&relative).ok().flatten().unwrap_or_default();
    let story = story::read(&relative, &text);
    // Without criteria the review of the change would have nothing to check against.
    if story.criteria.is_empty() {
        return Err(Complaint::usage(format!("{relative} has no acceptance criteria"))
            .why("Its change would be held against nothing.")
            .todo("put them under a heading `Acceptance Criteria`, numbered")
            .todo(format!("or review the file alone: tribunal review {}", quoted(&relative))));
    }
    // Work on the next story may be in the tree already; the story's own list keeps it apart.
    let listed: Vec<PathBuf> = story
        .files
        .iter()
        .map(|file| own.project.root().join(&file.text))
        // Paths come from a file that agents edit, so those that lead out of the project are dropped.
        .filter(|file| own.project.leads_out(file).is_none() && file.is_file())
        .collect();
    let mut narrowed = paths.to_vec();
    // The baseline is the best boundary; the list of files comes second, the whole work tree last.
    let asked = match story.baseline.filter(|baseline| baseline != NO_GIT) {
        Some(baseline) => {
            let note = format!("{relative}: its change is what came since {baseline}, where its work began");
            writeln!(stderr(), "[i] {}", escaped(&note))?;
            Asked::Since(baseline)
        }
        None if paths.is_empty() && !listed.is_empty() => {
            let files = count(u32::try_from(listed.len()).unwrap_or(u32::MAX), "file");
            let note = format!(
                "{relative} does not say where its work began; its change is what is not committed in the {files} of its list"
            );
            writeln!(stderr(), "[i] {}", escaped(&note))?;
            narrowed = listed;
            Asked::WorkTree
        }
        None => {
            let note =
                format!("{relative} does not say where its work began; its change is what is not committed");
            writeln!(stderr(), "[i] {}", escaped(&note))?;
            Asked::WorkTree
        }
    };
    let wanted =
        Wanted { asked, paths: &narrowed, story: Some(file), bookkeeping: bmad.bookkeeping(), beside: true };
    let mut jobs = vec![own];
    jobs.extend(change::prepare(&wanted, &wishes, context)?);
    Ok(jobs)
}
