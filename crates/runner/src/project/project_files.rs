//! A project's directory as the readers of BMAD's files see it: paths from the root, texts, names. Nothing outside the project
//! is read, no read blocks, and a file longer than any of BMAD's is not loaded into memory.
//!
//! `bmad` interprets the texts; [`crate::project::locked_edit`] and the landings write them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::project_files::{ProjectFiles, UnreadableFile};

use crate::project::{Project, resolve_outside_of};

/// The longest file that is read. Boards and documents are far shorter.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The files of a project, on disk.
#[derive(Clone, Debug)]
pub struct ProjectDirectory {
    /// The root with all links resolved.
    canonical_root: PathBuf,
}

impl ProjectDirectory {
    pub fn open_project(project: &Project) -> ProjectDirectory {
        let canonical_root = project.root().canonicalize().unwrap_or_else(|_| project.root().to_path_buf());
        ProjectDirectory { canonical_root }
    }

    fn absolute_path(&self, relative_path: &str) -> PathBuf {
        self.canonical_root.join(relative_path)
    }

    /// Returns where a path leads, if that is outside the project, because of links or of `..`.
    fn resolve_outside(&self, checked_path: &Path) -> Option<String> {
        resolve_outside_of(&self.canonical_root, checked_path).map(|real_target| real_target.display().to_string())
    }
}

impl ProjectFiles for ProjectDirectory {
    fn read_file(&self, path: &str) -> Result<Option<String>, UnreadableFile> {
        let path = self.absolute_path(path);
        let refused_error = |cause: io::Error| UnreadableFile::Refused { cause: cause.to_string() };
        // A link is not followed here: a dangling one exists and must not count as a missing file.
        match fs::symlink_metadata(&path) {
            Err(cause) if is_not_found(&cause) => return Ok(None),
            Err(cause) => return Err(refused_error(cause)),
            Ok(_) => {}
        }
        if let Some(real_target) = self.resolve_outside(&path) {
            return Err(UnreadableFile::LeadsOutside { target: real_target });
        }
        let file_metadata = fs::metadata(&path).map_err(refused_error)?;
        if file_metadata.is_dir() {
            return Ok(None);
        }
        // Reading a pipe could block forever.
        if !file_metadata.is_file() {
            return Err(UnreadableFile::Refused { cause: "it is not a regular file".into() });
        }
        if file_metadata.len() > MAX_FILE_BYTES {
            return Err(UnreadableFile::TooLong { bytes: file_metadata.len(), max_bytes: MAX_FILE_BYTES });
        }
        decode_text(fs::read(&path).map_err(refused_error)?).map(Some)
    }

    fn root_path(&self) -> Option<&str> {
        self.canonical_root.to_str()
    }

    fn list_names(&self, directory: &str) -> Vec<String> {
        let path = self.absolute_path(directory);
        // Most directories that are looked for do not exist.
        let Ok(dir_entries) = fs::read_dir(&path) else { return Vec::new() };
        if self.resolve_outside(&path).is_some() {
            return Vec::new();
        }
        let mut names: Vec<String> = dir_entries
            .flatten()
            .filter_map(|dir_entry| {
                // A name that is not UTF-8 cannot be asked for later.
                let name = dir_entry.file_name().into_string().ok()?;
                // A link counts as what it leads to.
                let is_directory = match dir_entry.file_type() {
                    Ok(file_type) if file_type.is_symlink() => dir_entry.path().is_dir(),
                    Ok(file_type) => file_type.is_dir(),
                    Err(_) => false,
                };
                Some(if is_directory { name + "/" } else { name })
            })
            .collect();
        names.sort();
        names
    }
}

fn is_not_found(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Decodes bytes as UTF-8, or returns the position of the first invalid byte.
pub(crate) fn decode_text(bytes: Vec<u8>) -> Result<String, UnreadableFile> {
    String::from_utf8(bytes).map_err(|utf8_error| {
        let valid_length = utf8_error.utf8_error().valid_up_to();
        let valid_bytes = &utf8_error.as_bytes()[..valid_length];
        let line_start = valid_bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + valid_bytes.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + String::from_utf8_lossy(&valid_bytes[line_start..]).chars().count();
        UnreadableFile::NotText { line, column }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_read_inside_the_project_only() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let project_root = directory.path();
        fs::create_dir(project_root.join("sub")).unwrap();
        fs::write(project_root.join("sub/a.md"), "text").unwrap();
        fs::write(project_root.join("latin.md"), b"ok\nfa\xe7ade\n").unwrap();
        fs::write(elsewhere.path().join("secret"), "no").unwrap();
        symlink(elsewhere.path().join("secret"), project_root.join("out.md")).unwrap();
        symlink(elsewhere.path(), project_root.join("away")).unwrap();
        symlink("sub/a.md", project_root.join("in.md")).unwrap();
        symlink("sub", project_root.join("also")).unwrap();
        fs::File::create(project_root.join("long.md")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let project_directory = ProjectDirectory::open_project(&Project::from_root(project_root));
        assert_eq!(project_directory.read_file("sub/a.md"), Ok(Some("text".into())));
        assert_eq!(project_directory.read_file("in.md"), Ok(Some("text".into())));
        assert_eq!(project_directory.read_file("also/a.md"), Ok(Some("text".into())));
        assert_eq!(project_directory.read_file("gone.md"), Ok(None));
        assert_eq!(project_directory.read_file("sub"), Ok(None));
        assert_eq!(project_directory.read_file("sub/a.md/x"), Ok(None));
        assert_eq!(project_directory.read_file("latin.md"), Err(UnreadableFile::NotText { line: 2, column: 3 }));
        assert!(matches!(project_directory.read_file("long.md"), Err(UnreadableFile::TooLong { .. })));
        for path in ["out.md", "away/secret", "../x"] {
            let result = project_directory.read_file(path);
            assert!(matches!(result, Err(UnreadableFile::LeadsOutside { .. }) | Ok(None)), "{path}: {result:?}");
        }
        assert!(matches!(project_directory.read_file("out.md"), Err(UnreadableFile::LeadsOutside { .. })));
        assert_eq!(project_directory.list_names("away"), Vec::<String>::new());
        assert_eq!(project_directory.list_names("sub"), ["a.md"]);
        assert_eq!(
            project_directory.list_names(""),
            ["also/", "away/", "in.md", "latin.md", "long.md", "out.md", "sub/"]
        );
    }
}
