//! The circuit breaker within a loop: whether it lets an iteration start, and how its changes are recorded.

use alloc::{boxed::Box, format, string::String, vec};

use crate::{
    loop_run::{
        breaker::{BreakerPhase, CircuitBreaker, OpenAction},
        event::LoopEvent,
        loop_host::LoopHost,
        state::LoopState,
    },
    runs::{
        records::ProjectRecord,
        types::{RecordChange, WriteRecords},
    },
    stages::exit::{StageExit, Staged},
    tasks::{client::JobKind, selection},
};
use tribunal_engine::{
    effect::{AwaitReset, WaitCause},
    host::ParkedRun,
    ids::Key,
    reason::RunReason,
};

/// Halts the loop if the breaker lets no iteration start. It may wait for the end of the cool-down.
pub(super) async fn pass_breaker(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    if state.breaker.phase != BreakerPhase::Open {
        return Ok(());
    }
    let closes_ms = state.breaker.closes_ms.unwrap_or_default();
    if host.order.breaker.on_open == OpenAction::Wait && closes_ms > host.last_timestamp().wall_ms {
        let from_ms = host.last_timestamp().awake_ms;
        let wait = AwaitReset {
            agent: selection::agent_for_seat(host.settings(), JobKind::Loop, 0, 0),
            until_ms: closes_ms,
            why: format!("the circuit breaker is open: {}", state.breaker.describe_cause()),
            cause: WaitCause::CircuitBreaker,
        };
        host.perform(stage_key.child_key("cooldown"), wait).await?;
        state.spent.waited.add_interval(from_ms, host.last_timestamp().awake_ms);
    }
    if state.breaker.cool_down(host.last_timestamp().wall_ms) {
        note_breaker(host, state, stage_key, "half-open", "the cool-down is over; one iteration may try").await?;
        return Ok(());
    }
    let detail = format!("{}; to try again at once: `tribunal breaker reset`", state.breaker.describe_cause());
    Err(StageExit::halt_run(RunReason::BreakerOpen, detail))
}

/// Records a change of the breaker for users and for later loops.
pub(super) async fn note_breaker(
    host: LoopHost<'_>,
    state: &LoopState,
    stage_key: &Key,
    record_name: &str,
    detail: &str,
) -> Result<(), ParkedRun> {
    host.note_own_event(LoopEvent::BreakerMoved {
        phase: state.breaker.phase,
        cause: state.breaker.cause,
        detail: String::from(detail),
    });
    let record = ProjectRecord::CircuitBreaker(Box::new(state.breaker.clone()));
    let changes = vec![RecordChange::Put { key: CircuitBreaker::record_key(), record }];
    host.perform(stage_key.child_key("breaker").child_key(record_name), WriteRecords { changes }).await?;
    Ok(())
}
