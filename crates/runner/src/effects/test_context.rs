//! The context of effects in tests: a project, one agent, and no keeper.

use std::sync::atomic::AtomicU64;

use tokio::sync::{mpsc, watch};
use tribunal_agents::driver::LaunchEnv;
use tribunal_engine::ids::RunId;
use tribunal_supervise::SandboxSupport;
use tribunal_testkit::samples;
use tribunal_workflows::runs::kinds::RunOrder;

use super::{EffectContext, ProcessPolicy, RunMemory};
use crate::{masking::Masker, project::Project, shared::stop_level::StopLevel};

pub(crate) fn new_effect_context(project: Project, order: impl Into<RunOrder>) -> EffectContext {
    let run_id = RunId::new("work-aaaa");
    let shared = crate::SharedState::new(std::num::NonZeroUsize::MIN);
    EffectContext {
        permit_lane: shared.agent_permits.open_lane(),
        shared,
        settings: samples::sample_settings(),
        order: order.into(),
        masker: Masker::new([]),
        launch_env: LaunchEnv {
            own_program: "none".into(),
            project_root: project.root().into(),
            settings_by_client: Default::default(),
            user_dirs: Default::default(),
        },
        clones_root: None,
        progress: mpsc::unbounded_channel().0,
        process_policy: ProcessPolicy {
            keeper: None,
            sandbox_support: SandboxSupport::OtherSystem,
            process_mark: String::new(),
            started_count: AtomicU64::new(0),
            stop_requests: watch::channel(StopLevel::Continue).1,
            end_requested: watch::channel(false).1,
        },
        memory: RunMemory::default(),
        project,
        run_id,
    }
}
