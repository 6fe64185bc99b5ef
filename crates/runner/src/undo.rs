//! Taking back what a run has landed, all of it or what repaired one finding.
//!
//! A landing is taken out of the file as it is now by a three-way merge, so that whatever people changed since stays; where
//! both changed the same lines, nothing is done. The file as it is now is parked first. A run that can go on is told through
//! its inbox that the findings are open again; the journal of one that has ended is left as it is.
//!
//! Every step can be repeated: killed in between, the same command does the rest.

use std::{
    fs, io,
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
    files::{Replacement, write_privately},
    landings::{Diff, Landing, Landings, LandingsError, without},
    locks::{self, Lock, Locked},
    merging::Lines,
    project::Project,
    run::{Hold, RunError, Runner, run_lock, subject_lock},
    subject::{SubjectError, is_plain, stays_inside},
};

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
    /// `alone`: no other landing is in the file that could be taken back instead, or before.
    #[error("{path} was changed in the same place since: {}", shown(lines))]
    Conflict { run: RunId, path: String, finding: Option<FindingId>, lines: Vec<Lines>, alone: bool },
    #[error("{path} is being changed right now")]
    Changing { path: String },
    #[error("{path} could not be parked: {cause}")]
    Parking { path: String, cause: io::Error },
    #[error("{path} could not be written: {cause}")]
    Writing { path: String, cause: io::Error },
}

impl From<StoreError> for UndoError {
    fn from(cause: StoreError) -> Self {
        UndoError::Landings(cause.into())
    }
}

fn shown(lines: &[Lines]) -> String {
    let each = lines.iter().map(|lines| match (lines.first, lines.last) {
        (first, last) if first == last => format!("line {first}"),
        (first, last) => format!("lines {first} to {last}"),
    });
    each.collect::<Vec<String>>().join(", ")
}

/// `F1, F4`.
pub fn listed(findings: &[FindingId]) -> String {
    findings.iter().map(FindingId::to_string).collect::<Vec<String>>().join(", ")
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
    now: String,
    then: String,
}

impl Plan {
    /// What it makes of the file.
    pub fn diff(&self) -> Diff {
        self.landings.between(&self.now, &self.then, false)
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
    /// The file as it was, relative to the project's root. None: it did not have to be changed.
    pub parked: Option<PathBuf>,
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
    let plan = plan(project, &store, run, finding)?;
    if let (Some(finding), false, others @ [_, ..]) = (finding, together, plan.others().as_slice()) {
        return Err(UndoError::Together { run: run.clone(), finding, others: others.to_vec() });
    }
    let parked = if plan.now == plan.then { None } else { Some(replace(project, &plan)?) };
    if !plan.landings.is_finished() {
        reopen(&store, &plan)?;
    }
    for landing in &plan.back {
        let marked = plan.landings.checkpoints.mark_undone(&landing.at);
        marked.map_err(|cause| LandingsError::Damaged { run: run.clone(), cause })?;
    }
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
    let mut changes = Vec::new();
    for landing in &back {
        changes.extend(landings.changes(landing)?);
    }
    if back.is_empty() {
        let (now, then) = (String::new(), String::new());
        return Ok(Plan { landings, finding, back, repaired: Vec::new(), now, then });
    }
    let now = current(project, &landings.path)?;
    let then = without(&now, &changes).map_err(|lines| {
        let in_place = landings.all.iter().filter(|it| !it.undone).count();
        let alone = if finding.is_some() { in_place == back.len() } else { in_place == 1 };
        UndoError::Conflict { run: run.clone(), path: landings.path.clone(), finding, lines, alone }
    })?;
    let is_fixed =
        |id: &FindingId| landings.view.findings.get(id).is_some_and(|it| it.status == Status::Fixed);
    let mut repaired: Vec<FindingId> =
        back.iter().flat_map(|it| &it.findings).copied().filter(is_fixed).collect();
    repaired.sort();
    repaired.dedup();
    Ok(Plan { landings, finding, back, repaired, now, then })
}

/// A landing of which nobody has recorded whether it happened is found out about when the run goes on, which would land it
/// again if it were gone by then.
fn refuse_under_way(project: &Project, landings: &Landings) -> Result<(), UndoError> {
    for at in landings.under_way.iter().filter(|_| !landings.is_finished()) {
        let run = landings.run.clone();
        let tries = landings.checkpoints.changes(at);
        let tries = tries.map_err(|cause| LandingsError::Damaged { run: run.clone(), cause })?;
        let Some(last) = tries.last() else { continue };
        if current(project, &landings.path).is_ok_and(|now| now == last.before) {
            continue;
        }
        return Err(UndoError::UnderWay { run });
    }
    Ok(())
}

/// The file as it is now, if it still is one.
fn current(project: &Project, path: &str) -> Result<String, UndoError> {
    let shown = || path.to_string();
    if !is_plain(path) || path.is_empty() {
        let root = project.root().display().to_string();
        return Err(SubjectError::Outside { path: shown(), root }.into());
    }
    let real = project.root().join(path);
    match fs::symlink_metadata(&real) {
        Ok(meta) if meta.is_symlink() => return Err(UndoError::Link { path: shown() }),
        Ok(meta) if meta.is_dir() => return Err(SubjectError::Folder { path: shown() }.into()),
        Ok(meta) if !meta.is_file() => return Err(SubjectError::Special { path: shown() }.into()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            return Err(SubjectError::Missing { path: shown() }.into());
        }
        _ => {}
    }
    stays_inside(project.root(), path)?;
    let bytes = fs::read(&real).map_err(|cause| SubjectError::Unreadable { path: shown(), cause })?;
    String::from_utf8(bytes).map_err(|_| SubjectError::Binary { path: shown(), why: "it is no UTF-8" }.into())
}

/// Parks the file, then replaces it. Where it was parked.
fn replace(project: &Project, plan: &Plan) -> Result<PathBuf, UndoError> {
    let path = &plan.landings.path;
    let parked = park(project, plan).map_err(|cause| UndoError::Parking { path: path.clone(), cause })?;
    let real = project.root().join(path);
    let failed = |cause| UndoError::Writing { path: path.clone(), cause };
    let replacement = Replacement::prepare(&real, plan.then.as_bytes()).map_err(failed)?;
    // The last look stands right before the rename.
    if current(project, path)? != plan.now {
        return Err(UndoError::Changing { path: path.clone() });
    }
    replacement.put().map_err(failed)?;
    Ok(parked.strip_prefix(project.root()).map(Path::to_path_buf).unwrap_or(parked))
}

fn park(project: &Project, plan: &Plan) -> io::Result<PathBuf> {
    let folder = project.parked(&plan.landings.run);
    if let Some(there) = project.leads_out(&folder) {
        return Err(io::Error::other(format!("it would go out of the project, to {}", there.display())));
    }
    let name = Path::new(&plan.landings.path).file_name().unwrap_or_default().to_string_lossy();
    let mut number = 1;
    let parked = loop {
        let path = folder.join(format!("{number}-{name}"));
        if fs::symlink_metadata(&path).is_err() {
            break path;
        }
        number += 1;
    };
    write_privately(&parked, plan.now.as_bytes())?;
    Ok(parked)
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
