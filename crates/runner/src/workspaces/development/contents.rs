//! Reads the content of a workspace: what git would commit, and how that differs from the commit that the work began with.
//!
//! Our git directory has two indexes. The first one stays at the base, as HEAD does, so that one `git status` tells what differs
//! from it; the second one is made for each commit. See [`super::control_git::ControlGit`].

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use tribunal_bmad::ralph::{completion_mark::has_completion_mark, fix_plan::read_fix_plan};
use tribunal_engine::{
    ids::{CommitId, ContentHasher, Hash},
    text::truncate_chars,
};
use tribunal_workflows::development::workspace::{
    CheckboxCounts, CollectedFile, MAX_COLLECTED_BYTES, MAX_LISTED_FILES, PathChange, WorkspaceChange, WorkspaceState,
};

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError,
    control_git::ControlGit,
    git_listings::{StatusEntry, parse_status},
    ignore_rules::IgnoreRules,
    special_files::{is_attributes_file, tree_path},
    user_repository::{join_with_nul, split_paths},
};
use crate::{
    git::run_checked,
    masking::Masker,
    project::{
        atomic_files,
        locked_edit::is_lock_of_ours,
        subject::{find_link_on_path, is_plain_path},
    },
};

/// The most characters of a plan's item that prompts show.
const MAX_ITEM_CHARS: usize = 300;
/// What git writes as the mode of a file that is not there.
const MISSING_MODE: &str = "000000";
/// How the name of the directory with the rules of a base begins.
const RULES_DIR: &str = "base-rules";

/// Whether git writes to the index which files it has found unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexLearning {
    Nothing,
    UnchangedFiles,
}

/// A file whose content differs from the base.
#[derive(Debug)]
struct ChangedFile {
    path: Vec<u8>,
    change: PathChange,
    /// The mode and the hash of what is in the work tree.
    content: String,
}

/// Everything that differs from the base.
#[derive(Debug, Default)]
struct TreeContents {
    changes: Vec<ChangedFile>,
    /// Sealed files that were changed, with what they are now; `None` if they are gone.
    broken_seals: Vec<BrokenSeal>,
    /// Directories with a repository of their own, whose files are not taken.
    nested_repositories: Vec<String>,
}

/// A sealed file that was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BrokenSeal {
    pub path: Vec<u8>,
    /// What it is now; `None` if it is gone.
    hash: Option<Hash>,
}

/// A state, and what is to be said about it.
#[derive(Clone, Debug)]
pub(crate) struct StateReading {
    pub state: WorkspaceState,
    pub remarks: Vec<String>,
}

impl DevelopmentWorkspace {
    /// Reads the state, with the checkboxes of some files.
    pub fn read_state(&self, collect: &[String], masker: &Masker) -> Result<StateReading, WorkspaceError> {
        let mut reading = self.read_whole_state(collect, masker)?;
        reading.state.changed.truncate(MAX_LISTED_FILES);
        Ok(reading)
    }

    /// Reads the state with all files that have changed, which are too many for a journal.
    pub fn read_whole_state(&self, collect: &[String], masker: &Masker) -> Result<StateReading, WorkspaceError> {
        self.describe_state(self.read_status(&self.control_git())?, collect, masker)
    }

    pub(super) fn describe_state(
        &self,
        entries: Vec<StatusEntry>,
        collect: &[String],
        masker: &Masker,
    ) -> Result<StateReading, WorkspaceError> {
        let contents = self.describe_entries(entries)?;
        let mut changed: Vec<WorkspaceChange> = contents
            .changes
            .iter()
            .map(|change| WorkspaceChange { path: self.shown_path(&change.path), change: change.change })
            .chain(contents.broken_seals.iter().map(|seal| WorkspaceChange {
                path: self.shown_path(&seal.path),
                change: if seal.hash.is_some() { PathChange::Modified } else { PathChange::Deleted },
            }))
            .collect();
        changed.sort_by(|first, second| first.path.cmp(&second.path));
        let changed_count = u32::try_from(changed.len()).unwrap_or(u32::MAX);
        let files = collect.iter().map(|path| self.collect_file(path, masker)).collect();
        let remarks = contents.nested_repositories.iter().map(|directory| {
            format!("`{directory}` is a git repository of its own, so its files are not part of the work")
        });
        Ok(StateReading {
            remarks: remarks.collect(),
            state: WorkspaceState { fingerprint: Some(self.fingerprint(&contents)), changed, changed_count, files },
        })
    }

    fn fingerprint(&self, contents: &TreeContents) -> Hash {
        let mut hasher = ContentHasher::default();
        hasher.update(self.record.base.as_str().as_bytes());
        for change in &contents.changes {
            for part in [b"\0".as_slice(), &change.path, b"\0", change.content.as_bytes()] {
                hasher.update(part);
            }
        }
        for BrokenSeal { path, hash } in &contents.broken_seals {
            let content = hash.as_ref().map_or("deleted", Hash::as_str);
            for part in [b"\0sealed ".as_slice(), path, b"\0", content.as_bytes()] {
                hasher.update(part);
            }
        }
        hasher.finish()
    }

    /// Returns how the files differ from the base.
    fn describe_entries(&self, listed: Vec<StatusEntry>) -> Result<TreeContents, WorkspaceError> {
        let mut contents = TreeContents { broken_seals: self.find_broken_seals(), ..TreeContents::default() };
        let mut entries = Vec::new();
        for entry in listed {
            if entry.is_nested_repository() {
                contents.nested_repositories.push(self.shown_path(&entry.path));
            } else {
                entries.push(entry);
            }
        }
        // Without any conversion, the files themselves tell what git would store.
        let may_convert = self.record.converts_content || entries.iter().any(|entry| is_attributes_file(&entry.path));
        let mut object_ids = if may_convert { self.hash_objects(&entries) } else { HashMap::new() };
        for entry in entries {
            let object_id = object_ids.remove(&entry.path);
            contents.changes.extend(self.read_changed_file(entry, object_id)?);
        }
        Ok(contents)
    }

    /// Returns what git would store for changed files: their contents after the conversion of line ends and other filters.
    fn hash_objects(&self, entries: &[StatusEntry]) -> HashMap<Vec<u8>, String> {
        // Names in lines, which git may take for quoted ones. A link would be followed.
        let is_hashable = |path: &&Vec<u8>| {
            !path.contains(&b'\n')
                && !path.starts_with(b"\"")
                && is_own_content(&self.record.tree, path)
                && !tree_path(&self.record.tree, path).is_symlink()
        };
        let paths: Vec<&Vec<u8>> = entries.iter().map(|entry| &entry.path).filter(is_hashable).collect();
        if paths.is_empty() {
            return HashMap::new();
        }
        let listed_paths: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([b'\n'])).collect();
        // It fails if a file vanishes meanwhile or a filter fails; then the plain contents are compared.
        let output = self.control_git().run_with_input(["hash-object", "--stdin-paths"], Some(listed_paths));
        let output_text = String::from_utf8_lossy(&output.unwrap_or_default()).into_owned();
        paths.into_iter().cloned().zip(output_text.lines().map(str::to_string)).collect()
    }

    /// Lists the files of the work that differ from the index or from HEAD.
    pub(super) fn read_status(&self, control_git: &ControlGit) -> Result<Vec<StatusEntry>, WorkspaceError> {
        self.without_formerly_ignored(self.read_visible_files(control_git, IndexLearning::Nothing)?)
    }

    /// Does the same, and has the index remember which files are unchanged.
    pub(super) fn read_status_and_remember(
        &self,
        control_git: &ControlGit,
    ) -> Result<Vec<StatusEntry>, WorkspaceError> {
        self.without_formerly_ignored(self.read_visible_files(control_git, IndexLearning::UnchangedFiles)?)
    }

    fn without_formerly_ignored(&self, mut entries: Vec<StatusEntry>) -> Result<Vec<StatusEntry>, WorkspaceError> {
        let left_out = self.find_formerly_ignored(&entries)?;
        entries.retain(|entry| entry.tracked.is_some() || !left_out.contains(&entry.path));
        Ok(entries)
    }

    /// Finds files in the user's checkout that git shows only because the work has changed what is ignored. They were there before the
    /// work, or might have been, so they are the user's: neither committed nor parked.
    fn find_formerly_ignored(&self, entries: &[StatusEntry]) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let untracked_entries = entries.iter().filter(|entry| entry.tracked.is_none());
        let mut paths: BTreeSet<Vec<u8>> = untracked_entries.map(|entry| entry.path.clone()).collect();
        if paths.is_empty() || !self.is_in_place() {
            return Ok(BTreeSet::new());
        }
        // The first index stays at the base, and so has its rules.
        let rules_dir = self.directory.join(format!("{RULES_DIR}-{}", self.record.base));
        let rules = IgnoreRules::check_out_once(&self.control_git(), rules_dir)?;
        for visible_path in rules.list_visible(paths.iter().cloned().collect())? {
            paths.remove(&visible_path);
        }
        Ok(paths)
    }

    /// Has files that git ignored when the work began stay out of it when it begins anew with a commit that does not ignore them. The
    /// caller saves the record.
    pub(super) fn keep_ignored_files_out(&mut self, new_base: &CommitId) -> Result<(), WorkspaceError> {
        if !self.is_in_place() {
            return Ok(());
        }
        let control_git = self.control_git();
        let mut left_out =
            self.find_formerly_ignored(&self.read_visible_files(&control_git, IndexLearning::Nothing)?)?;
        if left_out.is_empty() {
            return Ok(());
        }
        // What was committed on purpose is a file like any other.
        for path in split_paths(&control_git.run(["ls-tree", "-r", "-z", "--name-only", new_base.as_str()])?) {
            left_out.remove(&path);
        }
        self.record.own_prefixes.extend(left_out.into_iter().filter_map(|path| String::from_utf8(path).ok()));
        Ok(())
    }

    /// Lists the files that differ from the index or from HEAD, and are not Tribunal's own.
    fn read_visible_files(
        &self,
        control_git: &ControlGit,
        learning: IndexLearning,
    ) -> Result<Vec<StatusEntry>, WorkspaceError> {
        let mut command = control_git.new_command();
        command.args(["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]);
        command.arg("--ignore-submodules=all");
        // What git learns about unchanged files is written down once for each commit and not after each turn.
        if learning == IndexLearning::Nothing {
            command.env("GIT_OPTIONAL_LOCKS", "0");
        }
        let status_output = run_checked(command, None)?;
        let mut entries = parse_status(&status_output);
        // A process that was killed while it edited a file has left its lock beside it.
        let is_lock = |entry: &StatusEntry| {
            entry.tracked.is_none() && is_lock_of_ours(&tree_path(&self.record.tree, &entry.path))
        };
        entries.retain(|entry| !self.record.is_own_file(&entry.path) && !is_lock(entry));
        Ok(entries)
    }

    /// Describes a file of which git says that it differs from the base. Returns `None` if its content is the same, or if it is
    /// an untracked file that is gone again.
    fn read_changed_file(
        &self,
        entry: StatusEntry,
        object_id: Option<String>,
    ) -> Result<Option<ChangedFile>, WorkspaceError> {
        let StatusEntry { path, tracked, .. } = entry;
        let full_path = tree_path(&self.record.tree, &path);
        if !is_own_content(&self.record.tree, &path) {
            let content = "deleted".to_string();
            return Ok(tracked.map(|_| ChangedFile { path, change: PathChange::Deleted, content }));
        }
        let metadata = fs::symlink_metadata(&full_path).at_path(&full_path)?;
        let content_id = match object_id {
            Some(object_id) => object_id,
            None if metadata.is_symlink() => {
                let target = fs::read_link(&full_path).at_path(&full_path)?;
                Hash::digest_of(target.as_os_str().as_encoded_bytes()).to_string()
            }
            None => atomic_files::hash_file(&full_path).at_path(&full_path)?.to_string(),
        };
        let (change, file_mode) = match tracked {
            // Git calls a file modified whose size has changed, even if only its line ends have.
            Some(tracked) if tracked.head_object == content_id && tracked.head_mode == tracked.tree_mode => {
                return Ok(None);
            }
            // A file that the base does not have, although the index does.
            Some(tracked) if tracked.head_mode == MISSING_MODE => (PathChange::Added, tracked.tree_mode),
            Some(tracked) => (PathChange::Modified, tracked.tree_mode),
            None => (PathChange::Added, untracked_mode(&metadata).to_string()),
        };
        Ok(Some(ChangedFile { path, change, content: format!("{file_mode} {content_id}") }))
    }

    /// Puts the content of the work tree into the index of the next commit. Files that a hook added to that index stay in it.
    pub(super) fn update_commit_index(&self) -> Result<(), WorkspaceError> {
        self.update_index(&self.control_git().with_commit_index()).map(drop)
    }

    /// Puts the content of the work tree into an index. Returns the repositories of their own that were left out.
    pub(super) fn update_index(&self, index_git: &ControlGit) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        self.stage_entries(index_git, &self.read_status(index_git)?)
    }

    /// Puts files that differ from an index into it. Returns the repositories of their own that were left out.
    pub(super) fn stage_entries(
        &self,
        index_git: &ControlGit,
        entries: &[StatusEntry],
    ) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let mut nested_repositories = Vec::new();
        let (mut removed_paths, mut written_paths) = (Vec::new(), Vec::new());
        for entry in entries {
            if entry.is_nested_repository() {
                nested_repositories.push(entry.path.clone());
            } else if entry.is_unstaged() {
                let is_written = is_own_content(&self.record.tree, &entry.path);
                if is_written { &mut written_paths } else { &mut removed_paths }.push(entry.path.clone());
            }
        }
        // Removals come first: a file may be where a directory was, and the other way round.
        if !removed_paths.is_empty() {
            let arguments = ["update-index", "--force-remove", "-z", "--stdin"];
            index_git.run_with_input(arguments, Some(join_with_nul(&removed_paths)))?;
        }
        if !written_paths.is_empty() {
            let arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            index_git.run_with_input(arguments, Some(join_with_nul(&written_paths)))?;
        }
        Ok(nested_repositories)
    }

    /// Lists the sealed files that were changed.
    pub(super) fn find_broken_seals(&self) -> Vec<BrokenSeal> {
        let sealed_files = self.record.sealed_files.iter();
        sealed_files
            .filter_map(|sealed_file| {
                let current_hash = atomic_files::hash_file(&tree_path(&self.record.tree, &sealed_file.path)).ok();
                let is_broken = current_hash.as_ref() != Some(&sealed_file.hash);
                is_broken.then(|| BrokenSeal { path: sealed_file.path.clone(), hash: current_hash })
            })
            .collect()
    }

    /// Counts the checkboxes of a text file. What lies behind a link is not part of the workspace.
    fn collect_file(&self, relative_path: &str, masker: &Masker) -> CollectedFile {
        let boxes = read_short_text(&self.agent_dir(), relative_path).map(|text| {
            let plan = read_fix_plan(&text, relative_path);
            let to_count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let first_open = plan.first_open().map(|item| masker.mask(&item.text).into_owned()).unwrap_or_default();
            CheckboxCounts {
                done: to_count(plan.done_count()),
                total: to_count(plan.items.len()),
                first_open: truncate_chars(&first_open, MAX_ITEM_CHARS),
                says_complete: has_completion_mark(&text),
            }
        });
        CollectedFile { path: relative_path.to_string(), boxes }
    }
}

/// Returns the mode that git would give an untracked file.
pub(super) fn untracked_mode(metadata: &fs::Metadata) -> &'static str {
    match (metadata.is_symlink(), metadata.permissions().mode() & 0o100) {
        (true, _) => "120000",
        (false, 0) => "100644",
        (false, _) => "100755",
    }
}

/// Whether there is a file or a link at a path. Neither a directory nor a pipe is content, nor is what lies behind a link.
pub(super) fn is_own_content(tree: &Path, path: &[u8]) -> bool {
    let full_path = tree_path(tree, path);
    let mut parents = full_path.ancestors().skip(1).take_while(|directory| *directory != tree);
    parents.all(|directory| !directory.is_symlink())
        && fs::symlink_metadata(&full_path).is_ok_and(|metadata| metadata.is_file() || metadata.is_symlink())
}

fn read_short_text(directory: &Path, relative_path: &str) -> Option<String> {
    if relative_path.is_empty()
        || !is_plain_path(relative_path)
        || find_link_on_path(directory, relative_path).is_some()
    {
        return None;
    }
    let file_path = directory.join(relative_path);
    fs::symlink_metadata(&file_path)
        .ok()
        .filter(|metadata| metadata.is_file() && metadata.len() <= MAX_COLLECTED_BYTES as u64)?;
    let mut bytes = Vec::new();
    // One byte more than the limit shows a file that has grown meanwhile.
    File::open(&file_path).ok()?.take(MAX_COLLECTED_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= MAX_COLLECTED_BYTES && !bytes.contains(&0)).then(|| String::from_utf8(bytes).ok())?
}
