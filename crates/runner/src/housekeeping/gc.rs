//! Reclaims space in `.tribunal`: removes what no run will ever read again.
//!
//! That is workspaces of finished runs (also those for development, outside the project), temporary files of dead processes,
//! blobs that no entry names, runs that were discarded a week ago, and, only on request, whole runs that ended long ago. A run
//! that waits, was stopped, was halted or still has a process is never touched unless it was discarded, nor are the originals
//! and checkpoints of a run that is kept. Unknown things stay: a directory is removed only if it is named after a run of this
//! journal or holds nothing but workspaces. No link is followed; if our own directories are links, nothing is done.
//!
//! The journal's file is compacted only while no run is held, and only if it is short enough for that to be quick
//! ([`QUICK_COMPACT_BYTES`]), unless more is requested: a run that starts at that moment has to wait, and would give up if it
//! took too long.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tribunal_agents::driver::UserDirs;
use tribunal_engine::{ids::RunId, reason::RunOutcome};
use tribunal_store::{Store, StoreError, SweepOutcome, SweepRequest, compact_journal, sweep_journal};
use tribunal_workflows::runs::{
    types::JournalEntry,
    view::{RunPhase, RunView},
};

use crate::{
    engine::run::{RunHold, Runner},
    housekeeping::{
        development_workspaces::{ListedWorkspace, list_workspaces, remove_run_workspaces, remove_workspace},
        discarded_runs::{self, TRASH_DAYS},
    },
    kill_points,
    landing::landing_repository,
    project::{Project, atomic_files},
    sandbox::{remove_leftover_dirs, remove_session_dirs},
    session::loop_runs::is_loop_held,
    workspaces::TaskWorkspace,
};

/// A journal up to this size is compacted in a second or two; writers wait much longer than that.
const QUICK_COMPACT_BYTES: u64 = 64 << 20;

/// What may be removed.
#[derive(Clone, Debug, Default)]
pub struct GcOptions {
    /// The directory for clones of all projects, in which agents develop.
    pub clones_root: Option<PathBuf>,
    /// The system's directory for temporary files, in which every agent has a private one.
    pub temporary_root: Option<PathBuf>,
    /// Where clients keep the sessions of agents.
    pub user_dirs: UserDirs,
    /// The wall time, by which discarded runs are old enough to be removed.
    pub now_ms: u64,
    /// Also removes whole runs that ended well before this wall time.
    pub runs_before_ms: Option<u64>,
    /// Compacts the journal's file however long that takes.
    pub compact: bool,
    /// Only reports what would be removed.
    pub dry_run: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum GcError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path} is a link")]
    IsLink { path: String },
    #[error("{path}: {cause}")]
    CannotInspect { path: String, cause: io::Error },
}

/// Something on disk that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedItem {
    /// Relative to the project's root, unless it is outside.
    pub relative_path: PathBuf,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct GcReport {
    /// Directories that agents of finished runs worked in.
    pub workspaces: Vec<RemovedItem>,
    pub temporary_files: Vec<RemovedItem>,
    pub removed_runs: Vec<RunId>,
    /// Runs that have ended, but not before the time that was asked for.
    pub recent_runs: Vec<RunId>,
    /// Runs without a process that have not ended, and that stay until they are resumed or discarded.
    pub unfinished_runs: Vec<RunId>,
    /// Texts from before those runs.
    pub originals: Vec<RemovedItem>,
    /// Texts before and after their landings, and those parked by an undo.
    pub checkpoints: Vec<RemovedItem>,
    pub journal_sweep: SweepOutcome,
    /// Runs that still have a process or hold a session; while there are any the journal's file is not compacted.
    pub live_runs: Vec<RunId>,
    /// The unused bytes of the journal's file, if giving them back would take too long.
    pub deferred_bytes: Option<u64>,
    /// What should have been removed and could not be, with the cause.
    pub leftovers: Vec<String>,
}

impl GcReport {
    /// Returns the freed bytes in files, entries and blobs.
    pub fn freed_bytes(&self) -> u64 {
        let files = self.workspaces.iter().chain(&self.temporary_files).chain(&self.originals).chain(&self.checkpoints);
        files.map(|item| item.bytes).sum::<u64>() + self.journal_sweep.entry_bytes + self.journal_sweep.blob_bytes
    }
}

pub fn collect_garbage(project: &Project, options: &GcOptions) -> Result<GcReport, GcError> {
    refuse_links(project)?;
    // The directories are listed before the journal is read: a run is recorded before it creates its first workspace, so a
    // directory that is listed now and not recorded then belongs to no run.
    let workspace_dirs = list_run_directories(&project.home_dir().join("work"));
    let development_workspaces = list_workspaces(project, options.clones_root.as_deref());
    let store = Store::open_read_only(&project.home_dir())?;
    let run_views = read_run_views(&store)?;
    drop(store);
    // A run may be held without being listed as running: its keepers are still ending its agents.
    let live_runs = list_held_runs(project, run_views.keys());
    let old_runs =
        options.runs_before_ms.map(|before_ms| find_old_runs(project, &run_views, before_ms)).unwrap_or_default();
    let expired_runs = find_expired_runs(project, options.now_ms);
    let runs_to_remove: BTreeSet<RunId> = old_runs.into_iter().chain(expired_runs).collect();
    let runs_to_remove: Vec<RunId> = runs_to_remove.into_iter().filter(|run_id| !live_runs.contains(run_id)).collect();
    // An earlier process may have been killed when the journal was swept and the files were not.
    let half_removed = read_pending_removals(project).into_iter().filter(|run_id| !run_views.contains_key(run_id));
    let unwanted_runs: Vec<RunId> = half_removed.chain(runs_to_remove.iter().cloned()).collect();
    let removed_runs: BTreeSet<&RunId> = unwanted_runs.iter().collect();
    // A directory that is unknown to the journal is removed only if it looks exactly like ours.
    let workspace_dirs = workspace_dirs.into_iter().filter(|(run_id, directory)| match run_views.get(run_id) {
        Some(run_view) => {
            let has_ended = matches!(run_view.phase, RunPhase::Finished(_)) || removed_runs.contains(run_id);
            has_ended && !live_runs.contains(run_id)
        }
        None => holds_only_workspaces(directory),
    });
    let directories_of_removed = |directory_name: &str| {
        let directories = list_run_directories(&project.home_dir().join(directory_name))
            .into_iter()
            .filter(|(run_id, _)| removed_runs.contains(run_id));
        directories.map(|(_, path)| path).collect::<Vec<PathBuf>>()
    };
    let original_dirs = directories_of_removed("originals");
    let checkpoint_dirs = ["checkpoints", "parked", "discarded"].map(directories_of_removed).concat();
    let workspace_dirs: Vec<PathBuf> = workspace_dirs.map(|(_, path)| path).collect();
    if !options.dry_run {
        write_pending_removals(project, &unwanted_runs)
            .map_err(|cause| GcError::CannotInspect { path: PENDING_REMOVALS_PATH.into(), cause })?;
    }
    // The journal is swept first: files without a run are harmless, a run without its files is not.
    let journal_sweep = sweep_journal(
        &project.home_dir(),
        &SweepRequest { run_ids: runs_to_remove.clone(), dry_run: options.dry_run },
    )?;
    kill_points::kill_if_requested("gc", "between");
    let (recent_runs, unfinished_runs) = list_kept_runs(&run_views, &runs_to_remove, &live_runs);
    let mut report = GcReport {
        removed_runs: runs_to_remove,
        recent_runs,
        unfinished_runs,
        journal_sweep,
        live_runs,
        ..GcReport::default()
    };
    let unneeded_workspaces: Vec<ListedWorkspace> = development_workspaces
        .into_iter()
        .filter(|workspace| {
            !report.live_runs.contains(&workspace.run_id)
                && (report.removed_runs.contains(&workspace.run_id) || is_work_settled(&run_views, &workspace.run_id))
        })
        .collect();
    remove_client_sessions(project, options, &workspace_dirs, &unwanted_runs);
    let mut remover = ItemRemover { project_root: project.root(), dry_run: options.dry_run, leftovers: Vec::new() };
    report.workspaces = remover.remove_paths(workspace_dirs);
    report.originals = remover.remove_paths(original_dirs);
    report.checkpoints = remover.remove_paths(checkpoint_dirs);
    report.temporary_files = remover.remove_paths(find_orphaned_temporaries(project, &run_views));
    report.leftovers = remover.leftovers;
    remove_development_workspaces(project, options, unneeded_workspaces, &mut report);
    if !options.dry_run {
        remove_temporary_dirs(project, options, run_views.keys(), &report.live_runs);
        remove_run_refs(project, options, &unwanted_runs, &mut report);
        compact_unless_held(project, options, &mut report)?;
    }
    Ok(report)
}

/// Removes what clients keep about sessions of removed workspaces and runs.
fn remove_client_sessions(project: &Project, options: &GcOptions, workspace_dirs: &[PathBuf], unwanted_runs: &[RunId]) {
    if options.dry_run {
        return;
    }
    // A name that is a path could lead to sessions of the user.
    let run_names = unwanted_runs.iter().filter(|run_id| discarded_runs::is_directory_name(run_id));
    // The workspaces of a run that has ended may be gone already, and its sessions are not.
    let run_dirs = run_names.map(|run_id| project.home_dir().join("work").join(run_id.as_str()));
    for workspace_dir in workspace_dirs.iter().cloned().chain(run_dirs) {
        remove_session_dirs(&options.user_dirs, &workspace_dir);
    }
}

/// Removes the private temporary directories that killed agents left. Agents of a run that is held may use theirs.
fn remove_temporary_dirs<'a>(
    project: &Project,
    options: &GcOptions,
    run_ids: impl Iterator<Item = &'a RunId>,
    live_runs: &[RunId],
) {
    let Some(temporary_root) = &options.temporary_root else { return };
    for run_id in run_ids.filter(|run_id| !live_runs.contains(run_id)) {
        remove_leftover_dirs(temporary_root, project.root(), run_id);
    }
}

/// The runs whose removal has begun, one on each line.
const PENDING_REMOVALS_PATH: &str = ".tribunal/removing-runs";

fn read_pending_removals(project: &Project) -> Vec<RunId> {
    let pending_text = fs::read_to_string(project.root().join(PENDING_REMOVALS_PATH)).unwrap_or_default();
    pending_text.lines().map(RunId::new).filter(discarded_runs::is_directory_name).collect()
}

fn write_pending_removals(project: &Project, run_ids: &[RunId]) -> io::Result<()> {
    if run_ids.is_empty() {
        return Ok(());
    }
    let pending_lines: String = run_ids.iter().map(|run_id| format!("{run_id}\n")).collect();
    atomic_files::write_privately(&project.root().join(PENDING_REMOVALS_PATH), pending_lines.as_bytes())
}

/// Removes the last traces of runs that are removed as a whole: their landings, their refs and workspaces, and the note that their
/// removal has begun.
fn remove_run_refs(project: &Project, options: &GcOptions, run_ids: &[RunId], report: &mut GcReport) {
    let deletion = landing_repository::delete_landings(project, run_ids);
    report.leftovers.extend(deletion.err().map(|cause| format!(".tribunal/landings.git: {cause}")));
    let removal = remove_run_workspaces(project, options.clones_root.as_deref(), run_ids);
    report.leftovers.extend(removal.err().map(|cause| cause.to_string()));
    // What could not be removed is tried again next time.
    if report.leftovers.is_empty() {
        let _ = fs::remove_file(project.root().join(PENDING_REMOVALS_PATH));
    }
}

/// Whether no process will continue the work of a run: it ended well or was cancelled, or the journal does not know it. A child run is
/// continued by the run that started it.
fn is_work_settled(run_views: &BTreeMap<RunId, RunView>, run_id: &RunId) -> bool {
    let Some(run_view) = run_views.get(run_id) else { return true };
    run_views.get(find_root(run_id, run_view)).is_none_or(has_ended_well)
}

/// Removes workspaces for development.
fn remove_development_workspaces(
    project: &Project,
    options: &GcOptions,
    unneeded_workspaces: Vec<ListedWorkspace>,
    report: &mut GcReport,
) {
    let clones_root = options.clones_root.as_deref();
    for workspace in unneeded_workspaces {
        let bytes = measure_size(&workspace.path);
        let removal = if options.dry_run { Ok(()) } else { remove_workspace(project, clones_root, &workspace) };
        match removal {
            Ok(()) => {
                let relative_path = workspace.path.strip_prefix(project.root()).unwrap_or(&workspace.path);
                report.workspaces.push(RemovedItem { relative_path: relative_path.to_path_buf(), bytes });
            }
            Err(cause) => report.leftovers.push(format!("{}: {cause}", workspace.path.display())),
        }
    }
}

/// Returns the discarded runs whose time in the trash is over.
fn find_expired_runs(project: &Project, now_ms: u64) -> Vec<RunId> {
    let trash_ms = u64::try_from(Duration::from_secs(24 * 60 * 60 * TRASH_DAYS).as_millis()).unwrap_or(u64::MAX);
    let discarded_runs = discarded_runs::list_discarded(project).into_iter();
    let expired_runs = discarded_runs.filter(|(_, discarded_ms)| discarded_ms.saturating_add(trash_ms) <= now_ms);
    expired_runs.map(|(run_id, _)| run_id).collect()
}

/// Returns the runs that stay although they have no process: those that ended recently, and those that have not ended.
fn list_kept_runs(
    run_views: &BTreeMap<RunId, RunView>,
    removed_runs: &[RunId],
    live_runs: &[RunId],
) -> (Vec<RunId>, Vec<RunId>) {
    let kept_runs = run_views.iter().filter(|(run_id, run_view)| {
        // A run of a kind that this build does not have has no settings; nothing is known about it.
        run_view.settings.is_some() && !removed_runs.contains(run_id) && !live_runs.contains(run_id)
    });
    let (ended, unfinished): (Vec<_>, Vec<_>) =
        kept_runs.partition(|(_, run_view)| matches!(run_view.phase, RunPhase::Finished(_)));
    let run_ids = |kept: Vec<(&RunId, &RunView)>| kept.into_iter().map(|(run_id, _)| run_id.clone()).collect();
    (run_ids(ended), run_ids(unfinished))
}

/// Refuses links in place of our directories: following one could remove files that are not ours.
fn refuse_links(project: &Project) -> Result<(), GcError> {
    let directories = ["work", "originals", "checkpoints", "parked", "discarded", "development"]
        .map(|directory_name| format!(".tribunal/{directory_name}"));
    for own_path in [".tribunal".to_string()].iter().chain(&directories) {
        match fs::symlink_metadata(project.root().join(own_path)) {
            Ok(metadata) if metadata.is_symlink() => {
                return Err(GcError::IsLink { path: own_path.to_string() });
            }
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(GcError::CannotInspect { path: own_path.to_string(), cause }),
        }
    }
    Ok(())
}

/// Returns the runs that still have a process, even if it is only a keeper that is ending agents, and the loop that holds a
/// session: its hooks write to the journal and wait only for a moment.
fn list_held_runs<'a>(project: &Project, runs: impl IntoIterator<Item = &'a RunId>) -> Vec<RunId> {
    let is_held =
        |run_id: &&RunId| Runner::read_hold(project, run_id) != RunHold::Free || is_loop_held(project, run_id);
    runs.into_iter().filter(is_held).cloned().collect()
}

/// Compacts the journal. Checks again for held runs, also new ones: one may have been started or resumed meanwhile.
fn compact_unless_held(project: &Project, options: &GcOptions, report: &mut GcReport) -> Result<(), StoreError> {
    report.live_runs = list_held_runs(project, &Store::open_read_only(&project.home_dir())?.list_runs()?);
    if !report.live_runs.is_empty() {
        return Ok(());
    }
    let compacted = compact_journal(&project.home_dir(), if options.compact { u64::MAX } else { QUICK_COMPACT_BYTES })?;
    report.journal_sweep.file_after = compacted.file_bytes;
    report.deferred_bytes = compacted.postponed_bytes;
    Ok(())
}

fn read_run_views(store: &Store) -> Result<BTreeMap<RunId, RunView>, StoreError> {
    let outline = store.read_outline()?;
    let runs = outline.chunk_by(|entry, next_entry| entry.run == next_entry.run);
    Ok(runs
        .filter_map(|entries: &[JournalEntry]| Some((entries.first()?.run.clone(), RunView::from_entries(entries))))
        .collect())
}

/// Returns runs that ended well, long enough ago. Runs that left something for the user stay, and so do those with a recent
/// undo: the parked files may still be wanted.
fn find_old_runs(project: &Project, run_views: &BTreeMap<RunId, RunView>, before_ms: u64) -> Vec<RunId> {
    let cutoff = SystemTime::UNIX_EPOCH + Duration::from_millis(before_ms);
    let is_old = |parked_path: &PathBuf| {
        fs::metadata(parked_path)
            .and_then(|file_metadata| file_metadata.modified())
            .is_ok_and(|modified_at| modified_at < cutoff)
    };
    let nothing_parked_since = |run_id: &RunId| list_directory(&project.parked_dir(run_id)).iter().all(is_old);
    let is_untouched =
        |run_id: &RunId, run_view: &RunView| run_view.last_time.wall_ms < before_ms && nothing_parked_since(run_id);
    // A run and its child runs are removed together. How a child ended is the business of the run that started it.
    let is_old_tree = |root_id: &RunId| {
        run_views.get(root_id).is_some_and(has_ended_well)
            && run_views
                .iter()
                .filter(|(run_id, run_view)| find_root(run_id, run_view) == root_id)
                .all(|(run_id, run_view)| is_untouched(run_id, run_view))
    };
    let old_views = run_views.iter().filter(|(run_id, run_view)| is_old_tree(find_root(run_id, run_view)));
    old_views.map(|(run_id, _)| run_id.clone()).collect()
}

fn has_ended_well(run_view: &RunView) -> bool {
    match &run_view.phase {
        RunPhase::Finished(summary) => matches!(summary.outcome, Some(RunOutcome::Resolved | RunOutcome::Cancelled)),
        RunPhase::Running | RunPhase::Parked(_) => false,
    }
}

/// Returns the run that the user started: the run itself, unless it is a child.
fn find_root<'a>(run_id: &'a RunId, run_view: &'a RunView) -> &'a RunId {
    run_view.parent.as_ref().map_or(run_id, |parent| &parent.root)
}

/// Lists directories, but no links to any, with the runs they would be named after.
fn list_run_directories(directory: &Path) -> Vec<(RunId, PathBuf)> {
    let with_run_id = |path: PathBuf| Some((RunId::new(path.file_name()?.to_str()?), path));
    list_directory(directory).into_iter().filter(|path| is_real_directory(path)).filter_map(with_run_id).collect()
}

fn list_directory(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|item| item.path()).collect()
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether the directory of an unknown run has our layout, `KEY` or `KEY/NUMBER`, and nothing else in it.
fn holds_only_workspaces(directory: &Path) -> bool {
    let is_workspace = |path: &PathBuf| {
        let workspace = TaskWorkspace::from_directory(path.clone());
        is_real_directory(path) && is_real_directory(&workspace.tree_dir()) && workspace.is_complete()
    };
    let all_entries = |directory: &Path, is_expected: &dyn Fn(&PathBuf) -> bool| {
        let dir_entries = list_directory(directory);
        !dir_entries.is_empty() && dir_entries.iter().all(is_expected)
    };
    all_entries(directory, &|task_dir| {
        is_workspace(task_dir) || (is_real_directory(task_dir) && all_entries(task_dir, &is_workspace))
    })
}

/// Finds temporary files of dead processes where Tribunal writes: beside subjects, trackers, decisions and originals. A
/// journal may have come with a clone, so paths outside the project are not looked at.
fn find_orphaned_temporaries(project: &Project, run_views: &BTreeMap<RunId, RunView>) -> Vec<PathBuf> {
    let mut written_dirs = BTreeSet::from([project.home_dir(), project.home_dir().join("work")]);
    for run_view in run_views.values() {
        written_dirs.extend(atomic_files::written_directories(project, run_view));
    }
    let inside_dirs = written_dirs.iter().filter(|directory| project.resolve_outside(directory).is_none());
    let is_regular_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    inside_dirs.flat_map(|directory| atomic_files::find_orphaned_files(directory)).filter(is_regular_file).collect()
}

struct ItemRemover<'a> {
    project_root: &'a Path,
    dry_run: bool,
    leftovers: Vec<String>,
}

impl ItemRemover<'_> {
    fn remove_paths(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<RemovedItem> {
        let mut removed = Vec::new();
        for path in paths {
            let relative_path = path.strip_prefix(self.project_root).unwrap_or(&path).to_path_buf();
            let item_bytes = measure_size(&path);
            let outcome = match (self.dry_run, is_real_directory(&path)) {
                (true, _) => Ok(()),
                (false, true) => fs::remove_dir_all(&path),
                (false, false) => fs::remove_file(&path),
            };
            match outcome {
                Ok(()) => removed.push(RemovedItem { relative_path, bytes: item_bytes }),
                Err(cause) => self.leftovers.push(format!("{}: {cause}", relative_path.display())),
            }
        }
        removed
    }
}

/// Returns the size of a file, or of all files below a directory. Links are not followed.
fn measure_size(item_path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(item_path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(item_path).into_iter().flatten().flatten().map(|dir_entry| measure_size(&dir_entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::workspaces::WorkspaceSource;

    /// A project with a journal without runs, and files beside it that are not ours.
    fn new_project() -> (tempfile::TempDir, Project) {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        Store::open(&project.home_dir()).unwrap();
        fs::create_dir_all(directory.path().join("scratch/thesis")).unwrap();
        fs::write(directory.path().join("scratch/thesis/draft.md"), "three years\n").unwrap();
        (directory, project)
    }

    fn create_workspace(project: &Project, path: &str) {
        fs::write(project.root().join("plan.md"), "# Plan\n").unwrap();
        let source = WorkspaceSource {
            project_root: project.root(),
            subject_files: &["plan.md".to_string()],
            stored_tree: None,
            seed_paths: &[],
        };
        TaskWorkspace::from_directory(project.home_dir().join("work").join(path)).create(&source).unwrap();
    }

    #[test]
    fn nothing_is_removed_where_our_directories_are_links() {
        for name in ["work", "originals", "checkpoints", "parked", "discarded", "development"] {
            let (directory, project) = new_project();
            symlink(directory.path().join("scratch"), project.home_dir().join(name)).unwrap();
            let refused = collect_garbage(&project, &GcOptions::default()).unwrap_err();
            assert_eq!(refused.to_string(), format!(".tribunal/{name} is a link"));
            assert!(directory.path().join("scratch/thesis/draft.md").exists());
        }
        let (directory, project) = new_project();
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(project.home_dir(), &elsewhere).unwrap();
        symlink(&elsewhere, project.home_dir()).unwrap();
        assert_eq!(collect_garbage(&project, &GcOptions::default()).unwrap_err().to_string(), ".tribunal is a link");
    }

    #[test]
    fn only_what_has_our_layout_goes_and_links_stay() {
        let (directory, project) = new_project();
        let work = project.home_dir().join("work");
        create_workspace(&project, "ours-0000/round-1.freeze");
        create_workspace(&project, "ours-0000/round-1.fix.1/1");
        create_workspace(&project, "mixed-0000/round-1.freeze");
        fs::write(work.join("mixed-0000/notes.md"), "mine\n").unwrap();
        fs::create_dir_all(work.join("empty-0000")).unwrap();
        fs::create_dir_all(work.join("half-0000/round-1.freeze/tree")).unwrap();
        symlink(directory.path().join("scratch"), work.join("link-0000")).unwrap();
        let collected = collect_garbage(&project, &GcOptions::default()).unwrap();
        let gone: Vec<&Path> = collected.workspaces.iter().map(|item| item.relative_path.as_path()).collect();
        assert_eq!(gone, [Path::new(".tribunal/work/ours-0000")]);
        assert!(!work.join("ours-0000").exists());
        for kept in ["mixed-0000/notes.md", "empty-0000", "half-0000/round-1.freeze/tree", "link-0000/thesis"] {
            assert!(work.join(kept).exists(), "{kept}");
        }
    }
}
