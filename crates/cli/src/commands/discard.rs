//! `tribunal discard RUN…`: moves runs to the trash, where they stay for a week, and takes them out again.

use tribunal_engine::{ids::RunId, reason::RunOutcome, timestamp::Timestamp};
use tribunal_report::{
    escape_line,
    tables::{RunStanding, RunState, is_driven_by_session},
};
use tribunal_runner::{
    Project,
    housekeeping::discarded_runs::{TRASH_DAYS, discard_run, list_discarded, restore_run},
    landing::landings::RunLandings,
    session::{current_wall_ms, loop_runs::is_run_active},
};
use tribunal_store::Store;
use tribunal_workflows::runs::view::{RunPhase, RunView};

use super::runs;
use crate::{
    context::{CommandContext, find_run},
    messages::{
        json_documents::{self, DiscardDocument, DiscardedRun},
        user_errors::UserError,
    },
};

const DAY_MS: u64 = 86_400_000;

#[derive(Debug, clap::Args)]
pub(crate) struct DiscardArguments {
    /// Runs to discard
    #[arg(required_unless_present_any = ["failed", "older_than"], value_name = "RUN")]
    runs: Vec<String>,
    /// Discard all runs that failed or crashed
    #[arg(long, conflicts_with = "runs")]
    failed: bool,
    /// Discard runs that did nothing for this long, e.g. 30d, 12h or 2w
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "runs")]
    older_than: Option<u64>,
    /// Restore runs from the trash instead
    #[arg(long, conflicts_with_all = ["failed", "older_than"])]
    restore: bool,
    /// Show what would be discarded without discarding anything
    #[arg(long, conflicts_with = "restore")]
    pub(super) dry_run: bool,
}

pub(crate) fn run(arguments: &DiscardArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let Some(store) = context.open_journal(&project)? else {
        return Err(UserError::usage("this project has no runs yet").with_step("start one: `tribunal review FILE`"));
    };
    let selected_runs = if arguments.runs.is_empty() {
        select_by_state(arguments, &store, &project)?
    } else {
        find_named_runs(&arguments.runs, &store)?
    };
    let selected_runs = add_child_runs(selected_runs, &store, arguments.restore)?;
    let standings: Vec<(RunView, bool)> = selected_runs
        .iter()
        .map(|run_id| {
            let run_view = store.read_view(run_id)?;
            Ok((run_view, is_run_active(&project, run_id)))
        })
        .collect::<Result<_, UserError>>()?;
    // Every run is checked before the first one is moved: a half-done command is hard to describe.
    if let Some((run_view, _)) = standings.iter().find(|(_, run_is_live)| *run_is_live && !arguments.restore) {
        let run_id = escape_line(run_view.run_id.as_ref().map(RunId::as_str).unwrap_or_default());
        return Err(UserError::usage(format!("run {run_id} is running"))
            .with_reason("Nothing was discarded.")
            .with_step(format!("stop it first: `tribunal stop {run_id}`")));
    }
    let now_ms = current_wall_ms();
    for (run_view, _) in &standings {
        match (arguments.restore, arguments.dry_run) {
            (true, _) => restore_run(&project, run_view)?,
            (false, true) => {}
            (false, false) => discard_run(&project, run_view, now_ms)?,
        }
    }
    let document = DiscardDocument {
        schema: "tribunal.discard/1",
        dry_run: arguments.dry_run,
        restored: arguments.restore,
        runs: standings
            .iter()
            .map(|(run_view, run_is_live)| build_row(&project, &store, run_view, *run_is_live))
            .collect(),
        removed_after_ms: (!arguments.restore).then(|| now_ms.saturating_add(TRASH_DAYS * DAY_MS)),
    };
    if context.wants_json {
        json_documents::print_document(&document)?;
    } else {
        print_result(&document, context)?;
    }
    Ok(0)
}

/// Adds the child runs of every run: they belong to it. A child alone cannot be discarded, since its parent refers to it, unless the
/// parent has ended.
fn add_child_runs(run_ids: Vec<RunId>, store: &Store, is_restored: bool) -> Result<Vec<RunId>, UserError> {
    let mut all_ids: Vec<RunId> = Vec::new();
    let mut waiting: Vec<RunId> = run_ids.iter().rev().cloned().collect();
    while let Some(run_id) = waiting.pop() {
        let run_view = store.read_view(&run_id)?;
        if let Some(parent) = run_view.parent.filter(|parent| !all_ids.contains(&parent.run))
            && !matches!(store.read_view(&parent.run)?.phase, RunPhase::Finished(_))
        {
            let (done, command) =
                if is_restored { ("restored", "discard --restore") } else { ("discarded", "discard") };
            return Err(UserError::usage(format!("{run_id} is a child run of {}", parent.run))
                .with_reason(format!("It belongs to that run. Nothing was {done}."))
                .with_step(format!("name the whole run: `tribunal {command} {}`", parent.root)));
        }
        waiting.extend(run_view.children.values().rev().map(|standing| standing.run.clone()));
        // A child that was named but never started has no journal.
        if !all_ids.contains(&run_id) && run_view.run_id.is_some() {
            all_ids.push(run_id);
        }
    }
    Ok(all_ids)
}

fn find_named_runs(typed_names: &[String], store: &Store) -> Result<Vec<RunId>, UserError> {
    let mut run_ids: Vec<RunId> = Vec::new();
    for typed_name in typed_names {
        let run_id = find_run(store, typed_name)?;
        if !run_ids.contains(&run_id) {
            run_ids.push(run_id);
        }
    }
    Ok(run_ids)
}

/// Selects runs by their state and age. A run that waits for the user is discarded only by name.
fn select_by_state(arguments: &DiscardArguments, store: &Store, project: &Project) -> Result<Vec<RunId>, UserError> {
    let is_selected = |(run_view, run_is_live): &&(RunView, bool)| {
        let run_state = RunStanding { run_view, is_live: *run_is_live }.run_state();
        let has_wanted_state = match run_state {
            RunState::Running | RunState::Ended(RunOutcome::Waiting) => false,
            RunState::Crashed | RunState::Ended(RunOutcome::Failed) => true,
            RunState::Stopped | RunState::Ended(_) => !arguments.failed,
        };
        let idle_ms = current_wall_ms().saturating_sub(run_view.last_time.wall_ms);
        has_wanted_state && arguments.older_than.is_none_or(|age_ms| idle_ms >= age_ms)
    };
    let listed_runs = runs::list_runs(store, project)?;
    let roots = listed_runs.iter().filter(|(run_view, _)| run_view.parent.is_none());
    Ok(roots.filter(is_selected).filter_map(|(run_view, _)| run_view.run_id.clone()).collect())
}

fn build_row(project: &Project, store: &Store, run_view: &RunView, run_is_live: bool) -> DiscardedRun {
    let run_id = run_view.run_id.clone().unwrap_or_else(|| RunId::new(""));
    // Landings that cannot be read are reported by `diff` and `undo`; here they only decide about a hint.
    let landings = RunLandings::read_landings(project, store, &run_id);
    DiscardedRun {
        state: RunStanding { run_view, is_live: run_is_live }.state_name().to_string(),
        subject: run_view.title(),
        changed_files: landings.is_ok_and(|landings| matches!(landings.diff_landings(None), Ok(Some(_)))),
        can_resume: !matches!(run_view.phase, RunPhase::Finished(_)) && !is_driven_by_session(run_view),
        run: run_id,
    }
}

fn print_result(document: &DiscardDocument, context: &CommandContext) -> Result<(), UserError> {
    let program_name = context.program_name();
    let verb = match (document.restored, document.dry_run) {
        (true, _) => "restored",
        (false, true) => "would discard",
        (false, false) => "discarded",
    };
    for row in &document.runs {
        let (run_id, subject) = (escape_line(row.run.as_str()), escape_line(&row.subject));
        context.print_answer(&format!("{verb} {run_id} ({}): {subject}", row.state))?;
        if document.restored && row.can_resume {
            context.print_answer(&format!("  resume it with `{program_name} resume {run_id}`"))?;
        }
        if row.changed_files && !document.restored {
            let undo_command = format!("{program_name} undo {run_id}");
            context.print_answer(&format!("  its changes to your files are kept; undo them with `{undo_command}`"))?;
        }
    }
    if document.runs.is_empty() {
        context.print_answer(&format!("nothing to discard; list all runs with `{program_name} runs`"))?;
    }
    if let (Some(removed_after_ms), Some(row), false) =
        (document.removed_after_ms, document.runs.first(), document.dry_run)
    {
        let removal_day = Timestamp { wall_ms: removed_after_ms, awake_ms: 0 }.format_utc();
        context.print_answer(&format!(
            "kept in the trash until {}; restore it with `{program_name} discard --restore {}`",
            &removal_day[..10],
            escape_line(row.run.as_str())
        ))?;
    }
    Ok(())
}

/// Refuses to continue a run that is in the trash.
pub(super) fn refuse_discarded(project: &Project, run_id: &RunId) -> Result<(), UserError> {
    if !list_discarded(project).contains_key(run_id) {
        return Ok(());
    }
    let run_id = escape_line(run_id.as_str());
    Err(UserError::usage(format!("run {run_id} was discarded"))
        .with_step(format!("restore it: `tribunal discard --restore {run_id}`")))
}

/// Parses an age such as `30d`, and returns it in milliseconds.
fn parse_age(typed_age: &str) -> Result<u64, String> {
    let unit_start = typed_age.find(|character: char| !character.is_ascii_digit()).unwrap_or(typed_age.len());
    let (number, unit) = typed_age.split_at(unit_start);
    let unit_ms = match unit {
        "h" => DAY_MS / 24,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        _ => return Err("expected a number and a unit, for example 12h, 30d or 2w".to_string()),
    };
    let count: u64 = number.parse().map_err(|_| "expected a number before the unit, for example 30d".to_string())?;
    count.checked_mul(unit_ms).ok_or_else(|| "too long".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_number_and_a_unit() {
        assert_eq!(parse_age("30d"), Ok(30 * DAY_MS));
        assert_eq!(parse_age("12h"), Ok(DAY_MS / 2));
        assert_eq!(parse_age("2w"), Ok(14 * DAY_MS));
        for wrong_age in ["", "30", "d", "3 d", "-1d", "1.5d", "30days", "99999999999999999999d", "9999999999999d"] {
            assert!(parse_age(wrong_age).is_err(), "{wrong_age}");
        }
    }
}
