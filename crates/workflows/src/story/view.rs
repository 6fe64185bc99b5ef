//! A story run as users see it.

use alloc::{boxed::Box, string::String, vec::Vec};

use crate::{
    development::{
        checks::{CheckResult, ChecksOutcome},
        frozen_work::VerifiedWork,
    },
    runs::{
        effect::Reply,
        kind_view::{KindView, ViewedKind},
    },
    story::{
        event::{SessionOutcome, SessionReport, StoryEvent},
        order::{StoryOrder, StoryStepName, StorySummary},
    },
};
use tribunal_engine::{ids::CommitId, timestamp::Timestamp};

#[derive(Clone, Debug, Default)]
pub struct StoryView {
    pub order: Option<Box<StoryOrder>>,
    /// Where the agents work; empty until the workspace is ready.
    pub workspace_path: String,
    pub base: Option<CommitId>,
    /// The last commit that keeps the work while it has not landed.
    pub kept: Option<CommitId>,
    /// What came of the last session, with its step.
    pub last_session: Option<(StoryStepName, SessionReport)>,
    /// The checks that ran last on the work; empty until then.
    pub last_checks: Vec<CheckResult>,
    /// What has passed them and landed.
    pub verified: Option<VerifiedWork>,
    pub summary: StorySummary,
}

impl ViewedKind for StoryOrder {
    type View = StoryView;
}

impl KindView<StoryOrder> for StoryView {
    fn apply_order(&mut self, order: &StoryOrder) {
        self.order = Some(Box::new(order.clone()));
    }

    fn apply_event(&mut self, event: &StoryEvent, _: Timestamp) {
        match event {
            StoryEvent::StoryPrepared { path, base, .. } => {
                self.workspace_path.clone_from(path);
                self.base = Some(base.clone());
            }
            StoryEvent::StorySession { session, step, report } => {
                self.summary.sessions = *session;
                self.summary.refused += u32::from(report.outcome != SessionOutcome::Completed);
                self.summary.changed_files = report.changed_files;
                self.last_session = Some((*step, report.clone()));
            }
            StoryEvent::StoryStepDone { step } => self.summary.completed = Some(*step),
            StoryEvent::StoryReviewed { review, follow_ups, .. } => {
                if !self.summary.reviews.contains(review) {
                    self.summary.reviews.push(review.clone());
                }
                self.summary.follow_ups = follow_ups.len() as u32;
            }
            StoryEvent::StoryKept { commit } => self.kept = Some(commit.clone()),
            StoryEvent::StoryLanded { commit, branch, changed_controls, concerns, verified, .. } => {
                self.summary.landed_on = Some(branch.clone());
                match &self.summary.commit {
                    // It has only the board and the story's file.
                    Some(first_commit) if first_commit != commit => self.summary.confirmation = Some(commit.clone()),
                    _ => {
                        self.summary.commit = Some(commit.clone());
                        self.summary.changed_controls.clone_from(changed_controls);
                        self.summary.concerns.clone_from(concerns);
                        self.verified.clone_from(verified);
                    }
                }
            }
            StoryEvent::StoryClosed { .. } => self.workspace_path.clear(),
            // These checks ran before there was any work.
            StoryEvent::StoryBaseline { .. } => self.last_checks.clear(),
            StoryEvent::StoryMoved { .. } => {}
        }
    }

    fn apply_reply(&mut self, reply: &Reply) {
        // A fresh clone repeats those that block.
        if let Reply::Checks(ChecksOutcome::Ran(report)) = reply
            && !report.is_repeated
        {
            self.last_checks.clone_from(&report.results);
        }
    }

    fn apply_summary(&mut self, summary: &StorySummary) {
        self.summary = summary.clone();
    }

    fn build_summary(&self) -> StorySummary {
        self.summary.clone()
    }
}
