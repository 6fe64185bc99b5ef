//! One iteration: an agent's turn, and what came of it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::checks::{CheckSpec, CheckTime},
    loop_run::{
        breaker::{BreakerPhase, IterationError, IterationSigns},
        breaker_gate::{note_breaker, pass_breaker},
        completion::{CompletionClaim, find_claim},
        event::{IterationReport, LoopEvent},
        halting, landing,
        loop_host::{LoopHost, WORKSPACE_NAME},
        prompt, review_pass,
        state::{LoopStage, LoopState},
    },
    stages::exit::{StageExit, Staged},
    tasks::{
        asking::{AgentConsultation, consult_agent},
        brief::{AgentTask, AnswerContent, WorkspaceKind},
        client::JobKind,
        consult_outcome::{ConsultOutcome, KeptSession},
        output_similarity::SIMILAR_PERMILLE,
        purpose::{ExpectedAnswer, TaskPurpose},
        selection,
        status_report::TurnReport,
    },
};
use tribunal_engine::{effect::Sleep, fault::Fault, host::ParkedRun, ids::Key, limits::backoff_ms};

const HOUR_MS: u64 = 3_600_000;
/// The most outputs that a new one is compared with.
const MAX_RECENT_OUTPUTS: usize = 5;

/// Runs one iteration.
pub(super) async fn run_iteration(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    pass_breaker(host, state, stage_key).await?;
    // The limit was raised, or the breaker was reset: the loop continues without an answer.
    state.dialog.withdraw_decisions(
        host.run_host(),
        "the loop could continue without an answer",
        halting::is_about_halt,
    );
    state.landing.edits = 0;
    let outcome = ask_agent(host, state, stage_key).await?;
    let report = match outcome.last_content() {
        Some(AnswerContent::Turn(report)) => Some((**report).clone()),
        _ => None,
    };
    outcome.record_result(host.run_host(), &mut state.spent, report.is_some());
    state.dialog.ask_about_strays(host.run_host(), stage_key, &outcome.strayed).await?;
    if let (None, Some(fault)) = (&report, &outcome.fault)
        && fault.is_environment()
    {
        // What the environment breaks costs no iteration.
        return Err(StageExit::from_fault(fault));
    }
    state.iteration += 1;
    state.session = outcome.session.clone().filter(|_| host.order.pacing.continue_session);
    outcome.list_remarks().into_iter().for_each(|remark| host.note_warning(remark));
    evaluate_turn(host, state, stage_key, &outcome, report).await
}

async fn ask_agent(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Result<ConsultOutcome, ParkedRun> {
    let settings = host.settings();
    let chosen_agent = selection::agent_for_seat(settings, JobKind::Loop, 0, 0);
    let agent = selection::stand_in(settings, JobKind::Loop, &chosen_agent, &state.spent.failing);
    let purpose = TaskPurpose { job: JobKind::Loop, expects: ExpectedAnswer::Turn };
    let place = WorkspaceKind::Development { workspace: String::from(WORKSPACE_NAME) };
    let brief = match &state.work {
        Some(work) => prompt::build_brief(host.order, settings, state, work),
        None => Default::default(),
    };
    let mut task = AgentTask::new(agent, purpose, brief, place, host.order.pacing.timeout_ms);
    task.recent.clone_from(&state.feedback.recent_outputs);
    task.collect = Some(host.order.completion.watched_files());
    let expiry_ms = u64::from(host.order.pacing.session_expiry_hours) * HOUR_MS;
    let session_age_ms = |kept: &&KeptSession| host.last_timestamp().wall_ms.saturating_sub(kept.session.at_ms);
    if let Some(kept_session) = state.session.as_ref().filter(|kept| session_age_ms(kept) < expiry_ms) {
        kept_session.continue_in(&mut task);
    }
    let task_key = stage_key.child_key("turn");
    let consultation = AgentConsultation {
        task_key: &task_key,
        task,
        run_usage: &state.spent,
        parallel_tasks: 1,
        escalated_size: None,
        is_single_try: false,
    };
    // Any answer is accepted: what it is worth shows in the workspace.
    consult_agent(host.run_host(), consultation, |_| None).await
}

/// What an iteration led to.
struct TurnResult {
    has_progress: bool,
    repeats: bool,
    claim: CompletionClaim,
}

/// Looks at what the agent left behind, checks it, and decides how the loop goes on.
async fn evaluate_turn(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
    outcome: &ConsultOutcome,
    report: Option<TurnReport>,
) -> Staged<()> {
    let turn = apply_turn(host, state, outcome, report.as_ref());
    let is_answered = report.is_some();
    state.feedback.refused.clear();
    state.feedback.repeats = turn.repeats;
    state.feedback.fault = match (&outcome.fault, is_answered) {
        (Some(fault), false) => fault.detail.clone(),
        _ => String::new(),
    };
    // A review is told until an iteration that knew it has succeeded.
    if is_answered {
        state.feedback.review.clear();
    }
    let verified = verify_turn(host, state, stage_key, &turn).await?;
    note_iteration(host, state, &turn, outcome.fault.as_ref().filter(|_| !is_answered), report.as_ref());
    if !state.feedback.refused.is_empty() {
        let why = state.feedback.refused.clone();
        host.note_own_event(LoopEvent::PromiseRefused { iteration: state.iteration, why });
    }
    let signs = IterationSigns {
        has_progress: turn.has_progress || verified == Verification::Complete,
        error: find_error(host, state),
        output_length: report.as_ref().map(|report| report.length),
        was_denied: report.as_ref().is_some_and(|report| !report.denied.is_empty()),
    };
    if state.breaker.record_iteration(&host.order.breaker, &signs, host.last_timestamp().wall_ms) {
        let detail = match state.breaker.phase {
            BreakerPhase::Closed => String::from("an iteration made progress"),
            BreakerPhase::HalfOpen => format!("{} iterations in a row changed nothing", state.breaker.idle_count),
            BreakerPhase::Open => state.breaker.describe_cause(),
        };
        note_breaker(host, state, stage_key, "after", &detail).await?;
    }
    if verified == Verification::Complete {
        state.stage = LoopStage::Land;
        return Ok(());
    }
    record_work(host, state, stage_key, is_answered).await?;
    pause_after_failure(host, state, stage_key).await?;
    Ok(())
}

/// Returns what went wrong in an iteration: the agent itself failed, or else a check.
fn find_error(host: LoopHost<'_>, state: &LoopState) -> Option<IterationError> {
    if !state.feedback.fault.is_empty() {
        return Some(IterationError::from_fault(&state.feedback.fault));
    }
    // Checks that may have failed before the loop began say nothing about its iterations.
    let failed_checks = Some(&state.feedback.failed_checks).filter(|_| !host.order.skip_baseline)?;
    IterationError::from_checks(failed_checks)
}

/// Takes over the workspace as the agent left it.
fn apply_turn(
    host: LoopHost<'_>,
    state: &mut LoopState,
    outcome: &ConsultOutcome,
    report: Option<&TurnReport>,
) -> TurnResult {
    let rule = &host.order.completion;
    let mut has_progress = false;
    let mut claim = CompletionClaim::None;
    if let Some(work) = &mut state.work {
        if let Some(workspace) = &outcome.workspace {
            has_progress = work.apply_state(workspace, rule.plan_file.as_deref());
        }
        if let Some(report) = report {
            claim = find_claim(host.order, &report.text, outcome.workspace.as_deref(), work);
        }
    }
    let last_reply = outcome.replies.last().map(|keyed_reply| &keyed_reply.reply);
    // Two honest reports of progress are similar, too. Only a repetition that changes nothing goes in circles.
    let repeats = !has_progress
        && last_reply.and_then(|reply| reply.repeats).is_some_and(|permille| permille >= SIMILAR_PERMILLE);
    if has_progress {
        state.feedback.recent_outputs.clear();
    }
    if let Some(reply) = last_reply {
        state.feedback.recent_outputs.push(reply.output.clone());
        let surplus = state.feedback.recent_outputs.len().saturating_sub(MAX_RECENT_OUTPUTS);
        state.feedback.recent_outputs.drain(..surplus);
    }
    TurnResult { has_progress, repeats, claim }
}

/// Whether the work counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verification {
    Continue,
    Complete,
}

/// Runs the checks that are due, and decides about a claim.
async fn verify_turn(
    host: LoopHost<'_>,
    state: &mut LoopState,
    stage_key: &Key,
    turn: &TurnResult,
) -> Staged<Verification> {
    let (has_work, is_checked) = match &state.work {
        Some(work) => (work.has_work(), work.content.is_some() && work.content == work.checked_content),
        None => (false, false),
    };
    match &turn.claim {
        CompletionClaim::Claimed if !has_work => {
            state.feedback.refused = String::from("nothing was changed since the loop began");
        }
        CompletionClaim::Contradicted { why } => state.feedback.refused.clone_from(why),
        CompletionClaim::Claimed | CompletionClaim::None => {}
    }
    if is_checked {
        // The agent went back to a content that has passed; failures of another one no longer hold.
        state.feedback.failed_checks.clear();
    }
    let is_claimed = turn.claim == CompletionClaim::Claimed && has_work;
    let all_checks = &host.settings().checks;
    let due_checks: Vec<CheckSpec> = match (is_claimed, turn.has_progress) {
        // These contents have passed everything already.
        _ if is_checked => Vec::new(),
        (true, _) => all_checks.clone(),
        (false, true) => all_checks.iter().filter(|check| check.when == CheckTime::Step).cloned().collect(),
        // Nothing changed, so the last results hold.
        (false, false) => Vec::new(),
    };
    if !due_checks.is_empty() {
        let (tree, report) = host.freeze_and_check(stage_key, due_checks).await?;
        state.feedback.failed_checks = report.counting_failures().cloned().collect();
        for result in report.list_warnings() {
            host.note_warning(result.describe());
        }
        let is_whole = report.results.len() == all_checks.len();
        if is_whole
            && state.feedback.failed_checks.is_empty()
            && let Some(work) = &mut state.work
        {
            work.note_passed(tree, &report);
        }
    }
    if !is_claimed {
        return Ok(Verification::Continue);
    }
    if let Some(failure) = state.feedback.failed_checks.first() {
        state.feedback.refused = format!("`{}` {}", failure.command, failure.status);
        return Ok(Verification::Continue);
    }
    Ok(Verification::Complete)
}

fn note_iteration(
    host: LoopHost<'_>,
    state: &LoopState,
    turn: &TurnResult,
    fault: Option<&Fault>,
    report: Option<&TurnReport>,
) {
    let summary = report.map(|report| match &report.status {
        Some(status) if !status.recommendation.is_empty() => prompt::summarize_line(&status.recommendation),
        _ => prompt::summarize_line(&report.text),
    });
    let report = IterationReport {
        progress: turn.has_progress,
        changed_files: state.work.as_ref().map_or(0, |work| work.changed_files),
        plan: state.work.as_ref().and_then(|work| work.plan),
        failed_checks: state.feedback.failed_checks.iter().map(|result| result.describe()).collect(),
        summary: summary.unwrap_or_default(),
        fault: fault.map(|fault| fault.detail.clone()).unwrap_or_default(),
        repeated: turn.repeats,
    };
    host.note_own_event(LoopEvent::IterationEnded { iteration: state.iteration, report });
}

/// Makes the commit and the review that are due after an iteration.
async fn record_work(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key, is_answered: bool) -> Staged<()> {
    let is_review_due = is_answered && review_pass::is_due(host.order, state);
    let is_checkpoint_due = state.iteration.is_multiple_of(host.order.pacing.checkpoint_interval.max(1));
    let has_uncommitted = state.work.as_ref().is_some_and(|work| work.has_uncommitted_work());
    if has_uncommitted && (is_checkpoint_due || is_review_due) {
        let message = landing::checkpoint_message(host.order, state.iteration);
        if let Some(fault) = landing::commit_checkpoint(host, state, &stage_key.child_key("commit"), message).await? {
            return Err(StageExit::from_fault(&fault));
        }
    }
    if is_review_due {
        review_pass::review_changes(host, state, stage_key).await?;
    }
    Ok(())
}

/// Pauses after an iteration that failed, longer each time; a success ends the row.
async fn pause_after_failure(host: LoopHost<'_>, state: &LoopState, stage_key: &Key) -> Result<(), ParkedRun> {
    let failures = state.spent.failures_in_a_row;
    // Zero switches all pauses off.
    if failures == 0 || host.settings().tasks.retry_after_ms == 0 {
        return Ok(());
    }
    host.perform(stage_key.child_key("pause"), Sleep { ms: backoff_ms(failures) }).await.map(drop)
}
