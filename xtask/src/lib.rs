//! The rules this repository holds itself to, as functions from a folder to a list of breaches.
//!
//! [`arch`] knows which crate may see which, [`tidy`] how large and how clean a file may be, [`style`] counts. Nothing here prints,
//! exits or starts cargo: that is `main.rs`. Neither does anything here judge what clippy and rustfmt already judge.

pub mod arch;
pub mod style;
pub mod tidy;
mod tokens;
mod tree;

use std::fmt;
use std::path::{Path, PathBuf};

/// One broken rule: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub line: Option<usize>,
    pub message: String,
}

impl Breach {
    pub(crate) fn in_file(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }

    pub(crate) fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// The root of the workspace: the folder that holds this crate's folder.
#[must_use]
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}
