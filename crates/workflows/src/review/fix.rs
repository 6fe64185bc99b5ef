//! One fix iteration: every open finding is offered once, in waves; the patch of each fixer lands as a whole or not at all.
//!
//! What a fixer says is a claim. A finding is fixed when its fixer claimed it, no check blocked the patch,
//! and the landed change concerns the finding ([`super::land`]).

use alloc::{format, string::String, vec::Vec};

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{
    findings::{
        agent_role::AgentRole,
        finding::{Finding, FindingStatus, StatusTransition, TransitionCause},
    },
    review::{
        ReviewState,
        challenge::{self, ChallengeCompletion, ChallengeInput},
        checks::describe_checks,
        event::ReviewEvent,
        fix_history::is_repeated_reply,
        frozen_copy::freeze_subject,
        land::{ProposedPatch, land_approved, land_or_ask},
        next_stage::fix_trigger,
        repairs::{AnsweredPatch, accept_fixes_along},
        review_host::ReviewHost,
        review_keys::ReviewKeys,
        run_stage::{ReviewExit, WorkResult},
        user_requests,
        waves::plan_waves,
    },
    runs::types::RunEvent,
    tasks::{
        answer_words::{CLAIM_WORDS, describe_unknown_words},
        asking::consult_agent,
        brief::{AgentTask, AnswerContent, AssignedFinding, ReviewBrief, WorkspaceKind},
        claims::{ClaimStatus, FixClaim, UnknownWord},
        client::JobKind,
        consult_outcome::{ConsultOutcome, KeyedReply},
        selection,
    },
};
use tribunal_engine::{
    host::ParkedRun,
    ids::{AgentName, FindingId, Hash, Key},
    limits::RunUsage,
    text::truncate_chars,
};

/// The correction for the one changed attempt after a repetition.
const CIRCLING_CORRECTION: &str = "it repeated an earlier answer, and nothing had changed since; find another way, or answer BLOCKED and \
                      say what the user would have to decide";

/// Offers every open finding to a fixer once.
pub(super) async fn fix_iteration(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration: u32,
) -> Result<(), ReviewExit> {
    let _settings = host.settings();
    let iteration_key = Key::for_fix_iteration(state.round, iteration);
    user_requests::read_inbox(host, state, &iteration_key).await?;
    land_approved(host, state, &iteration_key).await?;
    // Approved patches and late challenges can settle findings, so both come before the waves are planned.
    challenge_unheard(host, state, &iteration_key).await?;
    let open_findings: Vec<Finding> =
        state.findings.iter().filter(|finding| finding.status.is_open()).cloned().collect();
    let trigger = fix_trigger(state);
    // All waves compare with the state at the start of the iteration.
    let state_hash = state.fix_history.compute_state_hash(&state.findings);
    let mut fixer_number = 0;
    for (wave_index, fix_wave) in plan_waves(&open_findings, &host.order.fixers).into_iter().enumerate() {
        let mut fix_wave = fix_wave;
        // The limits before the first wave were checked when the stage was chosen.
        if wave_index > 0 {
            let wave_key = iteration_key.child_key(&format!("wave-{}", wave_index + 1));
            fix_wave = prepare_later_wave(host, state, &wave_key, fix_wave).await?;
        }
        // This is noted before the fixers start, so that reports can show who works on what.
        host.note_own_event(ReviewEvent::FixersDealt {
            round: state.round,
            iteration,
            wave: wave_index as u32 + 1,
            hands: fix_wave.clone(),
            why: Some(trigger),
        });
        let mut running_fixers = FuturesUnordered::new();
        let spent = ParallelUsage { run_usage: state.spent.clone(), parallel_tasks: fix_wave.len() };
        for assigned_ids in fix_wave {
            let agent_name = choose_fixer(host, state, &assigned_ids, fixer_number);
            fixer_number += 1;
            let fixer_key = iteration_key.fixer_key(fixer_number as u32);
            assign_findings(host, state, &assigned_ids, fixer_number);
            let brief = fixer_brief(host, state, &assigned_ids, iteration);
            let timeout_ms = host.order.fixers.timeout_ms;
            let mut agent_task = AgentTask::for_review(agent_name, brief, WorkspaceKind::Private, timeout_ms);
            // The host compares the new output with these and reports how much is repeated.
            agent_task.recent = state.fix_history.outputs_at(&state_hash, &assigned_ids);
            running_fixers.push(ask_fixer(host, fixer_key, agent_task, assigned_ids, spent.clone()));
        }
        let mut wave_result = WorkResult::Done;
        // Patches land in the order in which fixers finish; a slow fixer does not hold up the others.
        while let Some(fixer_result) = running_fixers.next().await {
            let work_result = settle_answer(host, state, fixer_result?, &state_hash).await?;
            wave_result = wave_result.first_failure(work_result);
        }
        // An iteration in which the environment failed does not count.
        wave_result.end_on_failure()?;
    }
    state.iteration = iteration;
    state.metrics.fix_iterations += 1;
    state.publish_tracker(host, &iteration_key).await?;
    Ok(())
}

/// Checks the limits and reads the inbox before a later wave. Returns what is left of the wave.
async fn prepare_later_wave(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    wave_key: &Key,
    fix_wave: Vec<Vec<FindingId>>,
) -> Result<Vec<Vec<FindingId>>, ReviewExit> {
    if let Some(ending) = state.check_limits(host) {
        return Err(ending.into());
    }
    user_requests::read_inbox(host, state, wave_key).await?;
    // Findings that the user has settled meanwhile need no fixer.
    Ok(keep_open(state, fix_wave))
}

/// Records that these findings are given to a fixer.
fn assign_findings(host: &ReviewHost<'_>, state: &mut ReviewState, assigned_ids: &[FindingId], fixer_number: usize) {
    for finding_id in assigned_ids {
        let note_text = format!("assigned to fixer {fixer_number}");
        state.transition_finding(
            host,
            *finding_id,
            StatusTransition::new(FindingStatus::Assigned, TransitionCause::Assigned, note_text),
        );
    }
}

/// Challenges the findings that a limit or a failure had left unchallenged, before they are repaired.
async fn challenge_unheard(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration_key: &Key,
) -> Result<(), ReviewExit> {
    let due_findings = challenge::select_due(host, state, &state.unheard, &[]);
    if due_findings.is_empty() {
        state.unheard.clear();
        return Ok(());
    }
    let frozen = freeze_subject(host, state, iteration_key.freeze_key()).await?;
    let Some(scope) = frozen.full_scope(host.order) else { return Ok(()) };
    // Findings that remain unchallenged again are added anew.
    state.unheard.clear();
    let challenge_input =
        ChallengeInput { challenge_key: iteration_key, freeze_key: &frozen.freeze_key, scope: &scope };
    match challenge::challenge_findings(host, state, challenge_input, due_findings).await? {
        ChallengeCompletion::All => Ok(()),
        ChallengeCompletion::Halted(ending) => Err(ending.into()),
    }
}

/// What the run has used when several fixers begin, and how many they are.
#[derive(Clone)]
struct ParallelUsage {
    run_usage: RunUsage,
    parallel_tasks: usize,
}

/// The result of one fixer.
struct FixerResult {
    fixer_key: Key,
    agent: AgentName,
    assigned_ids: Vec<FindingId>,
    consultation: ConsultOutcome,
}

fn keep_open(state: &ReviewState, fix_wave: Vec<Vec<FindingId>>) -> Vec<Vec<FindingId>> {
    let is_open =
        |finding_id: &FindingId| state.find_finding(*finding_id).is_some_and(|finding| finding.status.is_open());
    let open_assignments = fix_wave.into_iter().map(|assigned_ids| assigned_ids.into_iter().filter(is_open).collect());
    open_assignments.filter(|assigned_ids: &Vec<FindingId>| !assigned_ids.is_empty()).collect()
}

async fn ask_fixer(
    host: &ReviewHost<'_>,
    fixer_key: Key,
    agent_task: AgentTask,
    assigned_ids: Vec<FindingId>,
    spent: ParallelUsage,
) -> Result<FixerResult, ParkedRun> {
    let agent_name = agent_task.agent.clone();
    let request = host.new_consultation(&fixer_key, agent_task, &spent.run_usage, spent.parallel_tasks);
    let consultation =
        consult_agent(host.run_host(), request, |content| find_claim_problem(content, &assigned_ids)).await?;
    Ok(FixerResult { fixer_key, agent: agent_name, assigned_ids, consultation })
}

/// Finds what is wrong with an answer. A finding that is not mentioned is no problem: it is open again.
fn find_claim_problem(content: &AnswerContent, assigned_ids: &[FindingId]) -> Option<String> {
    match content {
        AnswerContent::Fixes { unknown, .. } => {
            let own_unknown: Vec<UnknownWord> =
                unknown.iter().filter(|unknown_word| assigned_ids.contains(&unknown_word.id)).cloned().collect();
            (!own_unknown.is_empty()).then(|| describe_unknown_words("status", &own_unknown, &CLAIM_WORDS))
        }
        AnswerContent::Unreadable { message } => Some(message.clone()),
        _ => Some(String::from("expected fixes and nothing else")),
    }
}

/// Makes the brief of a fixer: its findings, and what it should know about the run: its progress, earlier attempts, and
/// whether it repeats itself.
fn fixer_brief(host: &ReviewHost<'_>, state: &ReviewState, assigned_ids: &[FindingId], iteration: u32) -> ReviewBrief {
    let assigned_findings =
        assigned_ids.iter().filter_map(|finding_id| state.find_finding(*finding_id)).map(|finding| AssignedFinding {
            id: finding.id,
            severity: finding.severity,
            description: finding.description.clone(),
            evidence: finding.evidence.clone(),
            place: finding.place.as_ref().map(|place| format!("{place}")).unwrap_or_default(),
            suggested_fix: finding.suggested_fix.clone(),
            last_try: last_failure_note(finding),
        });
    let is_circling = assigned_ids.iter().any(|finding_id| state.fix_history.circling.contains(finding_id));
    let mut environment = state.task_background(host);
    environment.context = state.fix_history.context.clone();
    environment.context.stable = describe_progress(host, state, iteration);
    ReviewBrief {
        assigned: assigned_findings.collect(),
        said: state.dialog.remark_lines(),
        surroundings: environment,
        correction: String::from(if is_circling { CIRCLING_CORRECTION } else { "" }),
        ..ReviewBrief::new(AgentRole::Fixer, state.reviewed_subject(host.order), state.round)
    }
}

fn describe_progress(host: &ReviewHost<'_>, state: &ReviewState, iteration: u32) -> String {
    let settings = host.settings();
    let mut stable_text = format!(
        "Round {} of at most {}, fix iteration {iteration} of at most {}; the goal is {}.",
        state.round,
        host.order.limits.rounds.saturating_mul(state.spent.granted_shares()),
        host.order.limits.fix_iterations,
        host.order.goal,
    );
    stable_text.push_str(&describe_checks(&settings.checks));
    stable_text
}

/// Chooses the fixer: the next in turn, another agent than the last one if that one made no progress, and none that keeps
/// failing.
fn choose_fixer(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    assigned_ids: &[FindingId],
    fixer_number: usize,
) -> AgentName {
    let settings = host.settings();
    let failure_counts = &state.spent.failing;
    let next_agent = selection::agent_for_seat(settings, JobKind::Fix, fixer_number, 0);
    let is_circling = assigned_ids.iter().any(|finding_id| state.fix_history.circling.contains(finding_id));
    match state.fix_history.last_agent_for(assigned_ids).filter(|_| is_circling) {
        Some(last_agent_name) => selection::other_agent(settings, JobKind::Fix, last_agent_name, failure_counts),
        None => selection::stand_in(settings, JobKind::Fix, &next_agent, failure_counts),
    }
}

/// Returns why the finding is open again, if a fixer had it before.
fn last_failure_note(finding: &Finding) -> String {
    let newest_first = finding.history.iter().rev();
    let reopening_steps = newest_first
        .skip_while(|history_step| history_step.status == FindingStatus::Assigned)
        .take_while(|history_step| history_step.status == FindingStatus::Open);
    // One assignment is the current one; only a second means that a fixer had it before.
    let tried_before =
        finding.history.iter().filter(|history_step| history_step.status == FindingStatus::Assigned).count() > 1;
    // The newest note before the current assignment says why the last attempt failed.
    reopening_steps.map(|history_step| history_step.note.clone()).next().filter(|_| tried_before).unwrap_or_default()
}

/// Applies the answer of a fixer.
async fn settle_answer(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    fixer_result: FixerResult,
    state_hash: &Hash,
) -> Result<WorkResult, ParkedRun> {
    let FixerResult { fixer_key, agent, assigned_ids, consultation } = fixer_result;
    // The last readable reply counts: an earlier one was the reason for asking again.
    let readable_answer = consultation.replies.iter().rev().find_map(|answered| match &answered.reply.content {
        AnswerContent::Fixes { claims, unknown } => Some((answered, claims.clone(), unknown.clone())),
        _ => None,
    });
    state.record_result(host, &consultation, readable_answer.is_some());
    state.dialog.ask_about_strays(host.run_host(), &fixer_key, &consultation.strayed).await?;
    // This is read before the new outputs are remembered, which would otherwise count as their own repetition.
    let answered_before_ids = state.fix_history.findings_answered_before(state_hash, &assigned_ids);
    let agent = consultation.last_agent().cloned().unwrap_or(agent);
    for answered in &consultation.replies {
        state.fix_history.remember_output(
            answered.reply.output.clone(),
            state_hash.clone(),
            agent.clone(),
            assigned_ids.clone(),
        );
    }
    let Some((KeyedReply { reply_key, reply }, claims, unknown_words)) = readable_answer else {
        return Ok(handle_missing_answer(host, state, FixerResult { fixer_key, agent, assigned_ids, consultation }));
    };
    state.fix_history.context.add_output(&summarize_claims(&claims));
    let sorted_claims = sort_claims(claims, &assigned_ids);
    for claim in &sorted_claims.blocked_claims {
        // The user decides about blocked findings even if the rest of the patch lands.
        let note_text = if claim.note.is_empty() { "the fixer gave no reason" } else { claim.note.as_str() };
        state.block_finding(host, &fixer_key, claim.id, TransitionCause::FixerBlocked, note_text).await?;
    }
    let answered_patch = AnsweredPatch { reply_key, agent: &agent, patch: reply.patch.as_ref() };
    let work_result = settle_fixed_claims(host, state, answered_patch, &sorted_claims.fixed_claims).await?;
    reopen_unfixed(host, state, &sorted_claims.unfixed_claims, &unknown_words);
    // Only findings that are still assigned are reopened, so this covers exactly the unmentioned ones.
    state.reopen_assigned(host, &assigned_ids, TransitionCause::NotAnswered, "the fixer did not mention it");
    let is_repeat = consultation.replies.iter().any(|answered| is_repeated_reply(&answered.reply));
    let is_done = matches!(work_result, WorkResult::Done);
    // Repeating an answer is only a problem if nothing has changed through it.
    if is_repeat && is_done && state.fix_history.compute_state_hash(&state.findings) == *state_hash {
        handle_circling(host, state, &fixer_key, &answered_before_ids).await?;
    }
    Ok(work_result)
}

/// Reopens the findings that a fixer calls not fixed, and those whose status is still an unknown word.
fn reopen_unfixed(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    unfixed_claims: &[FixClaim],
    unknown_words: &[UnknownWord],
) {
    for claim in unfixed_claims {
        let note_text = match claim.note.as_str() {
            "" => String::from("the fixer says that it is not fixed"),
            fixer_note => format!("the fixer says that it is not fixed: {fixer_note}"),
        };
        state.reopen_assigned(host, &[claim.id], TransitionCause::NotAnswered, &note_text);
    }
    for UnknownWord { id, word } in unknown_words {
        let note_text = format!("the fixer's status `{}` is neither FIXED nor BLOCKED", truncate_chars(word, 40));
        state.reopen_assigned(host, &[*id], TransitionCause::NotAnswered, &note_text);
    }
}

/// Reopens the findings of a fixer that gave no readable answer, and reports its fault.
fn handle_missing_answer(host: &ReviewHost<'_>, state: &mut ReviewState, fixer_result: FixerResult) -> WorkResult {
    let FixerResult { fixer_key, agent, assigned_ids, consultation } = fixer_result;
    let note_text = consultation.fault.as_ref().map_or("the fixer did not answer", |fault| fault.detail.as_str());
    state.reopen_assigned(host, &assigned_ids, TransitionCause::NotAnswered, &truncate_chars(note_text, 300));
    let Some(fault) = consultation.fault else { return WorkResult::Done };
    host.note_own_event(ReviewEvent::FixerFailed { key: fixer_key, agent, fault: fault.clone() });
    match fault.is_environment() {
        true => WorkResult::EnvironmentFailed(fault),
        false => WorkResult::Done,
    }
}

/// Lands the patch behind the claims. Without a patch only claims are accepted for which nothing is left to change.
async fn settle_fixed_claims(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    answered_patch: AnsweredPatch<'_>,
    fixed_claims: &[FixClaim],
) -> Result<WorkResult, ParkedRun> {
    let AnsweredPatch { reply_key: task_key, agent, patch } = answered_patch;
    match patch {
        // A patch without any claim lands nowhere: it would change the text without a reason.
        Some(patch) if !fixed_claims.is_empty() => {
            land_or_ask(host, state, ProposedPatch { task_key, agent, patch, fixed_claims }).await
        }
        _ => {
            let work_result = accept_fixes_along(host, state, answered_patch, fixed_claims).await?;
            let claimed_ids: Vec<FindingId> = fixed_claims.iter().map(|claim| claim.id).collect();
            state.reopen_assigned(
                host,
                &claimed_ids,
                TransitionCause::NotBorneOut,
                "claimed as fixed, but nothing was changed",
            );
            Ok(work_result)
        }
    }
}

fn summarize_claims(claims: &[FixClaim]) -> String {
    let claim_texts =
        claims.iter().map(|claim| format!("{} {}: {}", claim.id, claim.said.as_str().to_uppercase(), claim.note));
    claim_texts.collect::<Vec<String>>().join("; ")
}

/// Handles a fixer that repeated an earlier answer without progress. Its findings get one changed attempt; after the second
/// time the user is asked.
async fn handle_circling(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    fixer_key: &Key,
    repeated_ids: &[FindingId],
) -> Result<(), ParkedRun> {
    state.metrics.loops_detected += 1;
    let is_open = |finding_id: &&FindingId| {
        state.find_finding(**finding_id).is_some_and(|finding| finding.status == FindingStatus::Open)
    };
    // In the last iteration there is no further attempt to announce.
    let is_last_iteration = state.iteration + 1 >= host.order.limits.fix_iterations;
    let (circling_again, circling_first): (Vec<FindingId>, Vec<FindingId>) = repeated_ids
        .iter()
        .filter(is_open)
        .partition(|finding_id| is_last_iteration || state.fix_history.circling.contains(finding_id));
    if !circling_first.is_empty() {
        let finding_names: Vec<String> = circling_first.iter().map(|finding_id| format!("{finding_id}")).collect();
        let warning =
            format!("{}: two fixes made no progress; trying once more with another approach", finding_names.join(", "));
        host.note_event(RunEvent::Warned { text: warning });
        state.fix_history.circling.extend(circling_first);
    }
    for finding_id in circling_again {
        let mut note_text = String::from("repeated fixes made no progress");
        let mut newest_first =
            state.find_finding(finding_id).into_iter().flat_map(|finding| finding.history.iter().rev());
        if let Some(history_step) = newest_first.find(|history_step| history_step.cause.is_refusal()) {
            note_text.push_str(&format!("; {}", history_step.note));
        }
        state.block_finding(host, fixer_key, finding_id, TransitionCause::NoProgress, &note_text).await?;
    }
    Ok(())
}

/// The claims of a fixer, by status.
struct SortedClaims {
    blocked_claims: Vec<FixClaim>,
    unfixed_claims: Vec<FixClaim>,
    fixed_claims: Vec<FixClaim>,
}

/// Sorts the claims about assigned findings, one each. Of different claims about one finding the worst counts: blocked,
/// then not fixed.
fn sort_claims(claims: Vec<FixClaim>, assigned_ids: &[FindingId]) -> SortedClaims {
    let mut blocked_claims: Vec<FixClaim> = Vec::new();
    let mut unfixed_claims: Vec<FixClaim> = Vec::new();
    let mut fixed_claims: Vec<FixClaim> = Vec::new();
    for claim in claims.into_iter().filter(|claim| assigned_ids.contains(&claim.id)) {
        let same_status = match claim.said {
            ClaimStatus::Blocked => &mut blocked_claims,
            ClaimStatus::Unfixed => &mut unfixed_claims,
            ClaimStatus::Fixed => &mut fixed_claims,
        };
        // Of several claims about one finding the first counts.
        if !same_status.iter().any(|earlier| earlier.id == claim.id) {
            same_status.push(claim);
        }
    }
    let is_claimed_in = |claims: &[FixClaim], finding_id| claims.iter().any(|other_claim| other_claim.id == finding_id);
    unfixed_claims.retain(|claim| !is_claimed_in(&blocked_claims, claim.id));
    fixed_claims.retain(|claim| !is_claimed_in(&blocked_claims, claim.id) && !is_claimed_in(&unfixed_claims, claim.id));
    SortedClaims { blocked_claims, unfixed_claims, fixed_claims }
}
