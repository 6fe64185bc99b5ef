//! Commits: how the work of a workspace is recorded, and how it gets onto the user's branch.
//!
//! The commits are made by Tribunal from the content of a workspace; what an agent commits itself counts only as content.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::development::{
    check_scripts::ChangedScript,
    checks::{CheckResult, CommandLine},
    concerns::{LandingConcern, LandingGate},
    frozen_work::VerifiedWork,
    workspace::TargetBranch,
};
use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, TreeId},
};

/// Commits the content of a workspace, and stores the commit in the user's repository under a ref of Tribunal's own. No branch
/// of the user moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CommitWork {
    pub workspace: String,
    pub message: String,
    /// Whether the user's commit hooks run first. What a hook changes is not committed, but handed back.
    pub run_hooks: bool,
    /// Whether the commit takes the place of all earlier ones of the workspace, so that the whole work is one commit.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub squash: bool,
    /// Whether the commit gets a ref of its own, so that it stays when later commits take its place.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps_ref: bool,
    /// The frozen content that is committed; `None` commits what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CommitOutcome {
    Committed {
        commit: CommitId,
    },
    /// There is nothing to commit since the last commit of this workspace.
    Unchanged {
        /// The last commit, or the one that the work began with.
        tip: CommitId,
    },
    /// A hook of the user refused the commit.
    Refused(CheckResult),
    /// A hook of the user changed these files of the frozen content. Nothing was committed: the checks did not see this.
    Rewritten {
        tree: TreeId,
        paths: Vec<String>,
    },
    /// The user has edited these files of the checkout since the content was frozen, so that no hook could run on it.
    Edited {
        paths: Vec<String>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// Moves the target branch to the last commit of a workspace, if the branch has not moved since the work began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Integrate {
    pub workspace: String,
    pub branch: TargetBranch,
    /// Where the branch must still be.
    pub expected: CommitId,
    pub commit: CommitId,
    /// The checks whose own scripts must not have changed; none if the user agreed to that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged_checks: Vec<CommandLine>,
    /// What the work is compared with before the branch moves.
    #[serde(default)]
    pub gate: LandingGate,
    /// What has passed the checks: the commit must not differ from it. `None` for what no check is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedWork>,
    /// Files of bookkeeping, relative to the project's root: if the user has edited one and not committed that, the work's change
    /// of it is merged into the user's version, where both changed different lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mergeable: Vec<String>,
    /// Whether nothing moves, and the outcome only says where the branch is.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub only_looks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum IntegrateOutcome {
    /// The branch has the work. The checkout of it follows, or nothing is checked out there.
    Integrated { checkout_moved: bool },
    /// The checkout has uncommitted changes of the same files, so the branch was left alone. The work is on another branch.
    Waits {
        branch: String,
        /// The files that are in the way.
        paths: Vec<String>,
    },
    /// The work changes what a check runs, so that it passed says nothing. The branch was left alone.
    ChecksChanged { scripts: Vec<ChangedScript> },
    /// Something about the work is questionable. The branch was left alone.
    Questionable { concerns: Vec<LandingConcern> },
    /// The branch has moved meanwhile: the work has to be rebased onto this commit first.
    Moved { tip: CommitId },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// Replays the commits of a workspace onto another commit, and its content with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RebaseWork {
    pub workspace: String,
    pub onto: CommitId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RebaseOutcome {
    Rebased {
        commit: CommitId,
    },
    /// Nothing was changed.
    Conflict(RebaseConflict),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// The most conflicts of a rebase whose texts are shown.
pub const MAX_SHOWN_CONFLICTS: usize = 3;
/// The most characters that are shown of each side of a conflict.
pub const MAX_CONFLICT_SIDE_CHARS: usize = 600;

/// Where work conflicts with the branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RebaseConflict {
    pub paths: Vec<String>,
    /// The first conflicts with both texts, as far as there are texts to compare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<ConflictSides>,
    /// The directory of the workspace, where the work can be looked at.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// What was found on the branch of a solution by hand; `None` if the work conflicts with it for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundSolution>,
}

/// What was found on the branch of a solution by hand, if that is not enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "solution", rename_all = "snake_case")]
pub enum FoundSolution {
    /// The branch does not have the work in its history, and its content does not show the work either.
    Missing {
        /// Whether the branch has moved since the first conflict.
        has_moved: bool,
    },
    /// The branch has the work in its history, and none of its changes.
    WorkDropped {
        /// The commit that the work began with.
        base: CommitId,
    },
    /// The branch has the work, and none of its own changes.
    BranchDropped {
        /// Where the branch had them.
        before: CommitId,
    },
    /// The user has merged the work and left marks of a conflict in files.
    MarksLeft,
    /// The user has merged the work, and the rules refuse what is on the branch.
    Incomplete { reasons: Vec<String> },
}

impl RebaseConflict {
    /// Names the files of a conflict whose texts are not known.
    pub fn from_paths(paths: Vec<String>) -> RebaseConflict {
        RebaseConflict { paths, ..RebaseConflict::default() }
    }
}

/// A place that the branch and the work changed in different ways. A text is empty where that side has removed the lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConflictSides {
    pub file: String,
    /// The line in the file of the branch.
    pub line: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub on_branch: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub in_work: String,
}
