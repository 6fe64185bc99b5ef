//! Collects what the effects of a run may use.

use std::sync::atomic::AtomicU64;

use tokio::sync::{mpsc::UnboundedSender, watch};
use tribunal_engine::{ids::RunId, progress::AgentProgress};
use tribunal_supervise::KeeperSetup;
use tribunal_workflows::runs::plan::RunPlan;

use super::Runner;
use crate::effects::{EffectContext, ProcessPolicy, RunMemory};

/// How the processes of a run and their supervisor tell each other something.
pub(super) struct ProcessChannels {
    pub progress: UnboundedSender<AgentProgress>,
    /// Tells running processes to end now.
    pub end_requested: watch::Receiver<bool>,
}

impl Runner {
    /// Collects what the effects of a run may use.
    pub(super) fn build_context(
        &self,
        run_id: &RunId,
        plan: RunPlan,
        keeper: Option<KeeperSetup>,
        channels: ProcessChannels,
    ) -> EffectContext {
        EffectContext {
            project: self.project.clone(),
            run_id: run_id.clone(),
            settings: plan.settings,
            order: plan.order,
            masker: self.masker.clone(),
            launch_env: self.launch_env.clone(),
            clones_root: self.clones_root.clone(),
            progress: channels.progress,
            memory: RunMemory::default(),
            shared: self.shared.clone(),
            permit_lane: self.shared.agent_permits.open_lane(),
            process_policy: ProcessPolicy {
                keeper,
                sandbox_support: self.sandbox_support,
                process_mark: self.run_mark(run_id),
                stop_requests: self.stop.clone(),
                end_requested: channels.end_requested,
                started_count: AtomicU64::new(0),
            },
        }
    }
}
