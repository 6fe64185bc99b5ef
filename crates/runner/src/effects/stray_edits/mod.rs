//! Stray edits: what changed in the user's project while an agent worked, other than by a landing.
//!
//! Whether the agent or the user made such an edit cannot be told from here, so the workflow asks. The earlier content is
//! stored first, so that it can be put back ([`restoring`]). An agent that cannot write to the project is not watched.

mod restoring;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tribunal_engine::{
    files::{PathState, StrayEdit},
    ids::Hash,
};

use super::EffectContext;
use crate::{
    git::{git_command, run_checked},
    landing::checkpoints::{CheckpointStore, OwnTexts},
    locks,
    project::{
        atomic_files::TEMPORARY_PREFIX,
        subject::{find_link_on_path, is_plain_path},
    },
    session::state_file::OWN_STATE_FILE,
    workspaces::{
        ChangeGroup, EntryChange, EntryKind, PriorContent, PriorContents, PriorSource, ProjectScan, ScannedEntry,
        TaskWorkspace, group_changes,
    },
};

pub(super) use restoring::restore_stray;

/// Longer files are not stored.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// The project as it was when an agent began to work.
#[derive(Debug)]
pub(super) struct ProjectWatch {
    scan: Arc<ProjectScan>,
    prior_contents: PriorContents,
}

/// Starts to watch the project for an agent, which works in `task_copy` if it has a copy of the project. Changes from before
/// that are not the agent's. Returns `None` if the agent cannot write to the project.
pub(super) fn start_watch(
    context: &EffectContext,
    task_copy: Option<&TaskWorkspace>,
) -> io::Result<Option<ProjectWatch>> {
    if !context.sandbox_policy().can_write_project() {
        return Ok(None);
    }
    let shared_scans = &context.memory.project_scans;
    let project_root = context.project.root();
    let scan = shared_scans.scan_project(project_root, &excluded_paths(context));
    let source = PriorSource { project_root, scan: &scan, shared_scans };
    let mut prior_contents = PriorContents::default();
    let is_whole = match task_copy.filter(|_| copies_project(context)) {
        Some(workspace) => prior_contents.add_copied_files(source, workspace)?,
        None => false,
    };
    if !is_whole {
        let checkpoints = CheckpointStore::for_run(&context.project, &context.run_id);
        prior_contents.add_listed_files(source, &checkpoints);
    }
    Ok(Some(ProjectWatch { scan, prior_contents }))
}

/// Whether agents get copies of the user's files. A run within a clone copies those of the clone, which say nothing about the
/// user's.
fn copies_project(context: &EffectContext) -> bool {
    context.project.tree_root() == context.project.root()
}

/// Lists the directories in which every file is Tribunal's.
pub(super) fn own_directories(context: &EffectContext) -> [String; 2] {
    context.settings.own_folders().list_all().map(|folder| format!("{folder}/"))
}

/// Lists what is not watched: git's and our own files, and clones that the settings put into the project.
fn excluded_paths(context: &EffectContext) -> HashSet<PathBuf> {
    let own_dirs = own_directories(context).map(|directory| PathBuf::from(directory.trim_end_matches('/')));
    let clones_root = context.workspace_home().ok().and_then(|home| {
        let clones_root = home.clones_root.strip_prefix(context.project.root()).ok()?.to_path_buf();
        (!clones_root.as_os_str().is_empty()).then_some(clones_root)
    });
    let fixed_paths = [".git", ".tribunal", OWN_STATE_FILE].map(PathBuf::from);
    fixed_paths.into_iter().chain(own_dirs).chain(clones_root).collect()
}

impl ProjectWatch {
    /// Returns everything that is no longer as it was when the agent began.
    pub fn find_stray_edits(&self, context: &EffectContext, task_copy: Option<&TaskWorkspace>) -> Vec<StrayEdit> {
        let project_root = context.project.root();
        let excluded = excluded_paths(context);
        let current_scan = context.memory.project_scans.scan_project(project_root, &excluded);
        let checkpoints = CheckpointStore::for_run(&context.project, &context.run_id);
        let task_copy = task_copy.filter(|_| copies_project(context));
        let finder = StrayFinder { context, watch: self, task_copy, checkpoints };
        let mut strays: Vec<StrayEdit> = current_scan.unwatched.iter().map(|path| unwatched_stray(path)).collect();
        let changes = current_scan.list_changes(&self.scan);
        if changes.is_empty() {
            return strays;
        }
        let own_texts = CheckpointStore::list_own_texts(&context.project);
        // Landings of this and of other runs change files as well; those are no stray edits.
        let (changes, mut own_paths) = finder.remove_own_changes(changes, &own_texts);
        let (changes, landed_paths) = finder.remove_later_landings(changes);
        own_paths.extend(landed_paths);
        let known_paths = self.prior_contents.files.keys().map(PathBuf::as_path);
        let groups = group_changes(changes, &self.scan, known_paths);
        let moved_links = list_planted_links(&groups);
        for group in groups {
            match group {
                ChangeGroup::Single(change) => strays.extend(finder.describe_change(&change, &moved_links)),
                ChangeGroup::Directory { path, count, is_new } => {
                    // A directory with our own files in it cannot be moved away as a whole.
                    let has_own_files = own_paths.iter().chain(&excluded).any(|own_path| own_path.starts_with(&path));
                    let after = PathState::Files { count: u32::try_from(count).unwrap_or(u32::MAX) };
                    let before = if is_new { PathState::Missing } else { after.clone() };
                    let shown_path = format!("{}/", path.display());
                    let kept = is_new && !has_own_files && finder.can_put_back(&path, &moved_links);
                    strays.push(StrayEdit { path: shown_path, before, after, kept });
                }
            }
        }
        strays
    }
}

fn unwatched_stray(directory: &Path) -> StrayEdit {
    let path = format!("{}/", directory.display());
    StrayEdit { path, before: PathState::Unwatched, after: PathState::Unwatched, kept: false }
}

/// Lists links that were put in the place of something, or where nothing was. They are moved away before what lies behind them
/// is put back.
fn list_planted_links(groups: &[ChangeGroup]) -> BTreeSet<PathBuf> {
    let singles = groups.iter().filter_map(|group| match group {
        ChangeGroup::Single(change) => Some(change),
        ChangeGroup::Directory { .. } => None,
    });
    let is_link =
        |entry: &Option<ScannedEntry>| entry.as_ref().is_some_and(|entry| matches!(entry.kind, EntryKind::Link { .. }));
    singles
        .filter(|change| is_link(&change.after) && !is_link(&change.before))
        .map(|change| change.path.clone())
        .collect()
}

/// Finds out what exactly has changed.
struct StrayFinder<'a> {
    context: &'a EffectContext,
    watch: &'a ProjectWatch,
    /// The copy in which the agent worked.
    task_copy: Option<&'a TaskWorkspace>,
    checkpoints: CheckpointStore,
}

impl StrayFinder<'_> {
    fn current_hash(&self, path: &Path, entry: &ScannedEntry) -> Option<Hash> {
        self.context.memory.project_scans.hash_file(self.context.project.root(), path, &entry.stamp)
    }

    /// Removes changes that Tribunal made, and returns the paths of those.
    fn remove_own_changes(&self, changes: Vec<EntryChange>, own_texts: &OwnTexts) -> (Vec<EntryChange>, Vec<PathBuf>) {
        let mut own_paths = Vec::new();
        let mut other_changes = Vec::new();
        for change in changes {
            if self.is_own_change(&change, own_texts) {
                own_paths.push(change.path);
            } else {
                other_changes.push(change);
            }
        }
        (other_changes, own_paths)
    }

    /// Removes changes of a landing that began after the texts were listed. While none can write, all that were written are
    /// recorded.
    fn remove_later_landings(&self, changes: Vec<EntryChange>) -> (Vec<EntryChange>, Vec<PathBuf>) {
        if changes.is_empty() {
            return (changes, Vec::new());
        }
        let _alone = locks::lock_user_tree(&self.context.project.locks_dir());
        let own_texts = CheckpointStore::list_own_texts(&self.context.project);
        let project_root = self.context.project.root();
        let (mut own_paths, mut other_changes) = (Vec::new(), Vec::new());
        for change in changes {
            let after = ScannedEntry::read_at(&project_root.join(&change.path));
            let current_change = EntryChange { after, ..change.clone() };
            match self.has_own_text(&current_change, &own_texts) {
                true => own_paths.push(change.path),
                false => other_changes.push(change),
            }
        }
        (other_changes, own_paths)
    }

    fn is_own_change(&self, change: &EntryChange, own_texts: &OwnTexts) -> bool {
        let project_root = self.context.project.root();
        // Another run may write its report meanwhile.
        let is_report = |path: &str| self.context.settings.own_folders().is_report(path);
        let is_plain = change.after.as_ref().is_none_or(|entry| entry.kind == EntryKind::File);
        if is_plain && change.path.to_str().is_some_and(is_report) {
            return true;
        }
        let file_name = change.path.file_name().unwrap_or_default().to_string_lossy();
        if file_name.starts_with(TEMPORARY_PREFIX) && change.before.is_none() {
            // A landing may be writing at this moment. When it is done, its temporary file is gone.
            let _alone = locks::lock_user_tree(&self.context.project.locks_dir());
            return ScannedEntry::read_at(&project_root.join(&change.path)).is_none();
        }
        self.has_own_text(change, own_texts)
    }

    /// Whether a file has a text that Tribunal wrote into it.
    fn has_own_text(&self, change: &EntryChange, own_texts: &OwnTexts) -> bool {
        let Some(texts) = change.path.to_str().and_then(|path| own_texts.get(path)) else { return false };
        let has_same_mode = match (&change.before, &change.after) {
            (Some(before), Some(after)) => before.mode == after.mode,
            _ => true,
        };
        let current_text = match &change.after {
            None => None,
            Some(entry) if entry.kind == EntryKind::File => match self.current_hash(&change.path, entry) {
                None => return false,
                known_hash => known_hash,
            },
            Some(_) => return false,
        };
        has_same_mode && texts.contains(&current_text)
    }

    /// Describes a change; `None` if nothing has changed after all.
    fn describe_change(&self, change: &EntryChange, moved_links: &BTreeSet<PathBuf>) -> Option<StrayEdit> {
        let after_hash = change.after.as_ref().and_then(|entry| match entry.kind {
            EntryKind::File => self.current_hash(&change.path, entry),
            _ => None,
        });
        let prior_bytes = self.find_prior_hash(change);
        let before = describe_state(change.before.as_ref(), prior_bytes);
        let after = describe_state(change.after.as_ref(), after_hash);
        // The content may be the same although the file was written. Without a hash that is not known.
        let is_unchanged = match &before {
            PathState::File { hash, .. } => hash.is_some() && before == after,
            PathState::Special => false,
            _ => before == after,
        };
        if is_unchanged {
            return None;
        }
        let path = change.path.to_string_lossy().into_owned();
        let mut stray = StrayEdit { path, before, after, kept: false };
        stray.kept = self.keep_versions(&stray, change) && self.can_put_back(&change.path, moved_links);
        Some(stray)
    }

    /// Returns the hash of the content before the agent began.
    fn find_prior_hash(&self, change: &EntryChange) -> Option<Hash> {
        let before = change.before.as_ref().filter(|entry| entry.kind == EntryKind::File)?;
        match self.watch.prior_contents.files.get(&change.path)? {
            PriorContent::Hash(content_hash) => Some(content_hash.clone()),
            PriorContent::Blob(object_id) => {
                let output = self.run_git_query(&["cat-file", "blob", object_id])?;
                // A filter may have made another content of it, and nearly always of another length.
                let is_same_length = output.len() as u64 == before.stamp.byte_size();
                is_same_length.then(|| self.checkpoints.store_bytes(&output).ok()).flatten()
            }
            PriorContent::Unknown => None,
        }
    }

    /// Stores both versions of what has changed. Returns whether the earlier one can be made again.
    fn keep_versions(&self, stray: &StrayEdit, change: &EntryChange) -> bool {
        let real_path = self.context.project.root().join(&change.path);
        if let Some(after_hash) = stray.after.content_hash()
            && let Some(current_bytes) = read_small_file(&real_path)
            && Hash::digest_of(&current_bytes) == *after_hash
        {
            let _ = self.checkpoints.store_bytes(&current_bytes);
        }
        match &stray.before {
            // What did not exist is moved away.
            PathState::Missing | PathState::Link { .. } => true,
            // What is in a directory that cannot be read any more is not known.
            PathState::Directory { .. } => fs::read_dir(&real_path).is_ok() || !real_path.is_dir(),
            PathState::File { hash: Some(before_hash), .. } => {
                stray.after.content_hash() == Some(before_hash)
                    || self.checkpoints.has_bytes(before_hash)
                    || self.store_prior_bytes(&stray.path, before_hash)
            }
            PathState::File { hash: None, .. }
            | PathState::Special
            | PathState::Files { .. }
            | PathState::Unwatched => false,
        }
    }

    /// Stores the content before the agent began, as the agent's copy or git has it. Both may have been changed as well.
    fn store_prior_bytes(&self, relative_path: &str, before_hash: &Hash) -> bool {
        let read_from_workspace = || {
            let workspace = self.task_copy?;
            let base_bytes = workspace.read_base(relative_path).ok().flatten();
            base_bytes.or_else(|| read_small_file(&workspace.tree_dir().join(relative_path)))
        };
        let matches_before = |bytes: &Vec<u8>| Hash::digest_of(bytes) == *before_hash;
        let staged_name = format!(":./{relative_path}");
        let bytes = read_from_workspace()
            .filter(matches_before)
            .or_else(|| self.run_git_query(&["cat-file", "blob", &staged_name]).filter(matches_before));
        bytes.is_some_and(|bytes| self.checkpoints.store_bytes(&bytes).is_ok())
    }

    fn run_git_query(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        run_checked(git_command(self.context.project.root()).args(arguments), None).ok()
    }

    /// Whether something can be put at a path: the user must not be offered what [`restore_stray`] would refuse.
    fn can_put_back(&self, path: &Path, moved_links: &BTreeSet<PathBuf>) -> bool {
        let Some(relative_path) = path.to_str().filter(|relative_path| is_plain_path(relative_path)) else {
            return false;
        };
        // Writing through a linked directory would change a file outside the project.
        match find_link_on_path(self.context.project.root(), relative_path) {
            Some(link) => moved_links.contains(Path::new(&link)),
            None => true,
        }
    }
}

fn describe_state(entry: Option<&ScannedEntry>, content_hash: Option<Hash>) -> PathState {
    let Some(ScannedEntry { kind, mode, .. }) = entry else { return PathState::Missing };
    match kind {
        EntryKind::File => PathState::File { hash: content_hash, mode: *mode },
        EntryKind::Link { target } => PathState::Link { target: target.to_string_lossy().into_owned() },
        EntryKind::Directory => PathState::Directory { mode: *mode },
        EntryKind::Special(_) => PathState::Special,
    }
}

/// Reads an ordinary file of a reasonable size.
fn read_small_file(file_path: &Path) -> Option<Vec<u8>> {
    let metadata = fs::symlink_metadata(file_path)
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() <= MAX_KEPT_BYTES)?;
    let bytes = fs::read(file_path).ok()?;
    // A different length means that the file was being written at that moment.
    (bytes.len() as u64 == metadata.len()).then_some(bytes)
}
