//! Whether a project is ready: for one step of BMAD's method, or as far as it has come; and whether its documents agree with
//! each other, from the PRD through architecture and epics to the stories and the board.
//!
//! Only existing documents are judged: a project with nothing but a PRD is fine until a step needs more. What may also occur
//! in a healthy project is a note or nothing, since a false alarm costs more than a missed one. Nothing is changed here, and
//! the files of a project are found by `documents`.

mod links;
mod material;
mod needs;
mod planning_documents;
mod references;
mod requirements;
mod specs;
mod stories;
#[cfg(test)]
mod tests;

use tribunal_json::{Serialize, schemars};

use crate::{
    board::Board,
    commands::BmadStep,
    config::BmadConfig,
    documents::{DocumentKind, ProjectDocuments},
    layout::BmadLayout,
    problem::{FileProblem, ProblemWeight, rules},
    project_files::{self, ProjectFiles},
    retrospective,
};
use material::CheckMaterial;

/// The input of a check.
#[expect(missing_debug_implementations, reason = "files have nothing to show")]
pub struct CheckInput<'a> {
    pub project_files: &'a dyn ProjectFiles,
    pub layout: &'a BmadLayout,
    pub config: &'a BmadConfig,
    /// The board; `None` if there is none, or none that can be opened.
    pub board: Option<&'a Board>,
    /// The path of the board, even if it does not exist yet.
    pub board_path: &'a str,
    pub documents: &'a ProjectDocuments,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReadinessReport {
    /// Whether nothing is missing and no problem is an error.
    pub ready: bool,
    /// What the step needs and does not find.
    pub missing: Vec<MissingDocument>,
    /// The step that would provide it; `None` if the project is ready, or if no step was asked for.
    pub suggestion: Option<StepSuggestion>,
    pub looked_at: CheckSummary,
    /// The problems, by file and then by line.
    pub problems: Vec<FileProblem>,
}

/// A document that a step needs and does not find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MissingDocument {
    pub document: String,
    /// The path where it would be.
    pub path: String,
}

/// The step to run first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StepSuggestion {
    pub step: &'static str,
    /// What an agent is told in this project; if the step cannot be run here, what to do about that.
    pub command: String,
    pub why: String,
}

/// What the report covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CheckSummary {
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

impl CheckSummary {
    /// Whether the project has no files of BMAD.
    pub fn is_empty(&self) -> bool {
        self.era.is_none()
            && self.version.is_none()
            && self.documents == 0
            && self.stories == 0
            && self.on_board.is_none()
    }
}

/// Checks a project; with a step, also whether that step can be run.
pub fn check_project(check_input: &CheckInput<'_>, step: Option<BmadStep>) -> ReadinessReport {
    let check_material = CheckMaterial::gather(check_input);
    // The readers have reported what is wrong within one file; the rules below compare files.
    let mut problems = check_input.layout.problems.clone();
    problems.extend_from_slice(&check_input.config.problems);
    problems.extend_from_slice(&check_input.documents.problems);
    problems.extend(check_input.board.map(|board| board.problems.clone()).unwrap_or_default());
    problems.extend_from_slice(&check_material.problems);
    planning_documents::check_documents(&check_material, step, &mut problems);
    requirements::check_requirements(&check_material, &mut problems);
    links::check_links(&check_material, &mut problems);
    stories::check_stories(&check_material, &mut problems);
    specs::check_specs(&check_material, &mut problems);
    references::check_references(&check_material, &mut problems);
    for document in check_input.documents.of_kind(DocumentKind::Retro) {
        let document_text = project_files::read_or_report(check_input.project_files, &document.path, &mut Vec::new())
            .unwrap_or_default();
        problems.extend(retrospective::read_retrospective(&document.path, &document_text).problems);
    }
    let (missing, suggestion) = match step {
        Some(step) => needs::check_needs(&check_material, step, &mut problems),
        None => (Vec::new(), None),
    };
    // A step without an entry point cannot run, even if all of its documents exist.
    problems.extend(step.and_then(|step| check_material.missing_step_problem(step)));
    adjust_weights(&check_material, step, &mut problems);
    sort_problems(&mut problems);
    // Warnings do not keep a step from running; that is for the user to decide.
    let ready = missing.is_empty() && problems.iter().all(|problem| problem.weight < ProblemWeight::Error);
    ReadinessReport { ready, missing, suggestion, looked_at: check_material.summarize(), problems }
}

/// Sorts problems by file and line, and removes duplicates.
pub fn sort_problems(problems: &mut Vec<FileProblem>) {
    let sort_place = |problem: &FileProblem| (problem.path.clone(), problem.line, problem.column);
    // At one place the heaviest problem comes first; rule and message make the order stable.
    problems.sort_by(|left, right| {
        let weight_order = right.weight.cmp(&left.weight);
        sort_place(left)
            .cmp(&sort_place(right))
            .then(weight_order)
            .then_with(|| (left.rule, &left.what).cmp(&(right.rule, &right.what)))
    });
    problems.dedup();
}

/// Adjusts the weight of problems that one file alone cannot judge.
fn adjust_weights(check_material: &CheckMaterial<'_>, step: Option<BmadStep>, problems: &mut Vec<FileProblem>) {
    // Epics are designed before their stories, so a list of epics without any story is an intermediate state.
    let has_only_epics = !check_material.epics.epics.is_empty() && check_material.epics.stories().next().is_none();
    problems.retain(|problem| !(has_only_epics && problem.rule == rules::EPIC_EMPTY));
    let due_paths = check_material.due_story_paths();
    for problem in problems {
        match problem.rule {
            // Stories are removed and postponed, and their numbers stay unused.
            rules::STORY_NUMBER_MISSING | rules::EPIC_NUMBER_MISSING => problem.weight = ProblemWeight::Note,
            // A story that is developed next needs its criteria; for any other one their lack is only a warning.
            rules::STORY_NO_CRITERIA
                if step == Some(BmadStep::DevStory) && due_paths.contains(problem.path.as_str()) =>
            {
                problem.weight = ProblemWeight::Error;
            }
            _ => {}
        }
    }
}
