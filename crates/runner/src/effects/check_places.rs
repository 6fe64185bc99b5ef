//! Runs checks where they are to run.

use std::sync::Arc;

use tribunal_engine::ids::Key;
use tribunal_workflows::development::checks::{CheckPlace, ChecksOutcome, RunChecks};

use super::{
    EffectContext, PerformedEffect, checks,
    fresh_checks::{self, BaseScripts},
};

/// Runs the checks. Returns `None` if the user ended one of them.
pub(crate) async fn run_checks(
    context: Arc<EffectContext>,
    effect_key: Key,
    request: RunChecks,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let RunChecks { place, checks } = request;
    match place {
        CheckPlace::Workspace { workspace, tree } => checks::run_in_workspace(&context, workspace, tree, &checks).await,
        CheckPlace::FreshClone { workspace, commit } => {
            fresh_checks::run_in_fresh_clone(&context, &workspace, commit, checks).await
        }
        CheckPlace::BaseScripts { workspace, commit, base, scripts } => {
            let base_scripts = BaseScripts { base, scripts };
            fresh_checks::run_with_base_scripts(&context, &workspace, commit, base_scripts, checks).await
        }
        CheckPlace::Copy { subject } => checks::run_in_copy(&context, &effect_key, &subject, &checks).await,
    }
}
