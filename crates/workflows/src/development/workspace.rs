//! Workspaces for development. Agents work in one over many turns, and it survives the end of a process.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, Hash},
    text::word_table::words,
};

/// Where development happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DevelopmentPlace {
    /// A private git clone outside the project, which borrows the objects of the user's repository.
    #[default]
    Clone,
    /// The user's checkout, which must be clean.
    InPlace,
}

words!(DevelopmentPlace { Clone = "clone", InPlace = "in place" });

/// The settings of workspaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WorkspaceSettings {
    /// The directory for clones; `None` uses the user's cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Commands that prepare a new clone, once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<crate::development::checks::CommandLine>,
    /// Whether work must pass its checks in a fresh clone before it lands.
    #[serde(skip_serializing_if = "is_true")]
    pub fresh_clone: bool,
}

impl Default for WorkspaceSettings {
    fn default() -> WorkspaceSettings {
        WorkspaceSettings { root: None, setup: Vec::new(), fresh_clone: true }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_true(value: &bool) -> bool {
    *value
}

/// Opens a workspace: makes it and sets it up, or finds the one that an earlier process of the run made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OpenWorkspace {
    /// Unique among the workspaces of a run.
    pub workspace: String,
    pub place: DevelopmentPlace,
    /// The branch that the work begins with and lands on.
    pub branch: TargetBranch,
    /// A file of the project in which its agents keep notes already; `None` lets Tribunal choose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratchpad: Option<String>,
}

/// The branch on which the work of a run lands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetBranch {
    /// Without `refs/heads/`.
    pub name: String,
    /// The commit that the branch begins with if it does not exist yet; `None` for a branch that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<CommitId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OpenOutcome {
    Opened(OpenedWorkspace),
    /// A command of `workspace.setup` failed.
    SetupFailed(crate::development::checks::CheckResult),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OpenedWorkspace {
    /// The directory in which agents work.
    pub path: String,
    /// The commit that the work begins with.
    pub base: CommitId,
    pub state: WorkspaceState,
    /// The file in which agents keep notes for later turns, relative to `path`. It is not part of the work.
    pub scratchpad: String,
    /// What agents and checks will not find there, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The content of a workspace at one time: everything that git would commit, whether or not it is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WorkspaceState {
    /// Equal for equal contents. What the agent commits, stages or ignores makes no difference.
    pub fingerprint: Option<Hash>,
    /// The files that differ from the commit that the work began with, sorted by path; at most [`MAX_LISTED_FILES`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<WorkspaceChange>,
    pub changed_count: u32,
    /// What the task asked to know about single files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CollectedFile>,
}

/// The most files that a state lists.
pub const MAX_LISTED_FILES: usize = 200;
/// The most bytes of a file that is read for its checkboxes.
pub const MAX_COLLECTED_BYTES: usize = 256 << 10;

/// A file that differs from the commit that the work began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkspaceChange {
    pub path: String,
    pub change: PathChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    Added,
    Modified,
    Deleted,
}

words!(PathChange { Added = "added", Modified = "modified", Deleted = "deleted" });

/// What a task asked to know about a file of its workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CollectedFile {
    pub path: String,
    /// Its checkboxes; `None` if there is no such file, or if it is no text or too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<CheckboxCounts>,
}

/// The checkboxes of a Markdown file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckboxCounts {
    pub done: u32,
    pub total: u32,
    /// The text of the first one that is not ticked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub first_open: String,
    /// Whether a box with the text `TASK_COMPLETE` is ticked.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub says_complete: bool,
}

impl WorkspaceState {
    pub fn checkboxes_of(&self, path: &str) -> Option<&CheckboxCounts> {
        self.files.iter().find(|file| file.path == path)?.boxes.as_ref()
    }
}

/// Removes a workspace whose work has landed or is not wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CloseWorkspace {
    pub workspace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CloseOutcome {
    Closed,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}
