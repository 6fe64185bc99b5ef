//! Repairs by the user's open session. It works directly in the user's files, so there is no workspace and no patch: when
//! the run continues, its changes are checked by the checks and by whether they concern the findings, exactly as
//! a landed patch is, and then reviewed again.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    findings::finding::{FindingStatus, StatusTransition, TransitionCause},
    review::{
        ReviewState,
        checks::{CheckedChange, apply_check_results, is_checked},
        event::ReviewEvent,
        frozen_copy::freeze_subject,
        judge::{ChangeToJudge, JudgedFindings, RepairVerdict},
        land::{describe_refusal, refusal_cause},
        next_stage::fix_trigger,
        questions,
        repairs::{accept_repairs, judge_repairs, reopen_unrepaired, shift_findings},
        review_host::ReviewHost,
        review_keys::ReviewKeys,
        run_stage::ReviewExit,
        topic::ReviewTopic,
        user_requests,
    },
    runs::{
        effect::{LandOutcome, TakeIn},
        types::{RunEvent, find_topic},
    },
    tasks::claims::FixClaim,
};
use tribunal_engine::{
    effect::WaitForUser,
    files::{FrozenFile, LandedFile},
    host::ParkedRun,
    ids::{FindingId, Key},
    reason::{RunEnding, RunReason},
    text::format_count,
};

/// Hands the open findings to the session, waits for it, and checks what it changed.
pub(super) async fn repair_in_session(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration: u32,
) -> Result<(), ReviewExit> {
    let iteration_key = Key::for_fix_iteration(state.round, iteration);
    user_requests::read_inbox(host, state, &iteration_key).await?;
    let open_ids: Vec<FindingId> =
        state.findings.iter().filter(|finding| finding.status.is_open()).map(|finding| finding.id).collect();
    // The inbox may have settled the last open finding.
    if open_ids.is_empty() {
        return Ok(());
    }
    // The files from before the session are needed to see later what it changed.
    let frozen = freeze_subject(host, state, iteration_key.child_key("before")).await?;
    let files_before = match host.order.subject.file_path() {
        Some(path) => vec![FrozenFile { path: path.into(), text: frozen.subject_text }],
        None => frozen.frozen_files,
    };
    assign_to_session(host, state, iteration, &open_ids);
    post_session_question(host, state, &iteration_key, &open_ids).await?;
    state.publish_tracker(host, &iteration_key).await?;
    let session_ending =
        RunEnding::new(RunReason::InSession, format!("{} to fix", format_count(open_ids.len() as u32, "finding")));
    let session_key = iteration_key.session_key();
    let inbox = host.perform(session_key.clone(), WaitForUser { ending: session_ending }).await?;
    let write_key = session_key.child_key(user_requests::DISMISSALS_NAME);
    user_requests::apply_requests(host, state, inbox.requests, write_key).await?;
    withdraw_session_questions(host, state);
    // While the session worked, the user has decided against it or has accepted what is open.
    if state.session_over || state.accepted {
        state.reopen_assigned(host, &open_ids, TransitionCause::SessionOver, "no longer waiting for the session");
        return Ok(());
    }
    // An iteration without any change does not count against the limit.
    if collect_session_edits(host, state, &iteration_key, files_before).await? == SessionOutcome::Judged {
        state.iteration = iteration;
        state.metrics.fix_iterations += 1;
    }
    state.publish_tracker(host, &iteration_key.child_key("after")).await?;
    Ok(())
}

/// What the session did.
#[derive(PartialEq, Eq)]
enum SessionOutcome {
    Judged,
    /// It has changed nothing under review: a session that only looks has not tried.
    Untouched,
}

fn assign_to_session(host: &ReviewHost<'_>, state: &mut ReviewState, iteration: u32, open_ids: &[FindingId]) {
    let (round, trigger) = (state.round, Some(fix_trigger(state)));
    host.note_own_event(ReviewEvent::FixersDealt {
        round,
        iteration,
        wave: 1,
        hands: vec![open_ids.to_vec()],
        why: trigger,
    });
    for finding_id in open_ids {
        let assignment =
            StatusTransition::new(FindingStatus::Assigned, TransitionCause::Assigned, "assigned to the session");
        state.transition_finding(host, *finding_id, assignment);
    }
}

/// Posts a question that stays open while the session works, so that the run can continue if it never comes back.
async fn post_session_question(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration_key: &Key,
    open_ids: &[FindingId],
) -> Result<(), ParkedRun> {
    let finding_names: Vec<String> = open_ids.iter().map(|finding_id| format!("{finding_id}")).collect();
    let question = format!(
        "{} {} assigned to a session. Who should fix what is open if it does not come back?",
        finding_names.join(", "),
        if open_ids.len() == 1 { "is" } else { "are" }
    );
    let decision_id = state.dialog.next_decision_id();
    let decision = questions::ask_about_session(decision_id, open_ids.to_vec(), question);
    state.dialog.post_decision(host.run_host(), &iteration_key.child_key("ask"), decision).await
}

/// Withdraws the question once the session came back or is no longer waited for.
fn withdraw_session_questions(host: &ReviewHost<'_>, state: &mut ReviewState) {
    state.dialog.withdraw_decisions(host.run_host(), "the session came back", |topic| {
        matches!(find_topic::<ReviewTopic>(topic), Some(ReviewTopic::Session { .. }))
    });
}

/// Collects the session's changes and checks them like a patch.
async fn collect_session_edits(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration_key: &Key,
    files_before: Vec<FrozenFile>,
) -> Result<SessionOutcome, ReviewExit> {
    let settings = host.settings();
    let session_key = iteration_key.session_key();
    let assigned_ids: Vec<FindingId> = state
        .findings
        .iter()
        .filter(|finding| finding.status == FindingStatus::Assigned)
        .map(|finding| finding.id)
        .collect();
    let edits_effect = TakeIn { before: files_before.clone(), checks: settings.checks.clone() };
    match host.perform(iteration_key.child_key("take-in"), edits_effect).await? {
        LandOutcome::Landed(landed) if landed.files.iter().any(|file| !file.hunks.is_empty()) => {
            let line_count = count_changed_lines(&landed.files);
            host.note_own_event(ReviewEvent::PatchLanded {
                key: session_key.clone(),
                findings: assigned_ids.clone(),
                lines: line_count,
            });
            // Only checked text may count for the confidence.
            state.checked = is_checked(settings, &landed.checks).then(|| landed.hash.clone());
            state.fix_history.text = Some(landed.hash);
            // The last pass was over another text.
            state.last_pass.dry = false;
            // A session makes no claims, so it is taken to claim every finding it was given.
            let claim_fixed = |finding_id: &FindingId| FixClaim::new_fixed(*finding_id, "changed in the session");
            let fixed_claims: Vec<FixClaim> = assigned_ids.iter().map(claim_fixed).collect();
            let checked_change = CheckedChange { results: &landed.checks, fixed_claims: &fixed_claims };
            apply_check_results(host, state, &checked_change);
            let change = ChangeToJudge {
                task_key: &session_key,
                made_by: None,
                findings: JudgedFindings::default(),
                landed_files: &landed.files,
                files_before: Some(&files_before),
            };
            let verdict = judge_repairs(host, state, &assigned_ids, change)
                .await?
                .map_err(|fault| RunEnding::new(RunReason::Environment, fault.detail));
            if let Ok(verdict) = &verdict {
                let is_repaired = |claim: &FixClaim| verdict.repaired.contains(&claim.id);
                let repaired_claims: Vec<FixClaim> = fixed_claims.into_iter().filter(is_repaired).collect();
                accept_repairs(host, state, &session_key, &repaired_claims);
                reopen_unrepaired(host, state, verdict);
                warn_about_unrelated(host, verdict);
            }
            shift_findings(host, state, &landed.files);
            verdict?;
            Ok(SessionOutcome::Judged)
        }
        LandOutcome::Landed(_) | LandOutcome::Previewed(_) => {
            let note_text = "the session changed nothing that is under review";
            state.reopen_assigned(host, &assigned_ids, TransitionCause::NotBorneOut, note_text);
            Ok(SessionOutcome::Untouched)
        }
        LandOutcome::Refused { why } => {
            let (cause, note_text) = (refusal_cause(&why), describe_refusal(&why));
            host.note_own_event(ReviewEvent::PatchRefused { key: session_key, findings: assigned_ids.clone(), why });
            state.reopen_assigned(host, &assigned_ids, cause, &note_text);
            Ok(SessionOutcome::Judged)
        }
        LandOutcome::Failed { fault } => {
            state.reopen_assigned(host, &assigned_ids, TransitionCause::PatchRefused, &fault.detail);
            Err(RunEnding::new(RunReason::Environment, fault.detail).into())
        }
    }
}

/// Tells the user what else the session has changed: it is in the files already.
fn warn_about_unrelated(host: &ReviewHost<'_>, verdict: &RepairVerdict) {
    if !verdict.unrelated.is_empty() {
        let parts: Vec<String> = verdict.unrelated.iter().map(|part| format!("{part}")).collect();
        let text = format!("the session also changed {}: no finding asks for that", parts.join(", "));
        host.note_event(RunEvent::Warned { text });
    }
}

fn count_changed_lines(landed_files: &[LandedFile]) -> u32 {
    landed_files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.new_len.max(hunk.old_len)).sum()
}
