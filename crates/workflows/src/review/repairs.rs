//! What counts as repaired by a change: decided by rules, by a judge, or by the user who approved it.

use alloc::{format, string::String, vec::Vec};

use crate::{
    findings::finding::{Finding, FindingStatus, StatusTransition, TransitionCause},
    review::{
        FixLogEntry, ReviewState,
        judge::{ChangeToJudge, JudgeOutcome, JudgedFindings, Judgement, RepairVerdict, judge_change},
        landing_impact::{LandingImpact, RepairSign},
        review_host::ReviewHost,
        run_stage::WorkResult,
    },
    tasks::claims::FixClaim,
};
use tribunal_engine::{
    fault::Fault,
    files::{LandedFile, Patch},
    host::ParkedRun,
    ids::{AgentName, FindingId, Key},
};

/// Decides which findings a change repairs: by rules, and by a judge where they cannot tell. `Err` if the environment keeps
/// judges from working; the findings are open again then.
pub(super) async fn judge_repairs(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    finding_ids: &[FindingId],
    change: ChangeToJudge<'_>,
) -> Result<Result<RepairVerdict, Fault>, ParkedRun> {
    let subject = host.order.subject.clone();
    let impact = LandingImpact::new(&subject, change.landed_files);
    let mut findings = JudgedFindings::default();
    for finding in finding_ids.iter().filter_map(|finding_id| state.find_finding(*finding_id)) {
        match impact.check_repair(finding) {
            RepairSign::Open => findings.open_ids.push(finding.id),
            RepairSign::ByCheck => findings.checked_ids.push(finding.id),
            RepairSign::NotRepaired(reason) => findings.rejected.push((finding.id, String::from(reason))),
        }
    }
    let mut judgement = Judgement::default();
    if !findings.open_ids.is_empty() {
        let change = ChangeToJudge { findings: findings.clone(), ..change };
        match judge_change(host, state, change).await? {
            JudgeOutcome::Judged(said) => judgement = said,
            JudgeOutcome::Unheard(reason) => {
                let reason = format!("no judge could say whether it is repaired ({reason})");
                let open_ids = findings.open_ids.drain(..);
                findings.rejected.extend(open_ids.map(|finding_id| (finding_id, reason.clone())));
            }
            JudgeOutcome::EnvironmentFailed(fault) => {
                state.reopen_assigned(host, finding_ids, TransitionCause::NotBorneOut, &fault.detail);
                return Ok(Err(fault));
            }
        }
    }
    Ok(Ok(RepairVerdict::combine_verdicts(state, &impact, &judgement, &findings)))
}

/// Opens the findings again that a change was made for and does not repair.
pub(super) fn reopen_unrepaired(host: &ReviewHost<'_>, state: &mut ReviewState, verdict: &RepairVerdict) {
    for (finding_id, reason) in &verdict.unrepaired {
        let is_unsettled =
            |finding: &Finding| matches!(finding.status, FindingStatus::Assigned | FindingStatus::Blocked { .. });
        // What the user has settled meanwhile keeps its status.
        if state.find_finding(*finding_id).is_some_and(is_unsettled) {
            let note_text = format!("claimed as fixed, but {reason}");
            let reopened = StatusTransition::new(FindingStatus::Open, TransitionCause::NotBorneOut, note_text.as_str());
            state.transition_finding(host, *finding_id, reopened);
            state.fix_history.context.add_error(&format!("{finding_id}: {note_text}"));
        }
    }
}

/// Opens the findings again whose evidence an approved patch has not touched. The user has seen what it does at the others.
pub(super) fn reopen_untouched(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    fixed_claims: &mut Vec<FixClaim>,
    landed_files: &[LandedFile],
) {
    let subject = host.order.subject.clone();
    let impact = LandingImpact::new(&subject, landed_files);
    let untouched_reason = |claim: &FixClaim| {
        let finding = state.find_finding(claim.id)?;
        match impact.check_repair(finding) {
            RepairSign::NotRepaired(reason) if !impact.resolves_evidence(finding) => {
                Some((claim.id, String::from(reason)))
            }
            _ => None,
        }
    };
    let unrepaired: Vec<(FindingId, String)> = fixed_claims.iter().filter_map(untouched_reason).collect();
    fixed_claims.retain(|claim| !unrepaired.iter().any(|(finding_id, _)| *finding_id == claim.id));
    reopen_unrepaired(host, state, &RepairVerdict { unrepaired, ..RepairVerdict::default() });
}

/// Records the findings as fixed that a landed change was confirmed to repair.
pub(super) fn accept_repairs(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    task_key: &Key,
    fixed_claims: &[FixClaim],
) {
    for claim in fixed_claims {
        let Some(finding) = state.find_finding(claim.id) else { continue };
        if finding.check_command().is_some() {
            // The check has decided already. A check that did not run, because it was removed from the settings, decides nothing.
            state.reopen_assigned(host, &[claim.id], TransitionCause::NotBorneOut, "its check was not run");
            continue;
        }
        let repaired_transition =
            StatusTransition::new(FindingStatus::Fixed, TransitionCause::Repaired, claim.note.as_str());
        state.transition_finding(host, claim.id, repaired_transition);
        // The next fixer learns from what worked as well as from what did not.
        state.fix_history.context.add_success(&format!("{}: {}", claim.id, claim.note));
        let separator = if claim.verification.is_empty() { "" } else { "; checked: " };
        let memory_note = if claim.memory_saved { "; lesson saved to memory" } else { "" };
        let note_text = format!("{}{separator}{}{memory_note}", claim.note, claim.verification);
        state.fixes.push(FixLogEntry { finding: claim.id, key: task_key.clone(), note: note_text });
    }
}

/// Moves the places of all findings to where they are after a landing, and remembers whose evidence is gone.
pub(super) fn shift_findings(host: &ReviewHost<'_>, state: &mut ReviewState, landed_files: &[LandedFile]) {
    let subject = host.order.subject.clone();
    let impact = LandingImpact::new(&subject, landed_files);
    // The places still have the old line numbers here; they are shifted last.
    let is_resolved = |finding: &&Finding| finding.status.is_open() && impact.resolves_evidence(finding);
    state.fix_history.gone = state.findings.iter().filter(is_resolved).map(|finding| finding.id).collect();
    for finding in &mut state.findings {
        if let Some(place) = &mut finding.place {
            place.shift_lines(impact.hunks_at(place));
        }
    }
}

/// What a fixer has changed.
#[derive(Clone, Copy)]
pub(super) struct AnsweredPatch<'p> {
    pub reply_key: &'p Key,
    pub agent: &'p AgentName,
    pub patch: Option<&'p Patch>,
}

/// Accepts claims about findings whose evidence another repair has removed: nothing is left to change for them, if a judge
/// agrees.
pub(super) async fn accept_fixes_along(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    answered_patch: AnsweredPatch<'_>,
    fixed_claims: &[FixClaim],
) -> Result<WorkResult, ParkedRun> {
    let AnsweredPatch { reply_key, agent, .. } = answered_patch;
    let is_gone = |claim: &&FixClaim| state.fix_history.gone.contains(&claim.id);
    let finding_ids: Vec<FindingId> = fixed_claims.iter().filter(is_gone).map(|claim| claim.id).collect();
    if finding_ids.is_empty() {
        return Ok(WorkResult::Done);
    }
    let change = ChangeToJudge {
        task_key: reply_key,
        made_by: Some(agent),
        findings: JudgedFindings { open_ids: finding_ids.clone(), ..JudgedFindings::default() },
        landed_files: &[],
        files_before: None,
    };
    let judgement = match judge_change(host, state, change).await? {
        JudgeOutcome::Judged(judgement) => judgement,
        JudgeOutcome::Unheard(_) => return Ok(WorkResult::Done),
        JudgeOutcome::EnvironmentFailed(fault) => return Ok(WorkResult::EnvironmentFailed(fault)),
    };
    for claim in fixed_claims.iter().filter(|claim| finding_ids.contains(&claim.id)) {
        if let Some(objection) = judgement.find_objection(claim.id) {
            let note_text = format!("claimed as fixed by another fix, but {objection}");
            state.reopen_assigned(host, &[claim.id], TransitionCause::NotBorneOut, &note_text);
            continue;
        }
        let note_text = format!("{} (already resolved by another fix)", claim.note);
        state.transition_finding(
            host,
            claim.id,
            StatusTransition::new(FindingStatus::Fixed, TransitionCause::RepairedAlong, note_text.clone()),
        );
        state.fixes.push(FixLogEntry { finding: claim.id, key: reply_key.clone(), note: note_text });
    }
    Ok(WorkResult::Done)
}
