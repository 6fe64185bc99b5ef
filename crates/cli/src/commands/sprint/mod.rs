//! `tribunal sprint [STORY…]`: develops stories one after the other. The file of a story is written if that is missing, an agent
//! develops it, files, git and checks verify the work, a panel reviews it, and the result lands as one commit. One story is a run of its
//! own; several are children of a sprint.

mod earlier_runs;
mod plan;
mod selection;
mod whole_sprint;

use std::iter;

use clap::ValueEnum;
use tribunal_engine::own_folders::OwnFolders;
use tribunal_runner::{Project, project::story_plan};
use tribunal_workflows::{
    development::workspace::DevelopmentPlace,
    runs::kinds::RunOrder,
    sprint::facts::PlannedStory,
    story::order::{StoryGoal, StoryOrder, StoryReviewMode},
};

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
use earlier_runs::EarlierRuns;
#[cfg(test)]
pub(crate) use plan::SprintPlanDocument;
use selection::{ChosenStory, CommitConsent};

const STORY_WORDS: WorkWords = WorkWords { subject: "A story", command: "sprint STORY" };

#[derive(Debug, clap::Args)]
pub(crate) struct SprintArguments {
    /// Stories by number, key or slug (1.2, 1-2, 1-2-log-in), and ranges (1-2..1-5); all that are open if none is named
    #[arg(value_name = "STORY")]
    stories: Vec<String>,
    /// Only the stories of this epic
    #[arg(long, value_name = "N", conflicts_with = "stories")]
    epic: Option<String>,
    /// Begin at most so many stories
    #[arg(long, value_name = "N", conflicts_with = "stories", value_parser = clap::value_parser!(u32).range(1..))]
    max_stories: Option<u32>,
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
    let own_folders = OwnFolders::beside_reviews(&resolve_reviews_dir(project.root(), &run_inputs.sources)?);
    if arguments.work.in_place {
        check_clean_checkout(&project, &own_folders)?;
    } else {
        let uncommitted = selection::list_uncommitted(&project, &bmad, &chosen_stories, &own_folders)?;
        let consent = match (arguments.dry_run, arguments.work.yes) {
            (true, _) => CommitConsent::NotNeeded,
            (false, true) => CommitConsent::Given,
            (false, false) => CommitConsent::Unknown,
        };
        // A refusal afterwards would leave a commit behind, made for a run that never began.
        if consent != CommitConsent::NotNeeded && !uncommitted.is_empty() {
            let mut items = resolve_story_settings(project.root(), &run_inputs)?.items;
            items.extend(TrustItem::from_commit_hooks(project.root()));
            trust::require_trust(context, project.root(), &items)?;
        }
        selection::commit_plan_files(&project, &uncommitted, consent, context)?;
    }
    let preparation = SprintPreparation { project: &project, bmad: &bmad, arguments, run_inputs: &run_inputs };
    match chosen_stories.as_slice() {
        [only_story] => run_one_story(preparation, only_story, context),
        _ => whole_sprint::run(preparation, &chosen_stories, context),
    }
}

fn run_one_story(
    preparation: SprintPreparation<'_>,
    chosen: &ChosenStory,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let SprintPreparation { project, arguments, .. } = preparation;
    let mut resolved = preparation.prepare_story(chosen, context)?;
    if arguments.dry_run {
        return plan::print_plans(&[plan::PreparedStory { chosen, plan: &resolved.plan }], None, context);
    }
    let story_key = &resolved.plan.order.story.key;
    selection::refuse_open_run(project, context, |order| match order {
        RunOrder::Story(order) if order.story.key == *story_key => Some(story_key.clone()),
        _ => None,
    })?;
    let earlier_runs = EarlierRuns::read_journal(project, context)?;
    let branch_name = &resolved.plan.order.branch.name;
    resolved.notes.extend(earlier_runs.describe_work_elsewhere(project, story_key, branch_name));
    start_run(preparation, resolved, context)
}

/// Checks everything that can be checked before a run starts, and runs it.
fn start_run<O>(
    preparation: SprintPreparation<'_>,
    resolved: ResolvedSettings<O>,
    context: &CommandContext,
) -> Result<u8, UserError>
where
    RunOrder: From<O>,
{
    let SprintPreparation { project, arguments, .. } = preparation;
    print_notes(resolved.notes.iter(), context)?;
    print_warnings(resolved.warnings.iter(), context)?;
    trust::require_trust(context, project.root(), &resolved.items)?;
    trust::trust_typed_items(context, project.root(), &resolved.plan.settings);
    let ResolvedSettings { plan, share, progress, .. } = resolved;
    let plan = plan.into_run();
    let planned_start = PlannedStart { project, plan: plan.clone(), is_new: true };
    preflight::require_startable(context, iter::once(planned_start))?;
    if arguments.detach {
        return detach_command(context, project, RemainingRuns::default());
    }
    let display_mode = arguments.progress.typed_mode().or(progress).unwrap_or_default();
    let run_end = execute_run(context, project.clone(), RunJob::Start(Box::new(plan)), display_mode, share)?;
    let stopped_run = StoppedRun { project: project.clone(), run_end, concurrency: share };
    let answered_run = answer_in_place(context, stopped_run)?;
    judge_and_print(project, &answered_run.run_end, None, context)
}

/// What the preparation of a run needs.
#[derive(Clone, Copy)]
struct SprintPreparation<'a> {
    project: &'a Project,
    bmad: &'a BmadProject,
    arguments: &'a SprintArguments,
    run_inputs: &'a RunInputs,
}

impl SprintPreparation<'_> {
    fn prepare_story(
        self,
        chosen: &ChosenStory,
        context: &CommandContext,
    ) -> Result<ResolvedSettings<StoryOrder>, UserError> {
        let SprintPreparation { project, bmad, run_inputs, .. } = self;
        let mut resolved = resolve_story_settings(project.root(), run_inputs)?;
        self.fill_order(&mut resolved.plan.order, context)?;
        let (settings, order) = (&resolved.plan.settings, &mut resolved.plan.order);
        apply_plan(order, story_plan::plan_story(bmad, &chosen.key, settings, settings.tier)?);
        if order.review.mode.has_bmad_review() && order.steps.code_review.is_none() {
            return Err(UserError::usage("this project has no review workflow of BMAD")
                .with_reason(format!("`{}` was chosen for the review.", order.review.mode))
                .with_step("choose the panel: `--review cycle`"));
        }
        resolved.items.extend(TrustItem::from_commit_hooks(project.root()));
        Ok(resolved)
    }

    /// Fills in what was typed and holds for every story.
    fn fill_order(self, order: &mut StoryOrder, context: &CommandContext) -> Result<(), UserError> {
        let SprintPreparation { project, arguments, .. } = self;
        order.place = if arguments.work.in_place { DevelopmentPlace::InPlace } else { DevelopmentPlace::Clone };
        order.branch = choose_branch(project, arguments.work.branch.as_deref(), STORY_WORDS, context)?;
        order.goal = match arguments.until {
            GoalName::Done => StoryGoal::Done,
            GoalName::Review => StoryGoal::Review,
        };
        order.skip_baseline |= arguments.work.skip_baseline;
        Ok(())
    }
}

fn apply_plan(order: &mut StoryOrder, planned: PlannedStory) {
    order.story = planned.name;
    order.files = planned.files;
    *order.steps = planned.steps;
    order.size = Some(planned.size);
}
