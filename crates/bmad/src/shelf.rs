//! Where a project's files come from. This is a port, since this crate opens no file: the runner implements it over a
//! directory, and tests use [`InMemoryFiles`].

use std::collections::BTreeMap;

use crate::problem::Problem;

/// The files of one project. Paths are relative to its root, use `/` and never start with one.
pub trait Shelf {
    /// The text of a file; `None` if there is no such file.
    fn read(&self, path: &str) -> Result<Option<String>, Unreadable>;

    /// The names in a directory, sorted; names of directories end with `/`. Empty if there is no such directory, or if it
    /// leads out of the project. The root is ``.
    fn names(&self, folder: &str) -> Vec<String>;

    /// The absolute path of the project's root, where it is known: some settings name it.
    fn root(&self) -> Option<&str> {
        None
    }
}

/// Why a file that exists cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The position of the first byte that is not UTF-8.
    NotText {
        line: usize,
        column: usize,
    },
    TooLong {
        bytes: u64,
        most: u64,
    },
    /// The file is a link to a target outside the project.
    LeadsOut {
        to: String,
    },
    /// The path is not a file, or the system refused to read it.
    Refused {
        cause: String,
    },
}

impl Unreadable {
    pub fn problem(&self, path: &str) -> Problem {
        match self {
            Unreadable::NotText { line, column } => {
                Problem::error("file-not-text", path, "this is not UTF-8 text")
                    .at(*line)
                    .column(*column)
                    .why("it was not read, and will not be written")
                    .todo("save it as UTF-8")
            }
            // Very long files are refused before they are read, since one file must not fill the memory.
            Unreadable::TooLong { bytes, most } => Problem::error(
                "file-too-long",
                path,
                format!("the file has {bytes} bytes; at most {most} are read"),
            )
            .todo("split it, or see what filled it"),
            Unreadable::LeadsOut { to } => {
                Problem::error("file-leads-out", path, format!("this is a link out of the project, to {to}"))
                    .why("a cloned project could point anywhere; links are followed inside the project only")
                    .todo("put the file itself there")
            }
            Unreadable::Refused { cause } => {
                Problem::error("file-refused", path, format!("it cannot be read: {cause}"))
                    .todo("see what stands there, and who may read it")
            }
        }
    }
}

/// Whether a file exists and can be read.
pub fn has(shelf: &dyn Shelf, path: &str) -> bool {
    matches!(shelf.read(path), Ok(Some(_)))
}

/// Reads a file's text; a file that exists and cannot be read adds a problem.
pub fn read(shelf: &dyn Shelf, path: &str, problems: &mut Vec<Problem>) -> Option<String> {
    shelf.read(path).unwrap_or_else(|why| {
        problems.push(why.problem(path));
        None
    })
}

/// Files that are held in memory, for tests.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    files: BTreeMap<String, String>,
}

impl Kept {
    pub fn with<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Kept {
        Kept { files: files.into_iter().map(|(path, text)| (path.into(), text.into())).collect() }
    }

    pub fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_string(), text.to_string());
    }
}

impl Shelf for Kept {
    fn read(&self, path: &str) -> Result<Option<String>, Unreadable> {
        Ok(self.files.get(path).cloned())
    }

    fn names(&self, folder: &str) -> Vec<String> {
        // The root is the empty path; every other directory gets a slash, so that `docs` does not match `docs-old/x`.
        let under =
            if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let rests = self.files.keys().filter_map(|path| path.strip_prefix(&under));
        // Only the first path component counts. It keeps its slash if something lies below it, which makes it a directory.
        let mut names: Vec<String> =
            rests.map(|rest| rest.split_inclusive('/').next().unwrap_or(rest).to_string()).collect();
        names.sort();
        names.dedup();
        names
    }
}
