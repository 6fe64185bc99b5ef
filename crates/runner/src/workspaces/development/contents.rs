//! Reads the content of a workspace: what git would commit, and how that differs from the commit that the work began with.
//!
//! After every reading the index of our own git directory has exactly that content. So the next reading has to look only at files
//! that have changed since, and a commit needs only the index. HEAD is the base, so one `git status` tells both.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use tribunal_bmad::ralph::{completion_mark::has_completion_mark, fix_plan::read_fix_plan};
use tribunal_core::{
    development::workspace::{
        CheckboxCounts, CollectedFile, MAX_COLLECTED_BYTES, MAX_LISTED_FILES, PathChange, WorkspaceChange,
        WorkspaceState,
    },
    engine::ids::{ContentHasher, Hash},
    text::truncate_chars,
};

use super::{DevelopmentWorkspace, WorkspaceError, special_files::tree_path, user_repository::join_with_nul};
use crate::{
    masking::Masker,
    project::{
        atomic_files,
        subject::{find_link_on_path, is_plain_path},
    },
};

/// The most characters of a plan's item that prompts show.
const MAX_ITEM_CHARS: usize = 300;

/// One record of `git status --porcelain=v2`.
#[derive(Debug)]
pub(super) struct StatusEntry {
    pub path: Vec<u8>,
    /// How the index differs from HEAD; `None` if it does not, or if the file is untracked.
    staged: Option<StagedChange>,
    /// Whether the file differs from the index.
    is_unstaged: bool,
    is_untracked: bool,
}

/// A file whose content in the index differs from the base.
#[derive(Debug)]
pub(super) struct StagedChange {
    pub path: Vec<u8>,
    pub change: PathChange,
    /// The mode and the object in the index.
    content: String,
}

/// Everything that differs from the base.
#[derive(Debug, Default)]
pub(super) struct TreeContents {
    pub changes: Vec<StagedChange>,
    /// Sealed files that were changed, with what they are now; `None` if they are gone.
    pub broken_seals: Vec<(Vec<u8>, Option<Hash>)>,
    /// Directories with a repository of their own, whose files are not taken.
    pub nested_repositories: Vec<String>,
}

/// A state, and what is to be said about it.
#[derive(Debug)]
pub(crate) struct StateReading {
    pub state: WorkspaceState,
    pub remarks: Vec<String>,
}

impl DevelopmentWorkspace {
    /// Reads the state, with the checkboxes of some files.
    pub fn read_state(&self, collect: &[String], masker: &Masker) -> Result<StateReading, WorkspaceError> {
        let contents = self.stage_contents()?;
        let mut changed: Vec<WorkspaceChange> = contents
            .changes
            .iter()
            .map(|change| WorkspaceChange { path: self.shown_path(&change.path), change: change.change })
            .chain(contents.broken_seals.iter().map(|(path, hash)| WorkspaceChange {
                path: self.shown_path(path),
                change: if hash.is_some() { PathChange::Modified } else { PathChange::Deleted },
            }))
            .collect();
        changed.sort_by(|first, second| first.path.cmp(&second.path));
        let changed_count = u32::try_from(changed.len()).unwrap_or(u32::MAX);
        changed.truncate(MAX_LISTED_FILES);
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
        for (path, hash) in &contents.broken_seals {
            let content = hash.as_ref().map_or("deleted", Hash::as_str);
            for part in [b"\0sealed ".as_slice(), path, b"\0", content.as_bytes()] {
                hasher.update(part);
            }
        }
        hasher.finish()
    }

    /// Puts the content of the tree into our index, and returns how it differs from the base.
    pub(super) fn stage_contents(&self) -> Result<TreeContents, WorkspaceError> {
        let control_git = self.control_git();
        let status_output = control_git.run([
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=all",
        ])?;
        let mut contents = TreeContents { broken_seals: self.find_broken_seals(), ..TreeContents::default() };
        let (mut removed_paths, mut written_paths) = (Vec::new(), Vec::new());
        for entry in parse_status(&status_output) {
            if self.record.is_own_file(&entry.path) {
                continue;
            }
            if entry.is_untracked && entry.path.ends_with(b"/") {
                contents.nested_repositories.push(self.shown_path(&entry.path));
            } else if entry.is_unstaged || entry.is_untracked {
                let is_written = is_own_content(&self.record.tree, &entry.path);
                if is_written { &mut written_paths } else { &mut removed_paths }.push(entry.path);
            } else {
                contents.changes.extend(entry.staged);
            }
        }
        if removed_paths.is_empty() && written_paths.is_empty() {
            return Ok(contents);
        }
        // Removals come first: a file may be where a directory was, and the other way round.
        if !removed_paths.is_empty() {
            control_git.run_with_input(
                ["update-index", "--force-remove", "-z", "--stdin"],
                Some(join_with_nul(&removed_paths)),
            )?;
        }
        if !written_paths.is_empty() {
            let arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            control_git.run_with_input(arguments, Some(join_with_nul(&written_paths)))?;
        }
        let arguments =
            ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", self.record.base.as_str()];
        contents.changes = parse_raw_diff(&control_git.run(arguments)?);
        contents.changes.retain(|change| !self.record.is_own_file(&change.path));
        Ok(contents)
    }

    fn find_broken_seals(&self) -> Vec<(Vec<u8>, Option<Hash>)> {
        let sealed_files = self.record.sealed_files.iter();
        sealed_files
            .filter_map(|sealed_file| {
                let current_hash = atomic_files::hash_file(&tree_path(&self.record.tree, &sealed_file.path)).ok();
                (current_hash.as_ref() != Some(&sealed_file.hash)).then(|| (sealed_file.path.clone(), current_hash))
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

/// Whether there is a file or a link at a path. Neither a directory nor a pipe is content, nor is what lies behind a link.
fn is_own_content(tree: &Path, path: &[u8]) -> bool {
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

/// Parses the output of `git status --porcelain=v2 -z --no-renames`.
pub(super) fn parse_status(output: &[u8]) -> Vec<StatusEntry> {
    let records = output.split(|byte| *byte == 0);
    records.filter_map(parse_status_record).collect()
}

fn parse_status_record(record: &[u8]) -> Option<StatusEntry> {
    if let Some(path) = record.strip_prefix(b"? ") {
        return Some(StatusEntry { path: path.to_vec(), staged: None, is_unstaged: false, is_untracked: true });
    }
    // The forms are: 1 XY SUB mH mI mW hH hI PATH, and for unmerged files: u XY SUB m1 m2 m3 mW h1 h2 h3 PATH
    let field_count = match record.first()? {
        b'1' => 8,
        b'u' => 10,
        _ => return None,
    };
    let mut fields = record.splitn(field_count + 1, |byte| *byte == b' ');
    let words: Vec<String> =
        fields.by_ref().take(field_count).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
    let path = fields.next()?.to_vec();
    let mut letters = words.get(1)?.chars();
    let (index_letter, tree_letter) = (letters.next()?, letters.next()?);
    let staged = (field_count == 8 && index_letter != '.').then(|| StagedChange {
        path: path.clone(),
        change: path_change(index_letter),
        content: format!("{} {}", words[4], words[7]),
    });
    Some(StatusEntry { path, staged, is_unstaged: tree_letter != '.' || field_count == 10, is_untracked: false })
}

/// Parses the output of `diff-index --raw -z` and `diff-tree --raw -z`: `:mOLD mNEW oOLD oNEW S<nul>path<nul>`.
pub(super) fn parse_raw_diff(output: &[u8]) -> Vec<StagedChange> {
    let words: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let changes = words.chunks_exact(2).filter_map(|pair| {
        let header = String::from_utf8_lossy(pair[0]);
        let fields: Vec<&str> = header.split(' ').collect();
        let &[_, new_mode, _, new_object, letter] = fields.as_slice() else { return None };
        Some(StagedChange {
            path: pair[1].to_vec(),
            change: path_change(letter.chars().next()?),
            content: format!("{new_mode} {new_object}"),
        })
    });
    changes.collect()
}

impl StagedChange {
    /// The mode of the new content, as git writes it.
    pub fn file_mode(&self) -> &str {
        self.content.split(' ').next().unwrap_or_default()
    }

    pub fn object_id(&self) -> &str {
        self.content.rsplit(' ').next().unwrap_or_default()
    }
}

fn path_change(letter: char) -> PathChange {
    match letter {
        'A' => PathChange::Added,
        'D' => PathChange::Deleted,
        _ => PathChange::Modified,
    }
}
