//! Files as they were frozen, changed by a patch, landed, or edited from outside.
//!
//! These are plain values without rules. `runner` makes, lands and restores files; [`crate::runs::effect`] says what a workflow
//! can request.

use alloc::{string::String, vec::Vec};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::ids::Hash;

/// A file of a change under review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FrozenFile {
    pub path: String,
    pub text: String,
}

/// A file of a change after a landing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LandedFile {
    pub path: String,
    pub hunks: Vec<Hunk>,
    /// The text after the landing.
    pub text: String,
}

impl LandedFile {
    /// Returns the line at which a hunk begins after the landing.
    pub fn find_new_line(&self, hunk: Hunk) -> u32 {
        let earlier_hunks = self.hunks.iter().filter(|other_hunk| other_hunk.old_start < hunk.old_start);
        let moved_by: i64 = earlier_hunks.map(|earlier| i64::from(earlier.new_len) - i64::from(earlier.old_len)).sum();
        u32::try_from(i64::from(hunk.old_start) + moved_by).unwrap_or(1)
    }
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    Missing,
    File {
        /// The content; `None` if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<Hash>,
        /// The permission bits.
        mode: u32,
    },
    Link {
        target: String,
    },
    /// A FIFO, a socket or a device.
    Special,
    Directory {
        mode: u32,
    },
    /// A directory in which this many files are affected. They are not listed one by one.
    Files {
        count: u32,
    },
    /// A directory that was not watched, because the project has too many files.
    Unwatched,
}

impl PathState {
    pub fn content_hash(&self) -> Option<&Hash> {
        match self {
            PathState::File { hash, .. } => hash.as_ref(),
            _ => None,
        }
    }
}

/// Something in the user's project that changed while agents were at work, and not by a landing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StrayEdit {
    /// Relative to the project's root. A directory whose files are not listed ends with `/`.
    pub path: String,
    pub before: PathState,
    pub after: PathState,
    /// Everything needed to put back the earlier state was kept.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kept: bool,
}

impl StrayEdit {
    /// Whether a path is the one of this edit, or lies in the directory that it is about.
    pub fn covers_path(&self, path: &str) -> bool {
        is_path_covered(&self.path, path)
    }

    /// How many files are affected.
    pub fn count_files(&self) -> u32 {
        match self.after {
            PathState::Files { count } => count,
            _ => 1,
        }
    }
}

/// Whether `path` is the named one, or lies in it if that ends with `/`.
pub fn is_path_covered(named_path: &str, path: &str) -> bool {
    named_path == path || (named_path.ends_with('/') && path.starts_with(named_path))
}

/// What a fixer changed in its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Patch {
    /// The hash of the changed files' names and new contents: only exactly this may land.
    pub hash: Hash,
    /// Relative paths.
    pub files: Vec<String>,
    /// The masked difference for users, as a blob.
    pub diff: Hash,
}

/// Lines `old_start..old_start+old_len` became `new_len` lines (lines count from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hunk {
    pub old_start: u32,
    pub old_len: u32,
    pub new_len: u32,
}

/// A part of a change: one hunk of one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FilePart {
    pub path: String,
    #[serde(flatten)]
    pub hunk: Hunk,
}

impl fmt::Display for FilePart {
    /// Writes `plan.md:12-13`, with the lines before the change.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hunk { old_start, old_len, .. } = self.hunk;
        match old_len {
            0 | 1 => write!(formatter, "{}:{old_start}", self.path),
            _ => write!(formatter, "{}:{old_start}-{}", self.path, old_start + old_len - 1),
        }
    }
}

/// How large a patch may make a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileSizeLimit {
    /// How many times its old size.
    pub growth: u32,
    pub megabytes: u32,
}

/// A file up to this size may grow by any factor: one sentence more can be several times a short text.
const FREE_BYTES: u64 = 4 << 10;

impl FileSizeLimit {
    /// Returns the most bytes that a file may have. A file that did not exist has no old size to grow from.
    pub fn max_bytes(self, old_bytes: Option<u64>) -> u64 {
        let total_bytes = u64::from(self.megabytes) << 20;
        let grown_bytes = old_bytes.map(|old_bytes| old_bytes.saturating_mul(u64::from(self.growth)).max(FREE_BYTES));
        // What is larger already may stay as large as it is.
        grown_bytes.unwrap_or(total_bytes).min(total_bytes.max(old_bytes.unwrap_or_default()))
    }

    pub fn is_default(&self) -> bool {
        *self == FileSizeLimit::default()
    }
}

impl Default for FileSizeLimit {
    fn default() -> Self {
        FileSizeLimit { growth: 4, megabytes: 8 }
    }
}

/// The reason why a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum PatchRefusal {
    /// It touches files that are not allowed.
    Outside { files: Vec<String> },
    /// The same lines were changed elsewhere.
    Conflict {
        line: u32,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        /// The current text of the lines, and the text that the patch has for them.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ours: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        theirs: String,
    },
    /// A check that blocks failed.
    Check { command: String, output: String },
    /// It would remove most of the text.
    Gutted { before: u32, after: u32 },
    /// It makes a file larger than is allowed.
    TooLarge { file: String, bytes: u64, max_bytes: u64 },
    /// It adds what looks like a secret; only the kinds are told.
    AddsSecret { file: String, kinds: Vec<String> },
    /// It repairs none of the findings it was made for.
    RepairsNothing,
    /// The workspace that it was made in is gone, or no longer has the content that was answered for.
    Lost { detail: String },
}
