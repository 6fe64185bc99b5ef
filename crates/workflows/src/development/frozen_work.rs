//! Frozen work: the content of a workspace at one time, as a tree of git.
//!
//! Checks, rules and commits name the tree that they are about, so that nothing else can come in between: an effect that takes a tree puts
//! the files back to it first, and a commit is made from it and not from the files.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, TreeId},
};

/// How often a content is verified anew that keeps changing meanwhile.
pub const MAX_VERIFICATIONS: u32 = 3;

/// Freezes the content of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FreezeWork {
    pub workspace: String,
    /// The commit whose content is taken; `None` takes what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum WorkFreezing {
    Frozen {
        tree: TreeId,
        /// What the user should know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remarks: Vec<String>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// What has passed all checks, with what was written into it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerifiedWork {
    pub tree: TreeId,
    /// Whether they have passed as in a fresh clone: with nothing there but what git commits, and what set-up commands make.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_fresh_clone: bool,
    /// Whether a fresh clone says nothing about them: something fails there without the work, too.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_excused: bool,
    /// The same with the bookkeeping of Tribunal; `None` if nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<TreeId>,
    /// The files of that bookkeeping, the only ones in which what lands may differ from what has passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_paths: Vec<String>,
}

impl VerifiedWork {
    pub fn new(tree: TreeId, in_fresh_clone: bool) -> VerifiedWork {
        VerifiedWork { tree, in_fresh_clone, is_excused: false, written: None, own_paths: Vec::new() }
    }

    /// What the files are now.
    pub fn current_tree(&self) -> &TreeId {
        self.written.as_ref().unwrap_or(&self.tree)
    }

    /// Remembers what was written.
    pub fn note_writing(&mut self, tree: TreeId, paths: Vec<String>) {
        self.written = Some(tree);
        for path in paths {
            if !self.own_paths.contains(&path) {
                self.own_paths.push(path);
            }
        }
    }
}
