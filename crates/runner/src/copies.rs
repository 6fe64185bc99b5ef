//! Task workspaces: agents work in these private copies and never in the user's tree.
//!
//! A workspace holds the subject and its context: what git would track (or every ordinary file, where there is no git), up to
//! a limit, otherwise the subject's own directories; or a commit exactly as git stored it. Files have the same bytes as the
//! user's. Symbolic links are copied if they stay inside; names that are not UTF-8 are left out, and every omission is reported.
//! A workspace has its own git where that is simple ([`workspace_git`]). A list of content hashes is kept beside it, so that
//! every change is known afterwards, regardless of what an agent reports.
//!
//! [`listing`] (the work tree) and [`stored_tree`] (a commit) find out what belongs into a workspace, and [`copier`] copies it.
//! This module compares and restores. Landing a change is up to `effects::land`.

mod fill;
mod git;
mod listing;
mod own_git;
mod remarks;
mod since;
mod stamps;
mod stored;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata},
    io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_agents::clients;
use tribunal_core::ids::Hash;

use crate::{
    files::{self, write_atomically},
    subject::is_plain,
};
use fill::Copier;
pub(crate) use git::{blobs, objects as contents};
use listing::Bounds;
pub(crate) use since::{Moved, Watch, clear, release, retain};
use stamps::Stamp;

/// The limits for what is copied for every task.
const MOST: Bounds = Bounds { files: 20_000, bytes: 512 << 20 };
/// Directories that tools leave behind. They are never part of a patch, and are copied only if git tracks them or on request.
pub(crate) const NEVER: [&str; 7] =
    [".git", ".tribunal", "node_modules", "target", "__pycache__", ".pytest_cache", ".venv"];

/// Files that several agent clients read.
const SHARED_FILES: [&str; 4] = [".mcp.json", "AGENTS.md", "_bmad", ".bmad-core"];

/// Lists files that agent clients need and that are often ignored by git.
pub(crate) fn agent_files() -> impl Iterator<Item = &'static str> {
    clients::files_read().chain(SHARED_FILES)
}

/// Maps relative paths to content hashes.
pub(crate) type Manifest = BTreeMap<String, Hash>;

/// What a workspace is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub root: &'a Path,
    /// The subject's files, relative to the root. They are always copied, and their original texts are kept. A file may be
    /// missing: a change may have deleted it.
    pub files: &'a [String],
    /// A commit or tree of git, copied exactly as stored; `None` stands for the work tree as it is.
    pub tree: Option<&'a str>,
    /// Ignored files and directories that agents need, relative to the root. Missing ones are fine.
    pub seeds: &'a [String],
}

/// The result of creating a workspace.
#[derive(Debug)]
pub(crate) struct Made {
    /// What was left out of the context and why, in a line each.
    pub remarks: Vec<String>,
}

/// A workspace on disk.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    folder: PathBuf,
}

/// A copied file or link, as it was when the workspace was created.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    stamp: Stamp,
    hash: Hash,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    link: bool,
}

/// Everything that was copied.
#[derive(Serialize, Deserialize)]
struct Record {
    files: BTreeMap<String, Kept>,
    /// Whether it was copied from the user's work tree.
    from_work_tree: bool,
    /// Whether it has everything that git lists.
    whole: bool,
}

/// A file of the subject, as it was when the workspace was created.
#[derive(Serialize, Deserialize)]
enum Base {
    Absent,
    /// Its bytes are in the file of this number.
    File {
        number: usize,
        kept: Kept,
    },
    Link {
        target: String,
        kept: Kept,
    },
}

impl Base {
    fn kept(&self) -> Option<&Kept> {
        match self {
            Base::Absent => None,
            Base::File { kept, .. } | Base::Link { kept, .. } => Some(kept),
        }
    }
}

impl Copy {
    pub fn at(folder: PathBuf) -> Copy {
        Copy { folder }
    }

    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn manifest_path(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    fn base_path(&self, name: &str) -> PathBuf {
        self.folder.join("base").join(name)
    }

    /// Whether the workspace is complete. One without its list was being created when a process crashed; it counts as missing.
    pub fn is_complete(&self) -> bool {
        self.manifest_path().is_file()
    }

    /// Copies the subject and its context.
    pub fn make(&self, source: &Source<'_>) -> io::Result<Made> {
        self.make_within(source, MOST)
    }

    fn make_within(&self, source: &Source<'_>, bounds: Bounds) -> io::Result<Made> {
        // The paths may come from a journal of another origin, so they are checked before anything is removed or written.
        for file in source.files {
            if file.is_empty() || !is_plain(file) || is_never_copied(file) {
                return Err(io::Error::other(format!("{file} is no file of the project")));
            }
        }
        self.remove()?;
        let tree = self.tree();
        fs::create_dir_all(&tree)?;
        let mut copier = Copier::new(source, &tree)?;
        match source.tree {
            None => copier.work_tree(bounds)?,
            Some(name) => copier.stored(name, bounds)?,
        }
        let Copier { seen, remarks, files, whole, .. } = copier;
        self.keep_subject(source.files, &files)?;
        let from_work_tree = source.tree.is_none();
        if from_work_tree {
            // The cache only saves time; everything is correct without it.
            let _ = seen.save();
        }
        let json = serde_json::to_vec(&Record { files, from_work_tree, whole }).map_err(io::Error::other)?;
        // The list is written last: its presence marks the workspace as complete.
        write_atomically(&self.manifest_path(), &json)?;
        Ok(Made { remarks: remarks.into_lines() })
    }

    /// Removes the workspace's git. Where an agent's edits are to land, a `git stash` or `git reset` in the workspace would land
    /// as well and undo what the user has not committed.
    pub fn forget_git(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.tree().join(".git")) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    /// Saves the subject's files beside the workspace.
    fn keep_subject(&self, subject: &[String], files: &BTreeMap<String, Kept>) -> io::Result<()> {
        fs::create_dir_all(self.folder.join("base"))?;
        let mut bases = BTreeMap::new();
        for (number, path) in subject.iter().enumerate() {
            let here = self.tree().join(path);
            let base = match files.get(path).cloned() {
                None => Base::Absent,
                Some(kept) if kept.link => {
                    let target = fs::read_link(here)?.to_string_lossy().into_owned();
                    Base::Link { target, kept }
                }
                Some(kept) => {
                    let to = self.base_path(&number.to_string());
                    fs::copy(&here, &to)?;
                    own_git::keep_time(&fs::metadata(&here)?, &to)?;
                    Base::File { number, kept }
                }
            };
            bases.insert(path.clone(), base);
        }
        fs::write(self.base_path("names.json"), serde_json::to_vec(&bases).map_err(io::Error::other)?)
    }

    fn bases(&self) -> io::Result<BTreeMap<String, Base>> {
        serde_json::from_slice(&fs::read(self.base_path("names.json"))?).map_err(io::Error::other)
    }

    fn record(&self) -> io::Result<Record> {
        serde_json::from_slice(&fs::read(self.manifest_path())?).map_err(io::Error::other)
    }

    /// Returns when the workspace was completed, by the file system's clock: agents can only have worked after that.
    fn done(&self) -> io::Result<i64> {
        Ok(Stamp::of(&fs::metadata(self.manifest_path())?).moment())
    }

    /// Restores every file of the subject that was changed, removed or added.
    pub fn restore(&self) -> io::Result<()> {
        let done = self.done()?;
        for (path, base) in &self.bases()? {
            let was = base.kept();
            if self.hash_at(path, was, done)? != was.map(|kept| kept.hash.clone()) {
                self.put_back(path, base)?;
            }
        }
        Ok(())
    }

    fn put_back(&self, path: &str, base: &Base) -> io::Result<()> {
        let here = self.tree().join(path);
        // A link in place of a directory would redirect the write to another place.
        let mut folder = self.tree();
        for part in Path::new(path).parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            if fs::symlink_metadata(&folder).is_ok_and(|meta| !meta.is_dir()) {
                fs::remove_file(&folder)?;
            }
        }
        fs::create_dir_all(folder)?;
        match fs::symlink_metadata(&here) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&here)?,
            // An ordinary file is replaced atomically, since other agents may be reading it.
            Ok(meta) if !meta.is_file() || !matches!(base, Base::File { .. }) => fs::remove_file(&here)?,
            _ => {}
        }
        match base {
            Base::Absent => Ok(()),
            Base::Link { target, .. } => symlink(target, here),
            Base::File { number, .. } => {
                let kept = self.base_path(&number.to_string());
                let meta = fs::metadata(&kept)?;
                write_atomically(&here, &fs::read(kept)?)?;
                fs::set_permissions(&here, meta.permissions())?;
                // With the original time the file counts as unchanged for the workspace's git.
                own_git::keep_time(&meta, &here)
            }
        }
    }

    /// Reads a file of the subject as it was when the workspace was created. Returns `None` if it did not exist or was a link.
    pub fn base(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.bases()?.get(path) {
            Some(Base::File { number, .. }) => fs::read(self.base_path(&number.to_string())).map(Some),
            Some(Base::Absent | Base::Link { .. }) => Ok(None),
            None => Err(io::Error::other(format!("{path} is no file of the subject"))),
        }
    }

    /// Returns the paths of everything that existed when the workspace was created.
    pub fn all(&self) -> io::Result<BTreeSet<String>> {
        Ok(self.record()?.files.into_keys().collect())
    }

    /// Returns what differs from the workspace as it was created: path to new hash, `None` for a deleted file.
    pub fn changes(&self) -> io::Result<BTreeMap<String, Option<Hash>>> {
        let (record, done, bases) = (self.record()?, self.done()?, self.bases()?);
        // Files of the subject count even in a directory that is otherwise ignored.
        let counts = |path: &str| bases.contains_key(path) || !is_left_behind(path);
        let mut changes: BTreeMap<String, Option<Hash>> = BTreeMap::new();
        let mut now = self.walk()?;
        // The walk skips tool directories, so subject files in them are looked up one by one.
        for path in bases.keys().filter(|path| is_left_behind(path)) {
            if let Some(meta) = self.meta_at(path)? {
                now.insert(path.clone(), meta);
            }
        }
        // Most files are untouched, so comparing stamps first avoids reading the whole tree.
        for (path, meta) in &now {
            let was = record.files.get(path);
            let hash = hash_of(&self.tree().join(path), meta, was, done)?;
            if was.map(|kept| &kept.hash) != Some(&hash) {
                changes.insert(path.clone(), Some(hash));
            }
        }
        // What tools left behind may be removed freely; only relevant files count as deleted.
        for path in record.files.keys().filter(|path| counts(path) && !now.contains_key(*path)) {
            changes.insert(path.clone(), None);
        }
        Ok(changes)
    }

    /// Lists all files that could be part of a patch.
    fn walk(&self) -> io::Result<BTreeMap<String, Metadata>> {
        let tree = self.tree();
        let mut found = BTreeMap::new();
        let mut folders = vec![tree.clone()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(&folder)? {
                let item = item?;
                let (kind, path) = (item.file_type()?, item.path());
                if !kind.is_dir() {
                    let name = path.strip_prefix(&tree).unwrap_or(&path).to_string_lossy().into_owned();
                    found.insert(name, item.metadata()?);
                } else if !NEVER.iter().any(|never| item.file_name() == *never) {
                    folders.push(path);
                }
            }
        }
        Ok(found)
    }

    fn hash_at(&self, path: &str, was: Option<&Kept>, done: i64) -> io::Result<Option<Hash>> {
        let Some(meta) = self.meta_at(path)? else { return Ok(None) };
        hash_of(&self.tree().join(path), &meta, was, done).map(Some)
    }

    /// Returns the metadata of what is there, unless it is a directory. What lies behind a link does not count as there.
    fn meta_at(&self, path: &str) -> io::Result<Option<Metadata>> {
        let mut here = self.tree();
        let mut parts = Path::new(path).components().peekable();
        // Every component is checked: a link in the middle of the path would lead out of the workspace.
        while let Some(part) = parts.next() {
            here.push(part);
            match fs::symlink_metadata(&here) {
                Ok(meta) if parts.peek().is_none() => return Ok((!meta.is_dir()).then_some(meta)),
                Ok(meta) if meta.is_dir() => {}
                Ok(_) => return Ok(None),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(cause) => return Err(cause),
            }
        }
        Ok(None)
    }

    /// Returns the hashes of files that were copied from the user's work tree, to notice edits that bypass the workspace.
    fn seen(&self) -> io::Result<Manifest> {
        let Record { files, from_work_tree, .. } = self.record()?;
        let seen = files.into_iter().filter(|(_, kept)| from_work_tree && !kept.link);
        Ok(seen.map(|(path, kept)| (path, kept.hash)).collect())
    }

    /// Removes the workspace, even if an agent changed permissions in it.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                open_folders(&self.folder)?;
                fs::remove_dir_all(&self.folder)
            }
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }
}

/// Makes every directory writable for its owner, so that it can be emptied.
fn open_folders(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for item in fs::read_dir(folder)? {
        let item = item?;
        if item.file_type()?.is_dir() {
            open_folders(&item.path())?;
        }
    }
    Ok(())
}

/// Hashes a file, and reads it only if it may have changed.
fn hash_of(path: &Path, meta: &Metadata, was: Option<&Kept>, done: i64) -> io::Result<Hash> {
    let stamp = Stamp::of(meta);
    match was {
        Some(was) if was.stamp == stamp && stamp.is_older_than(done) => Ok(was.hash.clone()),
        _ if meta.is_file() => files::hash_of(path),
        _ if meta.is_symlink() => Ok(link_hash(&fs::read_link(path)?.to_string_lossy())),
        // Special files that an agent created still count as a change, under a hash of their own.
        _ => Ok(Hash::new("special")),
    }
}

/// Returns a hash that no file can have.
fn link_hash(target: &str) -> Hash {
    Hash::new(format!("link to {}", Hash::of(target.as_bytes())))
}

/// Whether a path belongs to git or to Tribunal, at any depth.
fn is_never_copied(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(".git") || part == ".tribunal")
}

/// Whether a path lies in a directory that tools leave behind.
fn is_left_behind(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folder, _)| folder.split('/').any(|part| NEVER.contains(&part)))
}

/// Combines a set of changes into one hash.
pub(crate) fn patch_hash(changes: &BTreeMap<String, Option<Hash>>) -> Hash {
    let mut text = String::new();
    for (path, hash) in changes {
        text.push_str(path);
        text.push('\0');
        text.push_str(hash.as_ref().map_or("deleted", Hash::as_str));
        text.push('\n');
    }
    Hash::of(text.as_bytes())
}
