//! What earlier runs mean for a sprint that is about to start: stories that they work on, work that they left on other branches, and
//! retrospectives that they could not hold.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::{ids::RunId, text::shell_quote};
use tribunal_runner::Project;
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{kinds::WorkflowEvent, types::RunEvent, view::RunView},
    sprint::{claims, event::SprintEvent},
};

use crate::{
    bmad::sprint_runs::{WorkElsewhere, find_work_elsewhere},
    commands::runs,
    context::CommandContext,
    messages::user_errors::UserError,
};

/// The runs of a project so far.
pub(super) struct EarlierRuns {
    /// `None` if the project has no runs yet.
    store: Option<Store>,
    /// In outline, oldest first, with whether a process works on each.
    listed_runs: Vec<(RunView, bool)>,
}

impl EarlierRuns {
    pub fn read_journal(project: &Project, context: &CommandContext) -> Result<EarlierRuns, UserError> {
        let store = context.open_journal(project)?;
        let listed_runs = match &store {
            Some(store) => runs::list_runs(store, project)?,
            None => Vec::new(),
        };
        Ok(EarlierRuns { store, listed_runs })
    }

    /// Lists the stories that runs work on or wait with, by their keys.
    pub fn list_claims(&self) -> BTreeMap<String, RunId> {
        claims::list_claims(self.listed_runs.iter().map(|(run_view, is_live)| (run_view, *is_live)))
    }

    /// Says that the work of a story is on another branch than the one that it would land on. `None` if it is not, or if that branch is
    /// gone.
    pub fn describe_work_elsewhere(&self, project: &Project, key: &str, branch_name: &str) -> Option<String> {
        let run_views = self.listed_runs.iter().map(|(run_view, _)| run_view);
        let WorkElsewhere { run_id, branch_name: other_branch } =
            find_work_elsewhere(project, run_views, key, branch_name)?;
        Some(format!(
            "{key} was done by run {run_id} on the branch `{other_branch}`; it is taken again, since it is not on {branch_name}. To take \
             that work over instead: `git merge {}`",
            shell_quote(other_branch)
        ))
    }

    /// Lists the epics whose retrospective a sprint tried to hold and could not, if no later one has held it.
    pub fn list_missed_retrospectives(&self) -> Result<Vec<String>, UserError> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let mut missed_epics = BTreeSet::new();
        let sprints = self.listed_runs.iter().filter(|(run_view, _)| run_view.as_sprint().is_some());
        for run_id in sprints.filter_map(|(run_view, _)| run_view.run_id.as_ref()) {
            // The whole journal is read only if there is something in it.
            if store.last_entry_of(run_id, &["sprint_retrospective"])?.is_none() {
                continue;
            }
            for entry in store.read_entries(run_id, 0)? {
                if let RunEvent::Workflow(WorkflowEvent::Sprint(SprintEvent::SprintRetrospective {
                    epic,
                    lesson,
                    ..
                })) = entry.event
                {
                    match lesson {
                        Some(_) => missed_epics.remove(&epic),
                        None => missed_epics.insert(epic),
                    };
                }
            }
        }
        Ok(missed_epics.into_iter().collect())
    }
}
