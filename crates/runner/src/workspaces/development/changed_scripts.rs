//! Finds what a commit changes of the files that checks run.

use serde_json::Value;
use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    check_scripts::{ChangedScript, ScriptPart},
    commits::Integrate,
};

use super::{WorkspaceError, git_listings::TreeDifference, user_repository::UserRepository};

/// Lists the changed files that one of the checks runs.
pub(super) fn find_changed_scripts(
    repository: &UserRepository,
    request: &Integrate,
    changes: &[TreeDifference],
) -> Vec<ChangedScript> {
    let mut changed_scripts = Vec::new();
    for command in &request.unchanged_checks {
        let scripts = command.list_scripts();
        for change in changes {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            let is_changed =
                scripts.iter().filter(|script| script.matches_path(&path)).any(|script| match script.part {
                    ScriptPart::WholeFile => true,
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

/// Reads `scripts` of a `package.json`. A file that cannot be read has none, so that it differs from one that can.
fn read_package_scripts(repository: &UserRepository, commit: &CommitId, path: &str) -> Option<Value> {
    let read_blob = || -> Result<Vec<u8>, WorkspaceError> {
        repository.query(["cat-file", "blob", &format!("{}:{path}", commit.as_str())])
    };
    let package: Value = serde_json::from_slice(&read_blob().ok()?).ok()?;
    package.get("scripts").cloned()
}
