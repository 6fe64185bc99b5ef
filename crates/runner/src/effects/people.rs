//! Decisions as files that the user can open: `{output folder}/awaiting-human/RUN.D1.yaml`. Writing an answer into such a file
//! has the same effect as `tribunal decisions RUN.D1 ANSWER`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tribunal_core::{
    decision::{About, Answer, ChoiceKey, Decision},
    effect::{PostOutcome, Request},
    ids::{DecisionId, Hash, RunId},
    settings::Settings,
};

use tribunal_store::Store;

use super::{World, land, world_fault};
use crate::{copies, files::write_atomically, project::Project};

fn folder(project: &Project, settings: &Settings) -> PathBuf {
    let reviews = Path::new(&settings.reviews);
    project.root().join(reviews.parent().unwrap_or(reviews)).join("awaiting-human")
}

fn page_path(project: &Project, settings: &Settings, run: &RunId, decision: &DecisionId) -> PathBuf {
    folder(project, settings).join(format!("{run}.{decision}.yaml"))
}

pub(super) fn post(world: &World, decision: &Decision) -> PostOutcome {
    let path = page_path(&world.project, &world.settings, &world.run, &decision.id);
    // After a crash the same decision is posted again. The user may have answered in its file meanwhile, so their text stays.
    match read(&path, decision) {
        Written::Nothing => {}
        Written::Answer(_) | Written::Unusable(_) => return PostOutcome::Posted,
        Written::Unreadable(cause) => return world_fault(format!("{}: {cause}", path.display())).into(),
    }
    if let Some(there) = world.project.leads_out(&path) {
        return world_fault(format!("{} leads out of the project, to {}", path.display(), there.display()))
            .into();
    }
    let mut page = page(&world.run, decision);
    if let About::Patch { by, patch, diff, .. } = &decision.about {
        // The patch that the user is asked about is kept until they have answered.
        let copy = land::find_copy(&world.project.desk(&world.run, by), patch);
        let kept = copy.ok_or(io::ErrorKind::NotFound.into()).and_then(|copy| copies::retain(copy.folder()));
        if let Err(cause) = kept {
            return world_fault(format!("the patch of {by} cannot be kept: {cause}")).into();
        }
        page = format!("{}{page}", shown(world, diff));
    }
    match write_atomically(&path, world.masker.mask(&page).as_bytes()) {
        Ok(()) => PostOutcome::Posted,
        Err(cause) => world_fault(format!("{}: {cause}", path.display())).into(),
    }
}

/// Renders a patch as comments for the page that asks about it.
fn shown(world: &World, diff: &Hash) -> String {
    let store = Store::open_read_only(&world.project.home());
    let Ok(diff) = store.and_then(|store| store.blob(diff)) else { return String::new() };
    String::from_utf8_lossy(&diff).lines().map(|line| format!("# {line}\n")).chain(["\n".into()]).collect()
}

fn page(run: &RunId, decision: &Decision) -> String {
    let mut page = format!("# {} asks {}:\n", run, decision.owner);
    for line in decision.question.lines() {
        page.push_str(&format!("#   {line}\n"));
    }
    page.push_str("# Write one of these behind `answer:` (and a note if you like), then: tribunal resume ");
    page.push_str(&format!("{run}\n"));
    for choice in &decision.choices {
        page.push_str(&format!("#   {}: {}\n", choice.key, choice.label));
    }
    page.push_str("answer: \"\"\nnote: \"\"\n");
    page
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    answer: String,
    #[serde(default)]
    note: String,
}

/// The content of a decision's file.
enum Written {
    Nothing,
    Answer(Answer),
    /// Text that does not answer this decision. It is kept and pointed out to the user.
    Unusable(String),
    /// The file exists, or its parent is not a directory, and it cannot be read.
    Unreadable(io::Error),
}

fn read(path: &Path, decision: &Decision) -> Written {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Written::Nothing,
        Err(cause) => return Written::Unreadable(cause),
    };
    let page: Page = match serde_saphyr::from_str(&text) {
        Ok(page) => page,
        Err(cause) => {
            // Only the first line: the parser's message goes on with an excerpt of the file.
            return Written::Unusable(cause.to_string().lines().next().unwrap_or_default().to_string());
        }
    };
    let answer = Answer { choice: page.answer.trim().to_string(), note: page.note.trim().to_string() };
    if answer.choice.is_empty() {
        Written::Nothing
    } else if decision.allows(&answer.choice) {
        Written::Answer(answer)
    } else {
        Written::Unusable(format!("`{}` is none of its choices", answer.choice))
    }
}

/// Reads answers that the user wrote into the files of open decisions.
pub(crate) fn answers_in_files(world: &World, open: &[Decision]) -> Vec<Request> {
    let answer = |decision: &Decision| {
        let path = page_path(&world.project, &world.settings, &world.run, &decision.id);
        match read(&path, decision) {
            Written::Answer(answer) => Some(Request::Answer { decision: decision.id.clone(), answer }),
            Written::Nothing | Written::Unusable(_) | Written::Unreadable(_) => None,
        }
    };
    open.iter().filter_map(answer).collect()
}

/// Lists the files of open decisions whose content is not a valid answer, with the reason.
pub(crate) fn unusable_answers(
    project: &Project,
    settings: &Settings,
    run: &RunId,
    open: &[Decision],
) -> Vec<String> {
    let problem = |decision: &Decision| {
        let path = page_path(project, settings, run, &decision.id);
        match read(&path, decision) {
            Written::Unusable(why) => Some(format!("{}: {why}", path.display())),
            Written::Unreadable(cause) => Some(format!("{}: {cause}", path.display())),
            Written::Nothing | Written::Answer(_) => None,
        }
    };
    open.iter().filter_map(problem).collect()
}

/// Releases the workspace of a patch that the user did not approve.
pub(crate) fn let_go(world: &World, decision: &Decision, answer: &Answer) {
    if let (About::Patch { by, patch, .. }, false) =
        (&decision.about, answer.key() == Some(ChoiceKey::Approve))
        && let Some(copy) = land::find_copy(&world.project.desk(&world.run, by), patch)
    {
        copies::release(copy.folder());
    }
}

/// Removes the file of an answered decision.
pub(crate) fn remove_page(world: &World, decision: &DecisionId) {
    // A file that cannot be removed is harmless: its decision is no longer open, so it is never read again.
    let _ = fs::remove_file(page_path(&world.project, &world.settings, &world.run, decision));
}
