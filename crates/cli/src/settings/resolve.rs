//! Resolves all layers and the project into the settings of one run.

use std::path::{Component, Path};

use tribunal_bmad::{OUTPUT_FOLDER, folder};
use tribunal_core::{settings::Settings, subject::Subject};
use tribunal_report::Mode;

use super::{
    agents::{Company, company, problems},
    layers::{self, Effective, FILE, place},
    read::Problem,
    roster::{self, Roster},
    running::items,
    typed::{Folders, Share, TypedSettings},
    wishes::Wishes,
};
use crate::{complaint::Complaint, trust_item::Item};

/// Everything a command needs to know before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// What the run is pinned to.
    pub settings: Settings,
    /// How much is shown; not pinned, since every start of a run may show as much as it likes.
    pub progress: Mode,
    /// Limits of the command; not pinned either.
    pub share: Share,
    /// Items that would run something and came with the project.
    pub items: Vec<Item>,
    /// What the user should know before the run starts.
    pub warnings: Vec<String>,
    /// Information for the user that is not a problem.
    pub notes: Vec<String>,
}

/// What the settings lead to, besides their values.
#[derive(Debug)]
pub(crate) struct Survey {
    /// Why no review would start with them.
    pub problems: Vec<Problem>,
    pub roster: Roster,
}

/// Surveys the settings for commands that only show them.
pub(crate) fn survey(root: &Path, effective: &Effective) -> Survey {
    let typed = effective.typed();
    Survey { problems: problems(effective, &typed.agents), roster: roster(root, &typed) }
}

fn roster(root: &Path, typed: &TypedSettings) -> Roster {
    roster::of_project(root, typed.run.tasks.plans.min_agents)
}

/// Resolves the settings for a review of `subject`.
pub(crate) fn resolve(root: &Path, subject: Subject, wishes: &Wishes) -> Result<Resolved, Complaint> {
    let effective = layers::gather(root, &wishes.given)?;
    let typed = effective.typed();
    let Company { agents, reserves, mut warnings, chosen } = company(&effective, &typed, wishes, root)?;
    let Roster { personas, warning } = roster(root, &typed);
    let reviews = reviews(&effective, &typed.folders)?;
    let TypedSettings { run: mut settings, share, progress, .. } = typed;
    // The rows of the table cannot fill these fields: they depend on the project or are checked against it.
    settings.subject = subject;
    settings.agents = agents;
    settings.reserves = reserves;
    settings.reviews = reviews;
    settings.tasks.plans.roster = personas;
    settings.tasks.writing.seeds = seeds(&effective, &settings.tasks.writing.seeds)?;
    // Items are collected last, because they depend on the agents that were chosen.
    let items = items(&effective, &settings);
    warnings.extend(warning);
    Ok(Resolved { settings, progress, share, items, warnings, notes: chosen.into_iter().collect() })
}

/// The directory of trackers: `reviews_folder`, or `{output_folder}/reviews`. The output directory is BMAD's, or `.tribunal`.
fn reviews(effective: &Effective, folders: &Folders) -> Result<String, Complaint> {
    let output = match &folders.output {
        Some(said) => inside(effective, "output_folder", said)?,
        None if effective.bmad => OUTPUT_FOLDER.to_string(),
        None => ".tribunal".to_string(),
    };
    match &folders.reviews {
        Some(said) => inside(effective, "reviews_folder", &said.replace("{output_folder}", &output)),
        None => Ok(format!("{output}/reviews")),
    }
}

const SEED: &str = "copies.seed";

/// The ignored files that agents need in their workspaces. They need not exist yet: a workspace takes what is there.
fn seeds(effective: &Effective, written: &[String]) -> Result<Vec<String>, Complaint> {
    let mut seeds: Vec<String> = Vec::new();
    for said in written {
        let seed = inside(effective, SEED, said)?;
        // The history and our journal must never be copied to where an agent can write them.
        let own = seed.split('/').next().is_some_and(|first| first == ".git" || first == ".tribunal");
        if own {
            return Err(Complaint::usage(format!(
                "{}: `{SEED}` has `{said}`, which no copy ever has",
                place(effective, SEED)
            ))
            .why("It holds what keeps the project's history. Nothing was started.")
            .todo("take it out of the list"));
        }
        // Different spellings may lead to the same path.
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// Returns a path below the project's root, or the error that says why it is not one.
fn inside(effective: &Effective, path: &str, said: &str) -> Result<String, Complaint> {
    let folder = folder(said);
    // Any `..`, drive or absolute part is refused, even if it would lead back into the project.
    let inside = Path::new(folder).components().all(|part| matches!(part, Component::Normal(_)));
    if inside && !folder.is_empty() && !folder.contains('{') {
        return Ok(folder.to_string());
    }
    let what = if folder.is_empty() {
        "is the project itself".to_string()
    } else if folder.contains('{') {
        "has a part in braces that is not known; known are {project-root} and {output_folder}".to_string()
    } else {
        "is outside the project".to_string()
    };
    Err(Complaint::usage(format!("{}: `{path}` is `{said}`, which {what}", place(effective, path)))
        .why("Nothing was started.")
        .todo(format!(
            "name {} below the project's root, here or as `{path}` in {FILE}",
            if path == SEED { "something" } else { "a folder" }
        )))
}
