//! Fills a workspace file by file. Each file is read once, and not again for hashing if an earlier workspace had the same file.

use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::{
    CopiedFile, WorkspaceSource,
    file_stamps::{FileStamp, HashCache},
    hash_link_target,
    listing::{self, CopyLimits},
    omissions::OmissionRemarks,
    stored_tree, workspace_git,
};
use crate::project::atomic_files;

/// A workspace that is being filled.
pub(super) struct WorkspaceCopier<'a> {
    source: &'a WorkspaceSource<'a>,
    tree_dir: &'a Path,
    pub hash_cache: HashCache,
    pub remarks: OmissionRemarks,
    pub copied_files: BTreeMap<String, CopiedFile>,
    /// Whether it has everything that git lists.
    pub is_complete: bool,
    /// The directory that was created last.
    last_directory: PathBuf,
}

impl<'a> WorkspaceCopier<'a> {
    pub fn new(source: &'a WorkspaceSource<'a>, tree_dir: &'a Path) -> io::Result<WorkspaceCopier<'a>> {
        // The new directory's own time stands for the file system's clock, which may differ from ours.
        let started_at = FileStamp::from_metadata(&fs::metadata(tree_dir)?).earliest_time_ns();
        let hash_cache = HashCache::load(source.project_root, started_at);
        let (remarks, copied_files, is_complete, last_directory) = Default::default();
        Ok(WorkspaceCopier { source, tree_dir, hash_cache, remarks, copied_files, is_complete, last_directory })
    }

    pub fn copy_work_tree(&mut self, limits: CopyLimits) -> io::Result<()> {
        let listing = listing::list_work_tree_files(self.source, limits, &mut self.remarks);
        for (relative_path, metadata) in &listing.files {
            self.copy_file(relative_path, metadata)?;
        }
        self.create_links(&listing.links);
        self.is_complete = listing.is_complete;
        // With only a part of the files, `git status` would report all others as deleted.
        if listing.is_complete {
            workspace_git::create_workspace_git(self.source.project_root, self.tree_dir);
        }
        Ok(())
    }

    /// Copies a stored tree. Seeds come from the user's work tree and never replace what git stored.
    pub fn copy_stored_tree(&mut self, tree_name: &str, limits: CopyLimits) -> io::Result<()> {
        let written_tree =
            stored_tree::write_stored_tree(self.source, tree_name, self.tree_dir, limits, &mut self.remarks)?;
        for (relative_path, content_hash) in written_tree.files {
            let stamp = FileStamp::from_metadata(&fs::symlink_metadata(self.tree_dir.join(&relative_path))?);
            self.copied_files.insert(relative_path, CopiedFile { stamp, hash: content_hash, link: false });
        }
        self.create_links(&written_tree.links);
        let seed_listing = listing::list_seed_files(self.source, limits, &mut self.remarks);
        for (relative_path, metadata) in &seed_listing.files {
            // A file of the subject that the stored tree does not have must not appear in the workspace.
            if !self.copied_files.contains_key(relative_path) && !self.source.subject_files.contains(relative_path) {
                self.copy_file(relative_path, metadata)?;
            }
        }
        self.create_links(&seed_listing.links);
        Ok(())
    }

    /// Copies a file. A context file that vanished or cannot be read is left out; a file of the subject must be readable.
    fn copy_file(&mut self, relative_path: &str, metadata: &Metadata) -> io::Result<()> {
        match self.try_copy_file(relative_path, metadata) {
            Ok(copied_file) => {
                self.copied_files.insert(relative_path.to_string(), copied_file);
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) if self.source.subject_files.iter().any(|file| file == relative_path) => {
                return Err(cause);
            }
            // A full disk concerns every following file, so it ends the copying.
            Err(cause) if cause.kind() == io::ErrorKind::StorageFull => return Err(cause),
            Err(_) => {
                let _ = fs::remove_file(self.tree_dir.join(relative_path));
                self.remarks.unreadable_files.push(relative_path.to_string());
            }
        }
        Ok(())
    }

    fn try_copy_file(&mut self, relative_path: &str, metadata: &Metadata) -> io::Result<CopiedFile> {
        let (source_path, target_path) =
            (self.source.project_root.join(relative_path), self.prepare_target(relative_path)?);
        fs::copy(&source_path, &target_path)?;
        // The stamp from before and after the copy tells whether the bytes belong together.
        let stamp_before = FileStamp::from_metadata(metadata);
        let is_unchanged = fs::symlink_metadata(&source_path)
            .is_ok_and(|metadata| FileStamp::from_metadata(&metadata) == stamp_before);
        // A file that changed while it was copied does not match its time.
        if is_unchanged {
            workspace_git::copy_modification_time(metadata, &target_path)?;
        }
        let content_hash = match self.hash_cache.find_hash(relative_path, &stamp_before) {
            Some(known_hash) if is_unchanged => known_hash,
            _ => atomic_files::hash_file(&target_path)?,
        };
        if is_unchanged {
            self.hash_cache.remember_hash(relative_path, stamp_before, &content_hash);
        }
        Ok(CopiedFile {
            stamp: FileStamp::from_metadata(&fs::symlink_metadata(&target_path)?),
            hash: content_hash,
            link: false,
        })
    }

    /// Creates the links. They come last, so that nothing is written through one.
    fn create_links(&mut self, links: &BTreeMap<String, String>) {
        for (relative_path, link_target) in links {
            match self.try_create_link(relative_path, link_target) {
                Ok(copied_file) => {
                    self.copied_files.insert(relative_path.clone(), copied_file);
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => self.remarks.unreadable_files.push(relative_path.clone()),
            }
        }
    }

    fn try_create_link(&mut self, relative_path: &str, link_target: &str) -> io::Result<CopiedFile> {
        let target_path = self.prepare_target(relative_path)?;
        symlink(link_target, &target_path)?;
        let stamp = FileStamp::from_metadata(&fs::symlink_metadata(&target_path)?);
        Ok(CopiedFile { stamp, hash: hash_link_target(link_target), link: true })
    }

    fn prepare_target(&mut self, relative_path: &str) -> io::Result<PathBuf> {
        let target_path = self.tree_dir.join(relative_path);
        if let Some(directory) = target_path.parent().filter(|directory| *directory != self.last_directory) {
            fs::create_dir_all(directory)?;
            self.last_directory = directory.to_path_buf();
        }
        Ok(target_path)
    }
}
