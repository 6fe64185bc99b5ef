//! What `resume --reload` changes in a run of each kind. [`super::pinned`] has the rule for the settings.

use std::path::Path;

use tribunal_engine::limits::LimitShare;
use tribunal_workflows::{
    loop_run::order::{LoopOrder, LoopReview},
    review::order::ReviewOrder,
    runs::{kinds::RunOrder, plan::RunPlan, view::RunView},
    sprint::order::SprintOrder,
    story::order::StoryOrder,
};

use super::{
    inputs::RunInputs,
    layers,
    pinned::PinnedRun,
    resolve::{
        ResolvedLoop, ResolvedSettings, resolve_loop_settings, resolve_run_settings, resolve_settings,
        resolve_sprint_settings, resolve_story_settings,
    },
};
use crate::messages::user_errors::UserError;

/// Settings that a project has for loops in files of other programs. They are weaker than all of Tribunal's own.
pub(crate) trait LoopFileSettings {
    /// Applies what may change in a loop that has begun. Warns of what may not.
    fn apply_changes(&self, resolved: &mut ResolvedLoop);
}

/// What a run continues with.
#[derive(Debug)]
pub(crate) struct ReloadedRun {
    pub plan: RunPlan,
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

/// Resolves the settings of a run as they are now.
pub(crate) fn reload_run(
    project_root: &Path,
    run_view: &RunView,
    pinned_plan: RunPlan,
    inputs: RunInputs,
    loop_files: Option<&dyn LoopFileSettings>,
) -> Result<ReloadedRun, UserError> {
    let pinned_run = PinnedRun::from_plan(&pinned_plan);
    let current = layers::gather_settings(project_root, &inputs.sources)?;
    let unchanged = pinned_run.describe_unchanged(&current);
    // Other settings depend on the tier, so it has to be known where the layers are read.
    let tier_origin = "the run's own tier";
    let mut inputs = inputs.with_flag(tier_origin, "tier", Some(pinned_plan.settings.tier.to_string()));
    inputs.pinned_run = Some(Box::new(pinned_run));
    let RunPlan { settings: pinned_settings, order } = pinned_plan;
    let mut reloaded = match order {
        RunOrder::Review(order) => reload_review(project_root, order, &inputs)?,
        RunOrder::Loop(order) => reload_loop(project_root, order, &inputs, loop_files)?,
        RunOrder::Story(order) => reload_story(project_root, order, &inputs)?,
        RunOrder::Sprint(order) => reload_sprint(project_root, order, run_view, &inputs)?,
        other_order => resolve_run_settings(project_root, &inputs)?.reload_onto(other_order),
    };
    let dropped_checks: Vec<String> = pinned_settings
        .checks
        .iter()
        .filter(|check| !reloaded.plan.settings.checks.contains(check))
        .map(|check| format!("`{}`", check.command))
        .collect();
    if !dropped_checks.is_empty() {
        let checks = dropped_checks.join(", ");
        reloaded.warnings.push(format!("not checked any more, since `checks` or `verify` is set without it: {checks}"));
    }
    // The tracker and the open questions have to stay where they are, and the share of a child is its parent's to give.
    reloaded.plan.settings.reviews = pinned_settings.reviews;
    reloaded.plan.settings.limits.share = pinned_settings.limits.share;
    reloaded.warnings.extend(unchanged);
    Ok(reloaded)
}

impl<O> ResolvedSettings<O> {
    fn reload_onto(self, order: impl Into<RunOrder>) -> ReloadedRun {
        let plan = RunPlan { settings: self.plan.settings, order: order.into() };
        ReloadedRun { plan, notes: self.notes, warnings: self.warnings }
    }
}

fn reload_review(project_root: &Path, order: ReviewOrder, inputs: &RunInputs) -> Result<ReloadedRun, UserError> {
    let resolved = resolve_settings(project_root, order.subject, inputs)?;
    let order = resolved.plan.order.clone();
    Ok(resolved.reload_onto(order))
}

fn reload_loop(
    project_root: &Path,
    order: LoopOrder,
    inputs: &RunInputs,
    loop_files: Option<&dyn LoopFileSettings>,
) -> Result<ReloadedRun, UserError> {
    let mut resolved_loop = resolve_loop_settings(project_root, inputs)?;
    if let Some(loop_files) = loop_files {
        loop_files.apply_changes(&mut resolved_loop);
    }
    let ResolvedLoop { settings: resolved, .. } = resolved_loop;
    let new_order = resolved.plan.order.clone();
    // The names of its panel were read when it began.
    let review = LoopReview { mode: new_order.review.mode, ..order.review };
    let order = LoopOrder { review, ..new_order };
    Ok(resolved.reload_onto(order))
}

fn reload_story(project_root: &Path, order: StoryOrder, inputs: &RunInputs) -> Result<ReloadedRun, UserError> {
    let resolved = resolve_story_settings(project_root, inputs)?;
    let StoryOrder { pacing, skip_baseline, .. } = resolved.plan.order.clone();
    Ok(resolved.reload_onto(StoryOrder { pacing, skip_baseline, ..order }))
}

fn reload_sprint(
    project_root: &Path,
    order: SprintOrder,
    run_view: &RunView,
    inputs: &RunInputs,
) -> Result<ReloadedRun, UserError> {
    let resolved = resolve_sprint_settings(project_root, inputs)?;
    let story_share = keep_lent_share(run_view, order.story_share, resolved.plan.order.story_share);
    Ok(resolved.reload_onto(SprintOrder { story_share, ..order }))
}

/// Returns what one story may use from now on. While a story is under way, nothing of what was lent to it is taken away.
fn keep_lent_share(run_view: &RunView, pinned_share: LimitShare, new_share: LimitShare) -> LimitShare {
    // A child that has not come back is asked for once more, with the share of then.
    if run_view.children.values().all(|standing| standing.outcome.is_some()) {
        return new_share;
    }
    LimitShare {
        runtime_ms: new_share.runtime_ms.max(pinned_share.runtime_ms),
        cost: new_share.cost.max(pinned_share.cost),
        tokens: new_share.tokens.max(pinned_share.tokens),
    }
}
