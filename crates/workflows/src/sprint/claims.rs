//! Which stories other runs work on.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
};

use crate::runs::{
    kinds::RunOrder,
    view::{RunPhase, RunView},
};
use tribunal_engine::ids::RunId;

/// Returns the key of the story that a run works on, or waits with for the user. A run that crashed has no claim; `is_live` says whether
/// a process works on the run.
pub fn claimed_story(run_view: &RunView, is_live: impl FnOnce() -> bool) -> Option<&str> {
    let Some(RunOrder::Story(order)) = &run_view.order else { return None };
    let has_claim = match run_view.phase {
        RunPhase::Finished(_) => false,
        RunPhase::Parked(_) => true,
        RunPhase::Running => is_live(),
    };
    has_claim.then_some(order.story.key.as_str())
}

/// Lists the stories on which runs have a claim, by their keys. Each run comes with whether a process works on it.
pub fn list_claims<'v>(runs: impl IntoIterator<Item = (&'v RunView, bool)>) -> BTreeMap<String, RunId> {
    let claims = runs.into_iter().filter_map(|(run_view, is_live)| {
        let story = claimed_story(run_view, || is_live)?;
        Some((story.to_string(), run_view.run_id.clone()?))
    });
    claims.collect()
}
