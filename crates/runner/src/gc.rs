//! Reclaiming space in `.tribunal`: what no run will ever read again.
//!
//! Copies of runs that ended, temporary files of processes that died, blobs that no entry names, and, only if asked for,
//! whole runs that ended long ago. A run that waits, is parked, was halted or is worked on is never touched, nor the
//! originals of a run that is kept. What it cannot make sense of stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use tribunal_core::{
    event::Entry,
    ids::RunId,
    reason::Outcome,
    view::{Phase, RunView},
};
use tribunal_store::{Store, StoreError, Sweep, Swept, sweep};

use crate::{files, project::Project, run::Runner};

/// What may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Also whole runs that came to a good end before this wall time.
    pub runs_before_ms: Option<u64>,
    /// Only say what would go.
    pub dry: bool,
}

/// Something on disk that went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Relative to the project's root.
    pub path: PathBuf,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Folders that agents of ended runs worked in.
    pub copies: Vec<Item>,
    pub temporary: Vec<Item>,
    pub runs: Vec<RunId>,
    /// Texts from before those runs.
    pub originals: Vec<Item>,
    pub journal: Swept,
    /// Runs that are worked on; while there are any the journal is not compacted.
    pub live: Vec<RunId>,
    /// What should have gone and could not be removed, with the cause.
    pub left: Vec<String>,
}

impl Collected {
    /// In files, entries and blobs.
    pub fn bytes(&self) -> u64 {
        let files = self.copies.iter().chain(&self.temporary).chain(&self.originals);
        files.map(|item| item.bytes).sum::<u64>() + self.journal.entry_bytes + self.journal.blob_bytes
    }
}

pub fn collect(project: &Project, wish: &Wish) -> Result<Collected, StoreError> {
    // Folders first, then the journal: a run is recorded before it makes its first copy, so whatever is listed now and not
    // recorded then belongs to no run.
    let copies = folders(&project.home().join("work"));
    let store = Store::open_read_only(&project.home())?;
    let views = views(&store)?;
    drop(store);
    let mut collected = Collected {
        live: views.keys().filter(|run| Runner::is_live(project, run)).cloned().collect(),
        runs: wish.runs_before_ms.map(|before| old(&views, before)).unwrap_or_default(),
        ..Collected::default()
    };
    let gone: BTreeSet<&RunId> = collected.runs.iter().collect();
    let ended = |run: &RunId| views.get(run).is_none_or(|view| matches!(view.phase, Phase::Finished(_)));
    let copies = copies.into_iter().filter(|(run, _)| ended(run) && !collected.live.contains(run));
    let originals =
        folders(&project.home().join("originals")).into_iter().filter(|(run, _)| gone.contains(run));
    let (copies, originals): (Vec<_>, Vec<_>) = (copies.collect(), originals.collect());
    let compact = collected.live.is_empty();
    collected.journal =
        sweep(&project.home(), &Sweep { runs: collected.runs.clone(), dry: wish.dry, compact })?;
    let mut remover = Remover { root: project.root(), dry: wish.dry, left: Vec::new() };
    collected.copies = remover.remove(copies.into_iter().map(|(_, path)| path));
    collected.originals = remover.remove(originals.into_iter().map(|(_, path)| path));
    collected.temporary = remover.remove(litter(project, &views));
    collected.left = remover.left;
    Ok(collected)
}

fn views(store: &Store) -> Result<BTreeMap<RunId, RunView>, StoreError> {
    let outline = store.outline()?;
    let runs = outline.chunk_by(|one, next| one.run == next.run);
    Ok(runs
        .filter_map(|entries: &[Entry]| Some((entries.first()?.run.clone(), RunView::of(entries))))
        .collect())
}

/// Runs that came to a good end, long enough ago. Those that ended with something left for a person stay.
fn old(views: &BTreeMap<RunId, RunView>, before_ms: u64) -> Vec<RunId> {
    let good = |view: &RunView| match &view.phase {
        Phase::Finished(summary) => matches!(summary.outcome, Some(Outcome::Resolved | Outcome::Cancelled)),
        Phase::Running | Phase::Parked(_) => false,
    };
    let old = views.iter().filter(|(_, view)| good(view) && view.last.wall_ms < before_ms);
    old.map(|(run, _)| run.clone()).collect()
}

/// Folders that are named after a run.
fn folders(folder: &Path) -> Vec<(RunId, PathBuf)> {
    let items = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = items.filter(|item| item.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|item| (RunId::new(item.file_name().to_string_lossy()), item.path())).collect()
}

/// Temporary files of dead processes, where Tribunal writes: beside subjects, trackers, decisions and originals.
fn litter(project: &Project, views: &BTreeMap<RunId, RunView>) -> Vec<PathBuf> {
    let mut places = BTreeSet::from([project.home()]);
    for (run, view) in views {
        let Some(settings) = &view.settings else { continue };
        places.extend(files::places(project, run, settings));
    }
    places.iter().flat_map(|folder| files::left_behind(folder)).collect()
}

struct Remover<'a> {
    root: &'a Path,
    dry: bool,
    left: Vec<String>,
}

impl Remover<'_> {
    fn remove(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<Item> {
        let mut removed = Vec::new();
        for path in paths {
            let relative = path.strip_prefix(self.root).unwrap_or(&path).to_path_buf();
            let bytes = size(&path);
            let done = match (self.dry, path.is_dir()) {
                (true, _) => Ok(()),
                (false, true) => fs::remove_dir_all(&path),
                (false, false) => fs::remove_file(&path),
            };
            match done {
                Ok(()) => removed.push(Item { path: relative, bytes }),
                Err(cause) => self.left.push(format!("{}: {cause}", relative.display())),
            }
        }
        removed
    }
}

/// Of a file, or of all files below a folder. Links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|item| size(&item.path())).sum()
}
