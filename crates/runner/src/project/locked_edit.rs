//! Edits a file that BMAD's agents and the user write as well: the board, and a story beside it.
//!
//! Only one of our processes writes at a time, under a lock that others can see (`sprint-status.yaml.lock`, created exclusively,
//! names its holder). The text that was read is compared with the file right before the new text takes its place, and an edit
//! is repeated if the file was changed meanwhile. The new text is durable before it is visible, and the old one stays complete
//! until then. `bmad` defines what an edit does to the text.
//!
//! A program that takes no lock can still write between the last comparison and the rename: a window of two system calls.

mod lock_file;

pub use lock_file::{FileLockFailure, FileLockHolder, is_lock_of_ours};

use std::{fs, io, path::PathBuf};

use tribunal_bmad::project_files::{ProjectFiles, UnreadableFile};

use crate::project::{
    Project,
    atomic_files::{FileReplacement, sweep_temporary_files},
    project_files::ProjectDirectory,
};

/// How often an edit is repeated because the file was changed meanwhile.
const MAX_EDIT_ATTEMPTS: u32 = 5;

/// The reason why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum EditFileError<E> {
    /// There is no such file.
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error("could not read {path}")]
    Unreadable { path: String, why: UnreadableFile },
    #[error("{path} is locked by another program")]
    LockedByOther { path: String, locked: FileLockFailure },
    /// The file is written faster than it can be compared.
    #[error("{path} keeps being changed by another program")]
    AlwaysChanged { path: String },
    #[error("could not write {path}: {cause}")]
    Failed { path: String, cause: io::Error },
    /// The edit itself was refused.
    #[error("the edit of {path} was rejected")]
    Refused { path: String, why: E },
}

/// Edits a file of the project: `apply_edit` gets its text and returns the new one with a result. It may be called again if the
/// file was changed meanwhile. An edit that changes nothing writes nothing.
pub fn edit_file<T, E>(
    project: &Project,
    relative_path: &str,
    mut apply_edit: impl FnMut(&str) -> Result<(String, T), E>,
) -> Result<T, EditFileError<E>> {
    let project_directory = ProjectDirectory::open_project(project);
    let write_error = |cause: io::Error| EditFileError::Failed { path: relative_path.to_string(), cause };
    let read_text = || match project_directory.read_file(relative_path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(EditFileError::Missing { path: relative_path.to_string() }),
        Err(reason) => Err(EditFileError::Unreadable { path: relative_path.to_string(), why: reason }),
    };
    // The file is read before the lock is taken, so that no lock file is created beside a missing one.
    read_text()?;
    // The link's target is edited, so that a link inside the project stays a link.
    let real_path: PathBuf = project.root().join(relative_path).canonicalize().map_err(write_error)?;
    let _lock = lock_file::take_lock(&real_path, &lock_file::SystemClock).map_err(|lock_failure| {
        EditFileError::LockedByOther { path: relative_path.to_string(), locked: lock_failure }
    })?;
    // A killed writer may have left temporary files.
    real_path.parent().into_iter().for_each(sweep_temporary_files);
    for _ in 0..MAX_EDIT_ATTEMPTS {
        let old_text = read_text()?;
        let (new_text, edit_result) = apply_edit(&old_text)
            .map_err(|reason| EditFileError::Refused { path: relative_path.to_string(), why: reason })?;
        if new_text == old_text {
            return Ok(edit_result);
        }
        // The replacement is prepared first, so that only the comparison and the rename remain.
        let replacement = FileReplacement::prepare(&real_path, new_text.as_bytes()).map_err(write_error)?;
        if fs::read(&real_path).map_err(write_error)? == old_text.as_bytes() {
            replacement.put_in_place().map_err(write_error)?;
            return Ok(edit_result);
        }
    }
    Err(EditFileError::AlwaysChanged { path: relative_path.to_string() })
}

/// Does the same for a file that may not exist yet: its text starts out empty.
pub fn edit_or_create_file<T, E>(
    project: &Project,
    relative_path: &str,
    mut apply_edit: impl FnMut(&str) -> Result<(String, T), E>,
) -> Result<T, EditFileError<E>> {
    let project_directory = ProjectDirectory::open_project(project);
    if let Ok(None) = project_directory.read_file(relative_path) {
        let write_error = |cause: io::Error| EditFileError::Failed { path: relative_path.to_string(), cause };
        let real_path = project.root().join(relative_path);
        if let Some(real_target) = project.resolve_outside(&real_path) {
            let reason = UnreadableFile::LeadsOutside { target: real_target.display().to_string() };
            return Err(EditFileError::Unreadable { path: relative_path.to_string(), why: reason });
        }
        // The edit is tried first, so that a refused or empty one leaves no empty file behind.
        let (new_text, edit_result) =
            apply_edit("").map_err(|reason| EditFileError::Refused { path: relative_path.to_string(), why: reason })?;
        if new_text.is_empty() {
            return Ok(edit_result);
        }
        match fs::File::create_new(&real_path) {
            // If another program has created the file at this very moment, the edit starts from its text.
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(write_error(cause)),
            _ => {}
        }
    }
    edit_file(project, relative_path, apply_edit)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::fs::symlink};

    use super::*;

    fn new_project(text: &[u8]) -> (tempfile::TempDir, Project) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("b.yaml"), text).unwrap();
        let project = Project::from_root(directory.path());
        (directory, project)
    }

    fn list_names(directory: &tempfile::TempDir) -> Vec<String> {
        let items = fs::read_dir(directory.path()).unwrap().flatten();
        let mut names: Vec<String> = items.map(|item| item.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn append_line(text: &str) -> Result<(String, ()), String> {
        Ok((format!("{text}more\n"), ()))
    }

    #[test]
    fn a_file_is_written_whole_and_nothing_stays_beside_it() {
        let (directory, project) = new_project(b"one\n");
        edit_file(&project, "b.yaml", append_line).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("b.yaml")).unwrap(), "one\nmore\n");
        assert_eq!(list_names(&directory), ["b.yaml"]);
    }

    #[test]
    fn text_written_meanwhile_is_kept() {
        let (directory, project) = new_project(b"one\n");
        let times = Cell::new(0);
        let relative_path = directory.path().join("b.yaml");
        edit_file(&project, "b.yaml", |text| {
            times.set(times.get() + 1);
            if times.get() < 3 {
                fs::write(&relative_path, format!("{text}theirs {}\n", times.get())).unwrap();
            }
            append_line(text)
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&relative_path).unwrap(), "one\ntheirs 1\ntheirs 2\nmore\n");
        let overtaken = edit_file(&project, "b.yaml", |text| {
            fs::write(&relative_path, format!("{text}x")).unwrap();
            append_line(text)
        });
        assert!(matches!(overtaken, Err(EditFileError::AlwaysChanged { .. })));
        assert_eq!(fs::read_to_string(&relative_path).unwrap(), "one\ntheirs 1\ntheirs 2\nmore\nxxxxx");
        assert_eq!(list_names(&directory), ["b.yaml"]);
    }

    #[test]
    fn what_cannot_be_edited_is_not_touched() {
        let (directory, project) = new_project(b"ok\n\xff\n");
        let not_text = edit_file(&project, "b.yaml", append_line);
        assert!(matches!(
            not_text,
            Err(EditFileError::Unreadable { why: UnreadableFile::NotText { line: 2, column: 1 }, .. })
        ));
        assert!(matches!(edit_file(&project, "gone.yaml", append_line), Err(EditFileError::Missing { .. })));
        let elsewhere = tempfile::tempdir().unwrap();
        let precious = elsewhere.path().join("precious");
        fs::write(&precious, "text").unwrap();
        symlink(&precious, directory.path().join("out.yaml")).unwrap();
        let outside_edit = edit_file(&project, "out.yaml", append_line);
        assert!(matches!(
            outside_edit,
            Err(EditFileError::Unreadable { why: UnreadableFile::LeadsOutside { .. }, .. })
        ));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        assert_eq!(list_names(&directory), ["b.yaml", "out.yaml"]);
        fs::write(directory.path().join("b.yaml"), "fine").unwrap();
        let refused = edit_file(&project, "b.yaml", |_| Err::<(String, ()), _>("no"));
        assert!(matches!(refused, Err(EditFileError::Refused { why: "no", .. })));
        assert_eq!(fs::read_to_string(directory.path().join("b.yaml")).unwrap(), "fine");
    }

    #[test]
    fn a_file_that_is_not_there_is_made_when_there_is_something_to_write() {
        let (directory, project) = new_project(b"one\n");
        edit_or_create_file(&project, "new.md", |_| Ok::<_, ()>((String::new(), ()))).unwrap();
        edit_or_create_file(&project, "new.md", |_| Err::<(String, ()), _>("no")).unwrap_err();
        assert_eq!(list_names(&directory), ["b.yaml"]);
        edit_or_create_file(&project, "new.md", append_line).unwrap();
        edit_or_create_file(&project, "new.md", append_line).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("new.md")).unwrap(), "more\nmore\n");
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path().join("made"), directory.path().join("out.md")).unwrap();
        assert!(matches!(edit_or_create_file(&project, "out.md", append_line), Err(EditFileError::Unreadable { .. })));
        assert!(!elsewhere.path().join("made").exists());
    }

    #[test]
    fn a_link_inside_the_project_stays_a_link() {
        let (directory, project) = new_project(b"one\n");
        symlink("b.yaml", directory.path().join("link.yaml")).unwrap();
        edit_file(&project, "link.yaml", append_line).unwrap();
        assert!(fs::symlink_metadata(directory.path().join("link.yaml")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(directory.path().join("b.yaml")).unwrap(), "one\nmore\n");
    }
}
