//! `tribunal review PATH…`, and `tribunal review --diff RANGE`: checks everything first, then starts one or more
//! runs.

mod change;
mod dry_run;
mod level_advice;
mod path_search;
mod story;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use tribunal_agents::clients::clients_with_sessions;
use tribunal_engine::{
    ids::RunId,
    reason::{RunOutcome, RunReason},
    text::{find_section, parse_sections},
};
use tribunal_report::{
    DisplayMode,
    tables::{RunStanding, RunState},
};
use tribunal_runner::{Project, new_batch_id, project::subject, session};
use tribunal_workflows::{findings::subject::Subject, review::order::ReviewOrder};

use level_advice::{ReviewChoice, ask_to_review};

use super::{
    decisions::{StoppedRun, answer_in_place},
    runs, session_loops,
};
use crate::{
    clients::{agent_session, installed_clients::join_names},
    context::CommandContext,
    messages::user_errors::UserError,
    preflight::{self, PlannedStart},
    runs::{
        detach::{RemainingRuns, detach_command},
        engine::{RunJob, execute_run},
        multi_run::{PlannedRun, SeveralEnd, execute_several},
        run_verdict::{SeverityName, judge_and_print},
    },
    settings::{
        ResolvedSettings, RunInputs, SettingSources, ThroughputLimits, gather_settings, nearest_name, resolve_settings,
    },
    terminal::progress_display::ProgressArgs,
    trust,
};

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewArguments {
    /// Files, directories (all Markdown files in them) or quoted patterns such as 'docs/*.md', each file in its own run; with
    /// a code change, review only what is in these paths
    #[arg(required_unless_present_any = ["change", "story"])]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    change: change::ChangeFlags,
    /// Review only the section under this heading
    #[arg(long, conflicts_with = "change")]
    section: Option<String>,
    /// Weight of the process, from 0 (quick fix) to 4 (enterprise)
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=4))]
    tier: Option<u8>,
    /// Size of the panel (default: depends on the tier)
    #[arg(long, value_enum)]
    level: Option<LevelName>,
    /// When the review is resolved: no open findings, or no critical ones
    #[arg(long, value_enum)]
    goal: Option<GoalName>,
    /// Agent to use, as named in the settings
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    fixing: FixFlags,
    /// Override a setting for this run, e.g. --set limits.max_cost=2.50
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Show panel, agents, limits and an estimate without starting anything
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Run in the background
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    #[command(flatten)]
    working: RunFlags,
}

/// How runs work, and what is shown of them.
#[derive(Debug, clap::Args)]
struct RunFlags {
    /// Number of runs to work on in parallel
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// Review all documents of a directory or pattern, even if there are more than 20
    #[arg(short, long)]
    yes: bool,
    /// Start a fresh agent session for every task
    #[arg(long)]
    no_continue: bool,
    /// Exit with 3 if a finding of this severity or a higher one is left, and with 0 if not
    ///
    /// This applies to reviews that come to their end. A finding is left if it is open, blocked or deferred; fixed and
    /// dismissed findings do not count. A run that waits for an answer (3), was halted by a limit (4) or failed (5) keeps its
    /// exit code. Of several runs, the highest exit code counts.
    #[arg(long, value_enum, value_name = "SEVERITY", conflicts_with = "detach")]
    fail_on: Option<SeverityName>,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// What happens to findings.
#[derive(Debug, clap::Args)]
struct FixFlags {
    /// Review only, do not fix anything
    #[arg(long)]
    no_fix: bool,
    /// Do not run the checks before the first agent is asked
    #[arg(long)]
    skip_baseline: bool,
    /// Let the agent session that runs this command fix the findings in place, and hold it to that
    #[arg(long, conflicts_with_all = ["no_fix", "approve"])]
    in_session: bool,
    /// With --in-session: session ID, as its client names it
    #[arg(long, value_name = "ID", requires = "in_session")]
    session: Option<String>,
    /// Whether you approve each patch before it is applied
    #[arg(long, value_enum, conflicts_with = "no_fix")]
    approve: Option<ApproveName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LevelName {
    Minimal,
    Dual,
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoalName {
    ZeroOpen,
    CriticalOnly,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApproveName {
    Never,
    Each,
}

pub(super) use story::find_story_file as story_file;

/// A run that is ready to start.
struct PreparedRun {
    project: Project,
    resolved: ResolvedSettings,
    material: ReviewMaterial,
}

/// What reviewers will read.
enum ReviewMaterial {
    Text(String),
    /// A diff of this many bytes.
    Diff(u64),
}

pub(crate) fn run(arguments: ReviewArguments, context: &CommandContext) -> Result<u8, UserError> {
    // Flags become settings of the highest layer, so that they are validated like any other setting.
    let run_inputs = RunInputs::from_environment(context)
        .with_flag("--tier", "tier", arguments.tier.map(|tier| tier.to_string()))
        .with_flag("--level", "level", arguments.level.and_then(flag_value_name))
        .with_flag("--goal", "goal", arguments.goal.and_then(flag_value_name))
        .with_flag("--agent", "agents.use", arguments.agent)
        .with_flag("--approve", "approve", arguments.fixing.approve.and_then(flag_value_name))
        .with_flag("--no-fix", "fix", arguments.fixing.no_fix.then(|| "false".into()))
        .with_flag("--skip-baseline", "baseline", arguments.fixing.skip_baseline.then(|| "false".into()))
        .with_flag("--no-continue", "agents.continue", arguments.working.no_continue.then(|| "false".into()))
        .with_flag("--fail-on", "fail_on", arguments.working.fail_on.and_then(flag_value_name))
        .with_flag("--jobs", "jobs", arguments.working.jobs.map(|jobs| jobs.to_string()))
        .with_set_flags(&arguments.set)?;
    silence_if_asked(arguments.working.progress, &run_inputs.sources, context);
    // Every subject is checked before the first run starts: a mistake in the last one must not cost a review of the
    // first.
    let jobs = match (arguments.change.requested_change(&arguments.paths, context)?, arguments.change.story_alone()) {
        (Some(requested), _) => change::prepare_change_runs(&requested, &run_inputs, context)?,
        (None, Some(story_name)) => story::prepare_story_runs(story_name, &arguments.paths, &run_inputs, context)?,
        (None, None) => {
            let section_title = arguments.section.as_deref();
            path_search::expand_paths(&arguments.paths, arguments.working.yes, &run_inputs, context)?
                .iter()
                .map(|file_path| prepare_file_run(file_path, section_title, &run_inputs, context))
                .collect::<Result<_, _>>()?
        }
    };
    // Duplicates are removed before limits are shared out among the runs.
    let mut jobs = remove_duplicates(jobs, context)?;
    let session_id = choose_fixing_session(&arguments.fixing, &mut jobs, context)?;
    print_notes(jobs.iter().flat_map(|job| &job.resolved.notes), context)?;
    print_warnings(jobs.iter().flat_map(|job| &job.resolved.warnings), context)?;
    // The strictest share of all projects holds. Without a single job there is nothing to do.
    let Some(share) = jobs.iter().map(|job| job.resolved.share).reduce(ThroughputLimits::stricter_of) else {
        return Ok(0);
    };
    let share = share.with_jobs_capped_at(jobs.len());
    if arguments.dry_run {
        for job in &jobs {
            dry_run::print_plan(job, share, context)?;
        }
        return dry_run::print_share(jobs.len(), share, context);
    }
    // Trust comes after the dry run, which starts nothing, and before the first process.
    for PreparedRun { project, resolved, .. } in &jobs {
        trust::require_trust(context, project.root(), &resolved.items)?;
        trust::trust_typed_items(context, project.root(), &resolved.plan.settings);
    }
    let planned_starts = jobs.iter().map(|job| PlannedStart {
        project: &job.project,
        plan: job.resolved.plan.clone().into_run(),
        is_new: true,
    });
    preflight::require_startable(context, planned_starts)?;
    // The detached process gets the same command line and checks it again; errors are seen here, before it starts.
    if let (true, Some(first_job)) = (arguments.detach, jobs.first()) {
        let following = RemainingRuns { run_count: jobs.len() - 1, max_concurrent: share.jobs.get() };
        return detach_command(context, &first_job.project, following);
    }
    start_runs(
        jobs,
        share,
        StartOptions { progress_mode: arguments.working.progress.typed_mode(), session_id },
        context,
    )
}

/// Chooses the session that repairs what is found, if one is to do so.
fn choose_fixing_session(
    fix_flags: &FixFlags,
    prepared_runs: &mut [PreparedRun],
    context: &CommandContext,
) -> Result<Option<String>, UserError> {
    if !fix_flags.in_session {
        return Ok(None);
    }
    // The state file has room for one piece of work only.
    let [prepared_run] = prepared_runs else {
        return Err(UserError::usage("a session can fix only one subject at a time")
            .with_reason(format!("{} were given.", prepared_runs.len()))
            .with_step("review them one at a time: `tribunal review --in-session FILE`"));
    };
    let known_session = fix_flags.session.clone().or_else(|| agent_session::current_session(context));
    let session_id = known_session.ok_or_else(|| {
        UserError::usage("`--in-session` was not run inside an agent session")
            .with_reason(format!(
                "{} tell the commands they run which session they belong to.",
                join_names(&clients_with_sessions(), "and")
            ))
            .with_step("run this command inside the session")
            .with_step("or name the session: `--session ID`")
            .with_step("or let fixers do it: leave out `--in-session`")
    })?;
    prepared_run.resolved.plan.order.fixers.in_session = true;
    if !session_loops::is_stop_hook_installed(&prepared_run.project) {
        context.print_warning(&format!(
            "Tribunal's stop hook is not installed here, so the session is not held to its task; install it with \
             `{} init`",
            context.program_name()
        ))?;
    }
    // The state file of stale or finished work is moved away; work that is not over is an error.
    session::ensure_no_other_session(
        &prepared_run.project,
        &session_id,
        session_loops::load_stale_age(&prepared_run.project)?,
    )?;
    Ok(Some(session_id))
}

/// How the runs are shown, and which session repairs.
struct StartOptions {
    /// None if the project's settings decide.
    progress_mode: Option<DisplayMode>,
    /// The session that repairs what is found; `None` if fixers do.
    session_id: Option<String>,
}

fn start_runs(
    prepared_runs: Vec<PreparedRun>,
    share: ThroughputLimits,
    start_options: StartOptions,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let StartOptions { progress_mode, session_id } = start_options;
    for PreparedRun { project, resolved, .. } in &prepared_runs {
        print_unfinished_runs(context, project, &resolved.plan.order)?;
    }
    // Several runs share one screen, and they are resumed together.
    if prepared_runs.len() > 1 {
        let plan_run = |PreparedRun { project, resolved, .. }| PlannedRun {
            project,
            title: resolved.plan.order.subject.title(),
            slug: resolved.plan.order.subject.file_slug(),
            display_mode: progress_mode.or(resolved.progress),
            fail_on: resolved.fail_on,
            job: RunJob::Start(Box::new(resolved.plan.into_run())),
        };
        let planned_runs = prepared_runs.into_iter().map(plan_run).collect();
        let several_ends = execute_several(context, planned_runs, share, Some(new_batch_id()))?;
        return answer_several(context, several_ends, share);
    }
    let Some(PreparedRun { project, mut resolved, .. }) = prepared_runs.into_iter().next() else {
        return Ok(0);
    };
    match ask_to_review(&project, &resolved.plan, context)? {
        ReviewChoice::Review => {}
        // The run only records what the user chose.
        ReviewChoice::Skip => resolved.plan.order.skipped = true,
        ReviewChoice::Quit => return Ok(RunReason::Stopped.exit_code()),
    }
    let display_mode = progress_mode.or(resolved.progress).unwrap_or_default();
    let assignment =
        session_id.map(|session_id| agent_session::bind_review_session(&session_id, &resolved.plan.clone().into_run()));
    let job = RunJob::Start(Box::new(resolved.plan.into_run())).bind_session(assignment);
    let run_end = execute_run(context, project.clone(), job, display_mode, share)?;
    let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: share };
    let answered_run = answer_in_place(context, stopped_run)?;
    judge_and_print(&project, &answered_run.run_end, resolved.fail_on, context)
}

/// Asks what the runs wait for, one run after the other, and returns the worst exit code.
pub(super) fn answer_several(
    context: &CommandContext,
    several_ends: Vec<SeveralEnd>,
    share: ThroughputLimits,
) -> Result<u8, UserError> {
    let mut worst_code = 0;
    // A user who interrupted the command wants no questions, not even those of runs that had stopped by themselves.
    let mut has_quit = several_ends.iter().any(SeveralEnd::was_interrupted);
    for SeveralEnd { project, run_end, failure_code, fail_on } in several_ends {
        let exit_code = match run_end {
            Some(run_end) if !has_quit => {
                let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: share };
                let answered_run = answer_in_place(context, stopped_run)?;
                has_quit = answered_run.has_quit;
                judge_and_print(&project, &answered_run.run_end, fail_on, context)?
            }
            Some(run_end) => judge_and_print(&project, &run_end, fail_on, context)?,
            None => failure_code,
        };
        worst_code = worst_code.max(exit_code);
    }
    Ok(worst_code)
}

/// Leaves out notes and warnings if the user wants to see nothing, by an argument or by the settings of the project.
pub(super) fn silence_if_asked(progress: ProgressArgs, sources: &SettingSources, context: &CommandContext) {
    let is_silent = match progress.typed_mode() {
        Some(typed_mode) => typed_mode == DisplayMode::Silent,
        // Settings that cannot be read are reported later, and until then nothing is left out.
        None => gather_settings(context.current_project().root(), sources)
            .is_ok_and(|effective| effective.to_typed().progress == DisplayMode::Silent),
    };
    if is_silent {
        context.silence_notices();
    }
}

/// Removes duplicates. Two runs of the same subject at the same time would block each other.
fn remove_duplicates(prepared_runs: Vec<PreparedRun>, context: &CommandContext) -> Result<Vec<PreparedRun>, UserError> {
    let mut distinct_runs: Vec<PreparedRun> = Vec::new();
    for prepared_run in prepared_runs {
        let subject = &prepared_run.resolved.plan.order.subject;
        let has_same_subject = |earlier_run: &PreparedRun| {
            earlier_run.project.root() == prepared_run.project.root()
                && earlier_run.resolved.plan.order.subject == *subject
        };
        if distinct_runs.iter().any(has_same_subject) {
            context.print_note(&format!("{} was given more than once; reviewing it once", subject.title()))?;
        } else {
            distinct_runs.push(prepared_run);
        }
    }
    Ok(distinct_runs)
}

fn prepare_file_run(
    typed_path: &Path,
    section_title: Option<&str>,
    run_inputs: &RunInputs,
    context: &CommandContext,
) -> Result<PreparedRun, UserError> {
    let full_path = context.resolve_path(typed_path);
    // The check comes before the project is looked for, so that a typing mistake is reported as such.
    if std::fs::symlink_metadata(&full_path).is_err() {
        return Err(subject::SubjectError::Missing { path: typed_path.display().to_string() }.into());
    }
    let project = context.project_of_path(&full_path);
    let relative_path = subject::relative_to_root(project.root(), &full_path)?;
    let document_text = subject::load_subject(project.root(), &relative_path)?;
    let section_title =
        section_title.map(|typed_title| check_section(&relative_path, &document_text, typed_title)).transpose()?;
    let resolved = resolve_settings(project.root(), Subject::from_path(&relative_path, section_title), run_inputs)?;
    preflight::check_templates(&project)?;
    Ok(PreparedRun { project, resolved, material: ReviewMaterial::Text(document_text) })
}

/// Prints warnings before something starts, each of them once.
pub(super) fn print_warnings<'a>(
    warnings: impl Iterator<Item = &'a String>,
    context: &CommandContext,
) -> Result<(), UserError> {
    let distinct_warnings: BTreeSet<&String> = warnings.collect();
    distinct_warnings.into_iter().try_for_each(|warning| context.print_warning(warning))
}

/// Prints notes before something starts, each of them once.
pub(super) fn print_notes<'a>(
    notes: impl Iterator<Item = &'a String>,
    context: &CommandContext,
) -> Result<(), UserError> {
    let distinct_notes: BTreeSet<&String> = notes.collect();
    distinct_notes.into_iter().try_for_each(|note| context.print_note(note))
}

/// Returns the name by which settings know a value of a flag.
fn flag_value_name(flag_value: impl ValueEnum) -> Option<String> {
    flag_value.to_possible_value().map(|possible_value| possible_value.get_name().to_string())
}

/// Points out the last unfinished run of the same subject. The user may want to resume it, but asked for a new one, which
/// starts anyway. Older ones are superseded by it and not worth a line.
fn print_unfinished_runs(context: &CommandContext, project: &Project, order: &ReviewOrder) -> Result<(), UserError> {
    let Some(store) = context.open_journal(project)? else { return Ok(()) };
    let listed_runs = runs::list_runs(&store, project)?;
    let last_run = listed_runs.iter().rev().find(|(run_view, _)| {
        run_view.review_order().is_some_and(|earlier| earlier.subject.is_same_as(&order.subject))
    });
    let Some((run_view, run_is_live)) = last_run else { return Ok(()) };
    let subject_kind = if order.subject.code_change().is_some() { "change" } else { "file" };
    let what_happened = match (RunStanding { run_view, is_live: *run_is_live }).run_state() {
        // A live run is not mentioned: starting a second one fails with an error of its own.
        RunState::Running | RunState::Ended(RunOutcome::Resolved | RunOutcome::Cancelled) => return Ok(()),
        RunState::Crashed => "crashed",
        RunState::Stopped => "was stopped",
        RunState::Ended(RunOutcome::Waiting) => "is waiting for you",
        RunState::Ended(RunOutcome::Halted) => "was halted by a limit",
        RunState::Ended(RunOutcome::Failed) => "failed",
    };
    let run_id = run_view.run_id.as_ref().map(RunId::as_str).unwrap_or_default();
    let program_name = context.program_name();
    context.print_note(&format!(
        "a previous run of this {subject_kind} {what_happened}; resume it with `{program_name} resume {run_id}` or drop it \
         with `{program_name} discard {run_id}`"
    ))
}

fn check_section(document_path: &str, document_text: &str, section_title: &str) -> Result<String, UserError> {
    if let Some(section) = find_section(document_text, section_title) {
        return Ok(section.title);
    }
    let all_sections = parse_sections(document_text);
    let titles: Vec<&str> = all_sections.iter().map(|section| section.title.as_str()).collect();
    let user_error = UserError::usage(format!("{document_path} has no section `{section_title}`"));
    // A similar heading is suggested, and all of them are listed, since titles may differ a lot.
    let user_error = match nearest_name(section_title, &titles) {
        Some(suggestion) => user_error.with_step(format!("did you mean `{suggestion}`?")),
        None => user_error,
    };
    Err(if titles.is_empty() {
        user_error.with_reason("The file has no headings.")
    } else {
        user_error.with_reason(format!("Headings in the file: {}", titles.join(" · ")))
    })
}
