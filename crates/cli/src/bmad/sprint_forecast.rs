//! What `tribunal sprint` would do, as `tribunal status` shows it.

use std::collections::BTreeMap;

use tribunal_core::{
    engine::ids::RunId,
    sprint::{
        scope::SprintScope,
        selection::{LeftOut, LeftOutReason, SprintForecast, plan_sprint},
    },
};
use tribunal_runner::project::sprint_facts;

use super::BmadProject;

/// How many of the stories after the next one are named.
const MAX_SHOWN_STORIES: usize = 4;

/// Plans a sprint over the whole board, without the stories in `claims`, which other runs work on. `None` if there is nothing to say.
pub(super) fn forecast_sprint(bmad_project: &BmadProject, claims: &BTreeMap<String, RunId>) -> Option<SprintForecast> {
    let to_reason =
        |(key, claimant): (&String, &RunId)| (key.clone(), LeftOutReason::Claimed { claimant: claimant.clone() });
    let hindered = claims.iter().map(to_reason).collect();
    let forecast = plan_sprint(&sprint_facts::read_sprint(bmad_project), &SprintScope::default(), &hindered);
    Some(forecast).filter(|forecast| describe_forecast(forecast).is_some())
}

/// Says which stories `tribunal sprint` would develop, which other runs work on, and whose keys stand twice on the board.
pub(super) fn describe_forecast(forecast: &SprintForecast) -> Option<String> {
    let is_named = |left_out: &&LeftOut| {
        matches!(left_out.reason, LeftOutReason::Claimed { .. } | LeftOutReason::TwiceOnBoard { .. })
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
