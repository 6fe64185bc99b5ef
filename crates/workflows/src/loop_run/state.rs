//! What a loop knows between two iterations. All of it is bounded, however many iterations there are.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{
        checks::{CheckResult, ChecksReport},
        concerns::ConcernLog,
        frozen_work::VerifiedWork,
        workspace::{CheckboxCounts, OpenedWorkspace, WorkspaceState},
    },
    loop_run::{
        breaker::CircuitBreaker,
        order::{LoopOrder, PlanProgress},
    },
    runs::types::UserDialog,
    tasks::consult_outcome::KeptSession,
};
use tribunal_engine::{
    children::ChildLedger,
    ids::{CommitId, Hash, TreeId},
    limits::RunUsage,
    reason::RunEnding,
};

/// Where agents keep notes and plans that are no work by themselves.
const NOTE_DIRS: [&str; 3] = [".ralph/", ".agent/", ".tribunal/"];

/// The stage that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopStage {
    /// The workspace is opened, and the breaker read.
    #[default]
    Open,
    /// The checks run on the untouched workspace.
    Baseline,
    Iterate,
    /// The work is committed and integrated.
    Land,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LoopState {
    pub stage: LoopStage,
    /// The number of iterations that have ended.
    pub iteration: u32,
    #[serde(flatten)]
    pub dialog: UserDialog,
    pub spent: RunUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<LoopWork>,
    /// Whether the workspace has to be made anew, because the user repairs something that it does not have.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_workspace_outdated: bool,
    pub breaker: CircuitBreaker,
    /// The client's session of the last iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<KeptSession>,
    pub feedback: Feedback,
    pub reviews: ReviewLog,
    pub landing: LandingLog,
    /// The ending that waits for an answer of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RunEnding>,
}

impl LoopState {
    /// How many iterations there may be, with what the user granted.
    pub fn allowed_iterations(&self, order: &LoopOrder) -> u32 {
        order.pacing.max_iterations.saturating_mul(self.spent.granted_shares())
    }
}

/// The workspace of a loop and the work in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LoopWork {
    /// The commit that the branch must still be at when the work lands.
    pub base: CommitId,
    /// The file in which agents keep notes, relative to the workspace.
    pub scratchpad: String,
    /// The content with which the loop began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_content: Option<Hash>,
    /// The content after the last iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Hash>,
    /// The content for which all checks passed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_content: Option<Hash>,
    /// What has passed all checks last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedWork>,
    /// The content of the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_content: Option<Hash>,
    /// The last commit, or `base`.
    pub tip: CommitId,
    pub changed_files: u32,
    /// Whether anything but the plan and notes differs from the base.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub has_product_changes: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanProgress>,
    /// The text of the first box of the plan that is not ticked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_task: String,
}

impl LoopWork {
    pub fn from_opened(opened: &OpenedWorkspace, plan_file: Option<&str>) -> LoopWork {
        let mut work = LoopWork {
            base: opened.base.clone(),
            scratchpad: opened.scratchpad.clone(),
            first_content: opened.state.fingerprint.clone(),
            content: None,
            checked_content: None,
            verified: None,
            committed_content: opened.state.fingerprint.clone(),
            tip: opened.base.clone(),
            changed_files: 0,
            has_product_changes: false,
            plan: None,
            next_task: String::new(),
        };
        work.apply_state(&opened.state, plan_file);
        work
    }

    /// Takes over what an iteration left behind. Returns whether the content changed.
    pub fn apply_state(&mut self, state: &WorkspaceState, plan_file: Option<&str>) -> bool {
        let has_changed = state.fingerprint.is_some() && state.fingerprint != self.content;
        if state.fingerprint.is_some() {
            self.content.clone_from(&state.fingerprint);
        }
        self.changed_files = state.changed_count;
        let is_note = |path: &str| {
            Some(path) == plan_file
                || path == self.scratchpad
                || NOTE_DIRS.iter().any(|directory| path.starts_with(directory))
        };
        // What a state does not list may be anything.
        self.has_product_changes = state.changed_count as usize > state.changed.len()
            || state.changed.iter().any(|change| !is_note(&change.path));
        if let Some(CheckboxCounts { done, total, first_open, .. }) =
            plan_file.and_then(|plan_file| state.checkboxes_of(plan_file))
        {
            self.plan = Some(PlanProgress { done: *done, total: *total });
            self.next_task.clone_from(first_open);
        }
        has_changed
    }

    /// Whether anything differs from what the loop began with, apart from ticks in its plan and notes.
    pub fn has_work(&self) -> bool {
        self.has_product_changes && self.content != self.first_content
    }

    /// Remembers that all checks have passed on the content, which is this tree.
    pub fn note_passed(&mut self, tree: TreeId, report: &ChecksReport) {
        self.checked_content.clone_from(&self.content);
        self.verified = Some(VerifiedWork::new(tree, report.stands_alone));
    }

    pub fn has_uncommitted_work(&self) -> bool {
        self.content != self.committed_content
    }
}

/// What the next iteration is told about the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Feedback {
    /// Why the last promise did not count.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refused: String,
    /// The checks that fail on the current content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<CheckResult>,
    /// How the last attempt failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fault: String,
    /// The last iterations said the same and changed nothing.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub repeats: bool,
    /// The outputs since the content last changed, the last few of them: a new one is compared with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_outputs: Vec<Hash>,
    /// What the last review found; it is told until an iteration has succeeded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub review: String,
}

/// How the work came to land.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LandingLog {
    /// Whether the user took the work as it is: it lands although no agent said that the task is done.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub accepted: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// The commit that the user accepted although it changes what a check runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_scripts: Option<CommitId>,
    /// How often the work was verified anew in a row because the user had edited it.
    pub edits: u32,
    /// What is questionable about the work, as far as it was dealt with.
    pub concerns: ConcernLog,
}

/// What was reviewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ReviewLog {
    /// How many reviews there were.
    pub count: u32,
    /// The commit that was reviewed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<CommitId>,
    /// The content of that commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_content: Option<Hash>,
    /// The iteration after which that was.
    pub last_iteration: u32,
    /// How many boxes of the plan were ticked at the last review.
    pub plan_done: u32,
    /// What the reviews may use, and what they have used.
    pub ledger: ChildLedger,
}
