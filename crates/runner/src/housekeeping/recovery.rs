//! Recovers what is left after damage to the journal.
//!
//! Copies of the user's files do not depend on the journal: originals from before a run, checkpoints of every landing, files that
//! an undo has replaced, the repository of landings, refs with agents' work, and trackers. They are listed and exported together
//! with the entries that can still be read. A rebuilt journal has those entries; a run that lost some is closed, because it
//! could not continue as if nothing had happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use tribunal_engine::{ids::RunId, reason::RunReason, text::escape_json_chars, timestamp::Timestamp};
use tribunal_store::{
    DamagedJournal, DamagedRun, JournalInspection, NewEntry, RebuildOutcome, Store, StoreError, rebuild_journal,
};
use tribunal_workflows::runs::{
    types::{EntryDraft, JournalEntry, RunEvent, RunSummary},
    view::{RunPhase, RunView},
};

use crate::{
    engine::run::{RunHold, Runner},
    housekeeping::discarded_runs::is_directory_name,
    landing::landing_repository,
    project::Project,
    session::current_wall_ms,
    workspaces::development::{export_work_refs, list_work_refs},
};

/// The directories in `.tribunal` with a directory for each run.
const COPY_DIRS: [&str; 3] = ["originals", "checkpoints", "parked"];

#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run} is still in progress")]
    RunHeld { run: RunId },
    #[error("another process is rebuilding the journal")]
    Busy,
    #[error("{} is not an empty directory", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{} is in the directory that is exported", path.display())]
    InsideHome { path: PathBuf },
    #[error("could not write to {}: {cause}", path.display())]
    CannotWrite { path: PathBuf, cause: io::Error },
}

/// What is left of a project's runs.
#[derive(Debug)]
pub struct RecoveryReport {
    pub journal: JournalInspection,
    /// By run, also runs that the journal does not know.
    pub copies: BTreeMap<RunId, KeptCopies>,
    /// Paths relative to the project's root.
    pub trackers: Vec<String>,
}

/// What a run has outside the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCopies {
    /// Texts from before the run, relative to the project's root.
    pub originals: Vec<String>,
    /// The number of files that record landings and the texts before and after them.
    pub checkpoint_files: usize,
    /// The number of files that an undo has replaced.
    pub parked_files: usize,
    /// The branch in `.tribunal/landings.git`.
    pub landings_branch: Option<String>,
    /// Refs in the user's repository with work of agents.
    pub work_refs: Vec<String>,
}

impl KeptCopies {
    fn is_empty(&self) -> bool {
        *self == KeptCopies::default()
    }
}

/// Reads everything that is left. `reviews_dir` is the directory of trackers, relative to the project's root. `None` if the
/// project has nothing to look at.
pub fn survey_project(project: &Project, reviews_dir: &str) -> Result<Option<RecoveryReport>, RecoveryError> {
    if !Store::exists(&project.home_dir()) {
        return Ok(None);
    }
    let journal = match DamagedJournal::open(&project.home_dir()) {
        Err(StoreError::Empty { .. }) => return Ok(None),
        opened => opened?.inspect_runs(),
    };
    let mut run_ids: BTreeSet<RunId> = journal.runs.iter().map(|run| run.run_id.clone()).collect();
    for directory_name in COPY_DIRS {
        let run_dirs = fs::read_dir(project.home_dir().join(directory_name)).into_iter().flatten().flatten();
        run_ids.extend(run_dirs.filter_map(|run_dir| run_dir.file_name().to_str().map(RunId::new)));
    }
    // Directories are read and written by these names.
    run_ids.retain(is_directory_name);
    let work_refs = list_work_refs(project.root());
    let copies = run_ids.into_iter().map(|run_id| {
        let list_of = |directory_name: &str| {
            let directory = project.home_dir().join(directory_name).join(run_id.as_str());
            list_files(&directory)
        };
        let kept = KeptCopies {
            originals: list_of("originals"),
            checkpoint_files: list_of("checkpoints").len(),
            parked_files: list_of("parked").len(),
            landings_branch: landing_repository::find_branch(project, &run_id),
            work_refs: work_refs.get(&run_id).cloned().unwrap_or_default(),
        };
        (run_id, kept)
    });
    let copies = copies.filter(|(_, kept)| !kept.is_empty()).collect();
    Ok(Some(RecoveryReport { journal, copies, trackers: list_trackers(project, reviews_dir) }))
}

/// Lists the files below a directory, relative to it. Links are not followed.
fn list_files(directory: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut waiting_dirs = vec![directory.to_path_buf()];
    while let Some(current_dir) = waiting_dirs.pop() {
        for item in fs::read_dir(current_dir).into_iter().flatten().flatten() {
            match item.file_type() {
                Ok(file_type) if file_type.is_dir() => waiting_dirs.push(item.path()),
                Ok(file_type) if file_type.is_file() => {
                    let relative_path = item.path();
                    let relative_path = relative_path.strip_prefix(directory).unwrap_or(&relative_path);
                    files.push(relative_path.to_string_lossy().into_owned());
                }
                _ => {}
            }
        }
    }
    files.sort();
    files
}

fn list_trackers(project: &Project, reviews_dir: &str) -> Vec<String> {
    let tracker_names = list_files(&project.root().join(reviews_dir)).into_iter();
    let tracker_names = tracker_names.filter(|name| !name.contains('/') && name.ends_with("-issues.md"));
    tracker_names.map(|name| format!("{}/{name}", reviews_dir.trim_end_matches('/'))).collect()
}

/// Copies everything that is left to a new directory, and returns the number of files.
pub fn export_copies(project: &Project, report: &RecoveryReport, target_dir: &Path) -> Result<usize, RecoveryError> {
    let is_new = fs::symlink_metadata(target_dir).is_err();
    if !is_new && !fs::read_dir(target_dir).is_ok_and(|mut items| items.next().is_none()) {
        return Err(RecoveryError::NotEmpty { path: target_dir.to_path_buf() });
    }
    let home_dir = project.home_dir().canonicalize().unwrap_or_else(|_| project.home_dir());
    let existing_parent =
        target_dir.ancestors().find_map(|directory| directory.canonicalize().ok()).unwrap_or_default();
    if existing_parent.starts_with(home_dir) {
        return Err(RecoveryError::InsideHome { path: target_dir.to_path_buf() });
    }
    write_export(project, report, target_dir)
        .map_err(|cause| RecoveryError::CannotWrite { path: target_dir.to_path_buf(), cause })
}

fn write_export(project: &Project, report: &RecoveryReport, target_dir: &Path) -> io::Result<usize> {
    let mut file_count = 0;
    // What is copied was for the user alone.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(target_dir)?;
    let damaged_journal = DamagedJournal::open(&project.home_dir()).map_err(io::Error::other)?;
    for run in report.journal.runs.iter().filter(|run| is_directory_name(&run.run_id)) {
        let entries = damaged_journal.read_good_entries(&run.run_id);
        if entries.is_empty() {
            continue;
        }
        let entry_lines = entries
            .iter()
            .map(|entry| serde_json::to_string(entry).map(|line| format!("{}\n", escape_json_chars(&line))));
        let run_dir = target_dir.join(run.run_id.as_str());
        fs::create_dir_all(&run_dir)?;
        fs::write(run_dir.join("journal.jsonl"), entry_lines.collect::<Result<String, _>>()?)?;
        file_count += 1;
    }
    for (run_id, kept) in &report.copies {
        let run_dir = target_dir.join(run_id.as_str());
        for directory_name in COPY_DIRS {
            let source_dir = project.home_dir().join(directory_name).join(run_id.as_str());
            file_count += copy_files(&source_dir, &run_dir.join(directory_name))?;
        }
        if let Some(branch_name) = &kept.landings_branch {
            fs::create_dir_all(&run_dir)?;
            landing_repository::export_branch(project, branch_name, &run_dir.join("landings.bundle"))?;
            file_count += 1;
        }
        if !kept.work_refs.is_empty() {
            fs::create_dir_all(&run_dir)?;
            let is_written = export_work_refs(project.root(), run_id, &run_dir.join("work.bundle"))?;
            file_count += usize::from(is_written);
        }
    }
    for tracker in &report.trackers {
        let target_path = target_dir.join("trackers").join(Path::new(tracker).file_name().unwrap_or_default());
        fs::create_dir_all(target_dir.join("trackers"))?;
        fs::copy(project.root().join(tracker), target_path)?;
        file_count += 1;
    }
    for file_name in ["journal.db", "journal.db-wal"] {
        let source_path = project.home_dir().join(file_name);
        if source_path.is_file() {
            fs::create_dir_all(target_dir.join("journal-files"))?;
            fs::copy(&source_path, target_dir.join("journal-files").join(file_name))?;
            file_count += 1;
        }
    }
    Ok(file_count)
}

/// Copies the files below a directory with their modes, and returns their number.
fn copy_files(source_dir: &Path, target_dir: &Path) -> io::Result<usize> {
    let files = list_files(source_dir);
    for file in &files {
        let target_path = target_dir.join(file);
        fs::create_dir_all(target_path.parent().unwrap_or(target_dir))?;
        fs::copy(source_dir.join(file), target_path)?;
    }
    Ok(files.len())
}

/// Replaces the damaged journal by one with everything that can still be read. Runs that were cut off end as failed.
pub fn rebuild_runs(project: &Project, report: &RecoveryReport) -> Result<RebuildOutcome, RecoveryError> {
    if let Some(held_run) =
        report.journal.runs.iter().find(|run| Runner::read_hold(project, &run.run_id) != RunHold::Free)
    {
        return Err(RecoveryError::RunHeld { run: held_run.run_id.clone() });
    }
    let cannot_lock = |cause| RecoveryError::CannotWrite { path: project.locks_dir(), cause };
    project.prepare_home().map_err(cannot_lock)?;
    let lock_file = fs::File::create(project.locks_dir().join("recover.lock")).map_err(cannot_lock)?;
    lock_file.try_lock().map_err(|_| RecoveryError::Busy)?;
    let now_ms = current_wall_ms();
    let damaged_copy = project.home_dir().join(format!("damaged-{now_ms}"));
    let close_run = |damaged_run: &DamagedRun, entries: &[JournalEntry]| close_run(damaged_run, entries, now_ms);
    Ok(rebuild_journal(&project.home_dir(), &damaged_copy, &close_run)?)
}

/// Makes the last entry of a run that was cut off.
fn close_run(damaged_run: &DamagedRun, entries: &[JournalEntry], now_ms: u64) -> Option<NewEntry> {
    let last_entry = entries.last()?;
    let detail =
        format!("the journal was damaged; what was recorded after entry {} is lost", damaged_run.good_entries());
    let run_view = RunView::from_entries(entries);
    let event = match &run_view.phase {
        RunPhase::Finished(_) => RunEvent::Warned { text: detail },
        RunPhase::Running | RunPhase::Parked(_) => {
            let usage = run_view.total_usage();
            RunEvent::RunFinished(RunSummary {
                outcome: RunReason::Environment.outcome(),
                reason: RunReason::Environment,
                detail,
                result: run_view.build_result()?,
                cost: usage.cost,
                notional: usage.notional,
                tokens: usage.tokens,
                elapsed_ms: last_entry.at.awake_ms,
                left: None,
                causes: Vec::new(),
            })
        }
    };
    let timestamp = Timestamp { wall_ms: now_ms, awake_ms: last_entry.at.awake_ms };
    let draft = EntryDraft { id: format!("recovered-{now_ms}"), event };
    Some(NewEntry { run_id: damaged_run.run_id.clone(), timestamp, draft })
}

#[cfg(test)]
mod tests {
    use tribunal_store::EntryBatch;

    use super::*;

    #[test]
    fn a_run_whose_name_is_a_path_is_neither_looked_up_nor_exported() {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        fs::create_dir_all(directory.path().join("thesis")).unwrap();
        fs::write(directory.path().join("thesis/draft.md"), "three years\n").unwrap();
        let store = Store::open(&project.home_dir()).unwrap();
        let timestamp = Timestamp { wall_ms: 1, awake_ms: 1 };
        let draft = EntryDraft { id: "1".into(), event: RunEvent::Warned { text: "x".into() } };
        for run_name in ["../../../thesis", "plain"] {
            let entries = vec![NewEntry { run_id: RunId::new(run_name), timestamp, draft: draft.clone() }];
            store.append(EntryBatch { entries, ..EntryBatch::default() }).unwrap();
        }
        drop(store);
        let report = survey_project(&project, "reviews").unwrap().unwrap();
        assert!(report.copies.is_empty(), "{:?}", report.copies);
        let target_dir = directory.path().join("deep/er/export");
        export_copies(&project, &report, &target_dir).unwrap();
        let mut exported: Vec<String> = list_files(&target_dir);
        exported.retain(|file| !file.starts_with("journal-files/"));
        assert_eq!(exported, ["plain/journal.jsonl"]);
        assert!(!directory.path().join("thesis/journal.jsonl").exists());
    }
}
