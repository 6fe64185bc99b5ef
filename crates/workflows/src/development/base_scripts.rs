//! What a check says about work when it runs the scripts of the branch. Work that replaces a script decides itself whether the check
//! passes; what the old script says about it, it cannot decide.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        check_scripts::ChangedScript,
        checks::{CheckPlace, CheckResult, CheckSpec, ChecksOutcome, RunChecks},
        commits::Integrate,
        parking::name_files,
        performing::DevelopingOrder,
    },
    runs::kind_host::KindHost,
    stages::exit::Staged,
};
use tribunal_engine::ids::Key;

/// Runs the checks whose scripts the work has changed on the work, with these scripts as the branch has them. Returns what came of it,
/// one line for each check for which the branch has a script.
pub(super) async fn run_base_scripts<O: DevelopingOrder>(
    host: KindHost<'_, O>,
    checks_key: Key,
    integrate: &Integrate,
    scripts: &[ChangedScript],
) -> Staged<Vec<String>> {
    let settings = host.settings();
    let is_affected = |check: &&CheckSpec| scripts.iter().any(|script| script.command == check.command);
    let checks: Vec<CheckSpec> = settings.checks.iter().filter(is_affected).cloned().collect();
    // They are put into a fresh clone of the work.
    if checks.is_empty() || !settings.workspace.fresh_clone {
        return Ok(Vec::new());
    }
    let place = CheckPlace::BaseScripts {
        workspace: String::from(O::WORKSPACE_NAME),
        commit: integrate.commit.clone(),
        base: integrate.expected.clone(),
        scripts: scripts.to_vec(),
    };
    let report = match host.perform(checks_key, RunChecks { place, checks }).await? {
        ChecksOutcome::Ran(report) => report,
        // It only helps to decide, so that the question does not depend on it.
        ChecksOutcome::Edited { .. } | ChecksOutcome::Failed { .. } => return Ok(Vec::new()),
    };
    let describe = |result: &CheckResult| {
        let own_scripts = scripts.iter().filter(|script| script.command == result.command);
        let paths: Vec<String> = own_scripts.map(|script| script.path.clone()).collect();
        result.describe_in(&format!("with {} as on {}", name_files(&paths), integrate.branch.name))
    };
    Ok(report.results.iter().map(describe).collect())
}
