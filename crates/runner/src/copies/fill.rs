//! Fills a copy, file by file. Each is read once, and not even once more to be hashed if it is the one of an earlier copy.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::{
    Kept, Source, link_hash,
    listing::{self, Bounds},
    own_git,
    remarks::Remarks,
    stamps::{Seen, Stamp},
    stored,
};
use crate::files;

/// A copy that is being filled.
pub(super) struct Copier<'a> {
    source: &'a Source<'a>,
    tree: &'a Path,
    pub seen: Seen,
    pub remarks: Remarks,
    pub files: BTreeMap<String, Kept>,
    /// Whether it has all that git lists.
    pub whole: bool,
    /// The one that was made last.
    folder: PathBuf,
}

impl<'a> Copier<'a> {
    pub fn new(source: &'a Source<'a>, tree: &'a Path) -> io::Result<Copier<'a>> {
        let begun = Stamp::of(&fs::metadata(tree)?).moment();
        let seen = Seen::of(source.root, begun);
        let (remarks, files, whole, folder) = Default::default();
        Ok(Copier { source, tree, seen, remarks, files, whole, folder })
    }

    pub fn work_tree(&mut self, bounds: Bounds) -> io::Result<()> {
        let listing = listing::look(self.source, bounds, &mut self.remarks);
        for (path, meta) in &listing.files {
            self.file(path, meta)?;
        }
        self.links(&listing.links);
        self.whole = listing.whole;
        if listing.whole {
            own_git::write(self.source.root, self.tree);
        }
        Ok(())
    }

    /// Seeds are the person's; nothing of what git stored is replaced by them.
    pub fn stored(&mut self, name: &str, bounds: Bounds) -> io::Result<()> {
        let stored = stored::write(self.source, name, self.tree, bounds, &mut self.remarks)?;
        for (path, hash) in stored.files {
            let stamp = Stamp::of(&fs::symlink_metadata(self.tree.join(&path))?);
            self.files.insert(path, Kept { stamp, hash, link: false });
        }
        self.links(&stored.links);
        let seeds = listing::look_at_seeds(self.source, bounds, &mut self.remarks);
        for (path, meta) in &seeds.files {
            // A file of the subject that git did not store there is not there.
            if !self.files.contains_key(path) && !self.source.files.contains(path) {
                self.file(path, meta)?;
            }
        }
        self.links(&seeds.links);
        Ok(())
    }

    /// A file that vanished or cannot be read is not part of the context; one of the subject must be read.
    fn file(&mut self, path: &str, meta: &Metadata) -> io::Result<()> {
        match self.try_file(path, meta) {
            Ok(kept) => {
                self.files.insert(path.to_string(), kept);
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) if self.source.files.iter().any(|file| file == path) => return Err(cause),
            Err(cause) if cause.kind() == io::ErrorKind::StorageFull => return Err(cause),
            Err(_) => {
                let _ = fs::remove_file(self.tree.join(path));
                self.remarks.unreadable.push(path.to_string());
            }
        }
        Ok(())
    }

    fn try_file(&mut self, path: &str, meta: &Metadata) -> io::Result<Kept> {
        let (from, to) = (self.source.root.join(path), self.place(path)?);
        fs::copy(&from, &to)?;
        let before = Stamp::of(meta);
        let steady = fs::symlink_metadata(&from).is_ok_and(|meta| Stamp::of(&meta) == before);
        // What changed while it was copied is not what its time says.
        if steady {
            own_git::keep_time(meta, &to)?;
        }
        let hash = match self.seen.hash(path, &before) {
            Some(known) if steady => known,
            _ => files::hash_of(&to)?,
        };
        if steady {
            self.seen.keep(path, before, &hash);
        }
        Ok(Kept { stamp: Stamp::of(&fs::symlink_metadata(&to)?), hash, link: false })
    }

    /// Links come last: nothing is written through one.
    fn links(&mut self, links: &BTreeMap<String, String>) {
        for (path, target) in links {
            match self.try_link(path, target) {
                Ok(kept) => {
                    self.files.insert(path.clone(), kept);
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => self.remarks.unreadable.push(path.clone()),
            }
        }
    }

    fn try_link(&mut self, path: &str, target: &str) -> io::Result<Kept> {
        let to = self.place(path)?;
        symlink(target, &to)?;
        let stamp = Stamp::of(&fs::symlink_metadata(&to)?);
        Ok(Kept { stamp, hash: link_hash(target), link: true })
    }

    fn place(&mut self, path: &str) -> io::Result<PathBuf> {
        let to = self.tree.join(path);
        if let Some(folder) = to.parent().filter(|folder| *folder != self.folder) {
            fs::create_dir_all(folder)?;
            self.folder = folder.to_path_buf();
        }
        Ok(to)
    }
}
