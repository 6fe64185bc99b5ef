//! Taking back what a run has landed, all of it or what repaired one finding.
//!
//! A landing is taken out of its files as they are now by a three-way merge, so that whatever people changed since stays;
//! where both changed the same lines, nothing is done. A file that it made goes, if it is as it was made; one that it deleted
//! comes back. Nothing is changed unless all files can be, and all of them are parked first. A run that can go on is told
//! through its inbox that the findings are open again; the journal of one that has ended is left as it is.
//!
//! Every step can be repeated: killed in between, the same command does the rest. Which files it had come to is kept with the
//! checkpoints until all is done.

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
    /// `alone`: no other landing is in the files that could be taken back instead, or before.
    #[error("{}", clashing(clashes))]
    Conflict { run: RunId, finding: Option<FindingId>, clashes: Vec<(String, Clash)>, alone: bool },
    /// `begun`: other files were taken back already; the same command does the rest.
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

/// What would be done.
#[derive(Debug)]
pub struct Plan {
    pub landings: Landings,
    /// The one that was named.
    pub finding: Option<FindingId>,
    /// To be taken back, in the order in which they landed.
    pub back: Vec<Landing>,
    /// What of that is taken for repaired now.
    pub repaired: Vec<FindingId>,
    /// All that the landings changed, in the order of their paths.
    pub files: Vec<FilePlan>,
}

/// What would be done to one file. None: it is not there.
#[derive(Debug)]
pub struct FilePlan {
    pub path: String,
    now: Option<String>,
    then: Option<String>,
    /// The permissions it comes back with.
    mode: Option<u32>,
}

impl FilePlan {
    /// It has nothing of what would be taken back.
    pub fn stays(&self) -> bool {
        self.now == self.then
    }
}

impl Plan {
    /// What it makes of the files.
    pub fn diff(&self) -> Diff {
        let changed =
            self.changed().map(|it| FileDiff::between(&it.path, it.now.as_deref(), it.then.as_deref()));
        Diff { files: changed.collect(), mixed: false }
    }

    fn changed(&self) -> impl Iterator<Item = &FilePlan> {
        self.files.iter().filter(|file| !file.stays())
    }

    /// The one file it is about, if it is about one.
    pub fn path(&self) -> Option<&str> {
        match self.files.as_slice() {
            [file] => Some(&file.path),
            _ => self.landings.path(),
        }
    }

    /// What else goes with the finding that was named: it was repaired by the same change.
    pub fn others(&self) -> Vec<FindingId> {
        let named = self.finding;
        self.repaired.iter().copied().filter(|id| named.is_some_and(|named| named != *id)).collect()
    }
}

/// What was done.
#[derive(Debug)]
pub struct Done {
    pub plan: Plan,
    /// Where the files are as they were, relative to the project's root; of those that had to be changed and were there.
    pub parked: BTreeMap<String, PathBuf>,
}

/// What taking back would do. Changes nothing.
pub fn preview(project: &Project, run: &RunId, finding: Option<FindingId>) -> Result<Plan, UndoError> {
    if Runner::hold(project, run) != Hold::Free {
        return Err(RunError::RunBusy { run: run.clone() }.into());
    }
    plan(project, &Store::open_read_only(&project.home())?, run, finding)
}

/// Takes back. `together`: also what the same change repaired beside the finding that was named.
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
    // Nobody else works on the run or on its file until this is done.
    let _held = hold(project, &store, run)?;
    let alone = locks::alone(&project.locks());
    let _alone = alone.map_err(|cause| RunError::Project { project: project.home(), cause })?;
    let plan = plan(project, &store, run, finding)?;
    if let (Some(finding), false, others @ [_, ..]) = (finding, together, plan.others().as_slice()) {
        return Err(UndoError::Together { run: run.clone(), finding, others: others.to_vec() });
    }
    // What an earlier life left behind.
    let settings = plan.landings.view.settings.iter();
    let ours = settings.flat_map(|settings| places(project, run, settings));
    ours.filter(|folder| project.leads_out(folder).is_none()).for_each(|folder| sweep(&folder));
    let parked = replace(project, &plan)?;
    if !plan.landings.is_finished() {
        reopen(&store, &plan)?;
    }
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

/// What becomes of every file.
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

/// What an earlier life has taken out of a file before it was killed.
fn taken_out<'a>(begun: &'a [Begun], path: &str, now: Option<&str>) -> Vec<&'a At> {
    let is_out = |change: &Change| change.path == path && change.is_in(now);
    begun.iter().filter(|it| it.changes.iter().any(is_out)).flat_map(|it| &it.landings).collect()
}

/// A landing of which nobody has recorded whether it happened is found out about when the run goes on, which would land it
/// again if it were gone by then.
fn refuse_under_way(project: &Project, landings: &Landings) -> Result<(), UndoError> {
    let untouched =
        |path: &str, change: &Change| current(project, path).is_ok_and(|now| now == change.before);
    for at in landings.under_way.iter().filter(|_| !landings.is_finished()) {
        let tries = landings.checkpoints.changes(at).map_err(|cause| landings.damaged(cause))?;
        // Of each file the last.
        let last: BTreeMap<&str, &Change> =
            tries.iter().map(|change| (change.path.as_str(), change)).collect();
        if !last.iter().all(|(path, change)| untouched(path, change)) {
            return Err(UndoError::UnderWay { run: landings.run.clone() });
        }
    }
    Ok(())
}

/// The file as it is now, if it still is one. None: nothing is there.
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

/// Parks the files, then replaces them, one after the other. Where they were parked.
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
    let begun = plan.landings.checkpoints.begin(&landings, &changes);
    begun.map_err(|cause| plan.landings.damaged(cause))?;
    for (number, (file, real, replacement)) in prepared.into_iter().enumerate() {
        // The last look stands right before the rename.
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

/// None: it is to go.
fn prepare<'a>(file: &FilePlan, real: &'a Path) -> io::Result<Option<Replacement<'a>>> {
    let Some(then) = &file.then else { return Ok(None) };
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

/// Forgets what was begun and is done.
fn clear(landings: &Landings) -> io::Result<()> {
    let is_done = |at: &At| landings.checkpoints.is_undone(at);
    for begun in landings.checkpoints.begun()? {
        if begun.landings.iter().all(is_done) {
            landings.checkpoints.end(begun.number)?;
        }
    }
    Ok(())
}

/// Tells the run, once.
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
