//! `tribunal loop run`: gives an agent the same task again and again in a workspace of its own, until it is done or a limit is
//! reached. With `--in-session` the session that runs the command is the agent; see the parent module.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tribunal_engine::text::shell_quote;
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    git::heads::{self, FileTracking},
};
use tribunal_workflows::{
    development::workspace::DevelopmentPlace,
    loop_run::order::{LoopOrder, MAX_ITERATIONS_LIMIT, ReviewMode},
};

use super::{board_sync::report_plan_progress, check_promise, check_prompt, ralph_project::LoopProject};
use crate::{
    commands::{
        decisions::{StoppedRun, answer_in_place},
        review::{print_notes, print_warnings, silence_if_asked},
        workplace::{WorkWords, check_clean_checkout, choose_branch, describe_files},
    },
    context::CommandContext,
    messages::user_errors::UserError,
    preflight::{self, PlannedStart},
    runs::{
        detach::{RemainingRuns, detach_command},
        engine::{RunJob, execute_run},
        run_verdict::judge_and_print,
    },
    settings::{ResolvedLoop, RunInputs, resolve_loop_settings},
    terminal::progress_display::ProgressArgs,
    trust::{self, trust_item::TrustItem},
};

const LOOP_WORDS: WorkWords = WorkWords { subject: "A loop", command: "loop run" };

#[derive(Debug, clap::Args)]
pub(crate) struct LoopRunArguments {
    /// File with the task (default: .ralph/PROMPT.md or PROMPT.md of the project)
    #[arg(value_name = "PROMPT.md", conflicts_with = "prompt")]
    pub(super) prompt_file: Option<PathBuf>,
    /// The task itself; `-` reads it from standard input
    #[arg(short = 'p', long = "prompt", value_name = "TEXT")]
    pub(super) prompt: Option<String>,
    /// Text that the agent writes between <promise> and </promise> when the task is done
    #[arg(long, value_name = "TEXT", alias = "completion-promise")]
    pub(super) promise: Option<String>,
    /// Maximum number of iterations (default: 100; in a session 50)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ITERATIONS_LIMIT)))]
    pub(super) max_iterations: Option<u32>,
    #[command(flatten)]
    work: WorkFlags,
    /// Agent to use, as named in the settings
    #[arg(long)]
    agent: Option<String>,
    /// Override a setting for this run, e.g. --set limits.max_cost=2.50
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run in the background
    #[arg(long, conflicts_with = "in_session")]
    detach: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    pub(in crate::commands) session: SessionFlags,
}

/// How and where agents work.
#[derive(Debug, clap::Args)]
struct WorkFlags {
    /// Continue one session of the client instead of starting a new one for every iteration
    #[arg(long = "continue")]
    continue_session: bool,
    /// Work in your checkout, which must be clean, instead of a private clone
    #[arg(long)]
    in_place: bool,
    /// Branch for the result; it is created if it does not exist (default: the branch that is checked out)
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Have the changes reviewed, every few iterations or whenever a task of the plan is done
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "enhanced")]
    review: Option<ReviewModeName>,
    /// Do not have the changes reviewed
    #[arg(long, conflicts_with = "review")]
    no_review: bool,
    /// Start even if the checks fail before anything was changed
    #[arg(long)]
    skip_baseline: bool,
}

/// A loop in a session that the user has open.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct SessionFlags {
    /// Hold the agent session that runs this command to the task, instead of starting agents
    #[arg(long, conflicts_with_all = ["in_place", "branch", "continue_session", "review", "skip_baseline", "agent", "set"])]
    pub in_session: bool,
    /// With --in-session: file of the project whose front matter has hooks for this session
    #[arg(long, value_name = "FILE", requires = "in_session")]
    pub step: Option<PathBuf>,
    /// With --in-session: session ID, as its client names it (default: the session that runs this command)
    #[arg(long, value_name = "ID", requires = "in_session", conflicts_with = "next")]
    pub session: Option<String>,
    /// With --in-session: the next session in this project in which you type something
    #[arg(long, requires = "in_session")]
    pub next: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReviewModeName {
    Enhanced,
    Ultimate,
}

/// Runs a loop with agents of its own.
pub(super) fn run_loop(arguments: LoopRunArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let review_flag = match (arguments.work.review, arguments.work.no_review) {
        (_, true) => Some("off".to_string()),
        (Some(ReviewModeName::Enhanced), _) => Some("enhanced".to_string()),
        (Some(ReviewModeName::Ultimate), _) => Some("ultimate".to_string()),
        (None, false) => None,
    };
    let promise = arguments.promise.as_deref().map(check_promise).transpose()?;
    let run_inputs = RunInputs::from_environment(context)
        .with_flag("--max-iterations", "loop.max_iterations", arguments.max_iterations.map(|count| count.to_string()))
        .with_flag("--promise", "loop.promise", promise)
        .with_flag("--continue", "loop.continue", arguments.work.continue_session.then(|| "true".into()))
        .with_flag("--review", "loop.review", review_flag)
        .with_flag("--agent", "agents.use", arguments.agent.clone())
        .with_set_flags(&arguments.set)?;
    silence_if_asked(arguments.progress, &run_inputs.sources, context);
    let loop_project = LoopProject::read_project(&project, context);
    let default_file = loop_project.as_ref().and_then(LoopProject::prompt_file);
    let task = find_task(&project, &arguments, default_file, context)?;
    let run_inputs = match &loop_project {
        Some(loop_project) => {
            loop_project.print_problems(context)?;
            loop_project.choose_agent(&project, run_inputs)?
        }
        None => run_inputs,
    };
    let mut resolved = resolve_loop_settings(project.root(), &run_inputs)?;
    let order = &mut resolved.settings.plan.order;
    order.prompt = task.prompt;
    order.prompt_file = task.prompt_file;
    order.place = if arguments.work.in_place { DevelopmentPlace::InPlace } else { DevelopmentPlace::Clone };
    order.skip_baseline |= arguments.work.skip_baseline;
    order.branch = choose_branch(&project, arguments.work.branch.as_deref(), LOOP_WORDS, context)?;
    if resolved.choices.accepts_checkbox {
        order.completion.checkbox_file.clone_from(&order.prompt_file);
    }
    if let Some(loop_project) = &loop_project {
        loop_project.apply_to(&mut resolved, &project);
    }
    resolved.settings.items.extend(TrustItem::from_commit_hooks(project.root()));
    check_plan_file(&project, &resolved.settings.plan.order)?;
    drop_untracked_checkbox(&project, &mut resolved.settings.plan.order)?;
    if arguments.work.in_place {
        check_clean_checkout(&project, &resolved.settings.plan.settings.own_folders())?;
    }
    start_loop(&project, resolved, &arguments, context)
}

fn start_loop(
    project: &Project,
    resolved: ResolvedLoop,
    arguments: &LoopRunArguments,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let settings = resolved.settings;
    print_notes(settings.notes.iter(), context)?;
    print_warnings(settings.warnings.iter(), context)?;
    warn_of_uncommitted(project, &settings.plan.order, context)?;
    match settings.plan.order.review.mode {
        ReviewMode::Off => {}
        ReviewMode::Enhanced => {
            context.print_note("reviews cost about 10 to 14 % more tokens; leave them out with --no-review")?
        }
        ReviewMode::Ultimate => {
            context.print_note("reviews cost about 20 to 30 % more tokens; leave them out with --no-review")?
        }
    }
    trust::require_trust(context, project.root(), &settings.items)?;
    trust::trust_typed_items(context, project.root(), &settings.plan.settings);
    let plan = settings.plan.into_run();
    let planned_start = PlannedStart { project, plan: plan.clone(), is_new: true };
    preflight::require_startable(context, std::iter::once(planned_start))?;
    if arguments.detach {
        return detach_command(context, project, RemainingRuns::default());
    }
    let display_mode = arguments.progress.typed_mode().or(settings.progress).unwrap_or_default();
    let run_end = execute_run(context, project.clone(), RunJob::Start(Box::new(plan)), display_mode, settings.share)?;
    let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: settings.share };
    let answered_run = answer_in_place(context, stopped_run)?;
    report_plan_progress(project, &answered_run.run_end, context)?;
    judge_and_print(project, &answered_run.run_end, None, context)
}

/// The task of a loop.
pub(super) struct LoopTask {
    pub prompt: String,
    /// The file of the project that it came from.
    prompt_file: Option<String>,
}

/// Finds the task: on the command line, in the named file, or in the project's own prompt file.
fn find_task(
    project: &Project,
    arguments: &LoopRunArguments,
    default_file: Option<&str>,
    context: &CommandContext,
) -> Result<LoopTask, UserError> {
    if let Some(typed_prompt) = &arguments.prompt {
        let prompt = super::read_prompt(std::slice::from_ref(typed_prompt))?;
        check_prompt(&prompt)?;
        return Ok(LoopTask { prompt, prompt_file: None });
    }
    let typed_file = match &arguments.prompt_file {
        Some(typed_file) => context.resolve_path(typed_file),
        None => default_file.map(|default_file| project.root().join(default_file)).ok_or_else(|| {
            UserError::usage("no task for the loop")
                .with_reason("There is neither .ralph/PROMPT.md nor PROMPT.md in this project.")
                .with_step("name a file: `tribunal loop run TASK.md`")
                .with_step("or type the task: `tribunal loop run -p \"Make all tests pass\"`")
                .with_step("or make it of the stories of a BMAD project: `tribunal loop plan`")
        })?,
    };
    read_task_file(project, &typed_file)
}

/// Reads the task from a file of the project.
pub(super) fn read_task_file(project: &Project, typed_file: &Path) -> Result<LoopTask, UserError> {
    use tribunal_runner::project::subject;
    let relative_path = subject::relative_to_root(project.root(), typed_file)?;
    let prompt = subject::load_subject(project.root(), &relative_path)?.trim().to_string();
    check_prompt(&prompt)?;
    Ok(LoopTask { prompt, prompt_file: Some(relative_path) })
}

/// Makes sure that the plan, which decides about completion, exists in the workspace.
fn check_plan_file(project: &Project, order: &LoopOrder) -> Result<(), UserError> {
    if order.place == DevelopmentPlace::InPlace {
        return Ok(());
    }
    if let Some(watched_file) = &order.completion.plan_file {
        let problem = match heads::find_tracking(project.root(), watched_file)? {
            FileTracking::Tracked => return Ok(()),
            FileTracking::Untracked => "is not committed",
            FileTracking::Ignored => "is ignored by git",
        };
        return Err(UserError::usage(format!("{} {problem}", escape_line(watched_file)))
            .with_reason("The loop works in a clone of the branch, which would not have it. Nothing was started.")
            .with_step(format!(
                "commit it: `git add --force {0} && git commit -m \"Add the plan\"`",
                shell_quote(watched_file)
            ))
            .with_step("or work in your checkout: `--in-place`"));
    }
    Ok(())
}

/// Does not look for a ticked box in a prompt file that a clone does not have: the agent can still write the promise.
fn drop_untracked_checkbox(project: &Project, order: &mut LoopOrder) -> Result<(), UserError> {
    if let (DevelopmentPlace::Clone, Some(checkbox_file)) = (order.place, &order.completion.checkbox_file)
        && heads::find_tracking(project.root(), checkbox_file)? != FileTracking::Tracked
    {
        order.completion.checkbox_file = None;
    }
    Ok(())
}

/// Warns that a clone has only what is committed.
fn warn_of_uncommitted(project: &Project, order: &LoopOrder, context: &CommandContext) -> Result<(), UserError> {
    if order.place == DevelopmentPlace::InPlace {
        return Ok(());
    }
    let uncommitted = heads::list_uncommitted(project.root())?;
    let Some(files_text) = describe_files(&uncommitted) else { return Ok(()) };
    context.print_note(&format!(
        "your uncommitted changes of {files_text} stay as they are and are not part of the loop's work"
    ))?;
    Ok(())
}
