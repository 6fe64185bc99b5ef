//! `--dry-run`: prints what would be done for each story.

use std::io::{Write, stdout};

use tribunal_engine::{ids::AgentName, limits::RunLimits, text::format_count};
use tribunal_json::{Serialize, schemars};
use tribunal_report::escape_line;
use tribunal_workflows::{
    development::{checks::CheckSpec, workspace::DevelopmentPlace},
    runs::{plan::RunPlan, settings::Settings},
    sprint::selection::{ForecastRetrospective, LeftOut, SprintForecast},
    story::order::{StoryGoal, StoryOrder, StoryReviewMode, StoryStepName},
    tasks::{
        client::{JobKind, ModelSize},
        instructions::TaskOpening,
        selection,
    },
};

use super::selection::ChosenStory;
use crate::{
    context::CommandContext,
    messages::{json_documents, user_errors::UserError},
    settings::command_values::describe_check,
};

/// The document of `tribunal sprint --dry-run`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SprintPlanDocument {
    schema: &'static str,
    stories: Vec<StoryPlan>,
    /// Open stories that would not be begun, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// Retrospectives that would be held, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retrospectives: Vec<ForecastRetrospective>,
}

/// A story that would be developed.
pub(super) struct PreparedStory<'a> {
    pub chosen: &'a ChosenStory,
    pub plan: &'a RunPlan<StoryOrder>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct StoryPlan {
    key: String,
    title: String,
    #[serde(flatten)]
    files: PlannedFiles,
    steps: Vec<PlannedStep>,
    place: DevelopmentPlace,
    branch: String,
    until: StoryGoal,
    review: StoryReviewMode,
    max_cycles: u32,
    checks: Vec<CheckSpec>,
    limits: RunLimits,
}

/// Where a story stands, and its files.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct PlannedFiles {
    /// The state on the board, as it is written.
    #[serde(skip_serializing_if = "String::is_empty")]
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    story_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<String>,
}

/// A step with the agent that would do it first.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct PlannedStep {
    step: StoryStepName,
    agent: AgentName,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<ModelSize>,
    /// What its prompt begins with.
    command: String,
}

/// Prints the plans of stories, and of a sprint what it would do when.
pub(super) fn print_plans(
    prepared_stories: &[PreparedStory<'_>],
    forecast: Option<&SprintForecast>,
    context: &CommandContext,
) -> Result<u8, UserError> {
    let stories: Vec<StoryPlan> = prepared_stories.iter().map(build_plan).collect();
    let left_out = forecast.map(|forecast| forecast.left_out.clone()).unwrap_or_default();
    if context.wants_json {
        let retrospectives = forecast.map(|forecast| forecast.retrospectives.clone()).unwrap_or_default();
        let schema = "tribunal.sprint-plan/1";
        json_documents::print_document(&SprintPlanDocument { schema, stories, left_out, retrospectives })?;
        return Ok(0);
    }
    let mut output = stdout().lock();
    if let Some(forecast) = forecast {
        print_order(&mut output, forecast)?;
    }
    if stories.is_empty() {
        let reason = if left_out.is_empty() { ": all stories are done" } else { "" };
        writeln!(output, "no story would be started{reason}")?;
    }
    for left_out in &left_out {
        writeln!(output, "left out: {}", escape_line(&left_out.describe()))?;
    }
    for plan in &stories {
        print_plan(&mut output, plan)?;
    }
    Ok(0)
}

/// Prints the stories of a sprint in their order, with the retrospectives between them.
fn print_order(output: &mut impl Write, forecast: &SprintForecast) -> Result<(), UserError> {
    let print_held = |output: &mut dyn Write, after: Option<&str>| -> Result<(), UserError> {
        for held in forecast.retrospectives.iter().filter(|held| held.after.as_deref() == after) {
            writeln!(output, "   {}", escape_line(&held.describe()))?;
        }
        Ok(())
    };
    print_held(output, None)?;
    for (position, forecast_story) in forecast.stories.iter().enumerate() {
        let line_text = format!("{}. {}: {}", position + 1, forecast_story.story, forecast_story.reason);
        writeln!(output, "{}", escape_line(&line_text))?;
        print_held(output, Some(forecast_story.story.as_str()))?;
    }
    Ok(())
}

fn build_plan(prepared: &PreparedStory<'_>) -> StoryPlan {
    let (settings, order) = (&prepared.plan.settings, &prepared.plan.order);
    StoryPlan {
        key: order.story.key.clone(),
        title: order.story.title.clone(),
        files: PlannedFiles {
            state: prepared.chosen.state_word.clone(),
            story_file: order.files.story_file.clone(),
            board: order.story.board.clone(),
        },
        steps: list_steps(settings, order),
        place: order.place,
        branch: order.branch.name.clone(),
        until: order.goal,
        review: order.review.mode,
        max_cycles: order.pacing.max_cycles,
        checks: settings.checks.clone(),
        limits: settings.limits.clone(),
    }
}

fn list_steps(settings: &Settings, order: &StoryOrder) -> Vec<PlannedStep> {
    let make_step = |step: StoryStepName, job: JobKind, opening: &TaskOpening| {
        let agent = selection::agent_for_seat(settings, job, 0, 0);
        let client =
            settings.find_agent(&agent).and_then(|agent| agent.driver.client_spec()).map(|spec| spec.client.as_str());
        let command = client.and_then(|client| opening.command_for(client)).unwrap_or(&opening.text);
        PlannedStep { step, agent, size: order.size, command: command.to_string() }
    };
    let mut steps = Vec::new();
    steps.extend(
        order.steps.create.as_ref().map(|opening| make_step(StoryStepName::Create, JobKind::CreateStory, opening)),
    );
    steps.push(make_step(StoryStepName::Develop, JobKind::Develop, &order.steps.develop));
    let code_review = order.steps.code_review.as_ref().filter(|_| order.review.mode.has_bmad_review());
    steps.extend(code_review.map(|opening| make_step(StoryStepName::Review, JobKind::Develop, opening)));
    steps
}

fn print_plan(output: &mut impl Write, plan: &StoryPlan) -> Result<(), UserError> {
    let title = format!("{} ({})", plan.key, plan.title);
    writeln!(output, "would develop {} (dry run, nothing was started)", escape_line(&title))?;
    if let Some(board) = &plan.files.board {
        writeln!(output, "  board:    {} ({})", escape_line(board), escape_line(&plan.files.state))?;
    }
    let file_text = plan.files.story_file.as_deref().unwrap_or("none yet");
    writeln!(output, "  story:    {}", escape_line(file_text))?;
    for step in &plan.steps {
        let size_text = step.size.map(|size| format!(", {size} model")).unwrap_or_default();
        writeln!(output, "  {:<9} {}{size_text}", format!("{}:", step.step), escape_line(step.agent.as_str()))?;
        let command_words: Vec<&str> = step.command.split_whitespace().collect();
        writeln!(output, "            {}", escape_line(&command_words.join(" ")))?;
    }
    let review_text = match (plan.until, plan.review) {
        (StoryGoal::Review, _) => "none; the story stops when it is ready for one".to_string(),
        (StoryGoal::Done, StoryReviewMode::Off) => "none".to_string(),
        (StoryGoal::Done, StoryReviewMode::Bmad) => "BMAD's own".to_string(),
        (StoryGoal::Done, StoryReviewMode::Cycle) => {
            format!("panel, at most {}", format_count(plan.max_cycles, "round"))
        }
        (StoryGoal::Done, StoryReviewMode::Both) => {
            format!("BMAD's own, then a panel with at most {}", format_count(plan.max_cycles, "round"))
        }
    };
    writeln!(output, "  review:   {review_text}")?;
    match plan.checks.is_empty() {
        true => writeln!(output, "  checks:   none; set `checks` so that the work is tested")?,
        false => {
            for check in &plan.checks {
                writeln!(output, "  check:    {}", escape_line(&describe_check(check)))?;
            }
        }
    }
    writeln!(output, "  result:   one commit on {} ({})", escape_line(&plan.branch), plan.place)?;
    let limits = &plan.limits;
    writeln!(
        output,
        "  limits:   {} a step, {}, {} min, ${} or {} tokens",
        format_count(plan.max_cycles, "session"),
        format_count(limits.failures, "failure"),
        limits.runtime_ms / 60_000,
        limits.cost,
        limits.tokens
    )?;
    Ok(())
}
