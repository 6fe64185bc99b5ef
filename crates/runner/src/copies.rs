//! Private copies: agents work in these and never in the person's tree.
//!
//! A copy holds the subject and its context: what git would track (or every ordinary file, where there is no git), up to a
//! bound, else the subject's own folders; or a commit exactly as git stored it. The bytes are those of the person's files. Of
//! symbolic links it has those that stay inside; names that are no UTF-8 are left out, and whatever is left out is said. A
//! copy has a git of its own where that is simple ([`own_git`]). A list of content hashes is kept beside it, so that afterwards
//! every change is known, whatever an agent says.
//!
//! What goes into a copy is found in [`listing`] (the work tree) and [`stored`] (a commit), and copied in [`fill`]; here it is
//! compared and put back. Landing a change is `effects::land`'s.

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

/// More than this is not copied for every task.
const MOST: Bounds = Bounds { files: 20_000, bytes: 512 << 20 };
/// Never part of a patch, and of a copy only if git tracks it or it was asked for: what tools leave behind when they run.
pub(crate) const NEVER: [&str; 7] =
    [".git", ".tribunal", "node_modules", "target", "__pycache__", ".pytest_cache", ".venv"];

/// What several agent clients read.
const SHARED_FILES: [&str; 4] = [".mcp.json", "AGENTS.md", "_bmad", ".bmad-core"];

/// What agent clients need and people often ignore.
pub(crate) fn agent_files() -> impl Iterator<Item = &'static str> {
    clients::files_read().chain(SHARED_FILES)
}

/// Relative path to content hash.
pub(crate) type Manifest = BTreeMap<String, Hash>;

/// What a copy is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub root: &'a Path,
    /// The subject's files, relative; they are always in the copy, and their texts as they were are kept. One that is not there
    /// is fine: a change may have deleted it.
    pub files: &'a [String],
    /// None: the work tree as it is. Some: a commit or tree of git, exactly as stored.
    pub tree: Option<&'a str>,
    /// Ignored files and folders that agents need, relative; missing ones are fine.
    pub seeds: &'a [String],
}

/// A copy was made.
#[derive(Debug)]
pub(crate) struct Made {
    /// What was left out of the context and why, in a line each.
    pub remarks: Vec<String>,
}

/// A finished copy on disk.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    folder: PathBuf,
}

/// A copied file or link, as it was when the copy was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    stamp: Stamp,
    hash: Hash,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    link: bool,
}

/// All that was copied.
#[derive(Serialize, Deserialize)]
struct Record {
    files: BTreeMap<String, Kept>,
    /// Whether it was copied from the person's work tree.
    from_work_tree: bool,
    /// Whether it has all that git lists.
    whole: bool,
}

/// A file of the subject, as it was when the copy was made.
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

    /// A copy without its list was being made when something died; it counts as not there.
    pub fn is_complete(&self) -> bool {
        self.manifest_path().is_file()
    }

    /// Copies the subject and its context.
    pub fn make(&self, source: &Source<'_>) -> io::Result<Made> {
        self.make_within(source, MOST)
    }

    fn make_within(&self, source: &Source<'_>, bounds: Bounds) -> io::Result<Made> {
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
            // It saves time; without it everything is still right.
            let _ = seen.save();
        }
        let json = serde_json::to_vec(&Record { files, from_work_tree, whole }).map_err(io::Error::other)?;
        write_atomically(&self.manifest_path(), &json)?;
        Ok(Made { remarks: remarks.into_lines() })
    }

    /// Takes the copy's git away. Where what an agent writes is to land, a `git stash` or `git reset` in the copy would land,
    /// too: as the loss of what the person has not committed.
    pub fn forget_git(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.tree().join(".git")) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
            _ => Ok(()),
        }
    }

    /// Keeps the subject's files beside the copy.
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

    /// From when on agents were at work, by the file system's clock.
    fn done(&self) -> io::Result<i64> {
        Ok(Stamp::of(&fs::metadata(self.manifest_path())?).moment())
    }

    /// Puts back every file of the subject that somebody changed, removed or added.
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
        // A link in the place of a folder would lead what is written here to elsewhere.
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
            // An ordinary file is replaced in one go, since others may be reading it.
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
                own_git::keep_time(&meta, &here)
            }
        }
    }

    /// A file of the subject as it was when the copy was made; None: it was not there, or was a link.
    pub fn base(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.bases()?.get(path) {
            Some(Base::File { number, .. }) => fs::read(self.base_path(&number.to_string())).map(Some),
            Some(Base::Absent | Base::Link { .. }) => Ok(None),
            None => Err(io::Error::other(format!("{path} is no file of the subject"))),
        }
    }

    /// All that was there when the copy was made.
    pub fn all(&self) -> io::Result<BTreeSet<String>> {
        Ok(self.record()?.files.into_keys().collect())
    }

    /// What differs from the copy as it was made: path to new hash, None for deleted.
    pub fn changes(&self) -> io::Result<BTreeMap<String, Option<Hash>>> {
        let (record, done, bases) = (self.record()?, self.done()?, self.bases()?);
        // The subject counts wherever it is.
        let counts = |path: &str| bases.contains_key(path) || !is_left_behind(path);
        let mut changes: BTreeMap<String, Option<Hash>> = BTreeMap::new();
        let mut now = self.walk()?;
        for path in bases.keys().filter(|path| is_left_behind(path)) {
            if let Some(meta) = self.meta_at(path)? {
                now.insert(path.clone(), meta);
            }
        }
        for (path, meta) in &now {
            let was = record.files.get(path);
            let hash = hash_of(&self.tree().join(path), meta, was, done)?;
            if was.map(|kept| &kept.hash) != Some(&hash) {
                changes.insert(path.clone(), Some(hash));
            }
        }
        for path in record.files.keys().filter(|path| counts(path) && !now.contains_key(*path)) {
            changes.insert(path.clone(), None);
        }
        Ok(changes)
    }

    /// All that is there and could be part of a patch.
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

    /// Of what is there, unless it is a folder. What lies behind a link is not there.
    fn meta_at(&self, path: &str) -> io::Result<Option<Metadata>> {
        let mut here = self.tree();
        let mut parts = Path::new(path).components().peekable();
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

    /// The files that were copied from the person's work tree, for noticing who writes past the copy.
    fn seen(&self) -> io::Result<Manifest> {
        let Record { files, from_work_tree, .. } = self.record()?;
        let seen = files.into_iter().filter(|(_, kept)| from_work_tree && !kept.link);
        Ok(seen.map(|(path, kept)| (path, kept.hash)).collect())
    }

    /// Takes the copy away, whatever an agent did to its permissions.
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

/// Makes every folder one that its owner may empty.
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

/// Reads only what may have changed.
fn hash_of(path: &Path, meta: &Metadata, was: Option<&Kept>, done: i64) -> io::Result<Hash> {
    let stamp = Stamp::of(meta);
    match was {
        Some(was) if was.stamp == stamp && stamp.is_older_than(done) => Ok(was.hash.clone()),
        _ if meta.is_file() => files::hash_of(path),
        _ if meta.is_symlink() => Ok(link_hash(&fs::read_link(path)?.to_string_lossy())),
        // What an agent made that is no ordinary file still counts as a change, under a hash of its own.
        _ => Ok(Hash::new("special")),
    }
}

/// No file has the same one.
fn link_hash(target: &str) -> Hash {
    Hash::new(format!("link to {}", Hash::of(target.as_bytes())))
}

/// What is git's and ours, at any depth.
fn is_never_copied(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(".git") || part == ".tribunal")
}

/// In a folder of what tools leave behind.
fn is_left_behind(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folder, _)| folder.split('/').any(|part| NEVER.contains(&part)))
}

/// One hash for a set of changes.
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
