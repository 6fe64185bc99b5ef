//! `tribunal resume [RUN]`: continues a run that was stopped, waits or crashed, or all runs of the last command.

use std::collections::BTreeMap;

use tribunal_engine::ids::{BatchId, RunId};
use tribunal_report::tables::{RunStanding, is_driven_by_session};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;
use tribunal_workflows::runs::{
    kinds::RunOrder,
    plan::RunPlan,
    settings::Settings,
    view::{RunPhase, RunView},
};

use super::{
    decisions::{StoppedRun, answer_in_place},
    discard,
    loops::{LoopProject, report_plan_progress},
    review::{answer_several, print_notes, print_warnings, silence_if_asked},
    runs, session_loops,
};
use crate::{
    clients::agent_session,
    context::{CommandContext, find_run},
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    preflight::{self, PlannedStart},
    runs::{
        detach::{RemainingRuns, detach_command},
        engine::{RunJob, execute_run},
        multi_run::{PlannedRun, execute_several},
        run_verdict::{SeverityName, judge_and_print},
    },
    settings::{
        EffectiveSettings, LoopFileSettings, ReloadedRun, RunInputs, SettingSources, chosen_progress, gather_settings,
        gather_user_settings, reload_run, user_item_hashes,
    },
    terminal::progress_display::ProgressArgs,
    trust::{self, trust_item::TrustItem},
};

#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArguments {
    /// Run to resume (default: the last one that can be resumed, with all runs that the same command started)
    run: Option<String>,
    /// Use the current settings instead of those the run was started with
    #[arg(long)]
    reload: bool,
    /// With --reload: agent to use, instead of those in `agents.use`
    #[arg(long, requires = "reload")]
    agent: Option<String>,
    /// With --reload: override a setting, e.g. --set limits.max_cost=10
    #[arg(long, requires = "reload", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run in the background
    #[arg(long)]
    detach: bool,
    /// Exit with 3 if a finding of this severity or a higher one is left, and with 0 if not (see `tribunal review --help`)
    #[arg(long, value_enum, value_name = "SEVERITY", conflicts_with = "detach")]
    fail_on: Option<SeverityName>,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// A run that is ready to be resumed.
struct PreparedResume {
    run_id: RunId,
    run_view: RunView,
    /// The settings as they are now, if they are to be used.
    reloaded_plan: Option<Box<RunPlan>>,
}

pub(crate) fn run(arguments: &ResumeArguments, context: &CommandContext) -> Result<u8, UserError> {
    silence_if_asked(arguments.progress, &SettingSources::from_environment(), context);
    let project = context.current_project();
    let run_ids = find_wanted_runs(&project, arguments.run.as_deref(), context)?;
    // Nothing to resume is a good state, for instance in a script that resumes after every restart.
    if run_ids.is_empty() {
        context.print_note(&format!("nothing to resume; list all runs with `{} runs`", context.program_name()))?;
        return Ok(0);
    }
    if run_ids.len() > 1 {
        let run_names: Vec<&str> = run_ids.iter().map(RunId::as_str).collect();
        context.print_note(&format!(
            "resuming the {} runs that one command started: {}",
            run_ids.len(),
            run_names.join(", ")
        ))?;
    }
    // Every run is checked before the first one is resumed.
    let prepared_runs = run_ids
        .into_iter()
        .map(|run_id| prepare_resume(run_id, arguments, &project, context))
        .collect::<Result<Vec<_>, _>>()?;
    require_startable(&prepared_runs, arguments, &project, context)?;
    // The presentation is not worth failing for: unreadable settings are replaced by the defaults.
    let effective = gather_settings(project.root(), &SettingSources::from_environment())
        .unwrap_or_else(|_| EffectiveSettings::from_defaults());
    let typed_settings = effective.to_typed();
    let plans: Vec<RunPlan> = prepared_runs.iter().filter_map(PreparedResume::plan_to_start).collect();
    let share = typed_settings.share.with_limits_of(&plans).with_jobs_capped_at(prepared_runs.len());
    if arguments.detach {
        let run_count = prepared_runs.len() - 1;
        return detach_command(context, &project, RemainingRuns { run_count, max_concurrent: share.jobs.get() });
    }
    let progress_mode = arguments.progress.typed_mode().or_else(|| chosen_progress(&effective, &typed_settings));
    let fail_on = arguments.fail_on.map(SeverityName::to_severity).or(typed_settings.fail_on);
    if prepared_runs.len() > 1 {
        let plan_resume = |prepared: PreparedResume| PlannedRun {
            project: project.clone(),
            // A run without an order cannot be resumed, and the error names it.
            title: prepared.run_view.order.as_ref().map_or_else(|| prepared.run_id.to_string(), RunOrder::title),
            slug: prepared.run_view.order.as_ref().map_or_else(|| prepared.run_id.to_string(), RunOrder::file_slug),
            job: RunJob::Resume(prepared.run_id, prepared.reloaded_plan),
            display_mode: progress_mode,
            fail_on,
        };
        // The runs keep the batch that their journals name.
        let several_ends = execute_several(context, prepared_runs.into_iter().map(plan_resume).collect(), share, None)?;
        return answer_several(context, several_ends, share);
    }
    let Some(PreparedResume { run_id, run_view, reloaded_plan }) = prepared_runs.into_iter().next() else {
        return Ok(0);
    };
    // A resume that is typed in a session means that this session wants to go on repairing.
    let assignment = match (agent_session::current_session(context), run_view.run_plan()) {
        (Some(session_id), Some(plan)) => Some(agent_session::bind_review_session(&session_id, &plan)),
        _ => None,
    };
    let is_loop = matches!(run_view.order, Some(RunOrder::Loop(_)));
    let job = RunJob::Resume(run_id, reloaded_plan).bind_session(assignment);
    let run_end = execute_run(context, project.clone(), job, progress_mode.unwrap_or_default(), share)?;
    let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: share };
    let answered_run = answer_in_place(context, stopped_run)?;
    if is_loop {
        report_plan_progress(&project, &answered_run.run_end, context)?;
    }
    judge_and_print(&project, &answered_run.run_end, fail_on, context)
}

impl PreparedResume {
    /// The plan with which the run would start agents; `None` if it has finished and starts none.
    fn plan_to_start(&self) -> Option<RunPlan> {
        match self.run_view.phase {
            RunPhase::Finished(_) => None,
            RunPhase::Running | RunPhase::Parked(_) => {
                self.reloaded_plan.as_deref().cloned().or_else(|| self.run_view.run_plan())
            }
        }
    }
}

/// Checks that a run can be resumed with its own settings or the current ones.
fn prepare_resume(
    run_id: RunId,
    arguments: &ResumeArguments,
    project: &Project,
    context: &CommandContext,
) -> Result<PreparedResume, UserError> {
    let store = Store::open_read_only(&project.home_dir())?;
    // A session must not change the settings of the review that judges its own work.
    if arguments.reload {
        agent_session::refuse_reviewed_session(&store, &run_id, context)?;
    }
    let run_view = store.read_view(&run_id)?;
    // A broken answer would otherwise be ignored without a word, and the run would ask the same again.
    for problem in Runner::unusable_answers(project, &run_view) {
        context.print_warning(&format!("ignoring an unusable answer: {problem}"))?;
    }
    let reloaded = match (arguments.reload, run_view.run_plan()) {
        (true, Some(pinned_plan)) => Some(resolve_reloaded(project, &run_view, pinned_plan, arguments, context)?),
        _ => None,
    };
    require_run_trust(context, project, &run_view, reloaded.as_ref())?;
    let reloaded_plan = reloaded.map(|reloaded| Box::new(reloaded.plan));
    // The store is closed here, before the run opens it for writing.
    Ok(PreparedResume { run_id, run_view, reloaded_plan })
}

/// Adds the way out for a run whose agents are gone: it can go on with others.
fn with_other_agent_step(user_error: UserError, run_id: &RunId, is_reloaded: bool) -> UserError {
    // With changed settings the user has just chosen the agents.
    match user_error.exit_code {
        EXIT_ENVIRONMENT if !is_reloaded => {
            user_error.with_step(format!("or resume it with the current settings: `tribunal resume {run_id} --reload`"))
        }
        _ => user_error,
    }
}

/// Requires that every run can start its agents: a program may have been removed or replaced since the run began.
fn require_startable(
    prepared_runs: &[PreparedResume],
    arguments: &ResumeArguments,
    project: &Project,
    context: &CommandContext,
) -> Result<(), UserError> {
    for prepared in prepared_runs {
        let planned_start = prepared.plan_to_start().map(|plan| PlannedStart { project, plan, is_new: false });
        preflight::require_startable(context, planned_start.into_iter())
            .map_err(|user_error| with_other_agent_step(user_error, &prepared.run_id, arguments.reload))?;
    }
    Ok(())
}

/// Finds the run that the user named, or else the last ones that can go on. The list is empty if there is nothing to resume.
fn find_wanted_runs(
    project: &Project,
    typed_name: Option<&str>,
    context: &CommandContext,
) -> Result<Vec<RunId>, UserError> {
    match (context.open_journal(project)?, typed_name) {
        (Some(store), Some(run_name)) => {
            let run_id = find_run(&store, run_name)?;
            discard::refuse_discarded(project, &run_id)?;
            let run_view = store.read_view(&run_id)?;
            if is_driven_by_session(&run_view) {
                return Err(session_loops::refuse_loop(&run_view));
            }
            Ok(vec![find_root(run_id, run_view, context)?])
        }
        (Some(store), None) => {
            Ok(find_resumable_runs(&runs::list_runs(&store, project)?, &runs::list_batches(&store)?))
        }
        (None, Some(run_name)) => {
            Err(UserError::usage(format!("no run named `{run_name}`; this project has no runs yet"))
                .with_step("start one: `tribunal review FILE`"))
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// Returns the run that started a child run; a child is continued by it. Other runs are returned as they are.
fn find_root(run_id: RunId, run_view: RunView, context: &CommandContext) -> Result<RunId, UserError> {
    match run_view.parent {
        Some(parent) => {
            context.print_note(&format!("{run_id} is a child run of {}, which is resumed", parent.root))?;
            Ok(parent.root)
        }
        None => Ok(run_id),
    }
}

/// Requires trust in everything that the resumed run would start, and keeps it for what the user has typed.
fn require_run_trust(
    context: &CommandContext,
    project: &Project,
    run_view: &RunView,
    reloaded: Option<&ReloadedPlan>,
) -> Result<(), UserError> {
    // A finished run starts no process, so there is nothing to trust.
    if matches!(run_view.phase, RunPhase::Finished(_)) {
        return Ok(());
    }
    let trust_items = match (reloaded, &run_view.settings) {
        (Some(reloaded), _) => reloaded.items.clone(),
        // Pinned settings may come from a cloned journal, so they need trust like the project's files.
        (None, Some(pinned_settings)) => find_foreign_items(pinned_settings, &SettingSources::from_environment())?,
        (None, None) => Vec::new(),
    };
    trust::require_trust(context, project.root(), &trust_items)?;
    // All that the user has not typed is trusted by now.
    if let Some(reloaded) = reloaded {
        trust::trust_typed_items(context, project.root(), &reloaded.plan.settings);
    }
    Ok(())
}

/// Finds the items of a run's settings that may have come with a clone. Only what the user has set outside any project, or types
/// now, surely comes from the user.
fn find_foreign_items(pinned_settings: &Settings, sources: &SettingSources) -> Result<Vec<TrustItem>, UserError> {
    let mut trust_items = TrustItem::from_settings(pinned_settings);
    if !trust_items.is_empty() {
        let user_items = user_item_hashes(&gather_user_settings(sources)?);
        trust_items.retain(|trust_item| !user_items.contains(&trust_item.content_hash()));
    }
    Ok(trust_items)
}

/// What a run continues with if its settings are read again.
struct ReloadedPlan {
    plan: RunPlan,
    /// Items that would run something and came with the project.
    items: Vec<TrustItem>,
}

/// Resolves the settings as they are now; what is fixed when a run starts is kept.
fn resolve_reloaded(
    project: &Project,
    run_view: &RunView,
    pinned_plan: RunPlan,
    arguments: &ResumeArguments,
    context: &CommandContext,
) -> Result<ReloadedPlan, UserError> {
    let run_inputs = RunInputs::from_environment(context)
        .with_flag("--agent", "agents.use", arguments.agent.clone())
        .with_set_flags(&arguments.set)?;
    let typed_sources = run_inputs.sources.clone();
    let loop_project = LoopProject::of_run(project, run_view, context);
    if let Some(loop_project) = &loop_project {
        loop_project.print_problems(context)?;
    }
    let loop_files = loop_project.as_ref().map(|loop_project| loop_project as &dyn LoopFileSettings);
    let ReloadedRun { plan, notes, warnings } =
        reload_run(project.root(), run_view, pinned_plan, run_inputs, loop_files)?;
    print_notes(notes.iter(), context)?;
    print_warnings(warnings.iter(), context)?;
    let items = find_foreign_items(&plan.settings, &typed_sources)?;
    Ok(ReloadedPlan { plan, items })
}

/// Finds the last run that can go on, and with it those that the same command started.
fn find_resumable_runs(listed_runs: &[(RunView, bool)], batches: &BTreeMap<RunId, BatchId>) -> Vec<RunId> {
    // A failed run that a later one has replaced is resumed only by name.
    let can_resume = |index: usize, (run_view, is_live): &(RunView, bool)| {
        let run_standing = RunStanding { run_view, is_live: *is_live };
        !matches!(run_view.phase, RunPhase::Finished(_))
            // A child run is continued by the run that started it, a loop by its session.
            && run_view.parent.is_none()
            && !is_driven_by_session(run_view)
            && !runs::is_superseded(&run_standing, &listed_runs[index + 1..])
    };
    let unfinished_runs = || {
        let listed_runs = listed_runs.iter().enumerate();
        listed_runs.filter(|(index, listed_run)| can_resume(*index, listed_run)).map(|(_, listed_run)| listed_run)
    };
    let mut idle_runs: Vec<RunId> =
        unfinished_runs().filter(|(_, is_live)| !is_live).filter_map(|(run_view, _)| run_view.run_id.clone()).collect();
    match idle_runs.last().map(|last_run| batches.get(last_run)) {
        // Those of its runs that still work are left alone.
        Some(Some(last_batch)) => {
            idle_runs.retain(|run_id| batches.get(run_id) == Some(last_batch));
            idle_runs
        }
        Some(None) => idle_runs.pop().into_iter().collect(),
        // A run that seems live may just have been killed; resuming it finds out, and reports it if not.
        None => unfinished_runs().next_back().and_then(|(run_view, _)| run_view.run_id.clone()).into_iter().collect(),
    }
}
