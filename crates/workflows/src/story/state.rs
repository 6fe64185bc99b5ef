//! What a story run knows between two stages.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{checks::CheckResult, concerns::ConcernLog, frozen_work::VerifiedWork, workspace::WorkspaceState},
    runs::types::UserDialog,
    story::{
        facts::{StoryFollowUp, StoryStage},
        order::StoryStepName,
        verification::StoryProblem,
    },
};
use tribunal_engine::{
    children::ChildLedger,
    ids::{AgentName, CommitId, Hash, TreeId},
    limits::RunUsage,
    reason::RunEnding,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryState {
    pub step: StoryStep,
    #[serde(flatten)]
    pub dialog: UserDialog,
    pub spent: RunUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<StoryWork>,
    /// Whether the workspace has to be made anew, because the user repairs something that it does not have.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_workspace_outdated: bool,
    pub attempts: StepAttempts,
    pub review: StoryReviewLog,
    pub landing: StoryLanding,
    /// Whether the user was told that most of the budget is used.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_budget_warned: bool,
    /// The ending that waits for an answer of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RunEnding>,
}

impl StoryState {
    /// Whether there is work that was taken out of the user's checkout.
    pub fn has_parked_work(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_parked)
    }
}

/// The step that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryStep {
    /// The workspace is opened.
    #[default]
    Open,
    /// The checks run on the untouched workspace.
    Baseline,
    /// The story's file is written.
    Create,
    Develop,
    /// BMAD's own review.
    CodeReview,
    /// The panel.
    Review,
    Land,
}

impl StoryStep {
    pub fn step_name(self) -> StoryStepName {
        match self {
            StoryStep::Open | StoryStep::Baseline => StoryStepName::Prepare,
            StoryStep::Create => StoryStepName::Create,
            StoryStep::Develop => StoryStepName::Develop,
            StoryStep::CodeReview | StoryStep::Review => StoryStepName::Review,
            StoryStep::Land => StoryStepName::Land,
        }
    }
}

/// The workspace of a story and the work in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryWork {
    pub path: String,
    /// The commit that the branch must still be at when the work lands.
    pub base: CommitId,
    /// The last commit, or `base`.
    pub tip: CommitId,
    /// The file in which agents keep notes, relative to the workspace.
    pub scratchpad: String,
    /// The content when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Hash>,
    #[serde(default)]
    pub proof: WorkProof,
    /// The content of the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_content: Option<Hash>,
    pub changed_files: u32,
    /// The story's file, by which the work is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story_file: Option<String>,
    /// How far the board was before the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board_stage: Option<StoryStage>,
    /// Changed files that decide what checks, hooks and pipelines run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_controls: Vec<String>,
    /// Whether the work was taken out of the user's checkout. It is the commit `tip` then.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_parked: bool,
}

/// What is known to be good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct WorkProof {
    /// The content for which all checks passed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_tree: Option<TreeId>,
    /// The content for which they passed last as in a fresh clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_tree: Option<TreeId>,
    /// What has passed the rules and all checks last, if it is what is to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedWork>,
}

impl StoryWork {
    pub fn apply_state(&mut self, state: &WorkspaceState) {
        if state.fingerprint.is_some() {
            self.content.clone_from(&state.fingerprint);
        }
        self.changed_files = state.changed_count;
    }

    /// Remembers where the story's file is. Once it is settled it stays the same: an agent could write another one that asks for less.
    pub fn note_story_file(&mut self, found_path: Option<String>, is_settled: bool) {
        if !is_settled || self.story_file.is_none() {
            self.story_file = found_path;
        }
    }

    pub fn has_uncommitted_work(&self) -> bool {
        self.content != self.committed_content
    }
}

/// The sessions of the current step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StepAttempts {
    /// Sessions of the whole run.
    pub total: u32,
    /// Sessions of this step that count against its limit.
    pub charged: u32,
    /// How often the user granted the limit once more.
    pub grants: u32,
    /// The agent of the last session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_agent: Option<AgentName>,
    /// What was wrong after the last session; the next one is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<StoryProblem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<CheckResult>,
    /// The agents that failed at once in this step, and how.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_at_once: Vec<InstantFailure>,
    /// The user works on it by hand, so no session is started before the work is looked at.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub by_hand: bool,
    /// The user may have edited the work since it was committed last, so it is committed before an agent can write over it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub has_unkept_edits: bool,
}

/// An agent that failed as soon as it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InstantFailure {
    pub agent: AgentName,
    pub detail: String,
}

impl StepAttempts {
    /// Begins a new step: what the last one cost does not count against it.
    pub fn begin_step(&mut self) {
        let StepAttempts { total, has_unkept_edits, .. } = *self;
        *self = StepAttempts { total, has_unkept_edits, ..StepAttempts::default() };
    }

    /// Remembers that the agent of the last session failed at once. Returns whether it has failed in the same way before: it would
    /// fail again until something outside changes.
    pub fn note_instant_failure(&mut self, detail: &str) -> bool {
        let Some(agent) = self.last_agent.clone() else { return false };
        let failure = InstantFailure { agent, detail: String::from(detail) };
        let is_known = self.failed_at_once.contains(&failure);
        if !is_known {
            self.failed_at_once.push(failure);
        }
        is_known
    }
}

/// How far the review is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryReviewLog {
    /// How many child runs reviewed the story.
    pub count: u32,
    /// The child that waits for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_child: Option<String>,
    /// How often the current child was asked for.
    pub asked: u32,
    pub ledger: ChildLedger,
    /// Findings that are left for later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follow_ups: Vec<StoryFollowUp>,
    /// Critical findings that the last review left open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub critical: Vec<StoryFollowUp>,
}

/// How the work came to land.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryLanding {
    pub attempts: u32,
    /// How often finished work was refused: by a commit hook, or by a check after a rebase.
    pub refusals: u32,
    /// How often the branch had moved.
    pub rebases: u32,
    /// The commit of the branch into which the user has merged the work by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<CommitId>,
    /// Whether the user may have merged the work by hand, so that the branch is looked at before anything lands.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub may_be_merged: bool,
    /// The content that the user accepted although it changes what a check runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_content: Option<Hash>,
    /// How often the work was verified anew in a row because the user had edited it.
    pub edits: u32,
    /// What is questionable about the work, as far as it was dealt with.
    pub concerns: ConcernLog,
    /// The story's file as this run has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<CreatedStory>,
    /// What the story owes and only a person can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<String>,
    /// The commit that landed while something was owed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed: Option<CommitId>,
    /// Whether the user says that what was owed is done.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_confirmed: bool,
}

/// A story's file as this run has written it. What later sessions make of it does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CreatedStory {
    pub tree: TreeId,
    /// The lines that name files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub naming_text: String,
    /// What only a person can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<String>,
}

impl StoryLanding {
    /// Whether the story cannot be called done yet.
    pub fn is_owing(&self) -> bool {
        !self.owed.is_empty() && !self.is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_story_file_stays_the_same() {
        let mut work = StoryWork {
            path: String::new(),
            base: CommitId::new("base"),
            tip: CommitId::new("base"),
            scratchpad: String::new(),
            content: None,
            proof: WorkProof::default(),
            committed_content: None,
            changed_files: 0,
            story_file: None,
            board_stage: None,
            changed_controls: Vec::new(),
            is_parked: false,
        };
        for (found, is_settled, expected) in [
            (Some("draft.md"), false, Some("draft.md")),
            (Some("1-2-sift.md"), false, Some("1-2-sift.md")),
            (Some("0/1-2-sift.md"), true, Some("1-2-sift.md")),
            (None, true, Some("1-2-sift.md")),
            (None, false, None),
            (Some("1-2-sift.md"), true, Some("1-2-sift.md")),
        ] {
            work.note_story_file(found.map(String::from), is_settled);
            assert_eq!(work.story_file.as_deref(), expected);
        }
    }
}
