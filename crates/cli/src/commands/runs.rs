//! `tribunal runs`, and the list of all runs that other commands share.

use std::{
    collections::BTreeMap,
    io::{Write, stdout},
};

use tribunal_engine::{
    ids::{BatchId, RunId},
    reason::RunOutcome,
};
use tribunal_report::{
    escape_line,
    tables::{self, RunStanding, RunState},
};
use tribunal_runner::{
    Project,
    housekeeping::{development_workspaces::list_workspaces, discarded_runs::list_discarded},
    session::loop_runs::is_run_active,
};
use tribunal_store::Store;
use tribunal_workflows::runs::{
    types::{JournalEntry, RunEvent},
    view::{RunPhase, RunView},
};

use crate::{
    context::CommandContext,
    messages::{
        json_documents::{self, RunRow, RunsDocument},
        user_errors::UserError,
    },
    runs::run_reports::apply_merge,
    settings::{SettingSources, find_clones_root},
};

#[derive(Debug, clap::Args)]
pub(crate) struct RunsArguments {
    /// Show only runs that are in progress
    #[arg(long)]
    live: bool,
    /// Show only runs that are waiting for you
    #[arg(long)]
    waiting: bool,
    /// Show only runs in the trash
    #[arg(long, conflicts_with_all = ["live", "waiting"])]
    discarded: bool,
    /// Show only the last N runs
    #[arg(short = 'n', long = "last", value_name = "N")]
    last: Option<usize>,
    /// Print only the ids, one per line
    #[arg(long, conflicts_with = "json")]
    ids: bool,
}

/// Lists every run that is not in the trash, oldest first, with whether it is worked on. A run that ended or parked is
/// read in outline: the number of its findings is known, but not which they are.
pub(super) fn list_runs(store: &Store, project: &Project) -> Result<Vec<(RunView, bool)>, UserError> {
    list_matching_runs(store, project, false)
}

/// Lists the runs that are in the trash, or those that are not.
fn list_matching_runs(store: &Store, project: &Project, is_discarded: bool) -> Result<Vec<(RunView, bool)>, UserError> {
    let outline = store.read_outline()?;
    let discarded_runs = list_discarded(project);
    let mut listed_runs = Vec::new();
    for run_entries in outline.chunk_by(|earlier, following| earlier.run == following.run) {
        // A journal that does not begin with a start is broken or of a newer build.
        if !matches!(run_entries.first().map(|entry| &entry.event), Some(RunEvent::RunStarted { .. })) {
            continue;
        }
        if run_entries.first().is_some_and(|entry| discarded_runs.contains_key(&entry.run) != is_discarded) {
            continue;
        }
        listed_runs.push(read_run(store, project, run_entries)?);
    }
    // The id breaks ties, so that the order is the same each time.
    listed_runs.sort_by(|(earlier, _), (later, _)| {
        (earlier.start_time, &earlier.run_id).cmp(&(later.start_time, &later.run_id))
    });
    apply_parents(&mut listed_runs);
    Ok(listed_runs)
}

/// Takes over that child runs are over if their parents have ended or do without them. Parents come first in the list.
fn apply_parents(listed_runs: &mut [(RunView, bool)]) {
    let mut positions: BTreeMap<RunId, usize> = BTreeMap::new();
    for position in 0..listed_runs.len() {
        let (earlier_runs, later_runs) = listed_runs.split_at_mut(position);
        let Some((run_view, _)) = later_runs.first_mut() else { continue };
        let parent_position = run_view.parent.as_ref().and_then(|parent| positions.get(&parent.run));
        if let Some((parent_view, _)) = parent_position.and_then(|position| earlier_runs.get(*position))
            && run_view.is_left_by(parent_view)
        {
            run_view.apply_leaving();
        }
        if let Some(run_id) = &run_view.run_id {
            positions.insert(run_id.clone(), position);
        }
    }
}

/// Lists the runs that were started together with others, with the command that started them.
pub(super) fn list_batches(store: &Store) -> Result<BTreeMap<RunId, BatchId>, UserError> {
    let read_batch = |entry: JournalEntry| match entry.event {
        RunEvent::RunStarted { batch: Some(batch_id), .. } => Some((entry.run, batch_id)),
        _ => None,
    };
    Ok(store.read_outline()?.into_iter().filter_map(read_batch).collect())
}

/// Puts every child run below its parent. A child whose parent is not in the list stays where it was.
fn sort_as_tree(standings: Vec<RunStanding<'_>>) -> Vec<RunStanding<'_>> {
    let is_listed = |run_id: &RunId| standings.iter().any(|standing| standing.run_view.run_id.as_ref() == Some(run_id));
    let parent_of = |standing: &RunStanding<'_>| {
        standing.run_view.parent.as_ref().map(|parent| parent.run.clone()).filter(is_listed)
    };
    let mut sorted = Vec::new();
    // The stack holds what is still to be listed, the next one on top.
    let mut waiting: Vec<&RunStanding<'_>> =
        standings.iter().rev().filter(|standing| parent_of(standing).is_none()).collect();
    while let Some(standing) = waiting.pop() {
        sorted.push(*standing);
        waiting.extend(standings.iter().rev().filter(|child| parent_of(child) == standing.run_view.run_id));
    }
    sorted
}

/// Whether a run failed or crashed and a later one reviewed the same: nothing about it needs attention any more.
/// `later_runs` are those that follow it in the list.
pub(super) fn is_superseded(run_standing: &RunStanding<'_>, later_runs: &[(RunView, bool)]) -> bool {
    // The parent of a child run says what becomes of it.
    let Some(order) = run_standing.run_view.review_order().filter(|_| run_standing.run_view.parent.is_none()) else {
        return false;
    };
    let has_failed = matches!(run_standing.run_state(), RunState::Crashed | RunState::Ended(RunOutcome::Failed));
    let same_subject = |(later, _): &(RunView, bool)| {
        later.review_order().is_some_and(|later_order| later_order.subject.is_same_as(&order.subject))
    };
    has_failed && later_runs.iter().any(same_subject)
}

fn read_run(store: &Store, project: &Project, outline: &[JournalEntry]) -> Result<(RunView, bool), UserError> {
    let mut run_view = RunView::from_entries(outline);
    // The outline tells the state of a run that ended or parked; any other run has to be read in full.
    if let (RunPhase::Running, Some(first_entry)) = (&run_view.phase, outline.first()) {
        run_view = store.read_view(&first_entry.run)?;
    }
    let run_is_live = match (&run_view.phase, &run_view.run_id) {
        // A finished run has no process, so the lock need not be tested.
        (RunPhase::Finished(_), _) | (_, None) => false,
        (_, Some(run_id)) => is_run_active(project, run_id),
    };
    apply_merge(project, &mut run_view);
    Ok((run_view, run_is_live))
}

pub(crate) fn run(arguments: &RunsArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let listed_runs = match context.open_journal(&project)? {
        Some(store) => list_matching_runs(&store, &project, arguments.discarded)?,
        None => Vec::new(),
    };
    let mut standings: Vec<RunStanding<'_>> =
        listed_runs.iter().map(|(run_view, run_is_live)| RunStanding { run_view, is_live: *run_is_live }).collect();
    standings.retain(|standing| arguments.matches_filter(standing));
    let standings = sort_as_tree(standings);
    // The last ones are the newest, and those come last on the screen, too.
    let skipped_count = arguments.last.map_or(0, |max_runs| standings.len().saturating_sub(max_runs));
    let standings = &standings[skipped_count..];
    if context.wants_json {
        let run_rows =
            standings.iter().map(|standing| RunRow::from_standing(standing, context.program_name())).collect();
        json_documents::print_document(&RunsDocument { schema: "tribunal.runs/1", runs: run_rows, sprint: None })?;
    } else if arguments.ids {
        // Scripts loop over the lines, so an empty list prints nothing.
        for run_id in standings.iter().filter_map(|standing| standing.run_view.run_id.as_ref()) {
            writeln!(stdout(), "{}", escape_line(run_id.as_str()))?;
        }
    } else if listed_runs.is_empty() {
        context.print_answer(&describe_no_runs(arguments, &project, context))?;
    } else if standings.is_empty() {
        context.print_answer(&format!("no matching runs; list all with `{} runs`", context.program_name()))?;
    } else {
        write!(stdout(), "{}", tables::render_runs(standings, &context.answer_screen))?;
        print_kept_workspaces(&project, &listed_runs)?;
    }
    Ok(0)
}

/// Prints the workspaces that hold work of runs which no process works on.
fn print_kept_workspaces(project: &Project, listed_runs: &[(RunView, bool)]) -> Result<(), UserError> {
    let clones_root = find_clones_root(project.root(), &SettingSources::from_environment());
    let is_worked_on = |run_id: &RunId| {
        listed_runs.iter().any(|(run_view, is_live)| *is_live && run_view.run_id.as_ref() == Some(run_id))
    };
    for workspace in list_workspaces(project, clones_root.as_deref()) {
        if workspace.is_complete && !is_worked_on(&workspace.run_id) {
            let path = escape_line(&workspace.path.display().to_string());
            writeln!(stdout(), "workspace of {}: {path}", escape_line(workspace.run_id.as_str()))?;
        }
    }
    Ok(())
}

/// Says why the list is empty: an empty project, an empty trash, and a project whose runs are all in the trash differ.
fn describe_no_runs(arguments: &RunsArguments, project: &Project, context: &CommandContext) -> String {
    let program_name = context.program_name();
    match (arguments.discarded, list_discarded(project).len()) {
        (true, _) => "the trash is empty".to_string(),
        (false, 0) => format!(
            "no runs yet in {}; start one with `{program_name} review FILE`",
            escape_line(&project.root().display().to_string())
        ),
        (false, trashed_count) => {
            format!("no runs, but {trashed_count} in the trash; list them with `{program_name} runs --discarded`")
        }
    }
}

impl RunsArguments {
    fn matches_filter(&self, standing: &RunStanding<'_>) -> bool {
        // Questions count once the run has parked; before that it is still being worked on.
        let is_asking =
            standing.run_view.run_summary().is_some() && standing.run_view.open_decisions().next().is_some();
        let is_worked_on = standing.is_live && matches!(standing.run_view.phase, RunPhase::Running);
        let outcome = standing.run_view.run_summary().and_then(|summary| summary.outcome);
        (!self.live || is_worked_on) && (!self.waiting || is_asking || outcome == Some(RunOutcome::Waiting))
    }
}
