//! A project's directory as the readers of BMAD's files see it: paths from the root, texts, names. Nothing outside the project
//! is read, no read blocks, and a file longer than any of BMAD's is not loaded into memory.
//!
//! `bmad` interprets the texts; [`crate::locked_edit`] and the landings write them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::shelf::{Shelf, Unreadable};

use crate::project::Project;

/// Boards and documents of real projects have some 100 KB.
pub const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The files of a project, on disk.
#[derive(Clone, Debug)]
pub struct Folder {
    project: Project,
    /// The root with all links resolved.
    root: PathBuf,
}

impl Folder {
    pub fn at(project: &Project) -> Folder {
        let root = project.root().canonicalize().unwrap_or_else(|_| project.root().to_path_buf());
        Folder { project: project.clone(), root }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns where a path leads, if that is outside the project, because of links or of `..`.
    fn leads_out(&self, path: &Path) -> Option<String> {
        self.project.leads_out(path).map(|there| there.display().to_string())
    }
}

impl Shelf for Folder {
    fn read(&self, path: &str) -> Result<Option<String>, Unreadable> {
        let path = self.path(path);
        let refused = |cause: io::Error| Unreadable::Refused { cause: cause.to_string() };
        // A link is not followed here: a dangling one exists and must not count as a missing file.
        match fs::symlink_metadata(&path) {
            Err(cause) if is_absence(&cause) => return Ok(None),
            Err(cause) => return Err(refused(cause)),
            Ok(_) => {}
        }
        if let Some(to) = self.leads_out(&path) {
            return Err(Unreadable::LeadsOut { to });
        }
        let meta = fs::metadata(&path).map_err(refused)?;
        if meta.is_dir() {
            return Ok(None);
        }
        // Reading a pipe could block forever.
        if !meta.is_file() {
            return Err(Unreadable::Refused { cause: "it is not a file".into() });
        }
        if meta.len() > MOST_BYTES {
            return Err(Unreadable::TooLong { bytes: meta.len(), most: MOST_BYTES });
        }
        text(fs::read(&path).map_err(refused)?).map(Some)
    }

    fn root(&self) -> Option<&str> {
        self.root.to_str()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let path = self.path(folder);
        if self.leads_out(&path).is_some() {
            return Vec::new();
        }
        let items = fs::read_dir(&path).into_iter().flatten().flatten();
        let mut names: Vec<String> = items
            .filter_map(|item| {
                // A name that is not UTF-8 cannot be asked for later.
                let name = item.file_name().into_string().ok()?;
                // A link counts as what it leads to.
                let is_folder = match item.file_type() {
                    Ok(kind) if kind.is_symlink() => item.path().is_dir(),
                    Ok(kind) => kind.is_dir(),
                    Err(_) => false,
                };
                Some(if is_folder { name + "/" } else { name })
            })
            .collect();
        names.sort();
        names
    }
}

fn is_absence(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Decodes bytes as UTF-8, or returns the position of the first invalid byte.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|failed| {
        let good = failed.utf8_error().valid_up_to();
        let before = &failed.as_bytes()[..good];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + String::from_utf8_lossy(&before[line_start..]).chars().count();
        Unreadable::NotText { line, column }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_read_inside_the_project_only() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.md"), "text").unwrap();
        fs::write(root.join("latin.md"), b"ok\nfa\xe7ade\n").unwrap();
        fs::write(elsewhere.path().join("secret"), "no").unwrap();
        symlink(elsewhere.path().join("secret"), root.join("out.md")).unwrap();
        symlink(elsewhere.path(), root.join("away")).unwrap();
        symlink("sub/a.md", root.join("in.md")).unwrap();
        symlink("sub", root.join("also")).unwrap();
        fs::File::create(root.join("long.md")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let shelf = Folder::at(&Project::at(root));
        assert_eq!(shelf.read("sub/a.md"), Ok(Some("text".into())));
        assert_eq!(shelf.read("in.md"), Ok(Some("text".into())));
        assert_eq!(shelf.read("also/a.md"), Ok(Some("text".into())));
        assert_eq!(shelf.read("gone.md"), Ok(None));
        assert_eq!(shelf.read("sub"), Ok(None));
        assert_eq!(shelf.read("sub/a.md/x"), Ok(None));
        assert_eq!(shelf.read("latin.md"), Err(Unreadable::NotText { line: 2, column: 3 }));
        assert!(matches!(shelf.read("long.md"), Err(Unreadable::TooLong { .. })));
        for path in ["out.md", "away/secret", "../x"] {
            let read = shelf.read(path);
            assert!(matches!(read, Err(Unreadable::LeadsOut { .. }) | Ok(None)), "{path}: {read:?}");
        }
        assert!(matches!(shelf.read("out.md"), Err(Unreadable::LeadsOut { .. })));
        assert_eq!(shelf.names("away"), Vec::<String>::new());
        assert_eq!(shelf.names("sub"), ["a.md"]);
        assert_eq!(shelf.names(""), ["also/", "away/", "in.md", "latin.md", "long.md", "out.md", "sub/"]);
    }
}
