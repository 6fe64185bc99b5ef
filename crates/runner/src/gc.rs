//! Reclaims space in `.tribunal`: removes what no run will ever read again.
//!
//! That is workspaces of finished runs, temporary files of dead processes, blobs that no entry names, and, only on request,
//! whole runs that ended long ago. A run that waits, is parked, was halted or still has a process is never touched, nor are the
//! originals and checkpoints of a run that is kept. Unknown things stay: a directory is removed only if it is named after a run
//! of this journal or holds nothing but workspaces. No link is followed; if our own directories are links, nothing is done.
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

use tribunal_core::{
    event::Entry,
    ids::RunId,
    reason::Outcome,
    view::{Phase, RunView},
};
use tribunal_store::{Store, StoreError, Sweep, Swept, compact, sweep};

use crate::{
    copies::Copy,
    files,
    project::Project,
    refs,
    run::{Hold, Runner},
};

/// A journal up to this size is compacted in a second or two; writers wait much longer than that.
const QUICK: u64 = 64 << 20;

/// What may be removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Also removes whole runs that ended well before this wall time.
    pub runs_before_ms: Option<u64>,
    /// Compacts the journal's file however long that takes.
    pub compact: bool,
    /// Only reports what would be removed.
    pub dry: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum GcError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path} is a link")]
    Link { path: String },
    #[error("{path}: {cause}")]
    Unseen { path: String, cause: io::Error },
}

/// Something on disk that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Relative to the project's root.
    pub path: PathBuf,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// Directories that agents of finished runs worked in.
    pub copies: Vec<Item>,
    pub temporary: Vec<Item>,
    pub runs: Vec<RunId>,
    /// Texts from before those runs.
    pub originals: Vec<Item>,
    /// Texts before and after their landings, and those parked by an undo.
    pub checkpoints: Vec<Item>,
    pub journal: Swept,
    /// Runs that still have a process; while there are any the journal's file is not compacted.
    pub live: Vec<RunId>,
    /// The unused bytes of the journal's file, if giving them back would take too long.
    pub put_off: Option<u64>,
    /// What should have been removed and could not be, with the cause.
    pub left: Vec<String>,
}

impl Collected {
    /// Returns the freed bytes in files, entries and blobs.
    pub fn bytes(&self) -> u64 {
        let files = self.copies.iter().chain(&self.temporary).chain(&self.originals).chain(&self.checkpoints);
        files.map(|item| item.bytes).sum::<u64>() + self.journal.entry_bytes + self.journal.blob_bytes
    }
}

pub fn collect(project: &Project, wish: &Wish) -> Result<Collected, GcError> {
    refuse_links(project)?;
    // The directories are listed before the journal is read: a run is recorded before it creates its first workspace, so a
    // directory that is listed now and not recorded then belongs to no run.
    let copies = folders(&project.home().join("work"));
    let store = Store::open_read_only(&project.home())?;
    let views = views(&store)?;
    drop(store);
    // A run may be held without being listed as running: its keepers are still ending its agents.
    let live = held(project, views.keys());
    let old = wish.runs_before_ms.map(|before| old(project, &views, before)).unwrap_or_default();
    let runs: Vec<RunId> = old.into_iter().filter(|run| !live.contains(run)).collect();
    let gone: BTreeSet<&RunId> = runs.iter().collect();
    // A directory that is unknown to the journal is removed only if it looks exactly like ours.
    let copies = copies.into_iter().filter(|(run, folder)| match views.get(run) {
        Some(view) => matches!(view.phase, Phase::Finished(_)) && !live.contains(run),
        None => holds_only_copies(folder),
    });
    let of_gone = |name: &str| {
        let folders = folders(&project.home().join(name)).into_iter().filter(|(run, _)| gone.contains(run));
        folders.map(|(_, path)| path).collect::<Vec<PathBuf>>()
    };
    let originals = of_gone("originals");
    let checkpoints = [of_gone("checkpoints"), of_gone("parked")].concat();
    let copies: Vec<PathBuf> = copies.map(|(_, path)| path).collect();
    // The journal is swept first: files without a run are harmless, a run without its files is not.
    let journal = sweep(&project.home(), &Sweep { runs: runs.clone(), dry: wish.dry })?;
    let mut collected = Collected { runs, journal, live, ..Collected::default() };
    let mut remover = Remover { root: project.root(), dry: wish.dry, left: Vec::new() };
    collected.copies = remover.remove(copies);
    collected.originals = remover.remove(originals);
    collected.checkpoints = remover.remove(checkpoints);
    collected.temporary = remover.remove(litter(project, &views));
    collected.left = remover.left;
    if !wish.dry {
        collected.left.extend(forget(project, &collected.runs));
    }
    if !wish.dry {
        shorten(project, wish, &mut collected)?;
    }
    Ok(collected)
}

/// Deletes the git references of removed runs. Returns what is left, with the cause.
fn forget(project: &Project, runs: &[RunId]) -> Vec<String> {
    let forget = |run| refs::forget(project, run).err().map(|cause| format!("refs/tribunal/{run}: {cause}"));
    runs.iter().filter_map(forget).collect()
}

/// Refuses links in place of our directories: following one could remove files that are not ours.
fn refuse_links(project: &Project) -> Result<(), GcError> {
    let folders = ["work", "originals", "checkpoints", "parked"].map(|name| format!(".tribunal/{name}"));
    for name in [".tribunal".to_string()].iter().chain(&folders) {
        match fs::symlink_metadata(project.root().join(name)) {
            Ok(meta) if meta.is_symlink() => return Err(GcError::Link { path: name.to_string() }),
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(GcError::Unseen { path: name.to_string(), cause }),
        }
    }
    Ok(())
}

/// Returns the runs that still have a process, even if it is only a keeper that is ending agents.
fn held<'a>(project: &Project, runs: impl IntoIterator<Item = &'a RunId>) -> Vec<RunId> {
    runs.into_iter().filter(|run| Runner::hold(project, run) != Hold::Free).cloned().collect()
}

/// Compacts the journal. Checks again for held runs, also new ones: one may have been started or resumed meanwhile.
fn shorten(project: &Project, wish: &Wish, collected: &mut Collected) -> Result<(), StoreError> {
    collected.live = held(project, &Store::open_read_only(&project.home())?.runs()?);
    if !collected.live.is_empty() {
        return Ok(());
    }
    let compacted = compact(&project.home(), if wish.compact { u64::MAX } else { QUICK })?;
    collected.journal.file_after = compacted.bytes;
    collected.put_off = compacted.put_off;
    Ok(())
}

fn views(store: &Store) -> Result<BTreeMap<RunId, RunView>, StoreError> {
    let outline = store.outline()?;
    let runs = outline.chunk_by(|one, next| one.run == next.run);
    Ok(runs
        .filter_map(|entries: &[Entry]| Some((entries.first()?.run.clone(), RunView::of(entries))))
        .collect())
}

/// Returns runs that ended well, long enough ago. Runs that left something for the user stay, and so do those with a recent
/// undo: the parked files may still be wanted.
fn old(project: &Project, views: &BTreeMap<RunId, RunView>, before_ms: u64) -> Vec<RunId> {
    let good = |view: &RunView| match &view.phase {
        Phase::Finished(summary) => matches!(summary.outcome, Some(Outcome::Resolved | Outcome::Cancelled)),
        Phase::Running | Phase::Parked(_) => false,
    };
    let before = SystemTime::UNIX_EPOCH + Duration::from_millis(before_ms);
    let is_old =
        |path: &PathBuf| fs::metadata(path).and_then(|meta| meta.modified()).is_ok_and(|at| at < before);
    let left = |run: &RunId| inside(&project.parked(run)).iter().all(is_old);
    let old = views.iter().filter(|(run, view)| good(view) && view.last.wall_ms < before_ms && left(run));
    old.map(|(run, _)| run.clone()).collect()
}

/// Lists directories, but no links to any, with the runs they would be named after.
fn folders(folder: &Path) -> Vec<(RunId, PathBuf)> {
    let named = |path: PathBuf| Some((RunId::new(path.file_name()?.to_str()?), path));
    inside(folder).into_iter().filter(|path| is_folder(path)).filter_map(named).collect()
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path()).collect()
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Whether the directory of an unknown run has our layout, `KEY` or `KEY/NUMBER`, and nothing else in it.
fn holds_only_copies(folder: &Path) -> bool {
    let is_copy = |path: &PathBuf| {
        let copy = Copy::at(path.clone());
        is_folder(path) && is_folder(&copy.tree()) && copy.is_complete()
    };
    let all = |folder: &Path, fits: &dyn Fn(&PathBuf) -> bool| {
        let items = inside(folder);
        !items.is_empty() && items.iter().all(fits)
    };
    all(folder, &|desk| is_copy(desk) || (is_folder(desk) && all(desk, &is_copy)))
}

/// Finds temporary files of dead processes where Tribunal writes: beside subjects, trackers, decisions and originals. A
/// journal may have come with a clone, so paths outside the project are not looked at.
fn litter(project: &Project, views: &BTreeMap<RunId, RunView>) -> Vec<PathBuf> {
    let mut places = BTreeSet::from([project.home(), project.home().join("work")]);
    for (run, view) in views {
        let Some(settings) = &view.settings else { continue };
        places.extend(files::places(project, run, settings));
    }
    let inside = places.iter().filter(|folder| project.leads_out(folder).is_none());
    let plain = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    inside.flat_map(|folder| files::left_behind(folder)).filter(plain).collect()
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
            let done = match (self.dry, is_folder(&path)) {
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

/// Returns the size of a file, or of all files below a directory. Links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|item| size(&item.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::copies::Source;

    /// A project with a journal without runs, and files beside it that are not ours.
    fn project() -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path().join("project"));
        project.prepare_home().unwrap();
        Store::open(&project.home()).unwrap();
        fs::create_dir_all(folder.path().join("scratch/thesis")).unwrap();
        fs::write(folder.path().join("scratch/thesis/draft.md"), "three years\n").unwrap();
        (folder, project)
    }

    fn copy(project: &Project, path: &str) {
        fs::write(project.root().join("plan.md"), "# Plan\n").unwrap();
        let source = Source { root: project.root(), files: &["plan.md".to_string()], tree: None, seeds: &[] };
        Copy::at(project.home().join("work").join(path)).make(&source).unwrap();
    }

    #[test]
    fn where_our_folders_are_links_nothing_is_done() {
        for name in ["work", "originals", "checkpoints", "parked"] {
            let (folder, project) = project();
            symlink(folder.path().join("scratch"), project.home().join(name)).unwrap();
            let refused = collect(&project, &Wish::default()).unwrap_err();
            assert_eq!(refused.to_string(), format!(".tribunal/{name} is a link"));
            assert!(folder.path().join("scratch/thesis/draft.md").exists());
        }
        let (folder, project) = project();
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(project.home(), &elsewhere).unwrap();
        symlink(&elsewhere, project.home()).unwrap();
        assert_eq!(collect(&project, &Wish::default()).unwrap_err().to_string(), ".tribunal is a link");
    }

    #[test]
    fn only_what_has_our_layout_goes_and_links_stay() {
        let (folder, project) = project();
        let work = project.home().join("work");
        copy(&project, "ours-0000/round-1.freeze");
        copy(&project, "ours-0000/round-1.fix.1/1");
        copy(&project, "mixed-0000/round-1.freeze");
        fs::write(work.join("mixed-0000/notes.md"), "mine\n").unwrap();
        fs::create_dir_all(work.join("empty-0000")).unwrap();
        fs::create_dir_all(work.join("half-0000/round-1.freeze/tree")).unwrap();
        symlink(folder.path().join("scratch"), work.join("link-0000")).unwrap();
        let collected = collect(&project, &Wish::default()).unwrap();
        let gone: Vec<&Path> = collected.copies.iter().map(|item| item.path.as_path()).collect();
        assert_eq!(gone, [Path::new(".tribunal/work/ours-0000")]);
        assert!(!work.join("ours-0000").exists());
        for kept in ["mixed-0000/notes.md", "empty-0000", "half-0000/round-1.freeze/tree", "link-0000/thesis"]
        {
            assert!(work.join(kept).exists(), "{kept}");
        }
    }
}
