//! The report of a run: read from its journal and from git, and written as a file when a sprint or a story has ended or waits.

use std::io::{Write, stderr};

use tribunal_engine::ids::{CommitId, RunId};
use tribunal_report::{
    TakenState, WaitingWork, apply_taken_work, escape_line,
    run_report::{ReportSources, RunReport, build_report},
    tables::RunStanding,
};
use tribunal_runner::{
    Project,
    git::heads::{self, CurrentHead},
    housekeeping::discarded_runs::list_discarded,
    project::report_files,
    session::loop_runs::is_run_active,
};
use tribunal_store::Store;
use tribunal_workflows::runs::{kinds::RunOrder, user_request::UserRequest, view::RunView};

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
    let read_run = |run_id: &RunId| -> Result<RunView, UserError> {
        let mut run_view = read_view(store, run_id)?;
        // The report itself knows what is merged. A branch that is gone must not be offered in any text.
        apply_taken_work(&mut run_view, &|work| match judge_work(project, work) {
            TakenState::BranchGone => TakenState::BranchGone,
            TakenState::Merged | TakenState::Waiting => TakenState::Waiting,
        });
        Ok(run_view)
    };
    let run_view = read_run(run_id)?;
    let checkout = match heads::read_head(project.root()) {
        Ok(CurrentHead::Branch { name, .. }) => Some(name),
        _ => None,
    };
    let sources = ReportSources {
        read_run: &|child_id: &RunId| read_run(child_id).ok(),
        read_change_size: &|commit: &CommitId| heads::read_change_size(project.root(), commit),
        is_in_history: &|commit: &CommitId| heads::is_in_history(project.root(), commit),
        has_branch: &|branch_name: &str| has_branch(project, branch_name),
        checkout: checkout.as_deref(),
        program_name,
        is_discarded: list_discarded(project).contains_key(run_id),
    };
    Ok(build_report(&RunStanding { run_view: &run_view, is_live }, &sources))
}

/// Whether a branch exists. One that git cannot look up now counts as there: only a branch that is gone is not offered any more.
fn has_branch(project: &Project, branch_name: &str) -> bool {
    !matches!(heads::find_branch(project.root(), branch_name), Ok(None))
}

/// Takes over what the user has done with what waited on a branch of its own, so that lists say the same as the report.
pub(crate) fn apply_merge(project: &Project, run_view: &mut RunView) {
    let is_merged = |commit: &CommitId| heads::is_in_history(project.root(), commit);
    if run_view.commit_on_own_branch().is_some_and(is_merged) {
        run_view.apply_merge();
    }
    apply_taken_work(run_view, &|work| judge_work(project, work));
}

/// Finds out what the user has done with work that waited on a branch of its own.
fn judge_work(project: &Project, work: WaitingWork<'_>) -> TakenState {
    let commit = heads::find_commit(project.root(), work.commit).ok().flatten();
    match commit.is_some_and(|commit| heads::is_in_history(project.root(), &commit)) {
        true => TakenState::Merged,
        false if has_branch(project, work.branch) => TakenState::Waiting,
        false => TakenState::BranchGone,
    }
}

/// Reads a run with the answers that wait in its inbox: their questions wait for the run, and not for the user.
fn read_view(store: &Store, run_id: &RunId) -> Result<RunView, UserError> {
    let mut run_view = store.read_view(run_id)?;
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
