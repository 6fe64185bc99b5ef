//! Files as they were frozen, changed by a patch, landed, or edited from outside.
//!
//! These are plain values without rules. `runner` makes, lands and restores files; [`crate::engine::effect`] says what a workflow
//! can request.

use alloc::{string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::ids::Hash;

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
    /// The text after the landing.
    pub text: String,
}

/// A file of the user that changed while agents were at work, and not by a landing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StrayEdit {
    pub path: String,
    /// The content before; `None` if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The content now; `None` if the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
    /// The previous content was kept, and the file can be put back.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kept: bool,
}

/// What a fixer changed in its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// The hash of the changed files' names and new contents: only exactly this may land.
    pub hash: Hash,
    /// Relative paths.
    pub files: Vec<String>,
    /// The masked difference for users, as a blob.
    pub diff: Hash,
}

/// Lines `old_start..old_start+old_len` became `new_len` lines (lines count from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    pub old_start: u32,
    pub old_len: u32,
    pub new_len: u32,
}

/// The reason why a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The workspace that it was made in is gone, or no longer has the content that was answered for.
    Lost { detail: String },
}
