//! Resolves all layers and the project into the settings of one run.

use std::path::{Component, Path, PathBuf};

use tribunal_bmad::{OUTPUT_FOLDER, normalize_folder};
use tribunal_engine::limits::RunLimits;
use tribunal_report::DisplayMode;
use tribunal_workflows::{
    development::checks::CheckSpec,
    findings::{finding::Severity, subject::Subject},
    loop_run::order::LoopOrder,
    review::{level_rules::LevelRules, order::ReviewOrder},
    runs::plan::RunPlan,
    sprint::order::SprintOrder,
    story::order::StoryOrder,
    tasks::instructions::TaskOpening,
};

use super::{
    agents::{ChosenAgents, choose_agents, find_agent_problems},
    file_reader::SettingProblem,
    inputs::RunInputs,
    layers::{self, EffectiveSettings, SettingSources, describe_origin},
    origin::SettingLayer,
    roster::{self, PartyRoster},
    trust_items::project_items,
    typed::{FolderSettings, LoopChoices, ThroughputLimits, TypedSettings},
};
use crate::{context::clones_root, messages::user_errors::UserError, trust::trust_item::TrustItem};

/// Everything a command needs to know before it runs.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedSettings<O = ReviewOrder> {
    /// What the run is pinned to.
    pub plan: RunPlan<O>,
    /// How much is shown, if that is set; not pinned, since every start of a run may show as much as it likes.
    pub progress: Option<DisplayMode>,
    /// Which findings make the command fail; not pinned either.
    pub fail_on: Option<Severity>,
    /// Limits of the command; not pinned either.
    pub share: ThroughputLimits,
    /// Items that would run something and came with the project.
    pub items: Vec<TrustItem>,
    /// What the user should know before the run starts.
    pub warnings: Vec<String>,
    /// Information for the user that is not a problem.
    pub notes: Vec<String>,
}

/// What the settings lead to, besides their values.
#[derive(Debug)]
pub(crate) struct SettingsSurvey {
    /// Why no review would start with them.
    pub problems: Vec<SettingProblem>,
    pub roster: PartyRoster,
    /// What the user should know of, though a review would start.
    pub warnings: Vec<String>,
}

/// Surveys the settings for commands that only show them.
pub(crate) fn survey_settings(project_root: &Path, effective: &EffectiveSettings) -> SettingsSurvey {
    let typed_settings = effective.to_typed();
    let roster = project_roster(project_root, &typed_settings);
    SettingsSurvey {
        problems: find_agent_problems(effective, &typed_settings.agents),
        warnings: effective.ignored_file_warning().into_iter().chain(roster.warning.clone()).collect(),
        roster,
    }
}

fn project_roster(project_root: &Path, typed_settings: &TypedSettings) -> PartyRoster {
    roster::read_roster(project_root, typed_settings.review.panel.plans.min_agents)
}

/// Resolves the settings for a review of `subject`.
pub(crate) fn resolve_settings(
    project_root: &Path,
    subject: Subject,
    inputs: &RunInputs,
) -> Result<ResolvedSettings, UserError> {
    let CommonSettings { typed_settings, roster, effective, mut resolved } = resolve_common(project_root, inputs)?;
    require_reviews_enabled(&effective, &typed_settings)?;
    check_thresholds(&effective, &typed_settings.review.level_rules)?;
    // The rows of the table cannot fill these fields: they depend on the project or are checked against it.
    let mut order = typed_settings.review;
    order.subject = subject;
    order.panel.plans.roster = roster.personas;
    resolved.warnings.extend(roster.warning);
    Ok(resolved.with_order(order))
}

/// Refuses to review where the settings forbid it: what costs money must not start against a setting.
fn require_reviews_enabled(effective: &EffectiveSettings, typed_settings: &TypedSettings) -> Result<(), UserError> {
    if typed_settings.is_review_enabled {
        return Ok(());
    }
    const ENABLED_PATH: &str = "review_loop.enabled";
    Err(UserError::usage(format!(
        "{}: `{ENABLED_PATH}` is false, so nothing is reviewed",
        describe_origin(effective, ENABLED_PATH)
    ))
    .with_reason("Nothing was started.")
    .with_step("change the setting")
    .with_step(format!("or review this once: add `--set {ENABLED_PATH}=true`")))
}

/// Refuses thresholds with which no confidence could lead to a dual panel by their meaning.
fn check_thresholds(effective: &EffectiveSettings, level_rules: &LevelRules) -> Result<(), UserError> {
    if level_rules.minimal_above >= level_rules.dual_from {
        return Ok(());
    }
    const MINIMAL_PATH: &str = "levels.minimal_above";
    const DUAL_PATH: &str = "levels.dual_from";
    // The one that was set is the one to change.
    let is_default =
        effective.origin_of(MINIMAL_PATH).is_none_or(|setting_origin| setting_origin.layer == SettingLayer::Default);
    let changed_path = if is_default { DUAL_PATH } else { MINIMAL_PATH };
    Err(UserError::usage(format!(
        "{}: a minimal panel needs a confidence above {}, but a dual panel one from {}",
        describe_origin(effective, changed_path),
        level_rules.minimal_above,
        level_rules.dual_from
    ))
    .with_reason("A smaller panel needs a higher confidence. Nothing was started.")
    .with_step(format!("set `{MINIMAL_PATH}` to at least `{DUAL_PATH}`")))
}

/// Resolves the settings for a headless loop. The caller adds its task and its branch.
pub(crate) fn resolve_loop_settings(project_root: &Path, inputs: &RunInputs) -> Result<ResolvedLoop, UserError> {
    let CommonSettings { typed_settings, roster, effective, mut resolved } = resolve_common(project_root, inputs)?;
    let mut order = typed_settings.loop_run;
    order.review.panel.plans.roster = roster.personas;
    order.skip_baseline = !typed_settings.review.baseline;
    apply_development_limits(inputs, &effective, &mut resolved.plan.settings.limits, &RunLimits::for_development());
    Ok(ResolvedLoop {
        settings: resolved.with_order(order),
        choices: typed_settings.development.loop_choices,
        effective,
    })
}

/// Resolves the settings for the run of a story. The caller adds the story and its branch.
pub(crate) fn resolve_story_settings(
    project_root: &Path,
    inputs: &RunInputs,
) -> Result<ResolvedSettings<StoryOrder>, UserError> {
    let CommonSettings { typed_settings, roster, effective, mut resolved } = resolve_common(project_root, inputs)?;
    let mut order = typed_settings.development.story;
    order.review.panel = typed_settings.review.panel;
    order.review.panel.required_issues = 0;
    order.review.panel.plans.roster = roster.personas;
    order.review.fixers = typed_settings.review.fixers;
    order.review.level = typed_settings.review.level.unwrap_or(order.review.level);
    order.skip_baseline = !typed_settings.review.baseline;
    apply_development_limits(inputs, &effective, &mut resolved.plan.settings.limits, &RunLimits::for_development());
    Ok(resolved.with_order(order))
}

/// The settings of a sprint: those of a story, with limits for a whole night.
pub(crate) fn resolve_sprint_settings(
    project_root: &Path,
    inputs: &RunInputs,
) -> Result<ResolvedSettings<SprintOrder>, UserError> {
    let effective = layers::gather_settings(project_root, &inputs.sources)?;
    let mut resolved = resolve_story_settings(project_root, inputs)?;
    let choices = inputs.fill_fields(&effective).development.sprint;
    apply_development_limits(inputs, &effective, &mut resolved.plan.settings.limits, &RunLimits::for_sprint());
    let story = resolved.plan.order.clone();
    let mut order = SprintOrder::new(story, choices.story_share);
    // The command adds what the project has for it.
    order.retrospective = choices.holds_retrospectives.then(TaskOpening::default);
    Ok(resolved.with_order(order))
}

/// Development takes a whole night, so its defaults are larger than those of a review.
fn apply_development_limits(
    inputs: &RunInputs,
    effective: &EffectiveSettings,
    limits: &mut RunLimits,
    development_limits: &RunLimits,
) {
    // A run that goes on has its limits.
    let is_default = |setting_path: &str| inputs.pinned_run.is_none() && !effective.is_set(setting_path);
    if is_default("limits.max_runtime_minutes") {
        limits.runtime_ms = development_limits.runtime_ms;
    }
    if is_default("limits.max_cost") {
        limits.cost = development_limits.cost;
    }
    if is_default("limits.max_tokens") {
        limits.tokens = development_limits.tokens;
    }
    if is_default("limits.task_tokens") {
        limits.task_tokens = development_limits.task_tokens;
    }
    if is_default("limits.task_turns") {
        limits.task_turns = development_limits.task_turns;
    }
}

/// The settings of a loop, and what its command needs besides.
#[derive(Debug)]
pub(crate) struct ResolvedLoop {
    pub settings: ResolvedSettings<LoopOrder>,
    pub choices: LoopChoices,
    /// Says which settings the user has set.
    pub effective: EffectiveSettings,
}

/// Resolves the settings that every kind of run has.
pub(crate) fn resolve_run_settings(project_root: &Path, inputs: &RunInputs) -> Result<ResolvedSettings<()>, UserError> {
    resolve_common(project_root, inputs).map(|common| common.resolved)
}

/// The settings of every kind of run.
struct CommonSettings {
    typed_settings: TypedSettings,
    roster: PartyRoster,
    effective: EffectiveSettings,
    /// Without an order.
    resolved: ResolvedSettings<()>,
}

fn resolve_common(project_root: &Path, inputs: &RunInputs) -> Result<CommonSettings, UserError> {
    let effective = layers::gather_settings(project_root, &inputs.sources)?;
    let typed_settings = inputs.fill_fields(&effective);
    let chosen_agents = choose_agents(&effective, &typed_settings, inputs, project_root)?;
    resolve_with_agents(project_root, inputs, effective, chosen_agents)
}

/// Resolves the settings for checks of a story alone: they need no agent.
pub(crate) fn resolve_check_settings(
    project_root: &Path,
    inputs: &RunInputs,
) -> Result<ResolvedSettings<StoryOrder>, UserError> {
    let effective = layers::gather_settings(project_root, &inputs.sources)?;
    let CommonSettings { typed_settings, resolved, .. } =
        resolve_with_agents(project_root, inputs, effective, ChosenAgents::default())?;
    Ok(resolved.with_order(typed_settings.development.story))
}

fn resolve_with_agents(
    project_root: &Path,
    inputs: &RunInputs,
    effective: EffectiveSettings,
    chosen_agents: ChosenAgents,
) -> Result<CommonSettings, UserError> {
    let typed_settings = inputs.fill_fields(&effective);
    let ChosenAgents { agents, reserves, mut warnings, choice_note } = chosen_agents;
    let roster = project_roster(project_root, &typed_settings);
    let mut settings = typed_settings.run.clone();
    settings.agents = agents;
    settings.reserves = reserves;
    settings.reviews = resolve_reviews_folder(&effective, &typed_settings.folders)?;
    // The short form comes first: it is what most projects have.
    settings.checks.splice(0..0, typed_settings.verify.iter().cloned().map(CheckSpec::new));
    settings.workspace.root =
        resolve_workspace_root(&effective, settings.workspace.root, inputs.sources.home_dir.as_deref())?;
    settings.seeds = resolve_seeds(&effective, &settings.seeds)?;
    warnings.extend(effective.ignored_file_warning());
    let resolved = ResolvedSettings {
        progress: chosen_progress(&effective, &typed_settings),
        fail_on: typed_settings.fail_on,
        share: typed_settings.share.with_call_limit(settings.limits.calls_per_hour),
        // Items are collected last, because they depend on the agents that were chosen.
        items: project_items(&effective, &settings),
        warnings,
        notes: choice_note.into_iter().collect(),
        plan: RunPlan { settings, order: () },
    };
    Ok(CommonSettings { typed_settings, roster, effective, resolved })
}

impl<O> ResolvedSettings<O> {
    fn with_order<N>(self, order: N) -> ResolvedSettings<N> {
        let ResolvedSettings { plan, progress, fail_on, share, items, warnings, notes } = self;
        let plan = RunPlan { settings: plan.settings, order };
        ResolvedSettings { plan, progress, fail_on, share, items, warnings, notes }
    }
}

/// How much is shown, if any layer says so. The default depends on how many runs share the screen.
pub(crate) fn chosen_progress(effective: &EffectiveSettings, typed_settings: &TypedSettings) -> Option<DisplayMode> {
    let is_set = effective.origin_of("progress.mode").is_some_and(|origin| origin.layer != SettingLayer::Default);
    is_set.then_some(typed_settings.progress)
}

/// The directory of the files that Tribunal writes for users, for a run that needs no other setting.
pub(crate) fn resolve_reviews_dir(project_root: &Path, sources: &SettingSources) -> Result<String, UserError> {
    let effective = layers::gather_settings(project_root, sources)?;
    resolve_reviews_folder(&effective, &effective.to_typed().folders)
}

/// The directory of trackers: `reviews_folder`, or `{output_folder}/reviews`. The output directory is BMAD's, or `.tribunal`.
fn resolve_reviews_folder(
    effective: &EffectiveSettings,
    folder_settings: &FolderSettings,
) -> Result<String, UserError> {
    let output_folder = match &folder_settings.output {
        Some(written_folder) => require_inside_project(effective, "output_folder", written_folder)?,
        None if effective.has_bmad => OUTPUT_FOLDER.to_string(),
        None => ".tribunal".to_string(),
    };
    match &folder_settings.reviews {
        Some(written_folder) => require_inside_project(
            effective,
            "reviews_folder",
            &written_folder.replace("{output_folder}", &output_folder),
        ),
        None => Ok(format!("{output_folder}/reviews")),
    }
}

const SEED_PATH: &str = "workspace.seed";

/// The ignored files that agents need in their workspaces. They need not exist yet: a workspace takes what is there.
fn resolve_seeds(effective: &EffectiveSettings, written_seeds: &[String]) -> Result<Vec<String>, UserError> {
    let mut resolved_seeds: Vec<String> = Vec::new();
    for written_seed in written_seeds {
        let seed_path = require_inside_project(effective, SEED_PATH, written_seed)?;
        // The history and our journal must never be copied to where an agent can write them.
        let is_own_folder =
            seed_path.split('/').next().is_some_and(|first_part| first_part == ".git" || first_part == ".tribunal");
        if is_own_folder {
            return Err(UserError::usage(format!(
                "{}: `{SEED_PATH}` contains `{written_seed}`, which is never copied to a workspace",
                describe_origin(effective, SEED_PATH)
            ))
            .with_reason("It holds the project's history. Nothing was started.")
            .with_step("remove it from the list"));
        }
        // Different spellings may lead to the same path.
        if !resolved_seeds.contains(&seed_path) {
            resolved_seeds.push(seed_path);
        }
    }
    Ok(resolved_seeds)
}

const ROOT_PATH: &str = "workspace.root";

/// The directory for clones. `~` stands for the home directory; a path that depends on the current directory is refused.
fn resolve_workspace_root(
    effective: &EffectiveSettings,
    written_root: Option<String>,
    home_dir: Option<&Path>,
) -> Result<Option<String>, UserError> {
    let Some(written_root) = written_root else { return Ok(None) };
    let below_home = match written_root.as_str() {
        "~" => Some(""),
        path => path.strip_prefix("~/"),
    };
    let root_dir = match (below_home, home_dir) {
        (Some(below_home), Some(home_dir)) => home_dir.join(below_home),
        _ => PathBuf::from(&written_root),
    };
    match root_dir.to_str() {
        Some(root_text) if root_dir.is_absolute() => Ok(Some(root_text.trim_end_matches('/').to_string())),
        _ => Err(UserError::usage(format!(
            "{}: `{ROOT_PATH}` is `{written_root}`, which is not an absolute path",
            describe_origin(effective, ROOT_PATH)
        ))
        .with_reason("Nothing was started.")
        .with_step("use a path that begins with `/` or `~/`")),
    }
}

/// The directory of clones: the one that is set, or the one in the user's cache directory. Settings that cannot be read leave it at
/// the latter: commands that only look at clones must not fail because of them.
pub(crate) fn find_clones_root(project_root: &Path, sources: &SettingSources) -> Option<PathBuf> {
    let set_root = layers::gather_settings(project_root, sources).ok().and_then(|effective| {
        let written_root = effective.to_typed().run.workspace.root;
        resolve_workspace_root(&effective, written_root, sources.home_dir.as_deref()).ok().flatten()
    });
    set_root.map(PathBuf::from).or_else(clones_root)
}

/// Returns a path below the project's root, or the error that says why it is not one.
fn require_inside_project(
    effective: &EffectiveSettings,
    setting_path: &str,
    written_path: &str,
) -> Result<String, UserError> {
    let resolved_folder = normalize_folder(written_path);
    // Any `..`, drive or absolute part is refused, even if it would lead back into the project.
    let is_inside = Path::new(resolved_folder).components().all(|path_part| matches!(path_part, Component::Normal(_)));
    if is_inside && !resolved_folder.is_empty() && !resolved_folder.contains('{') {
        return Ok(resolved_folder.to_string());
    }
    let problem_text = if resolved_folder.is_empty() {
        "is the project directory itself".to_string()
    } else if resolved_folder.contains('{') {
        "contains an unknown placeholder (known are {project-root} and {output_folder})".to_string()
    } else {
        "is outside the project".to_string()
    };
    Err(UserError::usage(format!(
        "{}: `{setting_path}` is `{written_path}`, which {problem_text}",
        describe_origin(effective, setting_path)
    ))
    .with_reason("Nothing was started.")
    .with_step(format!(
        "use {} inside the project, here or as `{setting_path}` in {}",
        if setting_path == SEED_PATH { "a path" } else { "a directory" },
        effective.project_file_name()
    )))
}
