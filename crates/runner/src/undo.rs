//! Undoes what a run has landed, either everything or what repaired one finding.
//!
//! A landing is removed from the current files by a three-way merge, so that all later edits stay; where both changed the same
//! lines, nothing is done. A file that a landing created is removed if it was not edited since; a deleted one is restored.
//! Nothing is changed unless all files can be, and all of them are parked first. A run that can continue learns through its
//! inbox that the findings are open again; the journal of a finished run stays as it is.
//!
//! Every step can be repeated: after a crash the same command does the rest. The checkpoints record which files were done until
//! all of them are.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tribunal_core::{
    effect::{Change as Amendment, Request},
    finding::Status,
    ids::{FindingId, RunId},
};
use tribunal_store::{Store, StoreError};

use crate::{
    checkpoints::{At, Begun, Change},
    fault,
    files::{Replacement, places, sweep},
    landings::{Clash, Diff, FileDiff, Landing, Landings, LandingsError, without},
    locks::{self, Lock, Locked},
    merging::Lines,
    parking::park_file,
    project::Project,
    run::{Hold, RunError, Runner, run_lock, subject_lock},
    subject::{SubjectError, is_plain, stays_inside},
};

pub use crate::refs::{listed, reference};

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Landings(#[from] LandingsError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error("run {run} was killed while a change was being landed")]
    UnderWay { run: RunId },
    #[error("the change that repaired {finding} also repaired {}", listed(others))]
    Together { run: RunId, finding: FindingId, others: Vec<FindingId> },
    #[error("{path} is a link now")]
    Link { path: String },
    /// `alone`: the files contain no other landing that could be undone instead, or before.
    #[error("{}", clashing(clashes))]
    Conflict { run: RunId, finding: Option<FindingId>, clashes: Vec<(String, Clash)>, alone: bool },
    /// `begun`: other files were already restored; the same command does the rest.
    #[error("{path} is being changed right now")]
    Changing { path: String, begun: bool },
    #[error("{path} could not be parked: {cause}")]
    Parking { path: String, cause: io::Error },
    #[error("{path} could not be written: {cause}")]
    Writing { path: String, cause: io::Error, begun: bool },
}

impl From<StoreError> for UndoError {
    fn from(cause: StoreError) -> Self {
        UndoError::Landings(cause.into())
    }
}

fn clashing(clashes: &[(String, Clash)]) -> String {
    let each = clashes.iter().map(|(path, clash)| match clash {
        Clash::Lines(lines) => format!("{path} was changed in the same place since: {}", shown(lines)),
        Clash::Gone => format!("{path} is gone"),
        Clash::NotAsMade => format!("{path} was made by the run and changed since"),
        Clash::ThereAgain => format!("{path} was deleted by the run and is there again"),
    });
    each.collect::<Vec<String>>().join("; ")
}

fn shown(lines: &[Lines]) -> String {
    let each = lines.iter().map(|lines| match (lines.first, lines.last) {
        (first, last) if first == last => format!("line {first}"),
        (first, last) => format!("lines {first} to {last}"),
    });
    each.collect::<Vec<String>>().join(", ")
}

/// What an undo would do.
#[derive(Debug)]
pub struct Plan {
    pub landings: Landings,
    /// The finding that was named.
    pub finding: Option<FindingId>,
    /// The landings to undo, in the order in which they landed.
    pub back: Vec<Landing>,
    /// The findings among them that currently count as repaired.
    pub repaired: Vec<FindingId>,
    /// All files that the landings changed, in the order of their paths.
    pub files: Vec<FilePlan>,
}

/// What would be done to one file. A text is `None` if the file does not exist.
#[derive(Debug)]
pub struct FilePlan {
    pub path: String,
    now: Option<String>,
    then: Option<String>,
    /// The permissions that a deleted file gets back.
    mode: Option<u32>,
}

impl FilePlan {
    /// Whether the file contains nothing that would be undone.
    pub fn stays(&self) -> bool {
        self.now == self.then
    }
}

impl Plan {
    /// Returns what the undo changes in the files.
    pub fn diff(&self) -> Diff {
        let changed =
            self.changed().map(|it| FileDiff::between(&it.path, it.now.as_deref(), it.then.as_deref()));
        Diff { files: changed.collect(), mixed: false }
    }

    fn changed(&self) -> impl Iterator<Item = &FilePlan> {
        self.files.iter().filter(|file| !file.stays())
    }

    /// Returns the single file that the plan covers, if there is only one.
    pub fn path(&self) -> Option<&str> {
        match self.files.as_slice() {
            [file] => Some(&file.path),
            _ => self.landings.path(),
        }
    }

    /// Returns the other findings that the same changes repaired.
    pub fn others(&self) -> Vec<FindingId> {
        let named = self.finding;
        self.repaired.iter().copied().filter(|id| named.is_some_and(|named| named != *id)).collect()
    }
}

/// The result of an undo.
#[derive(Debug)]
pub struct Done {
    pub plan: Plan,
    /// Where the replaced files were parked, relative to the project's root; only of files that existed and had to change.
    pub parked: BTreeMap<String, PathBuf>,
}

/// Returns what an undo would do. Changes nothing.
pub fn preview(project: &Project, run: &RunId, finding: Option<FindingId>) -> Result<Plan, UndoError> {
    if Runner::hold(project, run) != Hold::Free {
        return Err(RunError::RunBusy { run: run.clone() }.into());
    }
    plan(project, &Store::open_read_only(&project.home())?, run, finding)
}

/// Undoes landings. `include_others`: also those repairs that the same change made beside the finding that was named.
pub fn carry_out(
    project: &Project,
    run: &RunId,
    finding: Option<FindingId>,
    together: bool,
) -> Result<Done, UndoError> {
    for folder in ["", "/locks", "/checkpoints", "/parked", "/journal.db"] {
        let path = format!(".tribunal{folder}");
        if let Some(to) = project.leads_out(&project.root().join(&path)) {
            return Err(RunError::LeadsOut { path, to }.into());
        }
    }
    let store = Store::open(&project.home())?;
    // Until this is done no other process may work on the run or on its subject.
    let _held = hold(project, &store, run)?;
    let alone = locks::alone(&project.locks());
    let _alone = alone.map_err(|cause| RunError::Project { project: project.home(), cause })?;
    // The plan is made again under the locks: the preview may be outdated.
    let plan = plan(project, &store, run, finding)?;
    if let (Some(finding), false, others @ [_, ..]) = (finding, together, plan.others().as_slice()) {
        return Err(UndoError::Together { run: run.clone(), finding, others: others.to_vec() });
    }
    // Temporary files of an earlier process that was killed.
    let settings = plan.landings.view.settings.iter();
    let ours = settings.flat_map(|settings| places(project, run, settings));
    ours.filter(|folder| project.leads_out(folder).is_none()).for_each(|folder| sweep(&folder));
    let parked = replace(project, &plan)?;
    if !plan.landings.is_finished() {
        reopen(&store, &plan)?;
    }
    // The landings are marked only after the run's inbox has the requests, so that a crash in between repeats both.
    for landing in &plan.back {
        let marked = plan.landings.checkpoints.mark_undone(&landing.at);
        marked.map_err(|cause| plan.landings.damaged(cause))?;
    }
    clear(&plan.landings).map_err(|cause| plan.landings.damaged(cause))?;
    Ok(Done { plan, parked })
}

fn hold(project: &Project, store: &Store, run: &RunId) -> Result<[Lock; 2], UndoError> {
    let failed = |cause| RunError::Project { project: project.home(), cause };
    project.prepare_home().map_err(failed)?;
    let settings = Landings::read(project, store, run)?.view.settings;
    let settings = settings.ok_or_else(|| RunError::NoRun { run: run.clone() })?;
    // There is no waiting: a run that is being worked on cannot be undone at the same time.
    let take = |what: &str| locks::take(&project.locks(), what, run, Duration::ZERO, &mut || {});
    let own = take(&run_lock(run)).map_err(|locked| match locked {
        Locked::By(_) => RunError::RunBusy { run: run.clone() },
        Locked::Failed(cause) => failed(cause),
    })?;
    let subject = take(&subject_lock(&settings)).map_err(|locked| match locked {
        Locked::By(by) => RunError::SubjectBusy { subject: settings.subject.title(), by: by.run },
        Locked::Failed(cause) => failed(cause),
    })?;
    Ok([own, subject])
}

fn plan(
    project: &Project,
    store: &Store,
    run: &RunId,
    finding: Option<FindingId>,
) -> Result<Plan, UndoError> {
    let landings = Landings::read(project, store, run)?;
    let back: Vec<Landing> = landings.of(finding)?.into_iter().filter(|it| !it.undone).cloned().collect();
    refuse_under_way(project, &landings)?;
    let files = files(project, &landings, &back, finding)?;
    let is_fixed =
        |id: &FindingId| landings.view.findings.get(id).is_some_and(|it| it.status == Status::Fixed);
    let mut repaired: Vec<FindingId> =
        back.iter().flat_map(|it| &it.findings).copied().filter(is_fixed).collect();
    repaired.sort();
    repaired.dedup();
    Ok(Plan { landings, finding, back, repaired, files })
}

/// Plans what happens to every file.
fn files(
    project: &Project,
    landings: &Landings,
    back: &[Landing],
    finding: Option<FindingId>,
) -> Result<Vec<FilePlan>, UndoError> {
    let begun = landings.checkpoints.begun().map_err(|cause| landings.damaged(cause))?;
    let mut modes = BTreeMap::new();
    for landing in back {
        modes.extend(landings.checkpoints.modes(&landing.at).map_err(|cause| landings.damaged(cause))?);
    }
    let (mut files, mut clashes) = (Vec::new(), Vec::new());
    // All clashes are collected, so that the user learns about every file at once.
    for (path, changes) in landings.by_file(&back.iter().collect::<Vec<&Landing>>())? {
        let now = current(project, &path)?;
        let out = taken_out(&begun, &path, now.as_deref());
        let left = changes.iter().filter(|(landing, _)| !out.contains(&&landing.at));
        match without(now.as_deref(), &left.map(|(_, change)| change).collect::<Vec<&Change>>()) {
            Ok(then) => files.push(FilePlan { mode: modes.remove(&path), path, now, then }),
            Err(Clash::Gone) => return Err(SubjectError::Missing { path }.into()),
            Err(clash) => clashes.push((path, clash)),
        }
    }
    if clashes.is_empty() {
        return Ok(files);
    }
    let in_place = landings.all.iter().filter(|it| !it.undone).count();
    let alone = if finding.is_some() { in_place == back.len() } else { in_place == 1 };
    Err(UndoError::Conflict { run: landings.run.clone(), finding, clashes, alone })
}

/// Returns the landings that an earlier process had already removed from a file before it was killed.
fn taken_out<'a>(begun: &'a [Begun], path: &str, now: Option<&str>) -> Vec<&'a At> {
    let is_out = |change: &Change| change.path == path && change.is_in(now);
    begun.iter().filter(|it| it.changes.iter().any(is_out)).flat_map(|it| &it.landings).collect()
}

/// Refuses an undo while the outcome of a landing is unknown. The run settles it when it continues, and would land the change
/// again if it were gone by then.
fn refuse_under_way(project: &Project, landings: &Landings) -> Result<(), UndoError> {
    let untouched =
        |path: &str, change: &Change| current(project, path).is_ok_and(|now| now == change.before);
    for at in landings.under_way.iter().filter(|_| !landings.is_finished()) {
        let tries = landings.checkpoints.changes(at).map_err(|cause| landings.damaged(cause))?;
        // Of several attempts at a file only the last one counts.
        let last: BTreeMap<&str, &Change> =
            tries.iter().map(|change| (change.path.as_str(), change)).collect();
        if !last.iter().all(|(path, change)| untouched(path, change)) {
            return Err(UndoError::UnderWay { run: landings.run.clone() });
        }
    }
    Ok(())
}

/// Reads the current text of a file. Returns `None` if nothing is there.
fn current(project: &Project, path: &str) -> Result<Option<String>, UndoError> {
    let shown = || path.to_string();
    let outside = || SubjectError::Outside { path: shown(), root: project.root().display().to_string() };
    if !is_plain(path) || path.is_empty() {
        return Err(outside().into());
    }
    let real = project.root().join(path);
    match fs::symlink_metadata(&real) {
        Ok(meta) if meta.is_symlink() => return Err(UndoError::Link { path: shown() }),
        Ok(meta) if meta.is_dir() => return Err(SubjectError::Folder { path: shown() }.into()),
        Ok(meta) if !meta.is_file() => return Err(SubjectError::Special { path: shown() }.into()),
        // A missing file may still be reached through a link that leads out of the project.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return if project.leads_out(&real).is_some() { Err(outside().into()) } else { Ok(None) };
        }
        _ => {}
    }
    stays_inside(project.root(), path)?;
    let bytes = fs::read(&real).map_err(|cause| SubjectError::Unreadable { path: shown(), cause })?;
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| SubjectError::Binary { path: shown(), why: "it is no UTF-8" }.into())
}

/// Parks the files, then replaces them one after the other. Returns where they were parked.
fn replace(project: &Project, plan: &Plan) -> Result<BTreeMap<String, PathBuf>, UndoError> {
    let changed: Vec<&FilePlan> = plan.changed().collect();
    let mut parked = BTreeMap::new();
    for FilePlan { path, now, .. } in &changed {
        let Some(now) = now else { continue };
        let there = park_file(project, &plan.landings.run, path, now.as_bytes());
        let there = there.map_err(|cause| UndoError::Parking { path: path.clone(), cause })?;
        parked.insert(path.clone(), there);
    }
    if changed.is_empty() {
        return Ok(parked);
    }
    let steps: Vec<PathBuf> = changed.iter().map(|file| project.root().join(&file.path)).collect();
    // Everything is prepared before the first file changes, so that a full disk cannot leave half an undo.
    let mut prepared = Vec::new();
    for (file, real) in changed.iter().zip(&steps) {
        real.parent().into_iter().for_each(sweep);
        prepared.push((*file, real, prepare(file, real).map_err(|cause| file.unwritten(cause, false))?));
    }
    for file in &changed {
        file.look_again(project, false)?;
    }
    let landings: Vec<At> = plan.back.iter().map(|landing| landing.at.clone()).collect();
    let changes: Vec<Change> = changed.iter().map(|file| file.change()).collect();
    // From here on a crash leaves a record that tells which of the files are done.
    let begun = plan.landings.checkpoints.begin(&landings, &changes);
    begun.map_err(|cause| plan.landings.damaged(cause))?;
    for (number, (file, real, replacement)) in prepared.into_iter().enumerate() {
        // The last comparison comes right before the rename.
        file.look_again(project, number > 0)?;
        let put = match replacement {
            Some(replacement) => replacement.put(),
            None => remove(real),
        };
        put.map_err(|cause| file.unwritten(cause, number > 0))?;
    }
    Ok(parked)
}

impl FilePlan {
    fn change(&self) -> Change {
        Change { path: self.path.clone(), before: self.now.clone(), after: self.then.clone() }
    }

    fn look_again(&self, project: &Project, begun: bool) -> Result<(), UndoError> {
        match current(project, &self.path) {
            Ok(now) if now == self.now => Ok(()),
            _ => Err(UndoError::Changing { path: self.path.clone(), begun }),
        }
    }

    fn unwritten(&self, cause: io::Error, begun: bool) -> UndoError {
        UndoError::Writing { path: self.path.clone(), cause, begun }
    }
}

/// Prepares the new content. Returns `None` if the file is to be removed.
fn prepare<'a>(file: &FilePlan, real: &'a Path) -> io::Result<Option<Replacement<'a>>> {
    let Some(then) = &file.then else { return Ok(None) };
    // Only a file that is gone gets its recorded permissions; an existing one keeps its own.
    let replacement = match file.mode.filter(|_| file.now.is_none()) {
        Some(mode) => Replacement::prepare_as(real, then.as_bytes(), mode),
        None => Replacement::prepare(real, then.as_bytes()),
    };
    replacement.map(Some)
}

fn remove(real: &Path) -> io::Result<()> {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    fault::point(&format!("remove:{name}"), "before");
    fs::remove_file(real)?;
    fault::point(&format!("remove:{name}"), "after");
    real.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Removes the records of undos that are complete.
fn clear(landings: &Landings) -> io::Result<()> {
    let is_done = |at: &At| landings.checkpoints.is_undone(at);
    for begun in landings.checkpoints.begun()? {
        if begun.landings.iter().all(is_done) {
            landings.checkpoints.end(begun.number)?;
        }
    }
    Ok(())
}

/// Requests that the run opens the findings again, unless the inbox has the request already.
fn reopen(store: &Store, plan: &Plan) -> Result<(), StoreError> {
    let run = &plan.landings.run;
    let told: Vec<Request> = store.requests(run)?.into_iter().map(|stored| stored.request).collect();
    for finding in &plan.repaired {
        let request = Request::Amend { finding: *finding, was: None, change: Amendment::Open };
        if !told.contains(&request) {
            store.request(run, &request)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
