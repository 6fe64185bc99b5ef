//! Changes several files of a project at once: all of them or none.
//!
//! Every new text is durable beside its file before the first file is changed; a file that has changed since it was read stops
//! all edits. If one cannot be put in place, the earlier ones are restored. Nothing is written outside the project, and a link
//! inside it stays a link. The texts are the caller's business.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::shelf::{Shelf, Unreadable};

use crate::{files::Replacement, git, landings::FileDiff, project::Project, shelf::Folder};

/// A file as it is and as it will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Relative to the project's root.
    pub path: String,
    /// The current text; `None` if there is no such file.
    pub old: Option<String>,
    /// The new text; `None` removes the file.
    pub new: Option<String>,
}

impl Edit {
    pub fn changes_something(&self) -> bool {
        self.old != self.new
    }

    pub fn diff(&self) -> FileDiff {
        FileDiff::between(&self.path, self.old.as_deref(), self.new.as_deref())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("{path} is not as it was when it was read")]
    Overtaken { path: String },
    #[error("{path} cannot be written: {cause}")]
    Failed { path: String, cause: io::Error },
}

/// Reads a file; `None` if there is no such file. Unlike BMAD's readers it also checks where a new file would be created.
pub fn read(project: &Project, path: &str) -> Result<Option<String>, Unreadable> {
    if let Some(to) = project.leads_out(&project.root().join(path)) {
        return Err(Unreadable::LeadsOut { to: to.display().to_string() });
    }
    let full = project.root().join(path);
    if full.is_dir() {
        return Err(Unreadable::Refused { cause: "it is a folder".into() });
    }
    Folder::at(project).read(path)
}

/// Returns those paths that git ignores. Returns none where there is no git.
pub fn ignored(project: &Project, paths: &[&str]) -> Vec<String> {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_string()).collect();
    git::ignored(project.root(), paths.iter()).into_iter().collect()
}

/// Applies all of the edits, or none.
pub fn make(project: &Project, edits: &[Edit]) -> Result<(), EditError> {
    let edits: Vec<&Edit> = edits.iter().filter(|edit| edit.changes_something()).collect();
    let failed = |edit: &Edit, cause: io::Error| EditError::Failed { path: edit.path.clone(), cause };
    let mut real = Vec::with_capacity(edits.len());
    for edit in &edits {
        real.push(place(project, edit).map_err(|cause| failed(edit, cause))?);
    }
    // Every new text is durable before the first file changes.
    let mut ready = Vec::with_capacity(edits.len());
    for (edit, path) in edits.iter().copied().zip(&real) {
        let prepared = edit.new.as_ref().map(|new| Replacement::prepare(path, new.as_bytes())).transpose();
        ready.push((edit, path, prepared.map_err(|cause| failed(edit, cause))?));
    }
    // All files are compared after all replacements are prepared, which keeps the time until the renames short.
    for edit in &edits {
        if !matches!(read(project, &edit.path), Ok(now) if now == edit.old) {
            return Err(EditError::Overtaken { path: edit.path.clone() });
        }
    }
    let mut done: Vec<(&Edit, &PathBuf)> = Vec::new();
    for (edit, path, replacement) in ready {
        let put = match replacement {
            Some(replacement) => replacement.put(),
            None => fs::remove_file(path).map(|()| tidy(project, path)),
        };
        if let Err(cause) = put {
            // The files are restored in reverse order, each from the text that was read at the start.
            done.into_iter().rev().for_each(|(edit, path)| put_back(edit, path));
            return Err(failed(edit, cause));
        }
        done.push((edit, path));
    }
    Ok(())
}

/// Returns where a file really is, or will be.
fn place(project: &Project, edit: &Edit) -> io::Result<PathBuf> {
    let path = project.root().join(&edit.path);
    match edit.old {
        Some(_) => path.canonicalize(),
        None => Ok(path),
    }
}

fn put_back(edit: &Edit, path: &Path) {
    let _ = match &edit.old {
        Some(old) => Replacement::prepare(path, old.as_bytes()).and_then(Replacement::put),
        None => fs::remove_file(path),
    };
}

/// Removes directories that are empty after their file was removed.
fn tidy(project: &Project, path: &Path) {
    let root = project.root().canonicalize().unwrap_or_else(|_| project.root().to_path_buf());
    let folders = path.ancestors().skip(1).take_while(|folder| **folder != root && folder.starts_with(&root));
    for folder in folders {
        // A directory that is not empty cannot be removed, which ends the loop.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn edit(path: &str, old: Option<&str>, new: Option<&str>) -> Edit {
        Edit { path: path.into(), old: old.map(String::from), new: new.map(String::from) }
    }

    fn files(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap().flatten() {
                match item.file_type().unwrap().is_dir() {
                    true => folders.push(item.path()),
                    false => found.push(item.path().strip_prefix(root).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn files_are_made_changed_and_removed_with_the_folders_that_were_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let project = Project::at(root);
        fs::write(root.join("b"), "old").unwrap();
        fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("b", root.join("link")).unwrap();
        make(&project, &[edit("x/y/a", None, Some("one")), edit("link", Some("old"), Some("new"))]).unwrap();
        assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "new");
        assert_eq!(fs::metadata(root.join("b")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(root.join("link").is_symlink());
        assert_eq!(files(root), ["b", "link", "x/y/a"]);
        make(&project, &[edit("x/y/a", Some("one"), None)]).unwrap();
        assert!(!root.join("x").exists());
    }

    #[test]
    fn what_somebody_else_changed_meanwhile_stops_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("b"), "theirs").unwrap();
        let edits = [edit("a", None, Some("one")), edit("b", Some("old"), Some("new"))];
        let error = make(&Project::at(root), &edits).unwrap_err();
        assert_eq!(error.to_string(), "b is not as it was when it was read");
        assert_eq!(files(root), ["b"]);
        assert_eq!(fs::read_to_string(root.join("b")).unwrap(), "theirs");
    }

    #[test]
    fn what_cannot_be_finished_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("a"), "old").unwrap();
        for made in [edit("a", Some("old"), Some("new")), edit("x", None, Some("new"))] {
            make(&Project::at(root), std::slice::from_ref(&made)).unwrap();
            put_back(&made, &root.join(&made.path));
        }
        assert_eq!(files(root), ["a"]);
        fs::write(root.join("file"), "x").unwrap();
        let edits = [edit("a", Some("old"), Some("new")), edit("file/b", None, Some("one"))];
        let error = make(&Project::at(root), &edits).unwrap_err();
        assert!(matches!(error, EditError::Failed { path, .. } if path == "file/b"));
        assert_eq!(files(root), ["a", "file"]);
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "old");
    }

    #[test]
    fn nothing_is_read_or_made_behind_a_link_that_leads_out() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), folder.path().join("away")).unwrap();
        symlink("nowhere", folder.path().join("dangling")).unwrap();
        let project = Project::at(folder.path());
        for path in ["away/new", "dangling"] {
            assert!(matches!(read(&project, path), Err(Unreadable::LeadsOut { .. })), "{path}");
        }
        assert_eq!(read(&project, "new/file"), Ok(None));
    }
}
