//! `tribunal resume [RUN]`: continues a run that was stopped, waits or died.

use std::{
    io::{Write, stderr},
    path::Path,
};

use tribunal_core::{
    ids::RunId,
    settings::Settings,
    view::{RunPhase, RunView},
};
use tribunal_report::{escape_line, tables::RunStanding};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;

use super::{
    decisions::{StoppedRun, answer_in_place},
    discard,
    review::{print_notes, print_warnings},
    runs,
};
use crate::{
    agent_session,
    client_probe::require_versions,
    context::{CommandContext, find_run},
    detach::{RemainingRuns, detach_command},
    engine::{RunJob, execute_run},
    progress_display::ProgressArgs,
    settings::{
        EffectiveSettings, ResolvedSettings, RunInputs, SettingSources, gather_settings, gather_user_settings,
        resolve_settings, user_item_hashes,
    },
    trust,
    trust_item::TrustItem,
    user_errors::UserError,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArguments {
    /// Run to resume (default: the last one that can be resumed)
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
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) fn run(arguments: &ResumeArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    // Nothing to resume is a good state, for instance in a script that resumes after every restart.
    let Some(run_id) = find_wanted_run(&project, arguments.run.as_deref(), context)? else {
        writeln!(stderr(), "note: nothing to resume; list all runs with `tribunal runs`")?;
        return Ok(0);
    };
    let store = Store::open_read_only(&project.home_dir())?;
    // A session must not change the settings of the review that judges its own work.
    if arguments.reload {
        agent_session::refuse_reviewed_session(&store, &run_id, context)?;
    }
    let run_view = RunView::from_entries(&store.read_entries(&run_id, 0)?);
    // A broken answer would otherwise be ignored without a word, and the run would ask the same again.
    for problem in Runner::unusable_answers(&project, &run_view) {
        writeln!(stderr(), "warning: ignoring an unusable answer: {}", escape_line(&problem))?;
    }
    // The store is closed before the run opens it for writing.
    drop(store);
    let reloaded = match (arguments.reload, &run_view.settings) {
        (true, Some(pinned_settings)) => Some(resolve_reloaded(project.root(), pinned_settings, arguments, context)?),
        _ => None,
    };
    require_run_trust(context, &project, &run_view, reloaded.as_ref())?;
    let reloaded_settings = reloaded.map(|reloaded| Box::new(reloaded.settings));
    // A client may have been replaced by an older one since the run began.
    if !matches!(run_view.phase, RunPhase::Finished(_)) {
        let settings = reloaded_settings.as_deref().or(run_view.settings.as_ref());
        require_versions(settings.map(|settings| (project.root(), settings)).into_iter())?;
    }
    if arguments.detach {
        return detach_command(context, &project, RemainingRuns::default());
    }
    // The presentation is not worth failing for: unreadable settings are replaced by the defaults.
    let effective = gather_settings(project.root(), &SettingSources::from_environment())
        .unwrap_or_else(|_| EffectiveSettings::from_defaults());
    let typed_settings = effective.to_typed();
    let progress_mode = arguments.progress.mode.unwrap_or(typed_settings.progress);
    // A resume that is typed in a session means that this session wants to go on repairing.
    let assignment = match (agent_session::current_session(context), &run_view.settings) {
        (Some(session_id), Some(settings)) => Some(agent_session::bind_review_session(&session_id, settings)),
        _ => None,
    };
    let job = RunJob::Resume(run_id, reloaded_settings).bind_session(assignment);
    let concurrency = typed_settings.share;
    let run_end = execute_run(context, project.clone(), job, progress_mode, concurrency)?;
    answer_in_place(context, StoppedRun { project, run_end, concurrency }).map(|answered_run| answered_run.exit_code)
}

/// Finds the run that the user named, or else the last one that can go on. `None` if there is nothing to resume.
fn find_wanted_run(
    project: &Project,
    typed_name: Option<&str>,
    context: &CommandContext,
) -> Result<Option<RunId>, UserError> {
    match (context.open_journal(project)?, typed_name) {
        (Some(store), Some(run_name)) => {
            let run_id = find_run(&store, run_name)?;
            discard::refuse_discarded(project, &run_id)?;
            Ok(Some(run_id))
        }
        (Some(store), None) => Ok(find_resumable_run(&runs::list_runs(&store, project)?)),
        (None, Some(run_name)) => {
            Err(UserError::usage(format!("no run named `{run_name}`; this project has no runs yet"))
                .with_step("start one: `tribunal review FILE`"))
        }
        (None, None) => Ok(None),
    }
}

/// Requires trust in everything that the resumed run would start.
fn require_run_trust(
    context: &CommandContext,
    project: &Project,
    run_view: &RunView,
    reloaded: Option<&ResolvedSettings>,
) -> Result<(), UserError> {
    // A finished run starts no process, so there is nothing to trust.
    if matches!(run_view.phase, RunPhase::Finished(_)) {
        return Ok(());
    }
    let trust_items = match (reloaded, &run_view.settings) {
        (Some(reloaded), _) => reloaded.items.clone(),
        // Pinned settings may come from a cloned journal, so they need trust like the project's files.
        (None, Some(pinned_settings)) => find_foreign_items(pinned_settings)?,
        (None, None) => Vec::new(),
    };
    trust::require_trust(context, project.root(), &trust_items)
}

/// Finds the items of a run's pinned settings that may have come with a clone. Only what the user has set outside any
/// project surely comes from the user.
fn find_foreign_items(pinned_settings: &Settings) -> Result<Vec<TrustItem>, UserError> {
    let mut trust_items = TrustItem::from_settings(pinned_settings);
    if !trust_items.is_empty() {
        let user_items = user_item_hashes(&gather_user_settings(&SettingSources::from_environment())?);
        trust_items.retain(|trust_item| !user_items.contains(&trust_item.content_hash()));
    }
    Ok(trust_items)
}

/// Resolves agents, checks, limits and task settings as they are now; choices made at the start of the run are kept.
fn resolve_reloaded(
    project_root: &Path,
    pinned_settings: &Settings,
    arguments: &ResumeArguments,
    context: &CommandContext,
) -> Result<ResolvedSettings, UserError> {
    // The pinned choices are passed like flags, which take precedence over every settings file.
    let pinned_origin = |setting_path: &str| format!("the run's own {setting_path}");
    let run_inputs = RunInputs::from_environment(context)
        .with_flag(&pinned_origin("tier"), "tier", Some(pinned_settings.tier.to_string()))
        .with_flag(&pinned_origin("level"), "level", pinned_settings.level.map(|level| level.to_string()))
        .with_flag(&pinned_origin("goal"), "goal", Some(pinned_settings.goal.to_string()))
        .with_flag(&pinned_origin("fix"), "fix", Some(pinned_settings.fix.to_string()))
        .with_flag("--agent", "agents.use", arguments.agent.clone())
        .with_set_flags(&arguments.set)?;
    let mut resolved = resolve_settings(project_root, pinned_settings.subject.clone(), &run_inputs)?;
    print_notes(resolved.notes.iter())?;
    print_warnings(resolved.warnings.iter())?;
    // The tracker and the open questions have to stay where they are.
    resolved.settings.reviews.clone_from(&pinned_settings.reviews);
    resolved.settings.tasks.writing.in_session = pinned_settings.tasks.writing.in_session;
    Ok(resolved)
}

fn find_resumable_run(listed_runs: &[(RunView, bool)]) -> Option<RunId> {
    // A failed run that a later one has replaced is resumed only by name.
    let can_resume = |index: usize, (run_view, is_live): &(RunView, bool)| {
        let run_standing = RunStanding { run_view, is_live: *is_live };
        !matches!(run_view.phase, RunPhase::Finished(_))
            && !runs::is_superseded(&run_standing, &listed_runs[index + 1..])
    };
    let unfinished_runs = || {
        let newest_first = listed_runs.iter().enumerate().rev();
        newest_first.filter(|(index, listed_run)| can_resume(*index, listed_run)).map(|(_, listed_run)| listed_run)
    };
    // A run that seems live may just have been killed; resuming it finds out, and reports it if not.
    unfinished_runs()
        .find(|(_, is_live)| !is_live)
        .or_else(|| unfinished_runs().next())
        .and_then(|(run_view, _)| run_view.run_id.clone())
}
