//! Code changes as subjects: what a user means by a range, which files of it can be reviewed, and in how many parts.
//!
//! The number of git queries is fixed, however many files there are, and sizes are queried before contents. Nothing is written
//! except the index as a tree for `--staged`, from a copy of the index. `effects` knows what a run does with a change.

mod contents;
mod listing;
mod parts;
mod revisions;
#[cfg(test)]
mod tests;

use std::path::Path;

use tribunal_core::subject::{Change, Changed};

use crate::git::{GitError, Repository};
use listing::{Entry, Sifted};
pub use parts::Part;
use revisions::Ends;

/// The limits of one part; a panel cannot read more with care.
pub const MOST_FILES: usize = 200;
pub const MOST_BYTES: u64 = 256 << 10;
pub const MOST_PARTS: usize = 10;
/// The number of reasons for omitted files that are kept one by one.
const MOST_LEFT_OUT: usize = 100;

/// Which change is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// `A..B`, or `A...B` for what B has since the two diverged.
    Range(String),
    /// The index compared with HEAD.
    Staged,
    /// The work tree compared with HEAD, with new files.
    WorkTree,
    /// One commit compared with its first parent.
    Commit(String),
    /// The work tree compared with a revision, with new files.
    Since(String),
}

/// A change as the user asks for it.
#[derive(Clone, Debug)]
pub struct Request {
    pub asked: Asked,
    /// Only files at or below these paths, relative to the project's root.
    pub paths: Vec<String>,
    /// Whether the change will be repaired: then it has to match the work tree.
    pub fix: bool,
    /// The directory of trackers and metrics, which belong to Tribunal and are not part of a change.
    pub reviews: String,
    /// Directories for planning the work (boards, stories, skills), which are not part of a change.
    pub bookkeeping: Vec<String>,
    /// Whether a file is a story, by path and text.
    pub is_story: fn(&str, &str) -> bool,
}

/// A change as it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The whole change, regardless of its size.
    pub change: Change,
    /// The size of the diff of every file.
    bytes: Vec<u64>,
    /// The stories among its files.
    pub stories: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("`{said}` is no range")]
    NoRange { said: String },
    #[error("there is no revision `{said}` in this repository")]
    Unknown { said: String },
    #[error("{one} and {other} have no history in common{}", if *.shallow { " in this clone" } else { "" })]
    Unrelated { one: String, other: String, shallow: bool },
    #[error("what came before {said} is not in this clone: its history is shallow")]
    Shallow { said: String },
    #[error("{path} has merge conflicts that are not resolved")]
    Conflicts { path: String },
    #[error("nothing changed in {range}")]
    Nothing { range: String },
    #[error("{range} changes nothing that can be reviewed")]
    AllLeftOut { range: String, reasons: Vec<String> },
    #[error("the work tree has something else than {range} in {}", some(.files))]
    Differs {
        range: String,
        /// What is staged was asked for, and not commits.
        staged: bool,
        files: Vec<String>,
    },
    #[error("{range} is too big for one review: {}", size(*.files, *.bytes))]
    TooBig { range: String, files: usize, bytes: Option<u64>, folders: Vec<(String, usize)> },
    #[error("{path} cannot be read: {cause}")]
    Unreadable { path: String, cause: std::io::Error },
}

fn some(files: &[String]) -> String {
    let shown = files.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len() {
        0..=3 => shown,
        more => format!("{shown} and {} more", more - 3),
    }
}

fn size(files: usize, bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{files} files with {} of diff", kilobytes(bytes)),
        None => format!("{files} files"),
    }
}

/// Formats a size for display.
pub fn kilobytes(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{} KB", bytes.div_ceil(1024))
    }
}

impl Asked {
    /// Returns the name of the change for display.
    fn name(&self, paths: &[String]) -> String {
        let name = match self {
            Asked::Range(said) => said.clone(),
            Asked::Staged => "staged".to_string(),
            Asked::WorkTree => "work tree".to_string(),
            Asked::Commit(said) => format!("commit {said}"),
            Asked::Since(said) => format!("work tree since {said}"),
        };
        if paths.is_empty() { name } else { format!("{name} in {}", paths.join(", ")) }
    }
}

/// Finds out which files a change consists of.
pub fn find(root: &Path, request: &Request) -> Result<Found, ChangeError> {
    let repository = Repository::around(root)?;
    let range = request.asked.name(&request.paths);
    let ends = Ends::resolve(&repository, &request.asked)?;
    let mut entries = listing::changed(&repository, &ends, &request.paths)?;
    // Git's diff has no untracked files; they belong only to a change that ends in the work tree.
    if matches!(request.asked, Asked::WorkTree | Asked::Since(_)) {
        entries.extend(listing::untracked(&repository, &request.paths)?);
    }
    if entries.is_empty() {
        return Err(ChangeError::Nothing { range });
    }
    let mut sifted = listing::sift(&repository, entries, request)?;
    // Refused before the diff is measured, which would take long for this many files.
    if sifted.kept.len() > MOST_PARTS * MOST_FILES {
        return Err(too_big(range, &sifted.kept, None));
    }
    listing::measure(&repository, &ends, &request.paths, &mut sifted)?;
    listing::fits(&range, &sifted.kept)?;
    let stories = contents::look(&repository, &mut sifted, request.is_story)?;
    let Sifted { mut kept, mut left_out, .. } = sifted;
    // Parts are split along directories, which requires the order of the paths.
    kept.sort_by(|one, other| one.path.cmp(&other.path));
    left_out.sort();
    if kept.is_empty() {
        return Err(ChangeError::AllLeftOut { range, reasons: bounded(left_out) });
    }
    let end = match ends.end {
        // A repair is applied to the work tree, so the work tree must have what was reviewed.
        Some(end) if request.fix => {
            let files = revisions::differing(&repository, &end, &request.paths, &kept)?;
            if !files.is_empty() {
                let staged = matches!(request.asked, Asked::Staged);
                return Err(ChangeError::Differs { range, staged, files });
            }
            None
        }
        end => end,
    };
    let bytes = kept.iter().map(|entry| entry.bytes).collect();
    let files = kept.into_iter().map(|entry| Changed { path: entry.path, from: entry.from }).collect();
    let change = Change { range, base: ends.base, end, files, left_out: bounded(left_out), story: None };
    Ok(Found { change, bytes, stories })
}

/// Keeps the first reasons, and counts the others.
fn bounded(mut reasons: Vec<String>) -> Vec<String> {
    if reasons.len() > MOST_LEFT_OUT {
        let more = reasons.split_off(MOST_LEFT_OUT).len();
        reasons.push(format!("and {more} more files"));
    }
    reasons
}

fn too_big(range: String, kept: &[Entry], bytes: Option<u64>) -> ChangeError {
    let paths: Vec<&str> = kept.iter().map(|entry| entry.path.as_str()).collect();
    ChangeError::TooBig { range, files: kept.len(), bytes, folders: parts::folders(&paths) }
}
