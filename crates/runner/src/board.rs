//! Edits a file that BMAD's agents and the user write as well: the board, and a story beside it.
//!
//! Only one of our processes writes at a time, under a lock that others can see (`sprint-status.yaml.lock`, created exclusively,
//! names its holder). The text that was read is compared with the file right before the new text takes its place, and an edit
//! is repeated if the file was changed meanwhile. The new text is durable before it is visible, and the old one stays complete
//! until then. `bmad` defines what an edit does to the text.
//!
//! A program that takes no lock can still write between the last comparison and the rename; that is as short as two system calls.

mod lock;

pub use lock::{Holder, Locked};

use std::{fs, io, path::PathBuf};

use tribunal_bmad::shelf::{Shelf, Unreadable};

use crate::{
    files::{Replacement, sweep},
    project::Project,
    shelf::Folder,
};

/// How often an edit is repeated because the file was changed meanwhile.
const TRIES: u32 = 5;

/// The reason why a file was not written. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// There is no such file.
    #[error("{path} is not there")]
    Missing { path: String },
    #[error("{path} cannot be read")]
    Unreadable { path: String, why: Unreadable },
    #[error("{path} is being written by somebody else")]
    Locked { path: String, locked: Locked },
    /// The file is written faster than it can be compared.
    #[error("{path} was changed by somebody else each time it was about to be written")]
    Overtaken { path: String },
    #[error("{path} cannot be written: {cause}")]
    Failed { path: String, cause: io::Error },
    /// The edit itself was refused.
    #[error("the edit of {path} was refused")]
    Refused { path: String, why: E },
}

/// Edits a file of the project: `apply_edit` gets its text and returns the new one with a result. It may be called again if the
/// file was changed meanwhile. An edit that changes nothing writes nothing.
pub fn edit<T, E>(
    project: &Project,
    path: &str,
    mut edit: impl FnMut(&str) -> Result<(String, T), E>,
) -> Result<T, WriteError<E>> {
    let shelf = Folder::at(project);
    let failed = |cause: io::Error| WriteError::Failed { path: path.to_string(), cause };
    let read = || match shelf.read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(WriteError::Missing { path: path.to_string() }),
        Err(why) => Err(WriteError::Unreadable { path: path.to_string(), why }),
    };
    // Read before the lock is taken, so that no lock file is created beside a missing file.
    read()?;
    // The link's target is edited, so that a link inside the project stays a link.
    let real: PathBuf = project.root().join(path).canonicalize().map_err(failed)?;
    let _lock = lock::take(&real, &lock::Real)
        .map_err(|locked| WriteError::Locked { path: path.to_string(), locked })?;
    // Temporary files of a killed writer.
    real.parent().into_iter().for_each(sweep);
    for _ in 0..TRIES {
        let old = read()?;
        let (new, told) = edit(&old).map_err(|why| WriteError::Refused { path: path.to_string(), why })?;
        if new == old {
            return Ok(told);
        }
        // The replacement is prepared first, so that only the comparison and the rename remain.
        let ready = Replacement::prepare(&real, new.as_bytes()).map_err(failed)?;
        if fs::read(&real).map_err(failed)? == old.as_bytes() {
            ready.put().map_err(failed)?;
            return Ok(told);
        }
    }
    Err(WriteError::Overtaken { path: path.to_string() })
}

/// Does the same for a file that may not exist yet: its text starts out empty.
pub fn edit_or_make<T, E>(
    project: &Project,
    path: &str,
    mut change: impl FnMut(&str) -> Result<(String, T), E>,
) -> Result<T, WriteError<E>> {
    let shelf = Folder::at(project);
    if let Ok(None) = shelf.read(path) {
        let failed = |cause: io::Error| WriteError::Failed { path: path.to_string(), cause };
        let real = project.root().join(path);
        if let Some(to) = project.leads_out(&real) {
            let why = Unreadable::LeadsOut { to: to.display().to_string() };
            return Err(WriteError::Unreadable { path: path.to_string(), why });
        }
        // The edit is tried first, so that a refused or empty one leaves no empty file behind.
        let (new, told) = change("").map_err(|why| WriteError::Refused { path: path.to_string(), why })?;
        if new.is_empty() {
            return Ok(told);
        }
        match fs::File::create_new(&real) {
            // The file was created at this very moment by another program; the edit then starts from its text.
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(failed(cause)),
            _ => {}
        }
    }
    edit(project, path, change)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::fs::symlink};

    use super::*;

    fn project(text: &[u8]) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.yaml"), text).unwrap();
        let project = Project::at(folder.path());
        (folder, project)
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let items = fs::read_dir(folder.path()).unwrap().flatten();
        let mut names: Vec<String> = items.map(|item| item.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn add(text: &str) -> Result<(String, ()), String> {
        Ok((format!("{text}more\n"), ()))
    }

    #[test]
    fn a_file_is_written_whole_and_nothing_stays_beside_it() {
        let (folder, project) = project(b"one\n");
        edit(&project, "b.yaml", add).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("b.yaml")).unwrap(), "one\nmore\n");
        assert_eq!(names(&folder), ["b.yaml"]);
    }

    #[test]
    fn what_somebody_else_wrote_meanwhile_is_kept() {
        let (folder, project) = project(b"one\n");
        let times = Cell::new(0);
        let path = folder.path().join("b.yaml");
        edit(&project, "b.yaml", |text| {
            times.set(times.get() + 1);
            if times.get() < 3 {
                fs::write(&path, format!("{text}theirs {}\n", times.get())).unwrap();
            }
            add(text)
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntheirs 1\ntheirs 2\nmore\n");
        let overtaken = edit(&project, "b.yaml", |text| {
            fs::write(&path, format!("{text}x")).unwrap();
            add(text)
        });
        assert!(matches!(overtaken, Err(WriteError::Overtaken { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntheirs 1\ntheirs 2\nmore\nxxxxx");
        assert_eq!(names(&folder), ["b.yaml"]);
    }

    #[test]
    fn what_cannot_be_edited_is_not_touched() {
        let (folder, project) = project(b"ok\n\xff\n");
        let not_text = edit(&project, "b.yaml", add);
        assert!(matches!(
            not_text,
            Err(WriteError::Unreadable { why: Unreadable::NotText { line: 2, column: 1 }, .. })
        ));
        assert!(matches!(edit(&project, "gone.yaml", add), Err(WriteError::Missing { .. })));
        let elsewhere = tempfile::tempdir().unwrap();
        let precious = elsewhere.path().join("precious");
        fs::write(&precious, "text").unwrap();
        symlink(&precious, folder.path().join("out.yaml")).unwrap();
        let out = edit(&project, "out.yaml", add);
        assert!(matches!(out, Err(WriteError::Unreadable { why: Unreadable::LeadsOut { .. }, .. })));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        assert_eq!(names(&folder), ["b.yaml", "out.yaml"]);
        fs::write(folder.path().join("b.yaml"), "fine").unwrap();
        let refused = edit(&project, "b.yaml", |_| Err::<(String, ()), _>("no"));
        assert!(matches!(refused, Err(WriteError::Refused { why: "no", .. })));
        assert_eq!(fs::read_to_string(folder.path().join("b.yaml")).unwrap(), "fine");
    }

    #[test]
    fn a_file_that_is_not_there_is_made_when_there_is_something_to_write() {
        let (folder, project) = project(b"one\n");
        edit_or_make(&project, "new.md", |_| Ok::<_, ()>((String::new(), ()))).unwrap();
        edit_or_make(&project, "new.md", |_| Err::<(String, ()), _>("no")).unwrap_err();
        assert_eq!(names(&folder), ["b.yaml"]);
        edit_or_make(&project, "new.md", add).unwrap();
        edit_or_make(&project, "new.md", add).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("new.md")).unwrap(), "more\nmore\n");
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path().join("made"), folder.path().join("out.md")).unwrap();
        assert!(matches!(edit_or_make(&project, "out.md", add), Err(WriteError::Unreadable { .. })));
        assert!(!elsewhere.path().join("made").exists());
    }

    #[test]
    fn a_link_inside_the_project_stays_a_link() {
        let (folder, project) = project(b"one\n");
        symlink("b.yaml", folder.path().join("link.yaml")).unwrap();
        edit(&project, "link.yaml", add).unwrap();
        assert!(fs::symlink_metadata(folder.path().join("link.yaml")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("b.yaml")).unwrap(), "one\nmore\n");
    }
}
