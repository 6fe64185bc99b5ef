//! Counts the calls of an hour and postpones those that are too many.
//!
//! Nothing waits here: the workflow waits for the booked time with an effect of its own, so that the wait is in the journal,
//! is shown, and uses up none of the run's time.

use std::sync::Arc;

use tribunal_agents::driver::DrivenAgent;
use tribunal_engine::{
    effect::{AwaitReset, WaitCause},
    ids::Key,
    progress::AgentProgress,
};
use tribunal_workflows::runs::{
    effect::{CallBooking, PostponedCall},
    settings::DriverSpec,
};

use crate::{
    blocking_work::run_blocking,
    effects::{EffectContext, current_wall_ms},
    shared::rate_limit::HOUR_MS,
};

/// Whether a run that waits for its booked call may go on at once, because the limit was raised meanwhile.
pub(in crate::effects) async fn is_wait_over(context: &Arc<EffectContext>, wait: &AwaitReset) -> bool {
    let Some(call_rate) = context.shared.call_rate.clone().filter(|_| wait.cause == WaitCause::CallsPerHour) else {
        return false;
    };
    let booked_ms = wait.until_ms;
    let advanced = run_blocking(move || call_rate.advance_call(booked_ms, current_wall_ms())).await;
    // A counter that cannot be read leaves the wait as it is.
    matches!(advanced, Ok(Ok(true)))
}

/// Books a call of an agent. Returns what the workflow has to wait for; `None` if the agent may be asked now.
pub(super) async fn book_call(
    context: &Arc<EffectContext>,
    task_key: &Key,
    driven_agent: &DrivenAgent,
    booking: Option<CallBooking>,
    unfinished_attempts: u32,
) -> Option<PostponedCall> {
    // Commands count like clients, because they may ask a provider, too. Scripts ask no provider: they are demos and tests.
    if matches!(driven_agent.agent_spec.driver, DriverSpec::Replay { .. }) {
        return None;
    }
    let call_rate = context.shared.call_rate.clone()?;
    // A booking is good for one call. One that is an hour old is forgotten, so it does not count any more.
    if unfinished_attempts == 0
        && booking.is_some_and(|booking| booking.start_ms.saturating_add(HOUR_MS) > current_wall_ms())
    {
        return None;
    }
    let per_hour = call_rate.calls_per_hour;
    let booked = run_blocking(move || call_rate.book_call(current_wall_ms())).await;
    let start_ms = match booked {
        Ok(Ok(start_ms)) => start_ms,
        Ok(Err(cause)) => {
            // A counter that cannot be read must not block the run; the user learns about it.
            let activity = format!("could not count the calls of this hour: {cause}");
            let _ = context.progress.send(AgentProgress { task_key: task_key.clone(), activity, is_output: false });
            return None;
        }
        Err(_) => return None,
    };
    if start_ms <= current_wall_ms() {
        return None;
    }
    let unfinished_attempts = unfinished_attempts + booking.map_or(0, |booking| booking.unfinished_attempts);
    Some(PostponedCall {
        booking: CallBooking { start_ms, unfinished_attempts },
        why: format!("limit of {per_hour} calls per hour in all runs reached (`limits.calls_per_hour`)"),
    })
}
