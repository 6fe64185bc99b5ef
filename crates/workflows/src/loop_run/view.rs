//! A loop as users see it.

use alloc::{boxed::Box, string::String};

use crate::{
    loop_run::{
        breaker::BreakerPhase,
        event::{IterationReport, LoopEvent},
        order::{LoopOrder, LoopSummary},
    },
    runs::kind_view::{KindView, ViewedKind},
};
use tribunal_engine::{ids::CommitId, timestamp::Timestamp};

#[derive(Clone, Debug, Default)]
pub struct LoopView {
    pub order: Option<Box<LoopOrder>>,
    /// Where the agents work; empty until the workspace is ready.
    pub workspace_path: String,
    pub base: Option<CommitId>,
    pub summary: LoopSummary,
    /// What came of the last iteration.
    pub last_iteration: Option<IterationReport>,
    pub breaker: BreakerPhase,
}

impl ViewedKind for LoopOrder {
    type View = LoopView;
}

impl KindView<LoopOrder> for LoopView {
    fn apply_order(&mut self, order: &LoopOrder) {
        self.order = Some(Box::new(order.clone()));
    }

    fn apply_event(&mut self, event: &LoopEvent, _: Timestamp) {
        match event {
            LoopEvent::LoopPrepared { path, base, .. } => {
                self.workspace_path.clone_from(path);
                self.base = Some(base.clone());
            }
            LoopEvent::IterationEnded { iteration, report } => {
                self.summary.iterations = *iteration;
                self.summary.changed_files = report.changed_files;
                self.summary.plan = report.plan.or(self.summary.plan);
                self.last_iteration = Some(report.clone());
            }
            LoopEvent::PromiseRefused { .. } => self.summary.refused += 1,
            LoopEvent::LoopCommitted { commit, .. } => {
                self.summary.commits += 1;
                self.summary.tip = Some(commit.clone());
            }
            LoopEvent::BreakerMoved { phase, .. } => self.breaker = *phase,
            LoopEvent::LoopLanded { commit, branch, concerns, .. } => {
                self.summary.tip = Some(commit.clone());
                self.summary.concerns.clone_from(concerns);
                self.summary.landed_on = Some(branch.clone());
            }
            LoopEvent::LoopClosed { .. } => self.workspace_path.clear(),
            LoopEvent::LoopBaseline { .. } | LoopEvent::LoopReviewed { .. } => {}
        }
    }

    fn apply_summary(&mut self, summary: &LoopSummary) {
        self.summary = summary.clone();
    }

    fn build_summary(&self) -> LoopSummary {
        self.summary.clone()
    }
}
