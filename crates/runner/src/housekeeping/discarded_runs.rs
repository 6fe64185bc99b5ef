//! Runs that the user discarded: a trash from which each can be restored for a week.
//!
//! A discarded run has a directory `.tribunal/discarded/RUN` with the time and the pages of its open decisions. Its journal and
//! its files stay where they are until [`crate::housekeeping::gc`] removes them all together, so that nothing is lost halfway.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use tribunal_engine::ids::RunId;
use tribunal_workflows::runs::view::RunView;

use crate::{
    effects,
    engine::run::{RunHold, Runner},
    project::{Project, atomic_files::write_atomically, trash_marks::TIME_FILE},
    session::{self, SessionError, loop_runs::is_loop_held},
};

pub use crate::project::trash_marks::{is_discarded, list_discarded};

/// A discarded run can be restored for at least this long.
pub const TRASH_DAYS: u64 = 7;

#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    #[error("run {run} is running")]
    Running { run: RunId },
    #[error("the agents of run {run} are still being stopped")]
    EndingAgents { run: RunId },
    #[error("run {run} is not in the trash")]
    NotDiscarded { run: RunId },
    #[error("`{run}` is not a name that Tribunal gives a run")]
    ForeignName { run: RunId },
    #[error("{} leads out of the project", path.display())]
    LeadsOut { path: PathBuf },
    #[error("cannot write {}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Moves a run to the trash. Its changes to the project's files stay.
pub fn discard_run(project: &Project, run_view: &RunView, now_ms: u64) -> Result<(), DiscardError> {
    let Some(run_id) = &run_view.run_id else { return Ok(()) };
    match Runner::read_hold(project, run_id) {
        RunHold::Free if is_loop_held(project, run_id) => {
            return Err(DiscardError::Running { run: run_id.clone() });
        }
        RunHold::Free => {}
        RunHold::EndingAgents => return Err(DiscardError::EndingAgents { run: run_id.clone() }),
        RunHold::HeldBy(_) | RunHold::UnknownHolder => return Err(DiscardError::Running { run: run_id.clone() }),
    }
    let trash_dir = trash_dir(project, run_id)?;
    session::release_run(project, run_id)?;
    let time_file = trash_dir.join(TIME_FILE);
    // The time makes it count. A page that is not moved yet asks for a run that is hidden, which does no harm.
    write_atomically(&time_file, now_ms.to_string().as_bytes())
        .map_err(|cause| DiscardError::Io { path: time_file, cause })?;
    move_pages(&page_paths(project, run_view), &trash_dir)
}

/// Takes a run out of the trash.
pub fn restore_run(project: &Project, run_view: &RunView) -> Result<(), DiscardError> {
    let Some(run_id) = &run_view.run_id else { return Ok(()) };
    let trash_dir = trash_dir(project, run_id)?;
    if !trash_dir.join(TIME_FILE).exists() {
        return Err(DiscardError::NotDiscarded { run: run_id.clone() });
    }
    for page_path in page_paths(project, run_view) {
        let trashed_page = trash_dir.join(page_path.file_name().unwrap_or_default());
        if trashed_page.exists()
            && !page_path.exists()
            && let Some(decisions_dir) = page_path.parent()
        {
            move_pages(&[trashed_page], decisions_dir)?;
        }
    }
    fs::remove_dir_all(&trash_dir).map_err(|cause| DiscardError::Io { path: trash_dir, cause })
}

/// Whether an id can be the name of a directory. A journal may have come with a clone, and then ids can be any text.
pub(super) fn is_directory_name(run_id: &RunId) -> bool {
    let mut name_parts = Path::new(run_id.as_str()).components();
    matches!((name_parts.next(), name_parts.next()), (Some(Component::Normal(_)), None))
}

/// Returns the directory of a run in the trash. The journal may have come with a clone, so neither its names nor our own
/// directory are trusted: both could lead to files of the user's.
fn trash_dir(project: &Project, run_id: &RunId) -> Result<PathBuf, DiscardError> {
    if !is_directory_name(run_id) {
        return Err(DiscardError::ForeignName { run: run_id.clone() });
    }
    let trash_dir = project.discarded_dir().join(run_id.as_str());
    match project.resolve_outside(&trash_dir) {
        Some(_) => Err(DiscardError::LeadsOut { path: trash_dir }),
        None => Ok(trash_dir),
    }
}

/// Returns the paths of the pages of the run's open decisions, whether they exist or not.
fn page_paths(project: &Project, run_view: &RunView) -> Vec<PathBuf> {
    let (Some(run_id), Some(settings)) = (&run_view.run_id, &run_view.settings) else { return Vec::new() };
    let page_path = |decision_id| effects::decision_page_path(project, settings, run_id, decision_id);
    let paths = run_view.open_decisions().map(|decision| page_path(&decision.id));
    // The journal may have come with a clone; a path that leads out of the project is left alone.
    paths.filter(|path| project.resolve_outside(path).is_none()).collect()
}

fn move_pages(page_paths: &[PathBuf], target_dir: &Path) -> Result<(), DiscardError> {
    for page_path in page_paths.iter().filter(|page_path| page_path.exists()) {
        let target = target_dir.join(page_path.file_name().unwrap_or_default());
        let moved = fs::create_dir_all(target_dir).and_then(|()| fs::rename(page_path, &target));
        moved.map_err(|cause| DiscardError::Io { path: target, cause })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run_named(run_name: &str) -> RunView {
        RunView { run_id: Some(RunId::new(run_name)), ..RunView::default() }
    }

    #[test]
    fn names_and_links_that_lead_elsewhere_are_refused() {
        let temp_dir = tempfile::tempdir().unwrap();
        let project = Project::from_root(temp_dir.path().join("project"));
        project.prepare_home().unwrap();
        fs::create_dir_all(project.root().join("docs")).unwrap();
        fs::write(project.root().join("docs/discarded-at"), "1").unwrap();
        for foreign_name in ["../../docs", "..", ".", "", "/docs", "a/b", "a/.."] {
            let run_view = run_named(foreign_name);
            assert!(
                matches!(discard_run(&project, &run_view, 1), Err(DiscardError::ForeignName { .. })),
                "{foreign_name}"
            );
            assert!(
                matches!(restore_run(&project, &run_view), Err(DiscardError::ForeignName { .. })),
                "{foreign_name}"
            );
        }
        assert!(project.root().join("docs/discarded-at").exists());
        std::os::unix::fs::symlink(temp_dir.path(), project.discarded_dir()).unwrap();
        assert!(matches!(discard_run(&project, &run_named("plan-1"), 1), Err(DiscardError::LeadsOut { .. })));
        assert!(!temp_dir.path().join("plan-1").exists());
    }

    #[test]
    fn a_run_is_discarded_once_it_has_a_time_and_restored_completely() {
        let temp_dir = tempfile::tempdir().unwrap();
        let project = Project::from_root(temp_dir.path());
        project.prepare_home().unwrap();
        let run_view = run_named("plan-1");
        assert!(matches!(restore_run(&project, &run_view), Err(DiscardError::NotDiscarded { .. })));
        // A discard that was killed at once has a directory and no time.
        fs::create_dir_all(project.discarded_dir().join("plan-1")).unwrap();
        assert!(list_discarded(&project).is_empty());
        discard_run(&project, &run_view, 7).unwrap();
        assert_eq!(list_discarded(&project), BTreeMap::from([(RunId::new("plan-1"), 7)]));
        restore_run(&project, &run_view).unwrap();
        assert!(list_discarded(&project).is_empty() && !project.discarded_dir().join("plan-1").exists());
    }
}
