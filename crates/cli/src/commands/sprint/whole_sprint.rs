//! The stories of the board, or several that were named, as one run with a child for each.

use std::collections::BTreeMap;

use tribunal_bmad::keys::StoryKey;
use tribunal_runner::{
    Project,
    project::{sprint_facts, story_plan},
};
use tribunal_workflows::{
    runs::{kinds::RunOrder, plan::RunPlan, run_kind::RunKind, view::RunView},
    sprint::{
        facts::{OpenStory, SprintFacts},
        forecast::forecast_retrospectives,
        order::SprintOrder,
        plan_changes::list_plan_changes,
        scope::SprintScope,
        selection as story_order,
        selection::{LeftOutReason, SprintForecast},
    },
    story::order::StoryOrder,
};

use super::{
    SprintPreparation, apply_plan,
    earlier_runs::EarlierRuns,
    plan::{self, PreparedStory},
    selection::{self, ChosenStory},
    start_run,
};
use crate::{
    bmad::BoardLookup,
    commands::review::print_notes,
    context::CommandContext,
    messages::user_errors::{EXIT_NEGATIVE, UserError},
    settings::{ResolvedSettings, resolve_sprint_settings},
    trust::trust_item::TrustItem,
};

pub(super) fn run(
    preparation: SprintPreparation<'_>,
    chosen_stories: &[ChosenStory],
    context: &CommandContext,
) -> Result<u8, UserError> {
    let SprintPreparation { project, bmad, arguments, run_inputs } = preparation;
    if arguments.work.again {
        return Err(UserError::usage("`--again` works with one story only")
            .with_step("name the story: `tribunal sprint STORY --again`"));
    }
    let board = bmad.require_board()?;
    let raw_key_of = |key: &StoryKey| {
        let found = board.stories().find(|(board_key, _)| *board_key == key);
        found.map_or_else(|| key.to_string(), |(_, entry)| entry.raw_key.clone())
    };
    let scope = SprintScope {
        epic: arguments.epic.clone(),
        stories: chosen_stories.iter().map(|chosen| raw_key_of(&chosen.key)).collect(),
        max_stories: arguments.max_stories,
    };
    if let Some(epic) = &scope.epic {
        require_epic(preparation, epic)?;
    }
    let mut resolved = resolve_sprint_settings(project.root(), run_inputs)?;
    preparation.fill_order(&mut resolved.plan.order.story, context)?;
    fill_sprint(preparation, &mut resolved, scope);
    let forecast = forecast_sprint(preparation, &mut resolved, context)?;
    let changes = find_plan_changes(project, &resolved.plan.order, context)?;
    resolved.notes.extend(changes.into_iter().map(|change| format!("since the last sprint: {change}")));
    resolved.items.extend(TrustItem::from_commit_hooks(project.root()));
    if arguments.dry_run {
        print_notes(resolved.notes.iter(), context)?;
        return print_forecast(preparation, &resolved, &forecast, context);
    }
    if forecast.stories.is_empty() && forecast.retrospectives.is_empty() {
        let reasons: Vec<String> = forecast.left_out.iter().map(|left_out| left_out.describe()).collect();
        return Err(UserError::new(EXIT_NEGATIVE, "there is no story that can be developed")
            .with_reason(match reasons.is_empty() {
                true => "All stories are done. Nothing was started.".to_string(),
                false => format!("{}. Nothing was started.", reasons.join("; ")),
            })
            .with_step("look at the board: `tribunal status`"));
    }
    selection::refuse_open_run(project, context, |order| match order {
        // Two sprints would take the same stories.
        RunOrder::Sprint(order) => Some(order.title()),
        _ => None,
    })?;
    start_run(preparation, resolved, context)
}

/// Plans what the sprint would do, with what earlier runs have left, and adds notes about that.
fn forecast_sprint(
    preparation: SprintPreparation<'_>,
    resolved: &mut ResolvedSettings<SprintOrder>,
    context: &CommandContext,
) -> Result<SprintForecast, UserError> {
    let SprintPreparation { project, bmad, arguments, .. } = preparation;
    let facts = sprint_facts::read_sprint(bmad);
    let earlier_runs = EarlierRuns::read_journal(project, context)?;
    let hindered = find_hindered(preparation, resolved, &facts, &earlier_runs);
    let (order, notes) = (&mut resolved.plan.order, &mut resolved.notes);
    let mut forecast = story_order::plan_sprint(&facts, &order.scope, &hindered);
    if order.retrospective.is_some() && !facts.finished_epics.is_empty() {
        order.missed_retrospectives = earlier_runs.list_missed_retrospectives()?;
    }
    forecast.retrospectives = forecast_retrospectives(order, &facts, &forecast.stories);
    // A sprint that starts warns of these itself.
    if arguments.dry_run {
        notes.extend(facts.remarks.iter().cloned());
    }
    let branch_name = &order.story.branch.name;
    let describe = |key: &str| earlier_runs.describe_work_elsewhere(project, key, branch_name);
    notes.extend(forecast.stories.iter().filter_map(|planned| describe(&planned.story)));
    Ok(forecast)
}

/// The open stories that cannot be started, or that other runs work on, with the reasons.
fn find_hindered(
    preparation: SprintPreparation<'_>,
    resolved: &ResolvedSettings<SprintOrder>,
    facts: &SprintFacts,
    earlier_runs: &EarlierRuns,
) -> BTreeMap<String, LeftOutReason> {
    let settings = &resolved.plan.settings;
    let claims = earlier_runs.list_claims();
    let find_reason = |story: &OpenStory| {
        if let Some(claimant) = claims.get(&story.key) {
            return Some((story.key.clone(), LeftOutReason::Claimed { claimant: claimant.clone() }));
        }
        let key = StoryKey::parse(&story.key)?;
        let problem = story_plan::plan_story(preparation.bmad, &key, settings, settings.tier).err()?;
        Some((story.key.clone(), LeftOutReason::Refused { detail: problem.describe_reason() }))
    };
    facts.open.iter().filter_map(find_reason).collect()
}

/// Fills in what the project has for the sprint.
fn fill_sprint(preparation: SprintPreparation<'_>, resolved: &mut ResolvedSettings<SprintOrder>, scope: SprintScope) {
    let SprintPreparation { bmad, .. } = preparation;
    let (settings, order) = (&resolved.plan.settings, &mut resolved.plan.order);
    order.scope = scope;
    order.story.story.board = bmad.board.as_ref().map(|board| board.path.clone());
    order.story.story.bookkeeping = bmad.bookkeeping_folders();
    order.retrospective = order.retrospective.take().and_then(|_| story_plan::find_retrospective(bmad, settings));
    order.outline = sprint_facts::read_outline(bmad);
}

/// What has changed in the plan since the last sprint of this project.
fn find_plan_changes(
    project: &Project,
    order: &SprintOrder,
    context: &CommandContext,
) -> Result<Vec<String>, UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(Vec::new()) };
    let mut last_start = None;
    for run_id in store.list_named_runs("sprint-")? {
        last_start = store.last_entry_of(&run_id, &["run_started"])?.or(last_start);
    }
    let last_view = RunView::from_entries(&last_start);
    Ok(match &last_view.order {
        Some(RunOrder::Sprint(last_order)) => list_plan_changes(&last_order.outline, &order.outline),
        _ => Vec::new(),
    })
}

/// Refuses an epic that the board does not have.
fn require_epic(preparation: SprintPreparation<'_>, epic: &str) -> Result<(), UserError> {
    let board = preparation.bmad.require_board()?;
    let known_epics: Vec<String> = board.epic_ids().iter().map(ToString::to_string).collect();
    if known_epics.iter().any(|known| known == epic) {
        return Ok(());
    }
    Err(UserError::usage(format!("{} has no epic `{epic}`", board.path))
        .with_reason(format!("It has {}.", known_epics.join(", ")))
        .with_step("list its stories: `tribunal status`"))
}

fn print_forecast(
    preparation: SprintPreparation<'_>,
    resolved: &ResolvedSettings<SprintOrder>,
    forecast: &SprintForecast,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let SprintPreparation { bmad, .. } = preparation;
    let settings = &resolved.plan.settings;
    let mut plans: Vec<(ChosenStory, RunPlan<StoryOrder>)> = Vec::new();
    for forecast_story in &forecast.stories {
        let Some(key) = StoryKey::parse(&forecast_story.story) else { continue };
        let mut order = (*resolved.plan.order.story).clone();
        apply_plan(&mut order, story_plan::plan_story(bmad, &key, settings, settings.tier)?);
        let mut settings = settings.clone();
        let share = resolved.plan.order.story_share;
        (settings.limits.runtime_ms, settings.limits.cost) = (share.runtime_ms, share.cost);
        settings.limits.tokens = share.tokens;
        plans.push((selection::describe_state(bmad, key), RunPlan { settings, order }));
    }
    let prepared: Vec<PreparedStory<'_>> = plans.iter().map(|(chosen, plan)| PreparedStory { chosen, plan }).collect();
    plan::print_plans(&prepared, Some(forecast), context)
}
