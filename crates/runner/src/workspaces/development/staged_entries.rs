//! What is staged in the index of a checkout, and setting it to what it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use super::{WithPath, WorkspaceError, user_repository::UserRepository};
use crate::git::{run_checked, to_trimmed_text};

/// The path of an entry and its stage: 0, or 1 to 3 in a conflict.
type EntryKey = (Vec<u8>, u8);

/// What the index says about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StagedEntry {
    file_mode: String,
    object_id: String,
    /// Whether git is told not to look whether the file has changed.
    is_assumed_unchanged: bool,
    is_skipped: bool,
}

/// The index of a checkout before something worked there.
#[derive(Debug)]
pub(super) struct SavedIndex {
    index_file: PathBuf,
    /// `None` if there was no index.
    bytes: Option<Vec<u8>>,
    /// Where the saved index is written for git.
    scratch_file: PathBuf,
}

/// What was set back in an index.
#[derive(Debug, Default)]
pub(super) struct IndexRepair {
    /// The tree of the changed index, if it had content that no file has.
    pub changed_tree: Option<String>,
    /// Files that git was told to overlook.
    pub overlooked: Vec<String>,
}

impl SavedIndex {
    pub fn read_from(repository: &UserRepository, scratch_file: PathBuf) -> SavedIndex {
        let index_file = repository.layout.git_dir.join("index");
        SavedIndex { bytes: fs::read(&index_file).ok(), index_file, scratch_file }
    }

    /// Has the index say what it said. What it knows about unchanged files stays.
    pub fn put_back(&self, repository: &UserRepository) -> Result<IndexRepair, WorkspaceError> {
        let current_bytes = fs::read(&self.index_file).ok();
        let Some(saved_bytes) = self.bytes.as_ref().filter(|bytes| Some(*bytes) != current_bytes.as_ref()) else {
            return Ok(IndexRepair::default());
        };
        fs::write(&self.scratch_file, saved_bytes).at_path(&self.scratch_file)?;
        let saved = list_entries(repository, Some(&self.scratch_file));
        let _ = fs::remove_file(&self.scratch_file);
        let (saved, current) = (saved?, list_entries(repository, None)?);
        let is_changed = |key: &&EntryKey| saved.get(*key) != current.get(*key);
        let changed: Vec<&EntryKey> =
            saved.keys().chain(current.keys().filter(|key| !saved.contains_key(*key))).filter(is_changed).collect();
        if changed.is_empty() {
            return Ok(IndexRepair::default());
        }
        let overlooked = changed.iter().filter(|key| {
            let is_hidden = |entry: &StagedEntry| entry.is_assumed_unchanged || entry.is_skipped;
            current.get(**key).is_some_and(is_hidden) && !saved.get(**key).is_some_and(is_hidden)
        });
        let overlooked = overlooked.map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect();
        let changed_tree = self.keep_unique_content(repository, &changed)?;
        write_entries(repository, &changed, &saved)?;
        Ok(IndexRepair { changed_tree, overlooked })
    }

    /// Writes the index as a tree if it has content that no file has. What agents stage is mostly what is in the files.
    fn keep_unique_content(
        &self,
        repository: &UserRepository,
        changed: &[&EntryKey],
    ) -> Result<Option<String>, WorkspaceError> {
        let mut diff_command = repository.checkout_command(&repository.layout.work_tree_top);
        diff_command.args(["diff-files", "--name-only", "-z", "--ignore-submodules=all"]);
        let differing = run_checked(diff_command, None)?;
        let differing: BTreeSet<&[u8]> = differing.split(|byte| *byte == 0).collect();
        if !changed.iter().any(|(path, _)| differing.contains(&path.as_slice())) {
            return Ok(None);
        }
        let mut tree_command = repository.checkout_command(&repository.layout.work_tree_top);
        tree_command.arg("write-tree");
        // An index with a conflict is no tree; both sides of the conflict are commits.
        Ok(run_checked(tree_command, None).ok().map(|output| to_trimmed_text(&output)))
    }
}

fn list_entries(
    repository: &UserRepository,
    index_file: Option<&PathBuf>,
) -> Result<BTreeMap<EntryKey, StagedEntry>, WorkspaceError> {
    let mut command = repository.checkout_command(&repository.layout.work_tree_top);
    command.args(["ls-files", "--stage", "-v", "-z"]).env("GIT_OPTIONAL_LOCKS", "0");
    if let Some(index_file) = index_file {
        command.env("GIT_INDEX_FILE", index_file);
    }
    let output = run_checked(command, None)?;
    Ok(output.split(|byte| *byte == 0).filter_map(parse_entry).collect())
}

/// Parses `TAG MODE OBJECT STAGE<tab>PATH`. A small letter stands for a file that is assumed to be unchanged, S for one that is skipped.
fn parse_entry(record: &[u8]) -> Option<(EntryKey, StagedEntry)> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let header = str::from_utf8(&record[..tab]).ok()?;
    let &[tag, file_mode, object_id, stage] = header.split(' ').collect::<Vec<_>>().as_slice() else { return None };
    let entry = StagedEntry {
        file_mode: file_mode.to_string(),
        object_id: object_id.to_string(),
        is_assumed_unchanged: tag.chars().all(char::is_lowercase),
        is_skipped: tag.eq_ignore_ascii_case("s"),
    };
    Some(((record[tab + 1..].to_vec(), stage.parse().ok()?), entry))
}

/// Sets entries to what they were. Removals come first: a file may be where a directory was.
fn write_entries(
    repository: &UserRepository,
    changed: &[&EntryKey],
    saved: &BTreeMap<EntryKey, StagedEntry>,
) -> Result<(), WorkspaceError> {
    let touched: BTreeSet<&[u8]> = changed.iter().map(|(path, _)| path.as_slice()).collect();
    // Zeros stand for no object; they are as long as the name of one.
    let no_object = match repository.layout.object_format.as_str() {
        "sha256" => "0".repeat(64),
        _ => "0".repeat(40),
    };
    let mut lines = Vec::new();
    for path in &touched {
        // This removes all stages, so those that were there are written again.
        lines.extend_from_slice(format!("0 {no_object}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }
    for key in saved.keys().filter(|(path, _)| touched.contains(path.as_slice())) {
        let StagedEntry { file_mode, object_id, .. } = &saved[key];
        lines.extend_from_slice(format!("{file_mode} {object_id} {}\t", key.1).as_bytes());
        lines.extend_from_slice(&key.0);
        lines.push(0);
    }
    run_update_index(repository, &["-z", "--index-info"], lines)?;
    let paths_with = |is_set: fn(&StagedEntry) -> bool| -> Vec<u8> {
        let is_marked = |key: &&&EntryKey| saved.get(**key).is_some_and(is_set);
        changed.iter().filter(is_marked).flat_map(|(path, _)| path.iter().copied().chain([0])).collect()
    };
    for (option, paths) in [
        ("--assume-unchanged", paths_with(|entry| entry.is_assumed_unchanged)),
        ("--skip-worktree", paths_with(|entry| entry.is_skipped)),
    ] {
        if !paths.is_empty() {
            run_update_index(repository, &[option, "-z", "--stdin"], paths)?;
        }
    }
    // Only saves time: files that are what the index says count as unchanged without being read again. It fails if some are not.
    let _ = run_update_index(repository, &["-q", "--refresh"], Vec::new());
    Ok(())
}

fn run_update_index(
    repository: &UserRepository,
    arguments: &[&str],
    stdin_bytes: Vec<u8>,
) -> Result<(), WorkspaceError> {
    let mut command = repository.checkout_command(&repository.layout.work_tree_top);
    command.arg("update-index").args(arguments);
    Ok(run_checked(command, Some(stdin_bytes)).map(drop)?)
}
