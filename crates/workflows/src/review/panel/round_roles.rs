//! Which reviewers a round has: the level of the review, and the roles that go with it.

use alloc::{string::String, vec::Vec};

use crate::{
    findings::agent_role::AgentRole,
    review::{
        ReviewState,
        confidence_records::{find_last_review, last_review_request},
        event::ReviewEvent,
        level::{alternative_panel, panel_roles},
        level_rules::ChosenLevel,
        review_host::ReviewHost,
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{Hash, Key},
};

/// Whether the level is still to be chosen by the confidence of an earlier review.
pub(super) fn is_level_open(host: &ReviewHost<'_>, state: &ReviewState) -> bool {
    state.level.is_none() && host.order.level.is_none()
}

/// Chooses the reviewers of a round; before the first round also the level.
pub(super) async fn choose_roles(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    round_key: &Key,
    text: Option<&Hash>,
) -> Result<Vec<AgentRole>, ParkedRun> {
    let (subject, tier) = (&host.order.subject, host.settings().tier);
    if let Some(level) = state.level {
        return Ok(match state.degraded {
            0 => panel_roles(subject, level, tier),
            _ => alternative_panel(subject, level, tier),
        });
    }
    let ChosenLevel { level, reason } = match host.order.level {
        Some(level) => {
            let reason = if host.order.limits.parent_asks { "set by the run it is a part of" } else { "chosen by you" };
            ChosenLevel { level, reason: String::from(reason) }
        }
        None => {
            let record_list = host.perform(round_key.child_key("confidence"), last_review_request(subject)).await?;
            let last = find_last_review(subject, text, record_list.records);
            host.order.level_rules.choose_level(tier, &last)
        }
    };
    state.level = Some(level);
    let panel = panel_roles(subject, level, tier);
    host.note_own_event(ReviewEvent::LevelChosen { level, why: reason, panel: panel.clone() });
    Ok(panel)
}
