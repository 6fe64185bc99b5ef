//! Runs checks on the work with the scripts that it began with. Work that replaces the script of a check decides itself whether the check
//! passes; what the old script says about the same work, it cannot decide.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use serde_json::Value;
use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, Key},
};
use tribunal_workflows::{
    development::{
        check_scripts::{CheckScript, PathForm},
        checks::{CheckResult, CheckSpec},
    },
    story::order::WORKSPACE_NAME,
};

use super::{
    EffectContext,
    commands::{CommandFailure, run_check_command},
    environment_fault,
    land::run_file_work,
};
use crate::{
    git::heads,
    project::subject::{find_link_on_path, is_plain_path},
    workspaces::{TaskWorkspace, WorkspaceSource},
};

/// A check that ran on the work with the scripts of the commit with which the work began.
#[derive(Debug)]
pub struct BaseCheck {
    /// The scripts that the work has changed.
    pub scripts: Vec<String>,
    /// `None` if the base has none of them.
    pub result: Option<CheckResult>,
}

/// A check whose own scripts the work has changed.
#[derive(Debug)]
pub(crate) struct ReplacedCheck {
    pub check: CheckSpec,
    pub scripts: Vec<String>,
}

/// Runs each check in a copy of the work that has the scripts of the base. Returns `None` if the user ended one of them.
pub(crate) async fn run_checks_of_base(
    context: &Arc<EffectContext>,
    has_workspace: bool,
    base: &CommitId,
    replaced_checks: Vec<ReplacedCheck>,
) -> Option<Result<Vec<BaseCheck>, Fault>> {
    let mut base_checks = Vec::new();
    for (number, ReplacedCheck { check, scripts }) in replaced_checks.into_iter().enumerate() {
        let effect_key = Key::new(format!("verify/base-{}", number + 1));
        let workspace = TaskWorkspace::from_directory(context.project.task_dir(&context.run_id, &effect_key));
        let (copy_context, copy, base) = (context.clone(), workspace.clone(), base.clone());
        let replaced = ReplacedCheck { check: check.clone(), scripts: scripts.clone() };
        let prepared = run_file_work(move || {
            create_copy(&copy_context, &copy, has_workspace)?;
            put_base_scripts(&copy_context, &copy.tree_dir(), &base, &replaced)
        });
        let has_base_scripts = match prepared.await {
            Ok(has_base_scripts) => has_base_scripts,
            Err(cause) => {
                let detail = format!("could not prepare a copy for `{}`: {cause}", check.command);
                return Some(Err(environment_fault(detail)));
            }
        };
        let mut result = None;
        if has_base_scripts {
            let timeout_ms = check.timeout_ms.unwrap_or(context.settings.tasks.check_timeout_ms);
            match run_check_command(context, &check.command, workspace.tree_dir(), timeout_ms).await {
                Ok(finished) => result = Some(finished.into_check_result(check.command.clone(), check.on_failure).0),
                Err(CommandFailure::Stopped) => return None,
                Err(CommandFailure::Lost(cause)) => {
                    return Some(Err(environment_fault(format!("could not run `{}`: {cause}", check.command))));
                }
            }
        }
        base_checks.push(BaseCheck { scripts, result });
        // Whether the cleanup succeeds does not matter: `gc` removes what is left.
        let _ = run_file_work(move || workspace.remove()).await;
    }
    Some(Ok(base_checks))
}

/// Copies the work: that of the workspace, or the user's checkout.
fn create_copy(context: &EffectContext, copy: &TaskWorkspace, has_workspace: bool) -> io::Result<()> {
    let tree_root = match has_workspace {
        true => {
            let found = context.find_development_workspace(WORKSPACE_NAME);
            let workspace = found.map_err(|fault| io::Error::other(fault.detail))?;
            // Git is about to look at the tree.
            workspace.distrust_agent_files().map_err(io::Error::other)?;
            workspace.agent_dir()
        }
        false => context.project.root().to_path_buf(),
    };
    let source = WorkspaceSource {
        project_root: &tree_root,
        subject_files: &[],
        stored_tree: None,
        seed_paths: &context.seed_paths(),
    };
    copy.create(&source).map(drop)
}

/// Writes the scripts as the base has them, and removes those that it does not have: one of them may take the place of another that the
/// tool would use. Returns whether the check has a script to run.
pub(super) fn put_base_scripts(
    context: &EffectContext,
    tree_dir: &Path,
    base: &CommitId,
    replaced: &ReplacedCheck,
) -> io::Result<bool> {
    for script in &replaced.scripts {
        let directory = script.rsplit_once('/').map_or("", |(directory, _)| directory);
        // A link would lead out of the copy.
        if !is_plain_path(script) || find_link_on_path(tree_dir, directory).is_some() {
            continue;
        }
        let script_path = tree_dir.join(script);
        let base_bytes = heads::read_file_at(context.project.root(), base.as_str(), script);
        let work_bytes = fs::read(&script_path).ok();
        match fs::remove_file(&script_path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let Some(base_bytes) = base_bytes else { continue };
        let is_package = script == "package.json" || script.ends_with("/package.json");
        let bytes = match is_package {
            true => put_package_scripts(&base_bytes, work_bytes).unwrap_or(base_bytes),
            false => base_bytes,
        };
        if let Some(directory) = script_path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&script_path, bytes)?;
        // A script that is run by its path has to be executable, and any other one may be.
        fs::set_permissions(&script_path, fs::Permissions::from_mode(0o755))?;
    }
    let candidates = replaced.check.command.list_scripts();
    let is_there = |script: &CheckScript| script.form == PathForm::End && tree_dir.join(&script.path).is_file();
    Ok(candidates.iter().any(is_there) || replaced.scripts.iter().any(|script| tree_dir.join(script).is_file()))
}

/// Puts the `scripts` of the base into the package of the work, whose dependencies the work needs.
fn put_package_scripts(base_bytes: &[u8], work_bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let base: Value = serde_json::from_slice(base_bytes).ok()?;
    let mut work: Value = serde_json::from_slice(&work_bytes?).ok()?;
    let scripts = base.get("scripts").cloned().unwrap_or_default();
    work.as_object_mut()?.insert("scripts".to_string(), scripts);
    serde_json::to_vec_pretty(&work).ok()
}
