//! Changes several files of a project at once: all of them or none.
//!
//! Every new text is durable beside its file before the first file is changed; a file that has changed since it was read stops
//! all edits. If one cannot be put in place, the earlier ones are restored. Nothing is written outside the project, and a link
//! inside it stays a link. The texts are the caller's business.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::project_files::{ProjectFiles, UnreadableFile};

use crate::{
    git,
    project::{
        Project,
        atomic_files::{self, FileReplacement},
        project_files::ProjectDirectory,
    },
};

/// A file as it is and as it will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// Relative to the project's root.
    pub relative_path: String,
    /// The current text; `None` if there is no such file.
    pub old_text: Option<String>,
    /// The new text; `None` removes the file.
    pub new_text: Option<String>,
}

impl FileEdit {
    pub fn has_changes(&self) -> bool {
        self.old_text != self.new_text
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("{path} was changed by another program in the meantime")]
    ChangedMeanwhile { path: String },
    #[error("could not write {path}: {cause}")]
    Failed { path: String, cause: io::Error },
}

/// Reads a file; `None` if there is no such file. Unlike BMAD's readers it also checks where a new file would be created.
pub fn read_project_file(project: &Project, relative_path: &str) -> Result<Option<String>, UnreadableFile> {
    if let Some(real_target) = project.resolve_outside(&project.root().join(relative_path)) {
        return Err(UnreadableFile::LeadsOutside { target: real_target.display().to_string() });
    }
    let full_path = project.root().join(relative_path);
    if full_path.is_dir() {
        return Err(UnreadableFile::Refused { cause: "it is a directory".into() });
    }
    ProjectDirectory::open_project(project).read_file(relative_path)
}

/// Returns those paths that git ignores. Returns none where there is no git.
pub fn find_ignored(project: &Project, relative_paths: &[&str]) -> Vec<String> {
    let relative_paths: Vec<String> = relative_paths.iter().map(|relative_path| (*relative_path).to_string()).collect();
    git::find_ignored(project.root(), relative_paths.iter()).into_iter().collect()
}

/// Removes temporary files that a killed process left beside the files of these edits.
pub fn sweep_edit_leftovers(project: &Project, edits: &[FileEdit]) {
    let edited_paths = edits.iter().map(|edit| project.root().join(&edit.relative_path));
    let mut directories: BTreeSet<PathBuf> =
        edited_paths.filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
    // Files that need no edit this time are most likely in the root.
    directories.insert(project.root().to_path_buf());
    for directory in directories.iter().filter(|directory| project.resolve_outside(directory).is_none()) {
        atomic_files::sweep_temporary_files(directory);
    }
}

/// Applies all of the edits, or none.
pub fn apply_edits(project: &Project, edits: &[FileEdit]) -> Result<(), EditError> {
    let edits: Vec<&FileEdit> = edits.iter().filter(|edit| edit.has_changes()).collect();
    let write_error = |edit: &FileEdit, cause: io::Error| EditError::Failed { path: edit.relative_path.clone(), cause };
    let mut target_paths = Vec::with_capacity(edits.len());
    for edit in &edits {
        target_paths.push(resolve_target(project, edit).map_err(|cause| write_error(edit, cause))?);
    }
    // Every new text is durable before the first file changes.
    let mut prepared_edits = Vec::with_capacity(edits.len());
    for (edit, target_path) in edits.iter().copied().zip(&target_paths) {
        let prepared = edit
            .new_text
            .as_ref()
            .map(|new_text| FileReplacement::prepare(target_path, new_text.as_bytes()))
            .transpose();
        prepared_edits.push((edit, target_path, prepared.map_err(|cause| write_error(edit, cause))?));
    }
    // All files are compared after all replacements are prepared, which keeps the time until the renames short.
    for edit in &edits {
        if !matches!(read_project_file(project, &edit.relative_path), Ok(now) if now == edit.old_text) {
            return Err(EditError::ChangedMeanwhile { path: edit.relative_path.clone() });
        }
    }
    let mut applied_edits: Vec<(&FileEdit, &PathBuf)> = Vec::new();
    for (edit, target_path, replacement) in prepared_edits {
        let outcome = match replacement {
            Some(replacement) => replacement.put_in_place(),
            None => fs::remove_file(target_path).map(|()| remove_empty_directories(project, target_path)),
        };
        if let Err(cause) = outcome {
            // The files are restored in reverse order, each from the text that was read at the start.
            applied_edits.into_iter().rev().for_each(|(edit, target_path)| restore_file(edit, target_path));
            return Err(write_error(edit, cause));
        }
        applied_edits.push((edit, target_path));
    }
    Ok(())
}

/// Returns where a file really is, or will be.
fn resolve_target(project: &Project, file_edit: &FileEdit) -> io::Result<PathBuf> {
    let target_path = project.root().join(&file_edit.relative_path);
    match file_edit.old_text {
        Some(_) => target_path.canonicalize(),
        None => Ok(target_path),
    }
}

fn restore_file(file_edit: &FileEdit, target_path: &Path) {
    let _ = match &file_edit.old_text {
        Some(old_text) => {
            FileReplacement::prepare(target_path, old_text.as_bytes()).and_then(FileReplacement::put_in_place)
        }
        None => fs::remove_file(target_path),
    };
}

/// Removes directories that are empty after their file was removed.
fn remove_empty_directories(project: &Project, removed_path: &Path) {
    let project_root = project.root().canonicalize().unwrap_or_else(|_| project.root().to_path_buf());
    let parent_directories = removed_path
        .ancestors()
        .skip(1)
        .take_while(|directory| **directory != project_root && directory.starts_with(&project_root));
    for directory in parent_directories {
        // A directory that is not empty cannot be removed, which ends the loop.
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn file_edit(path: &str, old: Option<&str>, new: Option<&str>) -> FileEdit {
        FileEdit { relative_path: path.into(), old_text: old.map(String::from), new_text: new.map(String::from) }
    }

    fn list_files(project_root: &Path) -> Vec<String> {
        let mut file_names = Vec::new();
        let mut directories = vec![project_root.to_path_buf()];
        while let Some(directory) = directories.pop() {
            for dir_entry in fs::read_dir(directory).unwrap().flatten() {
                match dir_entry.file_type().unwrap().is_dir() {
                    true => directories.push(dir_entry.path()),
                    false => {
                        file_names.push(dir_entry.path().strip_prefix(project_root).unwrap().display().to_string())
                    }
                }
            }
        }
        file_names.sort();
        file_names
    }

    #[test]
    fn files_are_made_changed_and_removed_with_the_folders_that_were_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let project_root = directory.path();
        let project = Project::from_root(project_root);
        fs::write(project_root.join("b"), "old").unwrap();
        fs::set_permissions(project_root.join("b"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("b", project_root.join("link")).unwrap();
        apply_edits(&project, &[file_edit("x/y/a", None, Some("one")), file_edit("link", Some("old"), Some("new"))])
            .unwrap();
        assert_eq!(fs::read_to_string(project_root.join("b")).unwrap(), "new");
        assert_eq!(fs::metadata(project_root.join("b")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(project_root.join("link").is_symlink());
        assert_eq!(list_files(project_root), ["b", "link", "x/y/a"]);
        apply_edits(&project, &[file_edit("x/y/a", Some("one"), None)]).unwrap();
        assert!(!project_root.join("x").exists());
    }

    #[test]
    fn a_file_changed_meanwhile_stops_all_edits() {
        let directory = tempfile::tempdir().unwrap();
        let project_root = directory.path();
        fs::write(project_root.join("b"), "theirs").unwrap();
        let edits = [file_edit("a", None, Some("one")), file_edit("b", Some("old"), Some("new"))];
        let error = apply_edits(&Project::from_root(project_root), &edits).unwrap_err();
        assert_eq!(error.to_string(), "b was changed by another program in the meantime");
        assert_eq!(list_files(project_root), ["b"]);
        assert_eq!(fs::read_to_string(project_root.join("b")).unwrap(), "theirs");
    }

    #[test]
    fn edits_that_cannot_be_finished_leave_everything_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let project_root = directory.path();
        fs::write(project_root.join("a"), "old").unwrap();
        for created in [file_edit("a", Some("old"), Some("new")), file_edit("x", None, Some("new"))] {
            apply_edits(&Project::from_root(project_root), std::slice::from_ref(&created)).unwrap();
            restore_file(&created, &project_root.join(&created.relative_path));
        }
        assert_eq!(list_files(project_root), ["a"]);
        fs::write(project_root.join("file"), "x").unwrap();
        let edits = [file_edit("a", Some("old"), Some("new")), file_edit("file/b", None, Some("one"))];
        let error = apply_edits(&Project::from_root(project_root), &edits).unwrap_err();
        assert!(matches!(error, EditError::Failed { path, .. } if path == "file/b"));
        assert_eq!(list_files(project_root), ["a", "file"]);
        assert_eq!(fs::read_to_string(project_root.join("a")).unwrap(), "old");
    }

    #[test]
    fn nothing_is_read_or_made_behind_a_link_that_leads_out() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), directory.path().join("away")).unwrap();
        symlink("nowhere", directory.path().join("dangling")).unwrap();
        let project = Project::from_root(directory.path());
        for path in ["away/new", "dangling"] {
            assert!(matches!(read_project_file(&project, path), Err(UnreadableFile::LeadsOutside { .. })), "{path}");
        }
        assert_eq!(read_project_file(&project, "new/file"), Ok(None));
    }
}
