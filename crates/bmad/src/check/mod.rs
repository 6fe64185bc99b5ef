//! Whether a project is ready: for one step of BMAD's method, or as far as it has come; and whether what its documents say of
//! each other holds, from the PRD through architecture and epics to the stories and the board.
//!
//! Only what is there is judged: a project with nothing but a PRD is fine until a step asks for more. What a healthy project may
//! look like is a note or nothing, since an alarm that is false costs more than one that is missed. Nothing is changed here, and
//! which files a project has is found by `documents`.

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

/// What is looked at.
#[expect(missing_debug_implementations, reason = "a shelf has nothing to show")]
pub struct Input<'a> {
    pub shelf: &'a dyn Shelf,
    pub layout: &'a Layout,
    pub config: &'a Config,
    /// None: there is no board, or none that can be opened.
    pub board: Option<&'a Board>,
    /// Where a board is, or would be.
    pub board_path: &'a str,
    pub documents: &'a Documents,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Nothing is missing, and no problem is an error.
    pub ready: bool,
    /// What the step needs and is not there.
    pub missing: Vec<Missing>,
    /// What would bring it about; none: it is ready, or no step was asked for.
    pub suggestion: Option<Suggestion>,
    pub looked_at: LookedAt,
    /// By file, then by line.
    pub problems: Vec<Problem>,
}

/// Something a step needs and does not find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    pub document: String,
    /// Where it would stand.
    pub path: String,
}

/// The step to run first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Suggestion {
    pub step: &'static str,
    /// What an agent is told in this project; where it cannot be run here, what to do about that.
    pub command: String,
    pub why: String,
}

/// What the report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LookedAt {
    /// None: BMAD is not installed here, or nothing tells its era.
    pub era: Option<String>,
    pub version: Option<String>,
    pub planning: String,
    pub implementation: String,
    /// Documents that are no stories.
    pub documents: usize,
    pub epics: usize,
    /// Files of stories.
    pub stories: usize,
    /// Stories on the board; none: there is no board.
    pub on_board: Option<usize>,
}

impl LookedAt {
    /// There is nothing of BMAD here.
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
    problems.extend(step.and_then(|step| material.uninstalled(step)));
    weigh(&material, step, &mut problems);
    sort(&mut problems);
    let ready = missing.is_empty() && problems.iter().all(|problem| problem.weight < Weight::Error);
    Report { ready, missing, suggestion, looked_at: material.looked_at(), problems }
}

/// By file, then by line, each once.
pub fn sort(problems: &mut Vec<Problem>) {
    let place = |problem: &Problem| (problem.path.clone(), problem.line, problem.column);
    problems.sort_by(|a, b| {
        let weights = b.weight.cmp(&a.weight);
        place(a).cmp(&place(b)).then(weights).then_with(|| (a.rule, &a.what).cmp(&(b.rule, &b.what)))
    });
    problems.dedup();
}

/// What a reader thinks of one file weighs more or less with the whole project in view.
fn weigh(material: &Material<'_>, step: Option<Step>, problems: &mut Vec<Problem>) {
    // Epics are designed before their stories are: a list without any is a step of the way.
    let undivided = !material.epics.epics.is_empty() && material.epics.stories().next().is_none();
    problems.retain(|problem| !(undivided && problem.rule == rules::EPIC_EMPTY));
    let due = material.due();
    for problem in problems {
        match problem.rule {
            // Stories are taken out and put off; their numbers stay free.
            rules::STORY_NUMBER_MISSING | rules::EPIC_NUMBER_MISSING => problem.weight = Weight::Note,
            rules::STORY_NO_CRITERIA
                if step == Some(Step::DevStory) && due.contains(problem.path.as_str()) =>
            {
                problem.weight = Weight::Error;
            }
            _ => {}
        }
    }
}
