//! The report of a run: read from its journal and from git, and written as a file when a sprint or a story has ended or waits.

use std::io::{Write, stderr};

use tribunal_core::{
    decisions::user_request::UserRequest,
    engine::{
        ids::{CommitId, RunId},
        kinds::RunOrder,
        view::RunView,
    },
};
use tribunal_report::{
    escape_line,
    run_report::{ReportSources, RunReport, build_report},
    tables::RunStanding,
};
use tribunal_runner::{
    Project, git::heads, housekeeping::discarded_runs::list_discarded, project::report_files,
    session::loop_runs::is_run_active,
};
use tribunal_store::Store;

use crate::{context::CommandContext, messages::user_errors::UserError};

/// Builds the report of a run. Commands in it begin with `program_name`.
pub(crate) fn read_report(
    store: &Store,
    project: &Project,
    run_id: &RunId,
    program_name: &str,
) -> Result<RunReport, UserError> {
    // The lock is looked at first: a run that ends meanwhile then has its ending in the journal.
    let is_live = is_run_active(project, run_id);
    let run_view = read_view(store, run_id)?;
    let sources = ReportSources {
        read_run: &|child_id: &RunId| read_view(store, child_id).ok(),
        read_change_size: &|commit: &CommitId| heads::read_change_size(project.root(), commit),
        is_in_history: &|commit: &CommitId| heads::is_in_history(project.root(), commit),
        program_name,
        is_discarded: list_discarded(project).contains_key(run_id),
    };
    Ok(build_report(&RunStanding { run_view: &run_view, is_live }, &sources))
}

/// Reads a run with the answers that wait in its inbox: their questions wait for the run, and not for the user.
fn read_view(store: &Store, run_id: &RunId) -> Result<RunView, UserError> {
    let mut run_view = RunView::from_entries(&store.read_entries(run_id, 0)?);
    for stored_request in store.pending_requests(run_id)? {
        if let UserRequest::Answer { decision: decision_id, answer } = stored_request.request {
            run_view.apply_pending_answer(&decision_id, answer);
        }
    }
    Ok(run_view)
}

/// Writes the report of a sprint or a story, and says where it is. Other runs have no such file. A report that cannot be written
/// is a warning: the run has ended all the same.
pub(crate) fn write_report_file(project: &Project, run_id: &RunId, context: &CommandContext) -> Result<(), UserError> {
    match try_to_write(project, run_id, context) {
        Ok(Some(report_path)) if !context.is_silent() => {
            writeln!(stderr(), "report: {}", escape_line(&report_path))?;
        }
        Ok(_) => {}
        Err(user_error) => {
            context.print_warning(&format!("could not write the report of {run_id}: {}", user_error.message))?;
        }
    }
    Ok(())
}

/// Returns the path of the report; `None` if such a run has none.
fn try_to_write(project: &Project, run_id: &RunId, context: &CommandContext) -> Result<Option<String>, UserError> {
    let store = Store::open_read_only(&project.home_dir())?;
    let run_start = RunView::from_entries(&store.last_entry_of(run_id, &["run_started"])?);
    // What a story of a sprint has to say is in the report of the sprint.
    let (Some(settings), Some(RunOrder::Story(_) | RunOrder::Sprint(_)), None) =
        (&run_start.settings, &run_start.order, &run_start.parent)
    else {
        return Ok(None);
    };
    let report_path = settings.own_folders().report_path(run_id);
    // The file may be read in any directory, so its commands do not name one.
    let report = read_report(&store, project, run_id, "tribunal")?;
    // The journal is masked, but texts that were joined may form something that looks like a secret.
    let report_text = context.secret_masker().mask(&report.to_markdown()).into_owned();
    report_files::write_report(project, &report_path, &report_text)?;
    Ok(Some(report_path))
}
