//! Fills a workspace file by file. Each file is read once, and not again for hashing if an earlier workspace had the same file.

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

/// A workspace that is being filled.
pub(super) struct Copier<'a> {
    source: &'a Source<'a>,
    tree: &'a Path,
    pub seen: Seen,
    pub remarks: Remarks,
    pub files: BTreeMap<String, Kept>,
    /// Whether it has everything that git lists.
    pub whole: bool,
    /// The directory that was created last.
    folder: PathBuf,
}

impl<'a> Copier<'a> {
    pub fn new(source: &'a Source<'a>, tree: &'a Path) -> io::Result<Copier<'a>> {
        // The new directory's own time stands for the file system's clock, which may differ from ours.
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
        // With only a part of the files, `git status` would report all others as deleted.
        if listing.whole {
            own_git::write(self.source.root, self.tree);
        }
        Ok(())
    }

    /// Copies a stored tree. Seeds come from the user's work tree and never replace what git stored.
    pub fn stored(&mut self, name: &str, bounds: Bounds) -> io::Result<()> {
        let stored = stored::write(self.source, name, self.tree, bounds, &mut self.remarks)?;
        for (path, hash) in stored.files {
            let stamp = Stamp::of(&fs::symlink_metadata(self.tree.join(&path))?);
            self.files.insert(path, Kept { stamp, hash, link: false });
        }
        self.links(&stored.links);
        let seeds = listing::look_at_seeds(self.source, bounds, &mut self.remarks);
        for (path, meta) in &seeds.files {
            // A file of the subject that the stored tree does not have must not appear in the workspace.
            if !self.files.contains_key(path) && !self.source.files.contains(path) {
                self.file(path, meta)?;
            }
        }
        self.links(&seeds.links);
        Ok(())
    }

    /// Copies a file. A context file that vanished or cannot be read is left out; a file of the subject must be readable.
    fn file(&mut self, path: &str, meta: &Metadata) -> io::Result<()> {
        match self.try_file(path, meta) {
            Ok(kept) => {
                self.files.insert(path.to_string(), kept);
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) if self.source.files.iter().any(|file| file == path) => return Err(cause),
            // A full disk concerns every following file, so it ends the copying.
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
        // The stamp from before and after the copy tells whether the bytes belong together.
        let before = Stamp::of(meta);
        let steady = fs::symlink_metadata(&from).is_ok_and(|meta| Stamp::of(&meta) == before);
        // A file that changed while it was copied does not match its time.
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

    /// Creates the links. They come last, so that nothing is written through one.
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
