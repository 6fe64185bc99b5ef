//! `tribunal status [RUN]`: shows where runs stand, what to type next, and the sprint.

use std::io::{Write, stdout};

use tribunal_core::{effect::UserRequest, ids::RunId, reason::RunOutcome, view::RunView};
use tribunal_report::{
    escape_line,
    tables::{self, RunStanding, RunState},
};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;

use super::runs;
use crate::{
    bmad::BmadProject,
    context::{CommandContext, find_run},
    json_documents::{self, RunRow, RunsDocument},
    sprint::{self, SprintTree},
    user_errors::UserError,
};

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArguments {
    /// Run to show (default: the last one, all that are waiting for you, and the sprint)
    run: Option<String>,
}

pub(crate) fn run(arguments: &StatusArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let store = context.open_journal(&project)?;
    let StatusOverview { mut shown_runs, superseded_runs, sprint_tree } =
        collect_overview(&project, store.as_ref(), arguments.run.as_deref())?;
    // Answers wait in the inbox until the run reads it; without this step they would be shown as missing.
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
            "no runs yet in {}; start one with `tribunal review FILE`",
            escape_line(&project.root().display().to_string())
        )?;
    }
    for standing in &standings {
        write!(stdout(), "{}", tables::render_status(standing, &context.answer_screen))?;
    }
    if !superseded_runs.is_empty() {
        let run_noun = if superseded_runs.len() == 1 { "failed run was" } else { "failed runs were" };
        let superseded_text =
            format!("{} {run_noun} followed by a newer run: tribunal discard --failed", superseded_runs.len());
        writeln!(stdout(), "{}", context.answer_screen.wrap_text(0, &superseded_text))?;
    }
    if let Some(sprint_tree) = sprint_tree {
        write!(stdout(), "\n{}", sprint::draw_sprint(&sprint_tree, &context.answer_screen))?;
    }
    Ok(0)
}

/// What the command shows.
struct StatusOverview {
    /// Runs, each with whether a process works on it.
    shown_runs: Vec<(RunView, bool)>,
    /// Failed runs that a later run of the same subject has replaced.
    superseded_runs: Vec<RunId>,
    /// The sprint; `None` if a run was named or the project has no board.
    sprint_tree: Option<SprintTree>,
}

/// Collects the run that the user named, or else the runs that need attention, and the sprint.
fn collect_overview(
    project: &Project,
    store: Option<&Store>,
    run_name: Option<&str>,
) -> Result<StatusOverview, UserError> {
    // The sprint is shown only when no run is named: the user then wants an overview.
    match (store, run_name) {
        (Some(store), Some(run_name)) => {
            let run_id = find_run(store, run_name)?;
            let run_view = RunView::from_entries(&store.read_entries(&run_id, 0)?);
            let shown_runs = vec![(run_view, Runner::is_live(project, &run_id))];
            Ok(StatusOverview { shown_runs, superseded_runs: Vec::new(), sprint_tree: None })
        }
        (Some(store), None) => {
            let listed_runs = runs::list_runs(store, project)?;
            let sprint_tree = sprint::read_sprint(
                &BmadProject::read_project(project),
                &listed_runs.iter().map(|(run_view, _)| run_view).collect::<Vec<_>>(),
            );
            let (listed_runs, superseded_runs) = split_superseded(listed_runs);
            Ok(StatusOverview { shown_runs: select_overview_runs(store, listed_runs)?, superseded_runs, sprint_tree })
        }
        (None, Some(run_name)) => {
            Err(UserError::usage(format!("no run named `{run_name}`; this project has no runs yet"))
                .with_step("start one: `tribunal review FILE`"))
        }
        (None, None) => Ok(StatusOverview {
            shown_runs: Vec::new(),
            superseded_runs: Vec::new(),
            sprint_tree: sprint::read_sprint(&BmadProject::read_project(project), &[]),
        }),
    }
}

/// Takes out the failed runs that later ones have replaced.
fn split_superseded(listed_runs: Vec<(RunView, bool)>) -> (Vec<(RunView, bool)>, Vec<RunId>) {
    let is_superseded = |index: usize| {
        let (run_view, run_is_live) = &listed_runs[index];
        let run_standing = RunStanding { run_view, is_live: *run_is_live };
        runs::is_superseded(&run_standing, &listed_runs[index + 1..])
    };
    let superseded: Vec<bool> = (0..listed_runs.len()).map(is_superseded).collect();
    let (mut shown_runs, mut superseded_runs) = (Vec::new(), Vec::new());
    for (listed_run, is_superseded) in listed_runs.into_iter().zip(superseded) {
        match is_superseded {
            true => superseded_runs.extend(listed_run.0.run_id),
            false => shown_runs.push(listed_run),
        }
    }
    (shown_runs, superseded_runs)
}

/// Selects the runs that need attention, and the last one in any case.
fn select_overview_runs(
    store: &Store,
    mut listed_runs: Vec<(RunView, bool)>,
) -> Result<Vec<(RunView, bool)>, UserError> {
    // The last run is shown in full with its findings; the others are known in outline only.
    let last_run = match listed_runs.pop() {
        Some((RunView { run_id: Some(run_id), .. }, run_is_live)) => {
            Some((RunView::from_entries(&store.read_entries(&run_id, 0)?), run_is_live))
        }
        unnamed_run => unnamed_run,
    };
    // Runs that need no attention any more are left out.
    listed_runs
        .retain(|(run_view, run_is_live)| needs_attention(RunStanding { run_view, is_live: *run_is_live }.run_state()));
    listed_runs.extend(last_run);
    Ok(listed_runs)
}

fn needs_attention(run_state: RunState) -> bool {
    match run_state {
        RunState::Running | RunState::Crashed | RunState::Stopped => true,
        RunState::Ended(outcome) => match outcome {
            RunOutcome::Waiting | RunOutcome::Halted | RunOutcome::Failed => true,
            RunOutcome::Resolved | RunOutcome::Cancelled => false,
        },
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_ended_well_or_were_cancelled_need_no_attention() {
        for (run_state, expected) in [
            (RunState::Running, true),
            (RunState::Crashed, true),
            (RunState::Stopped, true),
            (RunState::Ended(RunOutcome::Waiting), true),
            (RunState::Ended(RunOutcome::Halted), true),
            (RunState::Ended(RunOutcome::Failed), true),
            (RunState::Ended(RunOutcome::Resolved), false),
            (RunState::Ended(RunOutcome::Cancelled), false),
        ] {
            assert_eq!(needs_attention(run_state), expected, "{run_state:?}");
        }
    }
}
