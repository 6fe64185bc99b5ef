//! The review loop: panel, merge, fix, repeated until an outcome.
//!
//! The workflow is a thin driver: [`mod@next_stage`] decides the next stage from the state alone, [`panel`] and [`fix`] run one
//! stage each, [`user_requests`] applies what the user sent. A boundary follows every stage, so that resuming replays at
//! most one stage.

use alloc::{boxed::Box, format, string::String};

use crate::{
    review::{
        order::{ReviewOrder, ReviewProgress},
        review_host::ReviewHost,
        review_keys::ReviewKeys,
    },
    runs::{
        effect::{Freeze, FreezeOutcome},
        types::{RunEvent, RunHost},
    },
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    host::{ParkedRun, cross_boundary},
    ids::Key,
    limits::{RemainingLimits, check_budget, check_effort},
    reason::{RunEnding, RunOutcome, RunReason},
};

mod amendments;
mod baseline;
mod challenge;
pub mod challenge_rules;
mod checks;
pub mod confidence;
pub mod confidence_records;
mod confidence_update;
mod dismissals;
pub mod dismissed_finding;
pub mod event;
pub mod fail_threshold;
mod fix;
mod fix_history;
mod frozen_copy;
pub mod ground;
mod judge;
mod land;
mod landing_impact;
pub mod level;
pub mod level_rules;
pub mod merge;
pub mod metrics;
mod next_stage;
pub mod order;
pub mod own_file;
mod panel;
mod publish;
pub mod questions;
mod repairs;
mod review_host;
pub mod review_keys;
pub mod review_record;
mod round_stats;
mod run_stage;
mod session;
mod sizing;
pub(crate) mod state;
pub mod topic;
pub mod tracker;
mod transitions;
mod unconfirmed_edits;
mod user_requests;
pub mod view;
pub mod waves;

pub use dismissals::UserDismissals;
pub use fix_history::FixHistory;
pub use next_stage::{NextStage, next_stage};
pub use round_stats::RoundStats;
use run_stage::ReviewExit;
pub use state::{FixLogEntry, PanelPass, PendingPatch, ReviewState};

impl Workflow for ReviewOrder {
    type State = ReviewState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a ReviewOrder, state: ReviewState) -> WorkflowFuture<'a> {
        Box::pin(run_review(ReviewHost::new(host, order), state))
    }
}

/// Runs a review from a state (a new one, or that of the last boundary) to its end.
async fn run_review(host: ReviewHost<'_>, mut state: ReviewState) -> Result<RunEnding, ParkedRun> {
    loop {
        let boundary_key = match run_stage(&host, &mut state).await? {
            StageOutcome::Ended(ending) => return Ok(ending),
            StageOutcome::Continue(boundary_key) => boundary_key,
        };
        cross_boundary(host.run_host(), boundary_key, &state).await?;
    }
}

/// What one stage led to.
enum StageOutcome {
    /// The run continues behind a boundary with this key.
    Continue(Key),
    Ended(RunEnding),
}

/// Where an ending comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndingOrigin {
    /// It follows from the state alone, so it may no longer hold when the state has changed.
    State,
    /// It happened in a stage.
    Stage,
}

async fn run_stage(host: &ReviewHost<'_>, state: &mut ReviewState) -> Result<StageOutcome, ParkedRun> {
    if host.order.skipped {
        return Ok(StageOutcome::Ended(RunEnding::from_reason(RunReason::Skipped)));
    }
    // Waiting has its own segment: everything about the run may be changed meanwhile.
    if let Some(ending) = state.waiting.take() {
        user_requests::wait_for_user(host, state, ending).await?;
        if state.has_unconfirmed_edits() {
            // The edits are in the question now. The file must not bring them again when no agent is at work any more.
            state.publish_tracker(host, &Key::for_user_wait()).await?;
        }
        return Ok(StageOutcome::Continue(Key::for_user_wait()));
    }
    // Files are restored before the next stage, which would otherwise review or change the stray edits.
    if state.dialog.has_edits_to_restore() {
        state.dialog.restore_strays(host.run_host()).await?;
        return Ok(StageOutcome::Continue(Key::new("restore")));
    }
    if baseline::is_baseline_due(host, state) {
        return check_baseline(host, state).await;
    }
    let (stage_key, stage_result) = match next_within_limits(host, state) {
        NextStage::Review { round } => (Key::for_round(round), panel::review_round(host, state, round).await),
        NextStage::Fix { iteration } => {
            (Key::for_fix_iteration(state.round, iteration), repair_findings(host, state, iteration).await)
        }
        NextStage::End(ending) => return close_review(host, state, ending, EndingOrigin::State).await,
    };
    match stage_result {
        Ok(()) => Ok(StageOutcome::Continue(stage_key)),
        Err(ReviewExit::Ended(ending)) => close_review(host, state, ending, EndingOrigin::Stage).await,
        Err(ReviewExit::Parked(parked)) => Err(parked),
    }
}

/// Runs the checks before the first agent is asked. If they keep the review from starting, it waits until the user has done
/// something about it, and runs them again then.
async fn check_baseline(host: &ReviewHost<'_>, state: &mut ReviewState) -> Result<StageOutcome, ParkedRun> {
    match baseline::check_untouched_project(host, state).await {
        Ok(()) => {}
        // There is nothing to publish yet.
        Err(ReviewExit::Ended(ending)) => state.waiting = Some(ending),
        Err(ReviewExit::Parked(parked)) => return Err(parked),
    }
    Ok(StageOutcome::Continue(Key::for_baseline()))
}

/// Repairs the open findings by fixers, or by the user's open session.
async fn repair_findings(host: &ReviewHost<'_>, state: &mut ReviewState, iteration: u32) -> Result<(), ReviewExit> {
    if host.order.fixers.in_session && !state.session_over {
        return session::repair_in_session(host, state, iteration).await;
    }
    fix::fix_iteration(host, state, iteration).await
}

/// Returns the next stage, or the end if a limit is used up.
fn next_within_limits(host: &ReviewHost<'_>, state: &ReviewState) -> NextStage {
    let planned = next_stage(state, host.order, host.settings().tier);
    // A review that is done ends normally even if a limit is used up by now.
    if matches!(planned, NextStage::End(_)) {
        return planned;
    }
    match state.check_limits(host) {
        Some(ending) => NextStage::End(ending),
        None => planned,
    }
}

/// Publishes the results. A good ending ends the run; with any other the run waits for the user, who may let it continue.
async fn close_review(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    mut ending: RunEnding,
    origin: EndingOrigin,
) -> Result<StageOutcome, ParkedRun> {
    let end_key = Key::for_end();
    if ending.reason.outcome() == Some(RunOutcome::Halted) {
        let progress =
            ReviewProgress { rounds: state.round, iterations: state.iteration, findings: state.valid_count() };
        let remaining =
            RemainingLimits::calculate(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms);
        ending.left = Some(host.order.limits.add_remaining(remaining, &state.spent, progress));
    }
    // A run is resolved only for the text that the last pass has read.
    if ending.reason == RunReason::GoalMet && state.has_text_changed(host, &end_key).await? {
        return Ok(StageOutcome::Continue(Key::new("moved")));
    }
    // These endings need no answer, so the run is over once they are published.
    let is_final = ending.reason == RunReason::ReviewOnly || ending.reason.outcome() == Some(RunOutcome::Resolved);
    let known_remark_count = state.dialog.said.len();
    if is_final {
        user_requests::withdraw_open_decisions(host, state);
        user_requests::read_inbox(host, state, &end_key).await?;
    }
    user_requests::offer_decision(host, state, &ending, &end_key).await?;
    state.publish_tracker(host, &end_key).await?;
    // Publishing may have read an edit of the tracker in the last moment, which can reopen findings.
    let still_holds = matches!(next_within_limits(host, state), NextStage::End(now) if now.reason == ending.reason);
    if origin == EndingOrigin::State && !still_holds {
        return Ok(StageOutcome::Continue(Key::new("edited")));
    }
    if is_final {
        // Remarks that arrived during the last stage can reach no agent any more.
        user_requests::warn_unheard_remarks(
            host,
            &state.dialog.said[known_remark_count.min(state.dialog.said.len())..],
        );
    }
    state.write_metrics(host, &end_key, &ending).await?;
    state.record_confidence(host, &end_key).await?;
    if is_final {
        return Ok(StageOutcome::Ended(ending));
    }
    state.waiting = Some(ending);
    Ok(StageOutcome::Continue(end_key))
}

impl ReviewState {
    /// Checks the limits of every run and those of a review; the first that is used up counts.
    fn check_limits(&self, host: &ReviewHost<'_>) -> Option<RunEnding> {
        let (limits, awake_ms) = (&host.settings().limits, host.last_timestamp().awake_ms);
        check_effort(limits, &self.spent, awake_ms)
            .or_else(|| host.order.limits.check_findings(&self.spent, self.valid_count()))
            .or_else(|| check_budget(limits, &self.spent))
    }

    /// Checks before a run is resolved whether the subject still has the text of the last pass. If not, that pass proves
    /// nothing.
    async fn has_text_changed(&mut self, host: &ReviewHost<'_>, parent_key: &Key) -> Result<bool, ParkedRun> {
        if host.settings().tier.number() == 0 || !host.order.fix {
            // At tier 0 and without fixing the result does not claim a pass over the final text.
            return Ok(false);
        }
        let subject = self.reviewed_subject(host.order);
        let warning = match host.perform(parent_key.child_key("look"), Freeze { subject }).await? {
            FreezeOutcome::Frozen(frozen) if Some(&frozen.hash) == self.last_pass.text.as_ref() => {
                return Ok(false);
            }
            FreezeOutcome::Frozen(_) => String::from(
                "the file was changed outside this run after the last review, so the run is not resolved yet",
            ),
            FreezeOutcome::Failed { fault } => format!("{fault}; the run is not resolved yet"),
        };
        // The pass was over another text, so a further round has to look at this one.
        self.last_pass.dry = false;
        self.last_pass.changed = true;
        host.note_event(RunEvent::Warned { text: warning });
        Ok(true)
    }
}
