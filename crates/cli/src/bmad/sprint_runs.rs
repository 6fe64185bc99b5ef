//! What earlier runs mean for the stories of a sprint: which run has a story already, and which work is on another branch.

use std::collections::BTreeMap;

use tribunal_engine::ids::{DecisionId, RunId};
use tribunal_json::{Serialize, schemars};
use tribunal_runner::{Project, git::heads};
use tribunal_workflows::runs::view::{RunPhase, RunView};

/// The runs of a project, as far as the stories of a sprint are concerned.
#[derive(Debug, Default)]
pub(crate) struct SprintRuns<'v> {
    /// All runs, oldest first.
    pub run_views: Vec<&'v RunView>,
    /// The stories that runs work on or wait with, by their keys.
    pub claims: BTreeMap<String, RunId>,
}

/// A run that works on a story, or waits with it for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct StoryClaim {
    pub run: RunId,
    /// The run to resume: the same, or the one that the user started.
    pub root: RunId,
    /// Whether it waits; otherwise it works on the story.
    pub waiting: bool,
    /// The decisions that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionId>,
}

impl SprintRuns<'_> {
    /// Finds the run that has a story, by the key on the board.
    pub fn find_claim(&self, story_key: &str) -> Option<StoryClaim> {
        let run_id = self.claims.get(story_key)?;
        let run_view = self.run_views.iter().find(|run_view| run_view.run_id.as_ref() == Some(run_id))?;
        let root = run_view.parent.as_ref().map_or(run_id, |parent| &parent.root);
        Some(StoryClaim {
            run: run_id.clone(),
            root: root.clone(),
            waiting: run_view.phase != RunPhase::Running,
            decisions: run_view.open_decisions().map(|decision| decision.id.clone()).collect(),
        })
    }
}

/// The work of a story on another branch than the one that it would land on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkElsewhere<'v> {
    pub run_id: &'v RunId,
    pub branch_name: &'v str,
}

/// Finds the work of a story that is on another branch than `branch_name`. `None` if there is none, or if that branch is gone.
/// `run_views` come oldest first.
pub(crate) fn find_work_elsewhere<'v>(
    project: &Project,
    run_views: impl DoubleEndedIterator<Item = &'v RunView>,
    story_key: &str,
    branch_name: &str,
) -> Option<WorkElsewhere<'v>> {
    let last_run = run_views.rev().find(|run_view| {
        run_view.as_story().is_some_and(|view| {
            view.summary.landed_on.is_some() && view.order.as_ref().is_some_and(|order| order.story.key == story_key)
        })
    })?;
    let (run_id, summary) = (last_run.run_id.as_ref()?, &last_run.as_story()?.summary);
    let (commit, other_branch) = (summary.commit.as_ref()?, summary.landed_on.as_deref()?);
    let root = project.root();
    if other_branch == branch_name
        || heads::is_on_branch(root, commit, branch_name)
        || !heads::is_on_branch(root, commit, other_branch)
    {
        return None;
    }
    Some(WorkElsewhere { run_id, branch_name: other_branch })
}
