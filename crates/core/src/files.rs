//! What happens to files: as they were frozen, changed by a patch, landed, or written by somebody else.
//!
//! Plain values without rules. Making, landing and restoring files is `runner`'s business; [`crate::effect`] says what a
//! workflow can ask for.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Hash;

/// A file of a change under review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrozenFile {
    pub path: String,
    pub text: String,
}

/// A file of a change after a landing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandedFile {
    pub path: String,
    pub hunks: Vec<Hunk>,
    /// As it is now.
    pub text: String,
}

/// A file of the person's that changed while agents were at work, and not by a landing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Stray {
    pub path: String,
    /// As it was; none: it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// As it is now; none: it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// What stood there can be put back.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kept: bool,
}

/// What a fixer changed in its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// Hash of the changed files' names and new contents: what is landed must be this.
    pub hash: Hash,
    /// Relative paths.
    pub files: Vec<String>,
    /// The difference as people read it, masked, as a blob.
    pub diff: Hash,
}

/// Lines `old_start..old_start+old_len` became `new_len` lines (lines count from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    pub old_start: u32,
    pub old_len: u32,
    pub new_len: u32,
}

/// Why a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    /// It touches files it may not.
    Outside { files: Vec<String> },
    /// Somebody else changed the same lines.
    Conflict {
        line: u32,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        file: String,
        /// What stands there, and what the patch would have there.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ours: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        theirs: String,
    },
    /// A verify command said no.
    Check { command: String, output: String },
    /// It would take most of the text away.
    Gutted { before: u32, after: u32 },
    /// The copy it was made in is gone or no longer the one that was answered for.
    Lost { detail: String },
}
