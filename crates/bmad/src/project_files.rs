//! Where a project's files come from. This is a port, since this crate opens no file: the runner implements it over a
//! directory, and tests use [`InMemoryFiles`].

use std::collections::BTreeMap;

use crate::problem::FileProblem;

/// The files of one project. Paths are relative to its root, use `/` and never start with one.
pub trait ProjectFiles {
    /// The text of a file; `None` if there is no such file.
    fn read_file(&self, file_path: &str) -> Result<Option<String>, UnreadableFile>;

    /// The names in a directory, sorted; names of directories end with `/`. Empty if there is no such directory, or if it
    /// leads out of the project. The root is the empty path.
    fn list_names(&self, directory: &str) -> Vec<String>;

    /// The absolute path of the project's root, where it is known: some settings name it.
    fn root_path(&self) -> Option<&str> {
        None
    }
}

/// Why a file that exists cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadableFile {
    /// The position of the first byte that is not UTF-8.
    NotText {
        line: usize,
        column: usize,
    },
    TooLong {
        bytes: u64,
        max_bytes: u64,
    },
    /// The file is a link to a target outside the project.
    LeadsOutside {
        target: String,
    },
    /// The path is not a file, or the system refused to read it.
    Refused {
        cause: String,
    },
}

impl UnreadableFile {
    /// The cause, for a text that has named the file already.
    pub fn describe_cause(&self) -> String {
        match self {
            UnreadableFile::NotText { line, column } => {
                format!("it is not valid UTF-8 (line {line}, column {column})")
            }
            UnreadableFile::TooLong { bytes, max_bytes } => {
                format!("it is too large ({bytes} bytes, at most {max_bytes} are read)")
            }
            UnreadableFile::LeadsOutside { target } => {
                format!("it leads out of the project through a link, to {target}")
            }
            UnreadableFile::Refused { cause } => cause.clone(),
        }
    }

    pub fn to_problem(&self, file_path: &str) -> FileProblem {
        match self {
            UnreadableFile::NotText { line, column } => {
                FileProblem::error("file-not-text", file_path, "not valid UTF-8")
                    .at_line(*line)
                    .at_column(*column)
                    .with_reason("Tribunal neither reads nor writes this file.")
                    .with_advice("save it as UTF-8")
            }
            // Very long files are refused before they are read, since one file must not fill the memory.
            UnreadableFile::TooLong { bytes, max_bytes } => FileProblem::error(
                "file-too-long",
                file_path,
                format!("the file is too large ({bytes} bytes, at most {max_bytes} are read)"),
            )
            .with_advice("split it, or check why it is so large"),
            UnreadableFile::LeadsOutside { target } => FileProblem::error(
                "file-leads-out",
                file_path,
                format!("the path leads out of the project through a link, to {target}"),
            )
            .with_reason("Links are only followed inside the project, since a cloned project could point anywhere.")
            .with_advice("replace the link with what it points to"),
            UnreadableFile::Refused { cause } => {
                FileProblem::error("file-refused", file_path, format!("cannot read the file: {cause}"))
                    .with_advice("check that it is a regular file and that you have permission to read it")
            }
        }
    }
}

/// Whether a file exists and can be read.
pub fn is_readable(project_files: &dyn ProjectFiles, file_path: &str) -> bool {
    matches!(project_files.read_file(file_path), Ok(Some(_)))
}

/// Reads a file's text; a file that exists and cannot be read adds a problem.
pub fn read_or_report(
    project_files: &dyn ProjectFiles,
    file_path: &str,
    problems: &mut Vec<FileProblem>,
) -> Option<String> {
    project_files.read_file(file_path).unwrap_or_else(|unreadable| {
        problems.push(unreadable.to_problem(file_path));
        None
    })
}

/// Files that are held in memory, for tests.
#[derive(Clone, Debug, Default)]
pub struct InMemoryFiles {
    files: BTreeMap<String, String>,
}

impl InMemoryFiles {
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> InMemoryFiles {
        InMemoryFiles {
            files: files.into_iter().map(|(file_path, file_text)| (file_path.into(), file_text.into())).collect(),
        }
    }

    #[cfg(test)]
    pub fn insert_file(&mut self, file_path: &str, file_text: &str) {
        self.files.insert(file_path.to_string(), file_text.to_string());
    }
}

impl ProjectFiles for InMemoryFiles {
    fn read_file(&self, file_path: &str) -> Result<Option<String>, UnreadableFile> {
        Ok(self.files.get(file_path).cloned())
    }

    fn list_names(&self, directory: &str) -> Vec<String> {
        // The root is the empty path; every other directory gets a slash, so that `docs` does not match `docs-old/x`.
        let prefix = if directory.is_empty() { String::new() } else { format!("{}/", directory.trim_end_matches('/')) };
        let relative_paths = self.files.keys().filter_map(|file_path| file_path.strip_prefix(&prefix));
        // Only the first path component counts. It keeps its slash if something lies below it, which makes it a directory.
        let mut names: Vec<String> = relative_paths
            .map(|relative_path| relative_path.split_inclusive('/').next().unwrap_or(relative_path).to_string())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}
