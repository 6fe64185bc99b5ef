//! `tribunal sprint STORY…`: develops stories one after the other. Each is a run of its own: its file is written if that is missing,
//! an agent develops it, files, git and checks verify the work, a panel reviews it, and the result lands as one commit.

mod plan;
mod selection;
mod steps;

use clap::ValueEnum;
use tribunal_core::{
    development::workspace::DevelopmentPlace,
    engine::{own_folders::OwnFolders, plan::RunPlan, reason::RunOutcome},
    story::order::{StoryGoal, StoryOrder, StoryReviewMode},
};
use tribunal_report::escape_line;
use tribunal_runner::Project;

use crate::{
    bmad::BmadProject,
    commands::{
        decisions::{StoppedRun, answer_in_place},
        review::{print_notes, print_warnings, silence_if_asked},
        workplace::{WorkWords, check_clean_checkout, choose_branch},
    },
    context::CommandContext,
    messages::user_errors::UserError,
    preflight::{self, PlannedStart},
    runs::{
        detach::{RemainingRuns, detach_command},
        engine::{RunJob, execute_run},
        run_verdict::judge_and_print,
    },
    settings::{ResolvedSettings, RunInputs, resolve_reviews_dir, resolve_story_settings},
    terminal::progress_display::ProgressArgs,
    trust::{self, trust_item::TrustItem},
};
pub(crate) use plan::SprintPlanDocument;
use selection::{ChosenStory, CommitConsent};

const STORY_WORDS: WorkWords = WorkWords { subject: "A story", command: "sprint STORY" };

#[derive(Debug, clap::Args)]
pub(crate) struct SprintArguments {
    /// Stories by number, key or slug (1.2, 1-2, 1-2-log-in), and ranges (1-2..1-5)
    #[arg(value_name = "STORY", required = true)]
    stories: Vec<String>,
    /// Weight of the process, 0 to 4: it chooses the size of the models
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    tier: Option<u8>,
    /// Who reviews a story: a panel, BMAD's own review, both, or no one
    #[arg(long, value_enum, value_name = "MODE")]
    review: Option<ReviewModeName>,
    #[command(flatten)]
    work: WorkFlags,
    /// Where to stop: when the story is done, or when it is ready for a review
    #[arg(long, value_enum, value_name = "STATE", default_value = "done")]
    until: GoalName,
    /// Print what would be done, with the exact commands, and start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Agent to use, as named in the settings
    #[arg(long)]
    agent: Option<String>,
    /// Override a setting for this run, e.g. --set limits.max_cost=2.50
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run in the background
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// How and where agents work.
#[derive(Debug, clap::Args)]
struct WorkFlags {
    /// Branch for the results; it is created if it does not exist (default: the branch that is checked out)
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Work in your checkout, which must be clean, instead of a private clone
    #[arg(long)]
    in_place: bool,
    /// Develop a story even if the board says that it is done or blocked
    #[arg(long)]
    again: bool,
    /// Start even if the checks fail before anything was changed
    #[arg(long)]
    skip_baseline: bool,
    /// Commit BMAD files that are not committed, without asking
    #[arg(long, conflicts_with = "in_place")]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReviewModeName {
    Cycle,
    Bmad,
    Both,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GoalName {
    Done,
    Review,
}

/// A story that is ready to be run.
struct PreparedStory {
    chosen: ChosenStory,
    resolved: ResolvedSettings<StoryOrder>,
}

pub(crate) fn run(arguments: &SprintArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let review_flag = arguments.review.map(|mode| match mode {
        ReviewModeName::Cycle => StoryReviewMode::Cycle.to_string(),
        ReviewModeName::Bmad => StoryReviewMode::Bmad.to_string(),
        ReviewModeName::Both => StoryReviewMode::Both.to_string(),
        ReviewModeName::Off => StoryReviewMode::Off.to_string(),
    });
    let run_inputs = RunInputs::from_environment(context)
        .with_flag("--tier", "tier", arguments.tier.map(|tier| tier.to_string()))
        .with_flag("--review", "sprint.review", review_flag)
        .with_flag("--agent", "agents.use", arguments.agent.clone())
        .with_set_flags(&arguments.set)?;
    silence_if_asked(arguments.progress, &run_inputs.sources, context);
    let bmad = BmadProject::read_project(&project);
    let chosen_stories = selection::choose_stories(&bmad, &arguments.stories, arguments.work.again)?;
    if arguments.work.in_place {
        check_clean_checkout(&project)?;
    } else {
        let own_folders = OwnFolders::beside_reviews(&resolve_reviews_dir(project.root(), &run_inputs.sources)?);
        let uncommitted = selection::list_uncommitted(&project, &bmad, &chosen_stories, &own_folders)?;
        let consent = match (arguments.dry_run, arguments.work.yes) {
            (true, _) => CommitConsent::NotNeeded,
            (false, true) => CommitConsent::Given,
            (false, false) => CommitConsent::Unknown,
        };
        selection::commit_plan_files(&project, &uncommitted, consent, context)?;
    }
    let preparation = StoryPreparation { project: &project, bmad: &bmad, arguments, run_inputs: &run_inputs };
    let prepared_stories = chosen_stories
        .into_iter()
        .map(|chosen| preparation.prepare_story(chosen, context))
        .collect::<Result<Vec<_>, _>>()?;
    if arguments.dry_run {
        return plan::print_plans(&prepared_stories, context);
    }
    check_start(&project, &prepared_stories, context)?;
    if arguments.detach {
        return detach_command(context, &project, RemainingRuns::default());
    }
    run_stories(&project, prepared_stories, arguments, context)
}

/// What the preparation of every story needs.
struct StoryPreparation<'a> {
    project: &'a Project,
    bmad: &'a BmadProject,
    arguments: &'a SprintArguments,
    run_inputs: &'a RunInputs,
}

impl StoryPreparation<'_> {
    fn prepare_story(&self, chosen: ChosenStory, context: &CommandContext) -> Result<PreparedStory, UserError> {
        let StoryPreparation { project, bmad, arguments, run_inputs } = *self;
        let mut resolved = resolve_story_settings(project.root(), run_inputs)?;
        let (settings, order) = (&resolved.plan.settings, &mut resolved.plan.order);
        order.story = chosen.name.clone();
        order.files = chosen.files.clone();
        order.place = if arguments.work.in_place { DevelopmentPlace::InPlace } else { DevelopmentPlace::Clone };
        order.branch = choose_branch(project, arguments.work.branch.as_deref(), STORY_WORDS, context)?;
        order.goal = match arguments.until {
            GoalName::Done => StoryGoal::Done,
            GoalName::Review => StoryGoal::Review,
        };
        order.skip_baseline |= arguments.work.skip_baseline;
        *order.steps = steps::find_steps(bmad, &chosen, settings)?;
        order.size = Some(steps::model_size(settings.tier, chosen.complexity.as_deref()));
        if order.review.mode.has_bmad_review() && order.steps.code_review.is_none() {
            return Err(UserError::usage("this project has no review workflow of BMAD")
                .with_reason(format!("`{}` was chosen for the review.", order.review.mode))
                .with_step("choose the panel: `--review cycle`"));
        }
        resolved.items.extend(TrustItem::from_commit_hooks(project.root()));
        Ok(PreparedStory { chosen, resolved })
    }
}

/// Checks everything before the first run starts.
fn check_start(
    project: &Project,
    prepared_stories: &[PreparedStory],
    context: &CommandContext,
) -> Result<(), UserError> {
    if let Some(first_story) = prepared_stories.first() {
        print_notes(first_story.resolved.notes.iter(), context)?;
        print_warnings(first_story.resolved.warnings.iter(), context)?;
        trust::require_trust(context, project.root(), &first_story.resolved.items)?;
        trust::trust_typed_items(context, project.root(), &first_story.resolved.plan.settings);
    }
    selection::refuse_open_runs(project, prepared_stories, context)?;
    let planned_starts =
        prepared_stories.iter().map(|prepared| PlannedStart { project, plan: run_plan(prepared), is_new: true });
    preflight::require_startable(context, planned_starts)
}

fn run_plan(prepared: &PreparedStory) -> RunPlan {
    let plan = &prepared.resolved.plan;
    RunPlan { settings: plan.settings.clone(), order: plan.order.clone() }.into_run()
}

/// Runs the stories in order. A story that is not done ends the command: the later ones may build on it.
fn run_stories(
    project: &Project,
    prepared_stories: Vec<PreparedStory>,
    arguments: &SprintArguments,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let mut remaining: Vec<String> =
        prepared_stories.iter().rev().map(|prepared| prepared.chosen.name.key.clone()).collect();
    let mut exit_code = 0;
    for prepared in prepared_stories {
        remaining.pop();
        let (share, progress) = (prepared.resolved.share, prepared.resolved.progress);
        let display_mode = arguments.progress.typed_mode().or(progress).unwrap_or_default();
        let job = RunJob::Start(Box::new(run_plan(&prepared)));
        let run_end = execute_run(context, project.clone(), job, display_mode, share)?;
        let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: share };
        let answered_run = answer_in_place(context, stopped_run)?;
        exit_code = judge_and_print(project, &answered_run.run_end, None, context)?;
        let is_done = answered_run.run_end.reason.outcome() == Some(RunOutcome::Resolved);
        if !is_done && !remaining.is_empty() {
            let left_out: Vec<&str> = remaining.iter().rev().map(String::as_str).collect();
            context.print_note(&format!(
                "{} is not done, so these were not started: {}",
                escape_line(&prepared.chosen.name.key),
                escape_line(&left_out.join(", "))
            ))?;
        }
        if !is_done {
            break;
        }
    }
    Ok(exit_code)
}
