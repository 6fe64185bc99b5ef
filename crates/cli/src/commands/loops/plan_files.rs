//! The files beside a fix plan: the prompt of the loop, and copies of the planning documents for its agents.

use std::collections::BTreeSet;

use tribunal_bmad::{
    documents::{self, DocumentKind, ProjectDocument},
    project_files::ProjectFiles,
    ralph::{
        fix_plan_stories::FixPlanEpic,
        project::{FIX_PLAN_PROMPT, FixPlanPlace},
        spec_copies::{SPECS_FOLDER, SpecCopyState, compare_spec_copy, render_spec_copy, spec_copy_path},
    },
};
use tribunal_runner::{Project, project::file_edits::FileEdit};

use crate::{bmad::BmadProject, commands::init::read_project_file, messages::user_errors::UserError};

/// What would be done with the copies of documents.
#[derive(Debug, Default)]
pub(super) struct SpecPlan {
    /// The documents, whether their copies change or not.
    pub sources: Vec<String>,
    pub edits: Vec<FileEdit>,
    /// Copies that were edited by hand and are left as they are.
    pub kept: Vec<String>,
    pub warnings: Vec<String>,
}

/// Plans the copies of the documents that agents have to know: requirements, architecture, design, epics and stories.
pub(super) fn plan_specs(
    project: &Project,
    bmad: &BmadProject,
    epics: &[FixPlanEpic],
    replace_edited: bool,
) -> Result<SpecPlan, UserError> {
    let mut spec_plan = SpecPlan::default();
    let mut known_targets: BTreeSet<String> = BTreeSet::new();
    for document_path in list_documents(bmad, epics) {
        let document_text = match bmad.project_files.read_file(&document_path) {
            Ok(Some(document_text)) => document_text,
            Ok(None) => continue,
            Err(unreadable) => {
                spec_plan.warnings.push(format!("not copied: {}", unreadable.to_problem(&document_path)));
                continue;
            }
        };
        spec_plan.sources.push(document_path.clone());
        let mut copy_path = spec_copy_path(&document_path, &bmad.config.folders.output);
        // Two documents may have the same path below different directories.
        if !known_targets.insert(copy_path.clone()) {
            copy_path = spec_copy_path(&document_path, "");
            known_targets.insert(copy_path.clone());
        }
        let old_text = read_project_file(project, &copy_path)?;
        match old_text.as_deref().map(|copy_text| compare_spec_copy(&document_text, copy_text)) {
            Some(SpecCopyState::UpToDate) => continue,
            Some(SpecCopyState::EditedByHand) if !replace_edited => {
                spec_plan.kept.push(copy_path);
                continue;
            }
            Some(SpecCopyState::EditedByHand | SpecCopyState::Outdated) | None => {}
        }
        let new_text = Some(render_spec_copy(&document_path, &document_text));
        spec_plan.edits.push(FileEdit { relative_path: copy_path, old_text, new_text });
    }
    Ok(spec_plan)
}

/// The paths of the documents, each once.
fn list_documents(bmad: &BmadProject, epics: &[FixPlanEpic]) -> Vec<String> {
    let found_documents = documents::find_documents(&bmad.project_files, &bmad.config.folders);
    // Of most kinds one document counts; epics are read from all of their files.
    let single_kinds = [DocumentKind::Prd, DocumentKind::Architecture, DocumentKind::Ux];
    let single_documents = single_kinds.into_iter().filter_map(|kind| found_documents.first_of_kind(kind));
    let planning_documents = single_documents.chain(found_documents.of_kind(DocumentKind::Epics));
    let planning_paths = planning_documents.flat_map(ProjectDocument::paths).map(String::from);
    let story_paths = epics.iter().flat_map(|epic| &epic.stories).filter_map(|story| story.story_file.clone());
    let mut known_paths = BTreeSet::new();
    planning_paths.chain(story_paths).filter(|path| known_paths.insert(path.clone())).collect()
}

/// Plans the prompt; `None` if the project has one, which is never changed.
pub(super) fn plan_prompt(project: &Project, place: &FixPlanPlace) -> Result<Option<FileEdit>, UserError> {
    if place.prompt.is_some() {
        return Ok(None);
    }
    // A file that is there and cannot be read is an error, and so is a link that leads out of the project.
    let old_text = read_project_file(project, FIX_PLAN_PROMPT)?;
    let new_text = Some(render_prompt(&place.plan));
    Ok(Some(FileEdit { relative_path: FIX_PLAN_PROMPT.to_string(), old_text, new_text }))
}

/// Renders the prompt. The loop itself adds which item is next, where notes are kept and when the task is done.
fn render_prompt(plan_path: &str) -> String {
    format!(
        "# Implement the plan\n\n\
         `{plan_path}` lists the stories of this project, with one box for each.\n\n\
         1. Take the first box that is not ticked. Work on this story and on no other.\n\
         2. Read its story file, if the plan names one, and what `{SPECS_FOLDER}` says about it: requirements, architecture,\n   \
            design and acceptance criteria. They are what you have to meet.\n\
         3. Look for existing code before you write new code. Implement the story completely, without placeholders.\n\
         4. Write tests for its acceptance criteria. Run all tests, and fix what fails.\n\
         5. Tick its box when the acceptance criteria are met and the tests pass, and not before. If something keeps you from\n   \
            that, leave the box open and note what it is.\n\n\
         Change nothing else in the plan: the comments behind the stories belong to Tribunal. Do not edit `{SPECS_FOLDER}` or\n\
         the sprint board.\n"
    )
}
