//! Finds what a commit changes of the files that checks run.

use serde_json::Value;
use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    check_scripts::{ChangedScript, CheckScript, PathForm, ScriptPart, list_included_scripts, may_be_included},
    commits::Integrate,
    makefiles::{is_makefile, select_recipes},
    workspace::PathChange,
};

use super::{WorkspaceError, git_listings::TreeDifference, user_repository::UserRepository};

/// The most scripts of a check whose text is read.
const MAX_READ_SCRIPTS: usize = 20;

/// Lists the changed files that one of the checks runs.
pub(super) fn find_changed_scripts(
    repository: &UserRepository,
    request: &Integrate,
    changes: &[TreeDifference],
    prefix: &str,
) -> Vec<ChangedScript> {
    let mut changed_scripts = Vec::new();
    let has_candidates = changes.iter().any(|change| may_be_included(&String::from_utf8_lossy(&change.path)));
    for command in &request.unchanged_checks {
        let mut scripts = command.list_scripts();
        if has_candidates {
            add_included_scripts(&mut scripts, &|path| {
                let object_name = format!("{}:{prefix}{path}", request.expected.as_str());
                let bytes = repository.query(["cat-file", "blob", &object_name]).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            });
        }
        for change in changes {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            let project_path = path.strip_prefix(prefix).unwrap_or(&path);
            let is_changed =
                scripts.iter().filter(|script| script.matches_path(project_path)).any(|script| match script.part {
                    ScriptPart::WholeFile => true,
                    ScriptPart::NewFile => {
                        change.change == PathChange::Added && !has_entry(repository, request, prefix, &script.path)
                    }
                    ScriptPart::PackageScripts => {
                        read_package_scripts(repository, &request.expected, &path)
                            != read_package_scripts(repository, &request.commit, &path)
                    }
                });
            if is_changed {
                changed_scripts.push(ChangedScript { path, command: command.clone() });
            }
        }
    }
    changed_scripts
}

/// The names of targets that a check gives to `make`.
fn list_targets(scripts: &[CheckScript]) -> Vec<String> {
    let targets = scripts.iter().filter(|script| script.form == PathForm::Root && script.part == ScriptPart::NewFile);
    targets.map(|target| target.path.clone()).collect()
}

/// Adds what the scripts of a check include, and what these include in turn. `read_script` reads one as the branch has it.
pub(crate) fn add_included_scripts(scripts: &mut Vec<CheckScript>, read_script: &dyn Fn(&str) -> Option<String>) {
    let (mut next, mut read_count) = (0, 0);
    while let Some(script) = scripts.get(next)
        && read_count < MAX_READ_SCRIPTS
    {
        next += 1;
        let is_named = matches!(script.form, PathForm::End | PathForm::Root);
        if !is_named || script.part != ScriptPart::WholeFile || !may_be_included(&script.path) {
            continue;
        }
        read_count += 1;
        let Some(mut text) = read_script(&script.path) else { continue };
        if is_makefile(&script.path) {
            // The other targets are no part of the check.
            text = select_recipes(&text, &list_targets(scripts));
        }
        for included in list_included_scripts(&text) {
            if !scripts.contains(&included) {
                scripts.push(included);
            }
        }
    }
}

/// Whether the branch has a file or a directory of this name already.
fn has_entry(repository: &UserRepository, request: &Integrate, prefix: &str, path: &str) -> bool {
    let object_name = format!("{}:{prefix}{path}", request.expected.as_str());
    repository.is_true(["cat-file", "-e", object_name.as_str()]).unwrap_or(false)
}

/// Reads `scripts` of a `package.json`. A file that cannot be read has none, so that it differs from one that can.
fn read_package_scripts(repository: &UserRepository, commit: &CommitId, path: &str) -> Option<Value> {
    let read_blob = || -> Result<Vec<u8>, WorkspaceError> {
        repository.query(["cat-file", "blob", &format!("{}:{path}", commit.as_str())])
    };
    let package: Value = serde_json::from_slice(&read_blob().ok()?).ok()?;
    package.get("scripts").cloned()
}
