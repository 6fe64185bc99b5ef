//! The rules that this repository keeps, as functions from a directory to a list of breaches.
//!
//! [`arch`] knows which crate may depend on which, [`tidy`] how large and how clean a file may be, and [`style`] counts. This
//! library prints nothing, never exits and does not start cargo: that is `main.rs`. It does not check what clippy and rustfmt
//! already check.

pub mod arch;
mod repository;
pub mod style;
pub mod tidy;
mod tokens;

use std::fmt;
use std::path::{Path, PathBuf};

/// One broken rule: where it is broken, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleBreach {
    /// The path relative to the root, with forward slashes.
    pub path: String,
    pub line: Option<usize>,
    pub message: String,
}

impl RuleBreach {
    pub(crate) fn in_file(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }

    pub(crate) fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for RuleBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// The root of the workspace: the directory that contains this crate.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let own_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    own_dir.parent().unwrap_or(own_dir).to_path_buf()
}
