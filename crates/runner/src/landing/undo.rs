//! Undoes what a run has landed, either everything or what repaired one finding.
//!
//! A landing is removed from the current files by a three-way merge, so that all later edits stay; where both changed the same
//! lines, nothing is done. A file that a landing created is removed if it was not edited since; a deleted one is restored.
//! Nothing is changed unless all files can be, and all of them are parked first. A run that can continue learns through its
//! inbox that the findings are open again; the journal of a finished run stays as it is.
//!
//! Every step can be repeated: after a crash the same command does the rest. The checkpoints record which files were done until
//! all of them are. [`file_changes`] writes the files; what is to be done to them is planned here.

mod file_changes;

use std::{collections::BTreeMap, fs, io, path::PathBuf, time::Duration};

use tribunal_engine::ids::{FindingId, RunId};
use tribunal_store::{EntryBatch, Store, StoreError};
use tribunal_workflows::{
    findings::finding::FindingStatus,
    review::review_record::ReviewRecord,
    runs::{
        kinds::RunOrder,
        records::RecordKind,
        user_request::{FindingChange as Amendment, UserRequest},
    },
};

use crate::{
    engine::run::{RunError, RunHold, Runner, exclusive_lock_name, run_lock_name},
    landing::{
        checkpoints::{BegunUndo, CheckpointChange, CheckpointKey},
        landings::{
            LandingRecord, LandingsDiff, LandingsError, RenderedFileDiff, RunLandings, UndoClash, remove_changes,
        },
        merging::LineRange,
    },
    locks::{self, HeldLock, LockFailure},
    project::{
        Project,
        atomic_files::{sweep_temporary_files, written_directories},
        subject::{SubjectError, ensure_inside, is_plain_path},
    },
};

use file_changes::replace_files;

pub use crate::landing::landing_repository::{join_finding_ids, landings_log_command};

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Landings(#[from] LandingsError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error("run {run} was killed while it applied a change")]
    LandingUnresolved { run: RunId },
    #[error("the change that fixed {finding} also fixed {}", join_finding_ids(others))]
    RepairedTogether { run: RunId, finding: FindingId, others: Vec<FindingId> },
    #[error("{path} is a link now")]
    BecameLink { path: String },
    /// `alone`: the files contain no other landing that could be undone instead, or before.
    #[error("{}", describe_clashes(clashes))]
    EditedSince { run: RunId, finding: Option<FindingId>, clashes: Vec<(String, UndoClash)>, alone: bool },
    /// `begun`: other files were already restored; the same command does the rest.
    #[error("{path} is being changed right now")]
    BeingChanged { path: String, begun: bool },
    #[error("{path} could not be saved before the undo: {cause}")]
    CannotPark { path: String, cause: io::Error },
    #[error("{path} could not be written: {cause}")]
    CannotWrite { path: String, cause: io::Error, begun: bool },
}

impl From<StoreError> for UndoError {
    fn from(cause: StoreError) -> Self {
        UndoError::Landings(cause.into())
    }
}

fn describe_clashes(clashes: &[(String, UndoClash)]) -> String {
    let descriptions = clashes.iter().map(|(relative_path, clash)| match clash {
        UndoClash::SameLines(lines) => {
            format!("{relative_path} was changed later in the same place: {}", format_line_ranges(lines))
        }
        UndoClash::FileGone => format!("{relative_path} no longer exists"),
        UndoClash::EditedSinceCreated => format!("{relative_path} was created by the run and changed later"),
        UndoClash::CreatedAgain => format!("{relative_path} was deleted by the run and exists again"),
    });
    descriptions.collect::<Vec<String>>().join("; ")
}

fn format_line_ranges(ranges: &[LineRange]) -> String {
    let descriptions = ranges.iter().map(|range| match (range.first_line, range.last_line) {
        (first_line, last_line) if first_line == last_line => format!("line {first_line}"),
        (first_line, last_line) => format!("lines {first_line} to {last_line}"),
    });
    descriptions.collect::<Vec<String>>().join(", ")
}

/// What an undo would do.
#[derive(Debug)]
pub struct UndoPlan {
    pub landings: RunLandings,
    /// The finding that was named.
    pub finding_id: Option<FindingId>,
    /// The landings to undo, in the order in which they landed.
    pub landings_to_undo: Vec<LandingRecord>,
    /// The findings that these landings repaired and that currently count as fixed.
    pub repaired_findings: Vec<FindingId>,
    /// All files that the landings changed, in the order of their paths.
    pub file_plans: Vec<FileUndoPlan>,
}

/// What would be done to one file. A text is `None` if the file does not exist.
#[derive(Debug)]
pub struct FileUndoPlan {
    pub relative_path: String,
    current_text: Option<String>,
    restored_text: Option<String>,
    /// The permissions that a deleted file gets back.
    restored_mode: Option<u32>,
}

impl FileUndoPlan {
    /// Whether the file contains nothing that would be undone.
    pub fn is_unchanged(&self) -> bool {
        self.current_text == self.restored_text
    }

    fn to_checkpoint_change(&self) -> CheckpointChange {
        CheckpointChange {
            relative_path: self.relative_path.clone(),
            text_before: self.current_text.clone(),
            text_after: self.restored_text.clone(),
        }
    }
}

impl UndoPlan {
    /// Returns what the undo changes in the files.
    pub fn preview_diff(&self) -> LandingsDiff {
        let file_diffs = self.changed_files().map(|file_plan| {
            RenderedFileDiff::from_texts(
                &file_plan.relative_path,
                file_plan.current_text.as_deref(),
                file_plan.restored_text.as_deref(),
            )
        });
        LandingsDiff { file_diffs: file_diffs.collect(), includes_other_edits: false }
    }

    fn changed_files(&self) -> impl Iterator<Item = &FileUndoPlan> {
        self.file_plans.iter().filter(|file_plan| !file_plan.is_unchanged())
    }

    /// Returns the only file of the plan, or else the one file that the run reviews, if it reviews a single one.
    pub fn single_path(&self) -> Option<&str> {
        match self.file_plans.as_slice() {
            [file_plan] => Some(&file_plan.relative_path),
            _ => self.landings.subject_path(),
        }
    }

    /// Returns the other findings that the same changes repaired.
    pub fn other_findings(&self) -> Vec<FindingId> {
        let named_finding = self.finding_id;
        self.repaired_findings
            .iter()
            .copied()
            .filter(|finding_id| named_finding.is_some_and(|named_finding| named_finding != *finding_id))
            .collect()
    }
}

/// The result of an undo.
#[derive(Debug)]
pub struct UndoResult {
    pub plan: UndoPlan,
    /// Where the replaced files were parked, relative to the project's root; only of files that existed and had to change.
    pub parked_files: BTreeMap<String, PathBuf>,
}

/// Returns what an undo would do. Changes nothing.
pub fn preview_undo(project: &Project, run_id: &RunId, finding_id: Option<FindingId>) -> Result<UndoPlan, UndoError> {
    if Runner::read_hold(project, run_id) != RunHold::Free {
        return Err(RunError::RunLocked { run: run_id.clone() }.into());
    }
    plan_undo(project, &Store::open_read_only(&project.home_dir())?, run_id, finding_id)
}

/// Undoes landings. `include_others`: also those repairs that the same change made beside the finding that was named.
pub fn undo_landings(
    project: &Project,
    run_id: &RunId,
    finding_id: Option<FindingId>,
    include_others: bool,
) -> Result<UndoResult, UndoError> {
    for directory in ["", "/locks", "/checkpoints", "/parked", "/journal.db"] {
        let own_path = format!(".tribunal{directory}");
        if let Some(real_target) = project.resolve_outside(&project.root().join(&own_path)) {
            return Err(RunError::LeadsOut { path: own_path, to: real_target }.into());
        }
    }
    let store = Store::open(&project.home_dir())?;
    // Until this is done no other process may work on the run or on its subject.
    let _held = lock_run_and_subject(project, &store, run_id)?;
    let tree_lock = locks::lock_user_tree(&project.locks_dir());
    let _alone = tree_lock.map_err(|cause| RunError::Project { project: project.home_dir(), cause })?;
    // The plan is made again under the locks: the preview may be outdated.
    let undo_plan = plan_undo(project, &store, run_id, finding_id)?;
    if let (Some(finding_id), false, other_findings @ [_, ..]) =
        (finding_id, include_others, undo_plan.other_findings().as_slice())
    {
        return Err(UndoError::RepairedTogether {
            run: run_id.clone(),
            finding: finding_id,
            others: other_findings.to_vec(),
        });
    }
    // An earlier process that was killed may have left temporary files.
    written_directories(project, &undo_plan.landings.run_view)
        .into_iter()
        .filter(|directory| project.resolve_outside(directory).is_none())
        .for_each(|directory| sweep_temporary_files(&directory));
    let parked_files = replace_files(project, &undo_plan)?;
    forget_confidence(&store, &undo_plan)?;
    if !undo_plan.landings.is_finished() {
        request_reopening(&store, &undo_plan)?;
    }
    // The landings are marked only after the run's inbox has the requests, so that a crash in between repeats both.
    for landing in &undo_plan.landings_to_undo {
        let marking = undo_plan.landings.checkpoints.mark_undone(&landing.checkpoint_key);
        marking.map_err(|cause| undo_plan.landings.damaged_error(cause))?;
    }
    clear_finished_undos(&undo_plan.landings).map_err(|cause| undo_plan.landings.damaged_error(cause))?;
    Ok(UndoResult { plan: undo_plan, parked_files })
}

/// Removes the confidence of the last review: what it rests on is undone. A text that is restored later has to be reviewed again.
fn forget_confidence(store: &Store, undo_plan: &UndoPlan) -> Result<(), UndoError> {
    let Some(RunOrder::Review(order)) = &undo_plan.landings.run_view.order else { return Ok(()) };
    let removed_record = Some((RecordKind::LastReview, ReviewRecord::record_key(&order.subject)));
    store.append(EntryBatch { removed_record, ..EntryBatch::default() })?;
    Ok(())
}

fn lock_run_and_subject(project: &Project, store: &Store, run_id: &RunId) -> Result<Vec<HeldLock>, UndoError> {
    let project_error = |cause| RunError::Project { project: project.home_dir(), cause };
    project.prepare_home().map_err(project_error)?;
    let order = RunLandings::read_landings(project, store, run_id)?.run_view.order;
    let order = order.ok_or_else(|| RunError::NoRun { run: run_id.clone() })?;
    // Keepers are not waited for: a run of which any process is left cannot be undone.
    let take_lock =
        |lock_name: &str| locks::take_lock(&project.locks_dir(), lock_name, run_id, Duration::ZERO, &mut || {});
    let run_guard = take_lock(&run_lock_name(run_id)).map_err(|locked| match locked {
        LockFailure::HeldBy(_) => RunError::RunLocked { run: run_id.clone() },
        LockFailure::IoFailed(cause) => project_error(cause),
    })?;
    let mut guards = vec![run_guard];
    if let Some(lock_name) = exclusive_lock_name(&order) {
        guards.push(take_lock(&lock_name).map_err(|locked| match locked {
            LockFailure::HeldBy(holder) => RunError::SubjectLocked { subject: order.title(), by: holder.run_id },
            LockFailure::IoFailed(cause) => project_error(cause),
        })?);
    }
    Ok(guards)
}

fn plan_undo(
    project: &Project,
    store: &Store,
    run_id: &RunId,
    finding_id: Option<FindingId>,
) -> Result<UndoPlan, UndoError> {
    let landings = RunLandings::read_landings(project, store, run_id)?;
    let landings_to_undo: Vec<LandingRecord> =
        landings.landings_for(finding_id)?.into_iter().filter(|landing| !landing.is_undone).cloned().collect();
    refuse_unresolved_landings(project, &landings)?;
    let file_plans = plan_files(project, &landings, &landings_to_undo, finding_id)?;
    let is_still_fixed = |id: &FindingId| {
        landings.run_view.find_finding(*id).is_some_and(|finding| finding.status == FindingStatus::Fixed)
    };
    let mut repaired_findings: Vec<FindingId> =
        landings_to_undo.iter().flat_map(|landing| &landing.findings).copied().filter(is_still_fixed).collect();
    repaired_findings.sort();
    repaired_findings.dedup();
    Ok(UndoPlan { landings, finding_id, landings_to_undo, repaired_findings, file_plans })
}

/// Plans what happens to every file.
fn plan_files(
    project: &Project,
    landings: &RunLandings,
    landings_to_undo: &[LandingRecord],
    finding_id: Option<FindingId>,
) -> Result<Vec<FileUndoPlan>, UndoError> {
    let unfinished_undos = landings.checkpoints.unfinished_undos().map_err(|cause| landings.damaged_error(cause))?;
    let mut restored_modes = BTreeMap::new();
    for landing in landings_to_undo {
        restored_modes.extend(
            landings
                .checkpoints
                .deleted_file_modes(&landing.checkpoint_key)
                .map_err(|cause| landings.damaged_error(cause))?,
        );
    }
    let (mut file_plans, mut clashes) = (Vec::new(), Vec::new());
    // All clashes are collected, so that the user learns about every file at once.
    for (relative_path, changed_files) in
        landings.group_by_file(&landings_to_undo.iter().collect::<Vec<&LandingRecord>>())?
    {
        let current_text = read_current_text(project, &relative_path)?;
        let undone_keys = already_undone_keys(&unfinished_undos, &relative_path, current_text.as_deref());
        let remaining_changes =
            changed_files.iter().filter(|(landing, _)| !undone_keys.contains(&&landing.checkpoint_key));
        match remove_changes(
            current_text.as_deref(),
            &remaining_changes.map(|(_, change)| change).collect::<Vec<&CheckpointChange>>(),
        ) {
            Ok(restored_text) => file_plans.push(FileUndoPlan {
                restored_mode: restored_modes.remove(&relative_path),
                relative_path,
                current_text,
                restored_text,
            }),
            Err(UndoClash::FileGone) => return Err(SubjectError::Missing { path: relative_path }.into()),
            Err(clash) => clashes.push((relative_path, clash)),
        }
    }
    if clashes.is_empty() {
        return Ok(file_plans);
    }
    let active_count = landings.landed_changes.iter().filter(|landing_record| !landing_record.is_undone).count();
    let is_only_landing = if finding_id.is_some() { active_count == landings_to_undo.len() } else { active_count == 1 };
    Err(UndoError::EditedSince { run: landings.run_id.clone(), finding: finding_id, clashes, alone: is_only_landing })
}

/// Returns the landings that an earlier process had already removed from a file before it was killed.
fn already_undone_keys<'a>(
    unfinished_undos: &'a [BegunUndo],
    relative_path: &str,
    current_text: Option<&str>,
) -> Vec<&'a CheckpointKey> {
    let is_undone_change =
        |change: &CheckpointChange| change.relative_path == relative_path && change.is_applied_in(current_text);
    unfinished_undos
        .iter()
        .filter(|undo| undo.changes.iter().any(is_undone_change))
        .flat_map(|undo| &undo.landings)
        .collect()
}

/// Refuses an undo while the outcome of a landing is unknown. The run settles it when it continues, and would land the change
/// again if it were gone by then.
fn refuse_unresolved_landings(project: &Project, landings: &RunLandings) -> Result<(), UndoError> {
    let is_untouched = |relative_path: &str, change: &CheckpointChange| {
        read_current_text(project, relative_path).is_ok_and(|current_text| current_text == change.text_before)
    };
    for checkpoint_key in landings.unresolved_keys.iter().filter(|_| !landings.is_finished()) {
        let attempts =
            landings.checkpoints.landing_changes(checkpoint_key).map_err(|cause| landings.damaged_error(cause))?;
        // Of several attempts at a file only the last one counts.
        let last_changes: BTreeMap<&str, &CheckpointChange> =
            attempts.iter().map(|change| (change.relative_path.as_str(), change)).collect();
        if !last_changes.iter().all(|(relative_path, change)| is_untouched(relative_path, change)) {
            return Err(UndoError::LandingUnresolved { run: landings.run_id.clone() });
        }
    }
    Ok(())
}

/// Reads the current text of a file. Returns `None` if nothing is there.
fn read_current_text(project: &Project, relative_path: &str) -> Result<Option<String>, UndoError> {
    let shown_path = || relative_path.to_string();
    let outside_error = || SubjectError::Outside { path: shown_path(), root: project.root().display().to_string() };
    if !is_plain_path(relative_path) || relative_path.is_empty() {
        return Err(outside_error().into());
    }
    let real_path = project.root().join(relative_path);
    match fs::symlink_metadata(&real_path) {
        Ok(metadata) if metadata.is_symlink() => return Err(UndoError::BecameLink { path: shown_path() }),
        Ok(metadata) if metadata.is_dir() => return Err(SubjectError::Folder { path: shown_path() }.into()),
        Ok(metadata) if !metadata.is_file() => {
            return Err(SubjectError::Special { path: shown_path() }.into());
        }
        // A missing file may still be reached through a link that leads out of the project.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return if project.resolve_outside(&real_path).is_some() { Err(outside_error().into()) } else { Ok(None) };
        }
        _ => {}
    }
    ensure_inside(project.root(), relative_path)?;
    let file_bytes = fs::read(&real_path).map_err(|cause| SubjectError::Unreadable { path: shown_path(), cause })?;
    let text = String::from_utf8(file_bytes);
    text.map(Some).map_err(|_| SubjectError::Binary { path: shown_path(), why: "not valid UTF-8" }.into())
}

/// Removes the records of undos that are complete.
fn clear_finished_undos(landings: &RunLandings) -> io::Result<()> {
    let is_undone = |checkpoint_key: &CheckpointKey| landings.checkpoints.is_undone(checkpoint_key);
    for undo in landings.checkpoints.unfinished_undos()? {
        if undo.landings.iter().all(is_undone) {
            landings.checkpoints.end_undo(undo.undo_number)?;
        }
    }
    Ok(())
}

/// Requests that the run opens the findings again, unless the inbox has the request already.
fn request_reopening(store: &Store, undo_plan: &UndoPlan) -> Result<(), StoreError> {
    let run_id = &undo_plan.landings.run_id;
    let pending_requests: Vec<UserRequest> =
        store.pending_requests(run_id)?.into_iter().map(|stored| stored.request).collect();
    for finding_id in &undo_plan.repaired_findings {
        let request = UserRequest::Amend { finding: *finding_id, was: None, change: Amendment::Open };
        if !pending_requests.contains(&request) {
            // No process works on the run that would ask who sent this.
            store.send_request(run_id, &request, "", Vec::new())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
