//! The command that commits a plan: a loop works in a clone, which has only what is committed.

use tribunal_bmad::{
    ralph::spec_copies::{SPECS_FOLDER, spec_copy_path},
    story,
};
use tribunal_engine::text::shell_quote;
use tribunal_runner::{
    Project,
    git::heads::{self, FileTracking},
};
use tribunal_workflows::development::workspace::PathChange;

use crate::bmad::BmadProject;

/// The directory of the plan and of the files beside it.
const RALPH_FOLDER: &str = ".ralph";
const COMMIT_MESSAGE: &str = "Update the plan";

/// The files that a loop needs, as paths relative to the project's root.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanPaths<'a> {
    pub plan: &'a str,
    pub prompt: &'a str,
    /// Planning documents, stories and the board.
    pub planning: &'a [String],
}

/// Builds the command that commits what a loop needs and has changed: the plan with the files beside it, planning documents, stories
/// and the board, by the user or by `loop plan`. It works in every directory and leaves other staged files alone. `None` if all of it
/// is committed, or if there is no git.
pub(super) fn build_commit_command(
    project: &Project,
    bmad: &BmadProject,
    plan_paths: &PlanPaths<'_>,
) -> Option<String> {
    let root = project.root();
    let own_paths = [plan_paths.plan, plan_paths.prompt, SPECS_FOLDER].map(String::from);
    let ignored_paths = heads::list_ignored(root, &own_paths).ok()?;
    let mut candidates: Vec<String> = match ignored_paths.is_empty() {
        true => [RALPH_FOLDER, plan_paths.plan, plan_paths.prompt].map(String::from).to_vec(),
        // Adding the whole directory by force would take logs and other private files with it.
        false => own_paths.to_vec(),
    };
    // Before the first commit there is nothing to compare with.
    let changes = heads::list_changes(root, "HEAD", None).ok();
    let deleted_changes = changes.iter().flatten().filter(|change| change.change == PathChange::Deleted);
    let deleted_paths = deleted_changes.map(|change| &change.path).filter(|path| was_document(path, project, bmad));
    candidates.extend(plan_paths.planning.iter().chain(deleted_paths).cloned());
    let untracked_paths = heads::list_untracked(root, &candidates).ok()?;
    let is_changed = |candidate: &str| match &changes {
        Some(changes) => changes.iter().any(|change| covers_path(candidate, &change.path)),
        None => heads::find_tracking(root, candidate).is_ok_and(|tracking| tracking == FileTracking::Tracked),
    };
    let (mut new_paths, mut commit_paths): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for candidate in &candidates {
        if commit_paths.iter().any(|commit_path| covers_path(commit_path, candidate)) {
            continue;
        }
        let is_new = untracked_paths.iter().chain(&ignored_paths).any(|path| covers_path(candidate, path));
        if is_new {
            new_paths.push(candidate);
        }
        if is_new || is_changed(candidate) {
            commit_paths.push(candidate);
        }
    }
    if commit_paths.is_empty() {
        return None;
    }
    let git = format!("git -C {}", shell_quote(&root.to_string_lossy()));
    let force_flag = if ignored_paths.is_empty() { "" } else { "--force " };
    // `git commit` finds tracked files by itself. `git add` would refuse those that are ignored, and those that are gone.
    let add_command = match new_paths.is_empty() {
        true => String::new(),
        false => format!("{git} add {force_flag}-- {} && ", quote_paths(&new_paths)),
    };
    Some(format!("{add_command}{git} commit -m \"{COMMIT_MESSAGE}\" -- {}", quote_paths(&commit_paths)))
}

/// Whether a file that is gone was a story or a document with a copy for agents. A clone would still have it.
fn was_document(path: &str, project: &Project, bmad: &BmadProject) -> bool {
    let is_story = path.ends_with(".md") && story::key_from_path(path).is_some();
    let has_copy =
        |output_folder: &str| project.root().join(spec_copy_path(path, output_folder)).symlink_metadata().is_ok();
    is_story && bmad.document_folders().iter().any(|folder| covers_path(folder.trim_end_matches('/'), path))
        || has_copy(&bmad.config.folders.output)
        || has_copy("")
}

/// Whether a path is that of a file or of something below a directory.
fn covers_path(file_or_folder: &str, path: &str) -> bool {
    path.strip_prefix(file_or_folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn quote_paths(paths: &[&str]) -> String {
    paths.iter().map(|path| shell_quote(path)).collect::<Vec<_>>().join(" ")
}
