//! What `tribunal sprint` would do, as `tribunal status` shows it.

use tribunal_engine::{ids::RunId, text::shell_quote};
use tribunal_runner::{
    Project,
    git::heads::{self, CurrentHead},
    project::sprint_facts,
};
use tribunal_workflows::sprint::{
    scope::SprintScope,
    selection::{ForecastStory, LeftOut, LeftOutReason, SprintForecast, plan_sprint},
};

use super::{
    BmadProject,
    sprint_runs::{SprintRuns, find_work_elsewhere},
};

/// How many of the stories after the next one are named.
const MAX_SHOWN_STORIES: usize = 4;

/// What is known about a sprint over the whole board before it starts.
#[derive(Debug)]
pub(super) struct SprintOutlook {
    /// What it would do; `None` if there is nothing to say.
    pub forecast: Option<SprintForecast>,
    /// What the user should know about single stories, one line each.
    pub remarks: Vec<String>,
}

/// Plans a sprint over the whole board, without the stories that other runs work on.
pub(super) fn read_outlook(
    project: &Project,
    bmad_project: &BmadProject,
    sprint_runs: &SprintRuns<'_>,
) -> SprintOutlook {
    let to_reason =
        |(key, claimant): (&String, &RunId)| (key.clone(), LeftOutReason::Claimed { claimant: claimant.clone() });
    let hindered = sprint_runs.claims.iter().map(to_reason).collect();
    let facts = sprint_facts::read_sprint(bmad_project);
    let forecast = plan_sprint(&facts, &SprintScope::default(), &hindered);
    let mut remarks = facts.remarks;
    remarks.extend(describe_work_elsewhere(project, &forecast.stories, sprint_runs));
    let forecast = Some(forecast).filter(|forecast| describe_forecast(forecast).is_some());
    SprintOutlook { forecast, remarks }
}

/// Names stories that would be developed although their work is on another branch than the one that is checked out.
fn describe_work_elsewhere(
    project: &Project,
    forecast_stories: &[ForecastStory],
    sprint_runs: &SprintRuns<'_>,
) -> Vec<String> {
    // Without a branch no sprint would start.
    let Ok(CurrentHead::Branch { name: branch_name, .. }) = heads::read_head(project.root()) else {
        return Vec::new();
    };
    let describe_story = |planned: &ForecastStory| {
        let run_views = sprint_runs.run_views.iter().copied();
        let work = find_work_elsewhere(project, run_views, &planned.story, &branch_name)?;
        Some(format!(
            "{} was done by run {} on the branch `{}`; to take that work over: `git merge {}`",
            planned.story,
            work.run_id,
            work.branch_name,
            shell_quote(work.branch_name)
        ))
    };
    forecast_stories.iter().filter_map(describe_story).collect()
}

/// Says which stories `tribunal sprint` would develop, and names those that it would not begin before the user has done something:
/// another run works on them, their keys stand twice on the board, or what they depend on is wrong.
pub(super) fn describe_forecast(forecast: &SprintForecast) -> Option<String> {
    let is_named = |left_out: &&LeftOut| match left_out.reason {
        LeftOutReason::Claimed { .. }
        | LeftOutReason::TwiceOnBoard { .. }
        | LeftOutReason::Circle { .. }
        | LeftOutReason::UnknownNeed { .. } => true,
        LeftOutReason::Needs { .. }
        | LeftOutReason::State { .. }
        | LeftOutReason::Skipped
        | LeftOutReason::MaxStories
        | LeftOutReason::Refused { .. } => false,
    };
    let named: Vec<String> = forecast.left_out.iter().filter(is_named).map(LeftOut::describe).collect();
    let Some((first, later)) = forecast.stories.split_first() else {
        return (!named.is_empty()).then(|| format!("`tribunal sprint` would start nothing: {}", named.join("; ")));
    };
    let later_keys: Vec<&str> = later.iter().take(MAX_SHOWN_STORIES).map(|later| later.story.as_str()).collect();
    let more_text = match later.len().saturating_sub(MAX_SHOWN_STORIES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let later_text = match later_keys.is_empty() {
        true => String::new(),
        false => format!("; then {}{more_text}", later_keys.join(", ")),
    };
    let named_text: String = named.iter().map(|left_out| format!("; {left_out}")).collect();
    Some(format!("`tribunal sprint` would begin with {} ({}){later_text}{named_text}", first.story, first.reason))
}
