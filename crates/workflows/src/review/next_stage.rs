//! Decides the next stage from the state of the review alone.
//!
//! The first row that fits applies:
//!
//! | accepted | round | open | blocked | fixing | iterations left | dry, or tier 0 | confidence too low | rounds left | next |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | yes | 0 | 0 | 0 | | | | | | end: abandoned |
//! | yes | > 0 | 0 | 0 | | | | | | end: accepted |
//! | | 0 | | | | | | | | review round 1 |
//! | | | | > 0 | off | | | | | end: blocked |
//! | | | > 0 | 0 | off | | | | | end: review only |
//! | | | 0 | 0 | off | | | yes | | end: confidence low |
//! | | | 0 | 0 | off | | | no | | end: goal met |
//! | | | > 0 | | on | yes | | | | fix |
//! | | | > 0 | | on | no | | | | end: fix iterations |
//! | | | 0 | 0 | | | yes | yes | | end: confidence low |
//! | | | 0 | 0 | | | yes | no | | end: goal met |
//! | | | 0 | > 0 | | | yes | | | end: blocked |
//! | | | 0 | | | | no | | yes | review the next round |
//! | | | 0 | > 0 | | | no | | no | end: blocked |
//! | | | 0 | 0 | | | no | | no | end: rounds |
//!
//! A patch that waits for approval (`approve: each`) ends the run as blocked if nothing is open. A stray edit that the user
//! has not answered for ends it as blocked instead of goal met and review only. So does an edit of the tracker that may be an
//! agent's.
//!
//! If nothing that the panel has claimed in the whole run was believed, the run ends as panel degraded instead of goal met:
//! such a panel proves nothing. The user may ask for one more round then.
//!
//! The confidence is too low only if the settings ask for one (`target_confidence`).
//!
//! The table is the oracle of a property test.

use alloc::{format, string::String};

use crate::{
    findings::{counts::FindingCounts, finding::Finding},
    review::{ReviewState, order::ReviewOrder},
};
use tribunal_engine::{
    reason::{RunEnding, RunReason},
    text::format_count,
    tier::ProcessTier,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStage {
    Review { round: u32 },
    Fix { iteration: u32 },
    End(RunEnding),
}

pub fn next_stage(state: &ReviewState, order: &ReviewOrder, tier: ProcessTier) -> NextStage {
    let decided = match decide_next_stage(state, order, tier) {
        NextStage::End(RunEnding { reason: RunReason::GoalMet, .. }) if state.is_panel_disbelieved() => {
            match state.another_panel {
                true => NextStage::Review { round: state.round + 1 },
                false => end_with(RunReason::PanelDegraded, state.describe_disbelief()),
            }
        }
        decided => decided,
    };
    // `Accepted` is the user's own decision. All other endings wait for the user, who sees the question about the edits then.
    let is_good_ending = |ending: &RunEnding| matches!(ending.reason, RunReason::GoalMet | RunReason::ReviewOnly);
    match (&decided, state.dialog.describe_unanswered_strays()) {
        (NextStage::End(ending), Some(description)) if is_good_ending(ending) => {
            end_with(RunReason::Blocked, description)
        }
        (NextStage::End(ending), None) if is_good_ending(ending) && state.has_unconfirmed_edits() => {
            end_with(RunReason::Blocked, String::from("the tracker was edited while agents without a sandbox worked"))
        }
        _ => decided,
    }
}

fn decide_next_stage(state: &ReviewState, order: &ReviewOrder, tier: ProcessTier) -> NextStage {
    let finding_counts = FindingCounts::from_findings(&state.findings);
    if state.accepted && finding_counts.open + finding_counts.blocked == 0 {
        // What was never reviewed is not resolved.
        return match state.round {
            0 => {
                end_with(RunReason::Abandoned, String::from("no review round was held, so there is nothing to accept"))
            }
            _ => NextStage::End(RunEnding::from_reason(RunReason::Accepted)),
        };
    }
    if state.round == 0 {
        return NextStage::Review { round: 1 };
    }
    if !order.fix && finding_counts.blocked > 0 {
        // Another pass would change nothing; only the user's decision does.
        return end_with(RunReason::Blocked, format!("{} blocked", format_count(finding_counts.blocked, "finding")));
    }
    if finding_counts.open > 0 {
        return decide_with_open_findings(state, order, finding_counts.open);
    }
    if let patch_count @ 1.. = state.count_patches_to_approve() {
        // Another pass over a text that is about to change would only cost money.
        return end_with(RunReason::Blocked, format!("{} waiting for your approval", patches_phrase(patch_count)));
    }
    if !order.fix {
        if let Some(shortfall) = confidence_shortfall(state, order, tier) {
            return end_with(RunReason::ConfidenceLow, shortfall);
        }
        // The text is as it was reviewed, so another pass over it would only cost money.
        return end_with(RunReason::GoalMet, state.describe_no_findings("fixing is off"));
    }
    let text_is_good = state.last_pass.dry || tier.number() == 0;
    // Each grant of the user allows as many rounds again.
    let has_rounds_left = state.round < order.limits.rounds.saturating_mul(state.spent.granted_shares());
    match (finding_counts.blocked, text_is_good) {
        (0, true) if let Some(shortfall) = confidence_shortfall(state, order, tier) => {
            end_with(RunReason::ConfidenceLow, shortfall)
        }
        (0, true) if !state.last_pass.dry => {
            end_with(RunReason::GoalMet, state.describe_no_findings("fixes are not reviewed again at tier 0"))
        }
        (0, true) => {
            end_with(RunReason::GoalMet, state.last_pass.describe_dry(&finding_counts, state.last_round_claims()))
        }
        (0, false) | (_, false) if has_rounds_left => NextStage::Review { round: state.round + 1 },
        (0, false) => end_with(
            RunReason::Rounds,
            // Without fixes since the pass, the pass itself was inconclusive.
            match state.fix_history.text == state.last_pass.text {
                true => {
                    format!("round {} was inconclusive: {}", state.round, state.last_pass.describe_shortfall())
                }
                false => format!("the last fixes of round {} were verified, but not reviewed again", state.round),
            },
        ),
        (blocked_count, _) => {
            end_with(RunReason::Blocked, format!("{} blocked", format_count(blocked_count, "finding")))
        }
    }
}

/// Decides the next stage while findings are open: another fix iteration, if there is one left, or the end.
fn decide_with_open_findings(state: &ReviewState, order: &ReviewOrder, open_count: u32) -> NextStage {
    match state.iteration {
        _ if !order.fix => end_with(RunReason::ReviewOnly, format!("{} open", format_count(open_count, "finding"))),
        iterations_done if iterations_done < order.limits.fix_iterations => {
            NextStage::Fix { iteration: iterations_done + 1 }
        }
        iterations_done => end_with(
            RunReason::FixIterations,
            format!(
                "{} open after {}",
                format_count(open_count, "finding"),
                format_count(iterations_done, "fix iteration")
            ),
        ),
    }
}

/// Describes how far the confidence is below the target; `None` if it is not.
fn confidence_shortfall(state: &ReviewState, order: &ReviewOrder, tier: ProcessTier) -> Option<String> {
    let target_confidence = order.target_confidence?;
    let reached_confidence = state.confidence.as_ref()?.for_gates;
    (reached_confidence < target_confidence)
        .then(|| format!("{reached_confidence} of {target_confidence} after the deduction for tier {tier}"))
}

/// Returns the trigger of the next round.
pub(super) fn round_trigger(state: &ReviewState) -> RunReason {
    match state.round {
        0 => RunReason::Initial,
        _ if state.held_for_confidence => RunReason::ConfidenceLow,
        _ if state.iteration == 0 => RunReason::Recovery,
        _ => RunReason::Unreviewed,
    }
}

/// Returns the trigger of the next fix iteration.
pub(super) fn fix_trigger(state: &ReviewState) -> RunReason {
    let is_circling = |finding: &&Finding| state.fix_history.circling.contains(&finding.id);
    match state.findings.iter().filter(|finding| finding.status.is_open()).find(is_circling) {
        Some(_) => RunReason::LoopDetected,
        None if state.spent.failures_in_a_row > 0 => RunReason::Recovery,
        None => RunReason::IssuesRemain,
    }
}

fn patches_phrase(patch_count: u32) -> String {
    if patch_count == 1 { String::from("1 patch is") } else { format!("{patch_count} patches are") }
}

fn end_with(reason: RunReason, detail: String) -> NextStage {
    NextStage::End(RunEnding::new(reason, detail))
}
