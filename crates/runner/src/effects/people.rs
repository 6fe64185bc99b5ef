//! Decisions as files that people can open: `{output folder}/awaiting-human/RUN.D1.yaml`. Writing an answer into the file
//! is as good as `tribunal decisions RUN.D1 ANSWER`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tribunal_core::{
    decision::{Answer, Decision},
    effect::{Reply, Request},
    ids::{DecisionId, RunId},
    settings::Settings,
};

use super::{World, world_fault};
use crate::{files::write_atomically, project::Project};

fn folder(project: &Project, settings: &Settings) -> PathBuf {
    let reviews = Path::new(&settings.reviews);
    project.root().join(reviews.parent().unwrap_or(reviews)).join("awaiting-human")
}

pub(super) fn post(world: &World, decision: &Decision) -> Reply {
    let path = folder(&world.project, &world.settings).join(format!("{}.{}.yaml", world.run, decision.id));
    match write_atomically(&path, world.masker.mask(&page(&world.run, decision)).as_bytes()) {
        Ok(()) => Reply::Posted,
        Err(cause) => world_fault(format!("{}: {cause}", path.display())),
    }
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

/// Answers that people wrote into the files of these open decisions. A file is removed once its answer was taken in.
pub(crate) fn answers_in_files(
    project: &Project,
    run: &RunId,
    settings: &Settings,
    open: &[DecisionId],
) -> Vec<(PathBuf, Request)> {
    let folder = folder(project, settings);
    let read = |id: &DecisionId| -> Option<(PathBuf, Request)> {
        let path = folder.join(format!("{run}.{id}.yaml"));
        let text: io::Result<String> = fs::read_to_string(&path);
        let page: Page = serde_saphyr::from_str(&text.ok()?).ok()?;
        if page.answer.trim().is_empty() {
            return None;
        }
        let answer = Answer { choice: page.answer.trim().to_string(), note: page.note.trim().to_string() };
        Some((path, Request::Answer { decision: id.clone(), answer }))
    };
    open.iter().filter_map(read).collect()
}
