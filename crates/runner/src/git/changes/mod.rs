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

use tribunal_workflows::findings::subject::{ChangedPath, CodeChange};

use crate::git::{GitError, GitRepository};
use listing::{ChangedEntry, SiftedFiles};
pub use parts::ChangePart;
use revisions::ChangeEndpoints;

/// The limits of one part; a panel cannot read more with care.
pub const MAX_PART_FILES: usize = 200;
pub const MAX_PART_BYTES: u64 = 256 << 10;
pub const MAX_PARTS: usize = 10;
/// The number of reasons for omitted files that are kept one by one.
const MAX_OMISSION_REASONS: usize = 100;

/// Which change is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeScope {
    /// `A..B`, or `A...B` for what B has since the two diverged.
    Range(String),
    /// The index compared with HEAD.
    Staged,
    /// The work tree compared with HEAD, with new files.
    WorkTree,
    /// One commit compared with its first parent.
    Commit(String),
    /// The work tree compared with a revision, with new files.
    WorkTreeSince(String),
}

/// A change as the user asks for it.
#[derive(Clone, Debug)]
pub struct ChangeRequest {
    pub selector: ChangeScope,
    /// Only files at or below these paths, relative to the project's root.
    pub path_filters: Vec<String>,
    /// Whether the change will be repaired: then it has to match the work tree.
    pub needs_fixing: bool,
    /// The directory of trackers and metrics, which belong to Tribunal and are not part of a change.
    pub reviews_dir: String,
    /// Directories for planning the work (boards, stories, skills), which are not part of a change.
    pub planning_dirs: Vec<String>,
    /// Whether a file is a story, by path and text.
    pub is_story: fn(&str, &str) -> bool,
}

/// A change as it was found.
#[derive(Clone, Debug)]
pub struct FoundChange {
    /// The whole change, regardless of its size.
    pub change: CodeChange,
    /// The size of the diff of every file.
    diff_sizes: Vec<u64>,
    /// The stories among its files.
    pub story_paths: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("`{said}` is not a range")]
    NotARange { said: String },
    #[error("unknown revision `{said}`")]
    UnknownRevision { said: String },
    #[error("{one} and {other} have no common history{}", if *.shallow { " in this clone" } else { "" })]
    NoCommonHistory { one: String, other: String, shallow: bool },
    #[error("the parent of {said} is missing: this clone is shallow")]
    ShallowHistory { said: String },
    #[error("{path} has unresolved merge conflicts")]
    UnresolvedConflicts { path: String },
    #[error("no changes in {range}")]
    EmptyChange { range: String },
    #[error("no reviewable changes in {range}")]
    NothingReviewable { range: String, reasons: Vec<String> },
    #[error("the work tree differs from {range} in {}", format_some_files(.files))]
    WorkTreeDiffers {
        range: String,
        /// Whether what is staged was asked for, and not commits.
        staged: bool,
        files: Vec<String>,
    },
    #[error("{range} is too large for one review: {}", format_change_size(*.files, *.bytes))]
    TooBig { range: String, files: usize, bytes: Option<u64>, folders: Vec<(String, usize)> },
    #[error("could not read {path}: {cause}")]
    Unreadable { path: String, cause: std::io::Error },
}

fn format_some_files(files: &[String]) -> String {
    let first_files = files.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match files.len() {
        0..=3 => first_files,
        file_count => format!("{first_files} and {} more", file_count - 3),
    }
}

fn format_change_size(files: usize, bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{files} files with {} of diff", format_bytes(bytes)),
        None => format!("{files} files"),
    }
}

/// Formats a size for display.
pub fn format_bytes(bytes: u64) -> String {
    if bytes >= 1 << 20 {
        format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
    } else {
        format!("{} KB", bytes.div_ceil(1024))
    }
}

impl ChangeScope {
    /// Returns the name of the change for display.
    fn display_name(&self, paths: &[String]) -> String {
        let selector_name = match self {
            ChangeScope::Range(revision_text) => revision_text.clone(),
            ChangeScope::Staged => "staged".to_string(),
            ChangeScope::WorkTree => "work tree".to_string(),
            ChangeScope::Commit(revision_text) => format!("commit {revision_text}"),
            ChangeScope::WorkTreeSince(revision_text) => format!("work tree since {revision_text}"),
        };
        if paths.is_empty() { selector_name } else { format!("{selector_name} in {}", paths.join(", ")) }
    }
}

/// Finds out which files a change consists of.
pub fn find_change(project_root: &Path, request: &ChangeRequest) -> Result<FoundChange, ChangeError> {
    let repository = GitRepository::open_at(project_root)?;
    let range_name = request.selector.display_name(&request.path_filters);
    let endpoints = ChangeEndpoints::resolve_endpoints(&repository, &request.selector)?;
    let mut changed_entries = listing::list_changed(&repository, &endpoints, &request.path_filters)?;
    // Git's diff has no untracked files; they belong only to a change that ends in the work tree.
    if matches!(request.selector, ChangeScope::WorkTree | ChangeScope::WorkTreeSince(_)) {
        changed_entries.extend(listing::list_untracked(&repository, &request.path_filters)?);
    }
    if changed_entries.is_empty() {
        return Err(ChangeError::EmptyChange { range: range_name });
    }
    let mut sifted_files = listing::sift_entries(&repository, changed_entries, request)?;
    // The change is refused before its diff is measured, which would take long for this many files.
    if sifted_files.reviewable.len() > MAX_PARTS * MAX_PART_FILES {
        return Err(too_big_error(range_name, &sifted_files.reviewable, None));
    }
    listing::measure_diffs(&repository, &endpoints, &request.path_filters, &mut sifted_files)?;
    listing::ensure_fits(&range_name, &sifted_files.reviewable)?;
    let story_paths = contents::check_contents(&repository, &mut sifted_files, request.is_story)?;
    let SiftedFiles { mut reviewable, mut omissions, .. } = sifted_files;
    // Parts are split along directories, which requires the order of the paths.
    reviewable.sort_by(|first, second| first.relative_path.cmp(&second.relative_path));
    omissions.sort();
    if reviewable.is_empty() {
        return Err(ChangeError::NothingReviewable { range: range_name, reasons: limit_reasons(omissions) });
    }
    let end_tree = match endpoints.end_id {
        // A repair is applied to the work tree, so the work tree must have what was reviewed.
        Some(end_tree) if request.needs_fixing => {
            let differing_files =
                revisions::find_differing_files(&repository, &end_tree, &request.path_filters, &reviewable)?;
            if !differing_files.is_empty() {
                let is_staged = matches!(request.selector, ChangeScope::Staged);
                return Err(ChangeError::WorkTreeDiffers {
                    range: range_name,
                    staged: is_staged,
                    files: differing_files,
                });
            }
            None
        }
        end_tree => end_tree,
    };
    let diff_sizes = reviewable.iter().map(|entry| entry.diff_bytes).collect();
    let changed_paths =
        reviewable.into_iter().map(|entry| ChangedPath { path: entry.relative_path, from: entry.old_path }).collect();
    let change = CodeChange {
        range: range_name,
        base: endpoints.base_id,
        end: end_tree,
        files: changed_paths,
        left_out: limit_reasons(omissions),
        story: None,
    };
    Ok(FoundChange { change, diff_sizes, story_paths })
}

/// Keeps the first reasons, and counts the others.
fn limit_reasons(mut reasons: Vec<String>) -> Vec<String> {
    if reasons.len() > MAX_OMISSION_REASONS {
        let hidden_count = reasons.split_off(MAX_OMISSION_REASONS).len();
        reasons.push(format!("and {hidden_count} more files"));
    }
    reasons
}

fn too_big_error(range_name: String, reviewable: &[ChangedEntry], bytes: Option<u64>) -> ChangeError {
    let relative_paths: Vec<&str> = reviewable.iter().map(|entry| entry.relative_path.as_str()).collect();
    ChangeError::TooBig {
        range: range_name,
        files: reviewable.len(),
        bytes,
        folders: parts::largest_directories(&relative_paths),
    }
}
