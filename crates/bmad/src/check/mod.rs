//! Whether a project is ready: for one step of BMAD's method, or as far as it has come; and whether its documents agree with
//! each other, from the PRD through architecture and epics to the stories and the board.
//!
//! Only existing documents are judged: a project with nothing but a PRD is fine until a step needs more. What may also occur
//! in a healthy project is a note or nothing, since a false alarm costs more than a missed one. Nothing is changed here, and
//! the files of a project are found by `documents`.

mod dangling;
mod links;
mod material;
mod needs;
mod papers;
mod requirements;
mod specs;
mod stories;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    board::Board,
    commands::Step,
    config::Config,
    documents::{Documents, Kind},
    layout::Layout,
    problem::{Problem, Weight, rules},
    retro,
    shelf::{self, Shelf},
};
use material::Material;

/// The input of a check.
#[expect(missing_debug_implementations, reason = "a shelf has nothing to show")]
pub struct Input<'a> {
    pub shelf: &'a dyn Shelf,
    pub layout: &'a Layout,
    pub config: &'a Config,
    /// The board; `None` if there is none, or none that can be opened.
    pub board: Option<&'a Board>,
    /// The path of the board, even if it does not exist yet.
    pub board_path: &'a str,
    pub documents: &'a Documents,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Whether nothing is missing and no problem is an error.
    pub ready: bool,
    /// What the step needs and does not find.
    pub missing: Vec<Missing>,
    /// The step that would provide it; `None` if the project is ready, or if no step was asked for.
    pub suggestion: Option<Suggestion>,
    pub looked_at: LookedAt,
    /// The problems, by file and then by line.
    pub problems: Vec<Problem>,
}

/// A document that a step needs and does not find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    pub document: String,
    /// The path where it would be.
    pub path: String,
}

/// The step to run first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suggestion {
    pub step: &'static str,
    /// What an agent is told in this project; if the step cannot be run here, what to do about that.
    pub command: String,
    pub why: String,
}

/// What the report covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LookedAt {
    /// The era; `None` if BMAD is not installed here, or if its era is unknown.
    pub era: Option<String>,
    pub version: Option<String>,
    pub planning: String,
    pub implementation: String,
    /// The number of documents that are no stories.
    pub documents: usize,
    pub epics: usize,
    /// The number of story files.
    pub stories: usize,
    /// The number of stories on the board; `None` if there is no board.
    pub on_board: Option<usize>,
}

impl LookedAt {
    /// Whether the project has no files of BMAD.
    pub fn is_nothing(&self) -> bool {
        self.era.is_none()
            && self.version.is_none()
            && self.documents == 0
            && self.stories == 0
            && self.on_board.is_none()
    }
}

/// Checks a project; with a step, also whether that step can be run.
pub fn run(input: &Input<'_>, step: Option<Step>) -> Report {
    let material = Material::gather(input);
    // The readers have reported what is wrong within one file; the rules below compare files.
    let mut problems = input.layout.problems.clone();
    problems.extend_from_slice(&input.config.problems);
    problems.extend_from_slice(&input.documents.problems);
    problems.extend(input.board.map(|board| board.problems.clone()).unwrap_or_default());
    problems.extend_from_slice(&material.problems);
    papers::check(&material, step, &mut problems);
    requirements::check(&material, &mut problems);
    links::check(&material, &mut problems);
    stories::check(&material, &mut problems);
    specs::check(&material, &mut problems);
    dangling::check(&material, &mut problems);
    for document in input.documents.of(Kind::Retro) {
        let text = shelf::read(input.shelf, &document.path, &mut Vec::new()).unwrap_or_default();
        problems.extend(retro::read(&document.path, &text).problems);
    }
    let (missing, suggestion) = match step {
        Some(step) => needs::check(&material, step, &mut problems),
        None => (Vec::new(), None),
    };
    // A step without an entry point cannot run, even if all of its documents exist.
    problems.extend(step.and_then(|step| material.uninstalled(step)));
    weigh(&material, step, &mut problems);
    sort(&mut problems);
    // Warnings do not keep a step from running; that is for the user to decide.
    let ready = missing.is_empty() && problems.iter().all(|problem| problem.weight < Weight::Error);
    Report { ready, missing, suggestion, looked_at: material.looked_at(), problems }
}

/// Sorts problems by file and line, and removes duplicates.
pub fn sort(problems: &mut Vec<Problem>) {
    let place = |problem: &Problem| (problem.path.clone(), problem.line, problem.column);
    // At one place the heaviest problem comes first; rule and message make the order stable.
    problems.sort_by(|a, b| {
        let weights = b.weight.cmp(&a.weight);
        place(a).cmp(&place(b)).then(weights).then_with(|| (a.rule, &a.what).cmp(&(b.rule, &b.what)))
    });
    problems.dedup();
}

/// Adjusts the weight of problems that one file alone cannot judge.
fn weigh(material: &Material<'_>, step: Option<Step>, problems: &mut Vec<Problem>) {
    // Epics are designed before their stories, so a list of epics without any story is an intermediate state.
    let undivided = !material.epics.epics.is_empty() && material.epics.stories().next().is_none();
    problems.retain(|problem| !(undivided && problem.rule == rules::EPIC_EMPTY));
    let due = material.due();
    for problem in problems {
        match problem.rule {
            // Stories are removed and postponed, and their numbers stay unused.
            rules::STORY_NUMBER_MISSING | rules::EPIC_NUMBER_MISSING => problem.weight = Weight::Note,
            // A story that is developed next needs its criteria; for any other one their lack is only a warning.
            rules::STORY_NO_CRITERIA
                if step == Some(Step::DevStory) && due.contains(problem.path.as_str()) =>
            {
                problem.weight = Weight::Error;
            }
            _ => {}
        }
    }
}
