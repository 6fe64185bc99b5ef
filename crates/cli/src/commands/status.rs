//! `tribunal status [RUN]`: shows where runs stand, what to type next, and the sprint.

use std::{
    io::{Write, stdout},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_engine::{children::MAX_DEPTH, ids::RunId, reason::RunOutcome};
use tribunal_report::{
    ActiveWork, escape_line, list_active_work, list_child_lines, list_unheard_messages,
    tables::{self, RunDetails, RunStanding, RunState},
};
use tribunal_runner::{Project, session::loop_runs::is_run_active};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{types::JournalEntry, user_request::UserRequest, view::RunView},
    sprint::claims::list_claims,
};

use super::runs;
use crate::{
    bmad::{
        sprint::{self, SprintTree},
        sprint_runs::SprintRuns,
    },
    context::{CommandContext, find_run},
    messages::{
        json_documents::{self, RunActivity, RunRow, RunsDocument},
        user_errors::UserError,
    },
    runs::run_reports::apply_merge,
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
    if let Some(store) = &store {
        shown_runs.iter_mut().try_for_each(|shown_run| apply_pending_requests(store, shown_run))?;
    }
    if context.wants_json {
        let make_row = |shown_run: &ShownRun| RunRow {
            now: RunActivity::from_details(&shown_run.details),
            ..RunRow::from_standing(&shown_run.standing(), context.program_name())
        };
        let run_rows = shown_runs.iter().map(make_row).collect();
        json_documents::print_document(&RunsDocument {
            schema: "tribunal.status/1",
            runs: run_rows,
            sprint: sprint_tree,
        })?;
        return Ok(0);
    }
    if shown_runs.is_empty() {
        context.print_answer(&format!(
            "no runs yet in {}; start one with `{} review FILE`",
            escape_line(&project.root().display().to_string()),
            context.program_name()
        ))?;
    }
    for shown_run in &shown_runs {
        let status_text = tables::render_status(&shown_run.standing(), &shown_run.details, &context.answer_screen);
        write!(stdout(), "{status_text}")?;
    }
    if !superseded_runs.is_empty() {
        let run_noun = if superseded_runs.len() == 1 { "failed run was" } else { "failed runs were" };
        let superseded_text = format!(
            "{} {run_noun} followed by a newer run: {} discard --failed",
            superseded_runs.len(),
            context.program_name()
        );
        writeln!(stdout(), "{}", context.answer_screen.wrap_text(0, &superseded_text))?;
    }
    if let Some(sprint_tree) = sprint_tree {
        write!(stdout(), "\n{}", sprint::draw_sprint(&sprint_tree, &context.answer_screen))?;
    }
    Ok(0)
}

/// What the command shows.
struct StatusOverview {
    shown_runs: Vec<ShownRun>,
    /// Failed runs that a later run of the same subject has replaced.
    superseded_runs: Vec<RunId>,
    /// The sprint; `None` if a run was named or the project has no board.
    sprint_tree: Option<SprintTree>,
}

/// A run as the command shows it.
struct ShownRun {
    run_view: RunView,
    /// Whether it is worked on: by a process or, if it is a loop, by a session.
    is_live: bool,
    details: RunDetails,
}

impl ShownRun {
    /// Reads the whole journal of a run.
    fn read_run(store: &Store, project: &Project, run_id: &RunId, is_live: bool) -> Result<ShownRun, UserError> {
        let entries = store.read_entries(run_id, 0)?;
        let mut run_view = RunView::from_entries(&entries);
        apply_merge(project, &mut run_view);
        if store.is_left_behind(&run_view)? {
            run_view.apply_leaving();
        }
        let read_child = |child_id: &RunId| store.read_view(child_id).ok();
        let details = RunDetails {
            child_lines: list_child_lines(&RunStanding { run_view: &run_view, is_live }, &read_child),
            // What a crashed run had begun is not under way any more.
            active_work: if is_live { read_active_work(store, &run_view, &entries, 0) } else { Vec::new() },
            undelivered: list_unheard_messages(&entries),
            now_ms: wall_clock_ms(),
        };
        Ok(ShownRun { run_view, is_live, details })
    }

    /// Takes over a run that is known in outline. What a live one works on, and how the children of a run stand, is worth
    /// reading its journal.
    fn from_outline(store: &Store, project: &Project, run_view: RunView, is_live: bool) -> Result<ShownRun, UserError> {
        match &run_view.run_id {
            Some(run_id) if is_live || !run_view.children.is_empty() => {
                ShownRun::read_run(store, project, run_id, is_live)
            }
            _ => Ok(ShownRun { run_view, is_live, details: RunDetails::default() }),
        }
    }

    fn standing(&self) -> RunStanding<'_> {
        RunStanding { run_view: &self.run_view, is_live: self.is_live }
    }
}

/// Lists what a run works on, followed by what its child runs under way work on: their agents are the ones that move it.
fn read_active_work(store: &Store, run_view: &RunView, entries: &[JournalEntry], depth: u32) -> Vec<ActiveWork> {
    let mut active_work = list_active_work(entries);
    // A journal that came from elsewhere could name a run as its own child.
    if depth >= MAX_DEPTH {
        return active_work;
    }
    for standing in run_view.children.values().filter(|standing| standing.outcome.is_none()) {
        // A child that was named but never started has no journal.
        let Ok(child_entries) = store.read_entries(&standing.run, 0) else { continue };
        let child_view = RunView::from_entries(&child_entries);
        active_work.extend(read_active_work(store, &child_view, &child_entries, depth + 1));
    }
    active_work
}

fn wall_clock_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
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
            // The lock is looked at first: a run that ends meanwhile then has its ending in the journal.
            let is_live = is_run_active(project, &run_id);
            let shown_runs = vec![ShownRun::read_run(store, project, &run_id, is_live)?];
            Ok(StatusOverview { shown_runs, superseded_runs: Vec::new(), sprint_tree: None })
        }
        (Some(store), None) => {
            let mut listed_runs = runs::list_runs(store, project)?;
            let claims = list_claims(listed_runs.iter().map(|(run_view, is_live)| (run_view, *is_live)));
            for (run_view, _) in &mut listed_runs {
                if claims.values().any(|claimant| run_view.run_id.as_ref() == Some(claimant)) {
                    apply_pending_answers(store, run_view)?;
                }
            }
            let run_views = listed_runs.iter().map(|(run_view, _)| run_view).collect();
            let sprint_tree = sprint::read_sprint(project, &SprintRuns { run_views, claims });
            let (mut listed_runs, superseded_runs) = split_superseded(listed_runs);
            // Child runs are shown with the run that started them.
            let root_ids: Vec<RunId> = listed_runs.iter().filter_map(|(run_view, _)| run_view.run_id.clone()).collect();
            listed_runs
                .retain(|(run_view, _)| run_view.parent.as_ref().is_none_or(|parent| !root_ids.contains(&parent.root)));
            let shown_runs = select_overview_runs(store, project, listed_runs)?;
            Ok(StatusOverview { shown_runs, superseded_runs, sprint_tree })
        }
        (None, Some(run_name)) => {
            Err(UserError::usage(format!("no run named `{run_name}`; this project has no runs yet"))
                .with_step("start one: `tribunal review FILE`"))
        }
        (None, None) => Ok(StatusOverview {
            shown_runs: Vec::new(),
            superseded_runs: Vec::new(),
            sprint_tree: sprint::read_sprint(project, &SprintRuns::default()),
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
    project: &Project,
    mut listed_runs: Vec<(RunView, bool)>,
) -> Result<Vec<ShownRun>, UserError> {
    // The last run is shown in full with its findings; the others are known in outline only.
    let last_run = match listed_runs.pop() {
        Some((RunView { run_id: Some(run_id), .. }, run_is_live)) => {
            Some(ShownRun::read_run(store, project, &run_id, run_is_live)?)
        }
        // A run without an id has no journal to read.
        _ => None,
    };
    // Runs that need no attention any more are left out.
    listed_runs
        .retain(|(run_view, run_is_live)| needs_attention(RunStanding { run_view, is_live: *run_is_live }.run_state()));
    let mut shown_runs = listed_runs
        .into_iter()
        .map(|(run_view, run_is_live)| ShownRun::from_outline(store, project, run_view, run_is_live))
        .collect::<Result<Vec<ShownRun>, UserError>>()?;
    shown_runs.extend(last_run);
    Ok(shown_runs)
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

/// Applies the answers that wait in the inbox of a run: what is answered is not asked for again.
fn apply_pending_answers(store: &Store, run_view: &mut RunView) -> Result<(), UserError> {
    let Some(run_id) = run_view.run_id.clone() else { return Ok(()) };
    for stored_request in store.pending_requests(&run_id)? {
        if let UserRequest::Answer { decision: decision_id, answer } = stored_request.request {
            run_view.apply_pending_answer(&decision_id, answer);
        }
    }
    Ok(())
}

/// Applies what waits in the inbox until the run reads it: without this step answers would be shown as missing, and messages
/// not at all.
fn apply_pending_requests(store: &Store, shown_run: &mut ShownRun) -> Result<(), UserError> {
    let Some(run_id) = shown_run.run_view.run_id.clone() else { return Ok(()) };
    for stored_request in store.pending_requests(&run_id)? {
        match stored_request.request {
            UserRequest::Answer { decision: decision_id, answer } => {
                shown_run.run_view.apply_pending_answer(&decision_id, answer);
            }
            UserRequest::Say(message) => shown_run.details.undelivered.push(message),
            UserRequest::Resume
            | UserRequest::ContinueChild { .. }
            | UserRequest::Stop { .. }
            | UserRequest::Amend { .. }
            | UserRequest::AmendEarlier { .. }
            | UserRequest::Add { .. }
            | UserRequest::Unconfirmed { .. } => {}
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
