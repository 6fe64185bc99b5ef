//! `tribunal status [RUN]`: shows where runs stand, what to type next, and the sprint.

use std::io::{Write, stdout};

use tribunal_core::{effect::UserRequest, view::RunView};
use tribunal_report::{
    escape_line,
    tables::{self, RunStanding},
};
use tribunal_runner::Runner;
use tribunal_store::Store;

use super::runs;
use crate::{
    bmad::BmadProject,
    context::{CommandContext, find_run},
    json_documents::{self, RunRow, RunsDocument},
    sprint,
    user_errors::UserError,
};

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArguments {
    /// A run; else the last one, all that need somebody, and the sprint
    run: Option<String>,
}

pub(crate) fn run(arguments: &StatusArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let store = context.open_journal(&project)?;
    // The sprint is shown only when no run is named: the user then wants an overview.
    let mut sprint_tree = None;
    let mut shown_runs: Vec<(RunView, bool)> = match (&store, &arguments.run) {
        (Some(store), Some(run_name)) => {
            let run_id = find_run(store, run_name)?;
            vec![(RunView::from_entries(&store.read_entries(&run_id, 0)?), Runner::is_live(&project, &run_id))]
        }
        (Some(store), None) => {
            let mut listed_runs = runs::list_runs(store, &project)?;
            sprint_tree = sprint::read_sprint(
                &BmadProject::read_project(&project),
                &listed_runs.iter().map(|(run_view, _)| run_view).collect::<Vec<_>>(),
            );
            // The last run is shown in full with its findings; the others are known in outline only.
            let last_run = match listed_runs.pop() {
                Some((RunView { run_id: Some(run_id), .. }, run_is_live)) => {
                    Some((RunView::from_entries(&store.read_entries(&run_id, 0)?), run_is_live))
                }
                unnamed_run => unnamed_run,
            };
            // Runs that need no attention any more are left out.
            listed_runs.retain(|(run_view, run_is_live)| {
                !matches!(RunStanding { run_view, is_live: *run_is_live }.state_name(), "resolved" | "cancelled")
            });
            listed_runs.extend(last_run);
            listed_runs
        }
        (None, Some(run_name)) => {
            return Err(UserError::usage(format!("there is no run {run_name}: this project has none yet"))
                .with_step("start one: tribunal review FILE"));
        }
        (None, None) => {
            sprint_tree = sprint::read_sprint(&BmadProject::read_project(&project), &[]);
            Vec::new()
        }
    };
    // Answers wait in the inbox until a resume; without this step they would be shown as missing.
    if let Some(store) = &store {
        for (run_view, _) in &mut shown_runs {
            apply_pending_answers(store, run_view)?;
        }
    }
    let standings: Vec<RunStanding<'_>> =
        shown_runs.iter().map(|(run_view, run_is_live)| RunStanding { run_view, is_live: *run_is_live }).collect();
    if context.wants_json {
        let run_rows = standings.iter().map(RunRow::from_standing).collect();
        json_documents::print_document(&RunsDocument {
            schema: "tribunal.status/1",
            runs: run_rows,
            sprint: sprint_tree,
        })?;
        return Ok(0);
    }
    if standings.is_empty() {
        writeln!(
            stdout(),
            "no runs yet in {}; start one: tribunal review FILE",
            escape_line(&project.root().display().to_string())
        )?;
    }
    for standing in &standings {
        write!(stdout(), "{}", tables::render_status(standing, &context.answer_screen))?;
    }
    if let Some(sprint_tree) = sprint_tree {
        write!(stdout(), "\n{}", sprint::draw_sprint(&sprint_tree, &context.answer_screen))?;
    }
    Ok(0)
}

/// Marks decisions as answered whose answers wait for the run to go on.
fn apply_pending_answers(store: &Store, run_view: &mut RunView) -> Result<(), UserError> {
    let Some(run_id) = run_view.run_id.clone() else { return Ok(()) };
    for stored_request in store.pending_requests(&run_id)? {
        if let UserRequest::Answer { decision: decision_id, answer } = stored_request.request {
            let open_decision = run_view
                .decisions
                .iter_mut()
                .find(|known_decision| known_decision.id == decision_id && known_decision.answer.is_none());
            if let Some(open_decision) = open_decision {
                open_decision.answer = Some(answer);
            }
        }
    }
    Ok(())
}
