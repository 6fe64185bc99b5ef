//! Where a project's files come from: a port, since nothing is opened here. The runner has one over a folder; tests have
//! [`Kept`].

use std::collections::BTreeMap;

use crate::problem::Problem;

/// The files of one project. Paths are relative to its root, with `/`, never starting with one.
pub trait Shelf {
    /// A file's text; none: there is no such file.
    fn read(&self, path: &str) -> Result<Option<String>, Unreadable>;

    /// What a folder holds, sorted; names of folders end with `/`. Empty where there is no such folder, or it leads out of
    /// the project. The root is ``.
    fn names(&self, folder: &str) -> Vec<String>;

    /// Where the project's root is, as an absolute path, where that is known: some settings name it.
    fn root(&self) -> Option<&str> {
        None
    }
}

/// Why a file that is there cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The first byte that is no UTF-8.
    NotText {
        line: usize,
        column: usize,
    },
    TooLong {
        bytes: u64,
        most: u64,
    },
    /// It is a link to somewhere out of the project.
    LeadsOut {
        to: String,
    },
    /// It is no file, or the system refused.
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

/// Whether a file is there and can be read.
pub fn has(shelf: &dyn Shelf, path: &str) -> bool {
    matches!(shelf.read(path), Ok(Some(_)))
}

/// A file's text, with a problem where it is there and cannot be read.
pub fn read(shelf: &dyn Shelf, path: &str, problems: &mut Vec<Problem>) -> Option<String> {
    shelf.read(path).unwrap_or_else(|why| {
        problems.push(why.problem(path));
        None
    })
}

/// Files that are simply there.
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
        let under =
            if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let rests = self.files.keys().filter_map(|path| path.strip_prefix(&under));
        let mut names: Vec<String> =
            rests.map(|rest| rest.split_inclusive('/').next().unwrap_or(rest).to_string()).collect();
        names.sort();
        names.dedup();
        names
    }
}
