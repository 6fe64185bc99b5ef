//! Lands what patches repair.
//!
//! A finding is fixed when its fixer claimed it, the rules and a judge confirm that the patch repairs it, and no check blocked
//! the patch. Parts of a patch that repair nothing do not land. If the user wants to see each patch first, the patch waits for
//! approval, and lands as a whole.

use alloc::{collections::BTreeSet, format, string::String, vec, vec::Vec};

use crate::{
    development::check_scripts::{ChangedScript, describe_changed_scripts, find_changed_scripts},
    findings::{
        finding::{Finding, FindingStatus, StatusTransition, TransitionCause},
        subject::Subject,
    },
    review::{
        PendingPatch, ReviewState,
        checks::{CheckedChange, apply_check_results, is_checked},
        event::ReviewEvent,
        judge::{ChangeToJudge, JudgedFindings, RepairVerdict},
        landing_impact::{LandingImpact, RepairSign},
        questions,
        repairs::{accept_repairs, judge_repairs, reopen_unrepaired, reopen_untouched, shift_findings},
        review_host::ReviewHost,
        run_stage::{ReviewExit, WorkResult},
    },
    runs::effect::{Land, LandOutcome, LandedChange},
    tasks::claims::FixClaim,
};
use tribunal_engine::{
    files::{FilePart, LandedFile, Patch, PatchRefusal},
    host::ParkedRun,
    ids::{AgentName, FindingId, Hash, Key},
    text::truncate_chars,
};

/// Lands what a fixer's patch repairs, or asks the user for approval first.
pub(super) async fn land_or_ask(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    proposed: ProposedPatch<'_>,
) -> Result<WorkResult, ParkedRun> {
    // A patch that changes what a check runs could make every check pass.
    if host.order.fixers.approve_each || !changed_check_scripts(host, proposed.patch).is_empty() {
        // The findings stay blocked until the user has answered.
        ask_for_approval(host, state, proposed.task_key, proposed.patch, proposed.fixed_claims).await?;
        return Ok(WorkResult::Done);
    }
    let ProposedPatch { task_key, patch, fixed_claims, .. } = proposed;
    let held_files = &files_of_other_fixers(state, fixed_claims);
    let mut claimed_repair = ClaimedRepair {
        task_key,
        patch_hash: &patch.hash,
        held_files,
        fixed_claims: fixed_claims.to_vec(),
        without: Vec::new(),
        is_approved: false,
    };
    let finding_ids = claimed_repair.finding_ids();
    let preview_effect = Land { preview: true, checks: Vec::new(), ..land_effect(host, state, &claimed_repair) };
    let landed_files = match host.perform(task_key.preview_key(), preview_effect).await? {
        LandOutcome::Previewed(change) | LandOutcome::Landed(change) => changed_files(&host.order.subject, change),
        LandOutcome::Refused { why } => {
            handle_refusal(host, state, task_key, finding_ids, why).await?;
            return Ok(WorkResult::Done);
        }
        LandOutcome::Failed { fault } => {
            state.reopen_assigned(host, &finding_ids, TransitionCause::PatchRefused, &fault.detail);
            return Ok(WorkResult::EnvironmentFailed(fault));
        }
    };
    let change = ChangeToJudge {
        task_key,
        made_by: Some(proposed.agent),
        findings: JudgedFindings::default(),
        landed_files: &landed_files,
        files_before: None,
    };
    let mut verdict = match judge_repairs(host, state, &finding_ids, change).await? {
        Ok(verdict) => verdict,
        Err(fault) => return Ok(WorkResult::EnvironmentFailed(fault)),
    };
    claimed_repair.without = verdict.unrelated.clone();
    reject_remainder(host, state, &claimed_repair, &mut verdict).await?;
    let work_result = if verdict.repaired.is_empty() {
        let findings = verdict.unrepaired.iter().map(|(finding_id, _)| *finding_id).collect();
        let why = PatchRefusal::RepairsNothing;
        host.note_own_event(ReviewEvent::PatchRefused { key: task_key.clone(), findings, why });
        WorkResult::Done
    } else {
        claimed_repair.fixed_claims.retain(|claim| verdict.repaired.contains(&claim.id));
        land_patch(host, state, &task_key.landing_key(), claimed_repair).await?
    };
    reopen_unrepaired(host, state, &verdict);
    Ok(work_result)
}

/// Looks at what is left of a patch without its unrelated parts, and rejects all of it if it no longer repairs something: half
/// of a move is a deletion.
async fn reject_remainder(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    claimed_repair: &ClaimedRepair<'_>,
    verdict: &mut RepairVerdict,
) -> Result<(), ParkedRun> {
    if claimed_repair.without.is_empty() || verdict.repaired.is_empty() {
        return Ok(());
    }
    let preview_effect = Land { preview: true, checks: Vec::new(), ..land_effect(host, state, claimed_repair) };
    let preview_key = claimed_repair.task_key.preview_key().child_key("rest");
    let remaining_files = match host.perform(preview_key, preview_effect).await? {
        LandOutcome::Previewed(change) | LandOutcome::Landed(change) => changed_files(&host.order.subject, change),
        // The landing itself meets the same problem, and reports it.
        LandOutcome::Refused { .. } | LandOutcome::Failed { .. } => return Ok(()),
    };
    let impact = LandingImpact::new(&host.order.subject, &remaining_files);
    let repaired_findings = verdict.repaired.iter().filter_map(|finding_id| state.find_finding(*finding_id));
    let broken_reason = repaired_findings.map(|finding| impact.check_repair(finding)).find_map(|sign| match sign {
        RepairSign::NotRepaired(reason) => Some(reason),
        RepairSign::Open | RepairSign::ByCheck => None,
    });
    if let Some(reason) = broken_reason {
        let reason = format!("without the parts that no finding asks for, {reason}");
        verdict.unrepaired.extend(verdict.repaired.drain(..).map(|finding_id| (finding_id, reason.clone())));
    }
    Ok(())
}

/// A fixer's patch, and what the fixer says that it repairs.
pub(super) struct ProposedPatch<'p> {
    /// The key of the task that made it.
    pub task_key: &'p Key,
    pub agent: &'p AgentName,
    pub patch: &'p Patch,
    pub fixed_claims: &'p [FixClaim],
}

/// Returns the files of a change. A single file is reported without its path.
fn changed_files(subject: &Subject, change: LandedChange) -> Vec<LandedFile> {
    match subject.file_path() {
        Some(path) => vec![LandedFile { path: path.into(), hunks: change.hunks, text: change.text }],
        None => change.files,
    }
}

/// Lands the patches that the user has approved.
pub(super) async fn land_approved(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration_key: &Key,
) -> Result<(), ReviewExit> {
    let approved_patches: Vec<PendingPatch> =
        state.pending.iter().filter(|pending_patch| pending_patch.approved).cloned().collect();
    for PendingPatch { decision, by, patch, claims, .. } in approved_patches {
        let landing_key = iteration_key.child_key("approved").child_key(decision.as_str());
        // No fixer is running at this point, so no file is held by another one.
        let claimed_repair = ClaimedRepair {
            task_key: &by,
            patch_hash: &patch,
            held_files: &[],
            fixed_claims: claims,
            without: Vec::new(),
            is_approved: true,
        };
        land_patch(host, state, &landing_key, claimed_repair).await?.end_on_failure()?;
        state.pending.retain(|pending_patch| pending_patch.decision != decision);
    }
    Ok(())
}

fn changed_check_scripts(host: &ReviewHost<'_>, patch: &Patch) -> Vec<ChangedScript> {
    find_changed_scripts(host.settings().checks.iter().map(|check| &check.command), &patch.files)
}

/// Asks the user to approve a patch.
async fn ask_for_approval(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    task_key: &Key,
    patch: &Patch,
    fixed_claims: &[FixClaim],
) -> Result<(), ParkedRun> {
    let finding_ids: Vec<FindingId> = fixed_claims.iter().map(|claim| claim.id).collect();
    let finding_names: Vec<String> = finding_ids.iter().map(|finding_id| format!("{finding_id}")).collect();
    let claim_texts: Vec<String> = fixed_claims.iter().map(|claim| format!("{}: {}", claim.id, claim.note)).collect();
    // A fixer that brings a rejected patch back has not understood the rejection; the user should not read it all again.
    let rejected_in =
        state.dialog.decisions.iter().rev().find(|decision| questions::has_rejected_patch(decision, &patch.hash));
    let rejected_in = rejected_in.map(|decision| decision.id.clone());
    let repeat_text = rejected_in.as_ref().map_or_else(String::new, |earlier_id| {
        format!(" It is the same patch as in {earlier_id}, which you rejected.")
    });
    let script_text = match changed_check_scripts(host, patch).as_slice() {
        [] => String::new(),
        changed_scripts => format!(" It changes {}.", describe_changed_scripts(changed_scripts)),
    };
    let question = format!(
        "apply this patch?{repeat_text}{script_text} It fixes {} and changes {} ({})",
        finding_names.join(", "),
        patch.files.join(", "),
        claim_texts.join("; ")
    );
    let decision_id = state.dialog.next_decision_id();
    let decision = questions::ask_about_patch(decision_id.clone(), task_key, patch, finding_ids.clone(), question);
    let decision = questions::mark_rejected_before(decision, rejected_in);
    state.dialog.post_decision(host.run_host(), &task_key.child_key("show"), decision).await?;
    for finding_id in finding_ids {
        let blocked_status = FindingStatus::Blocked { decision: decision_id.clone() };
        let note_text = "its patch is waiting for approval";
        state.transition_finding(
            host,
            finding_id,
            StatusTransition::new(blocked_status, TransitionCause::AwaitsApproval, note_text),
        );
    }
    // The claims are kept with the patch: they are checked when it lands.
    let claims = fixed_claims.to_vec();
    state.pending.push(PendingPatch {
        decision: decision_id,
        by: task_key.clone(),
        patch: patch.hash.clone(),
        claims,
        approved: false,
    });
    Ok(())
}

/// Returns the files that other fixers work on.
fn files_of_other_fixers(state: &ReviewState, fixed_claims: &[FixClaim]) -> Vec<String> {
    let is_claimed = |finding: &Finding| fixed_claims.iter().any(|claim| claim.id == finding.id);
    let file_of = |finding: &Finding| finding.place.as_ref().map(|place| place.file.clone());
    let others_findings =
        state.findings.iter().filter(|finding| finding.status == FindingStatus::Assigned && !is_claimed(finding));
    let is_own_file = |held_path: &String| {
        state
            .findings
            .iter()
            .any(|own_finding| is_claimed(own_finding) && file_of(own_finding).as_ref() == Some(held_path))
    };
    // A file that this fixer's own findings are in stays allowed: the merge decides about conflicts.
    others_findings.filter_map(file_of).filter(|held_path| !is_own_file(held_path)).collect()
}

/// Returns what a fixer may change: the subject's files without those of other fixers, and new files next to those of a
/// change.
fn allowed_paths(subject: &Subject, held_files: &[String]) -> Vec<String> {
    let subject_files = subject.file_paths();
    // A document or a source file is repaired in that one file only.
    if subject.code_change().is_none() {
        return subject_files.into_iter().map(String::from).collect();
    }
    // A directory with a trailing `/` allows new files in it, a test for instance.
    let directories: BTreeSet<String> = subject_files
        .iter()
        .map(|path| path.rsplit_once('/').map_or_else(|| String::from("./"), |(directory, _)| format!("{directory}/")))
        .collect();
    let free_files = subject_files
        .into_iter()
        .filter(|path| !held_files.iter().any(|held_file| held_file == path))
        .map(String::from);
    free_files.chain(directories).collect()
}

/// A patch with the findings that its fixer claims to repair.
struct ClaimedRepair<'r> {
    /// The key of the task that made the patch.
    task_key: &'r Key,
    patch_hash: &'r Hash,
    /// The files that other fixers work on.
    held_files: &'r [String],
    fixed_claims: Vec<FixClaim>,
    /// The parts of the patch that do not land.
    without: Vec<FilePart>,
    /// The user has seen the patch and approved it.
    is_approved: bool,
}

impl ClaimedRepair<'_> {
    fn finding_ids(&self) -> Vec<FindingId> {
        self.fixed_claims.iter().map(|claim| claim.id).collect()
    }
}

fn land_effect(host: &ReviewHost<'_>, state: &ReviewState, claimed_repair: &ClaimedRepair<'_>) -> Land {
    Land {
        by: claimed_repair.task_key.clone(),
        patch: claimed_repair.patch_hash.clone(),
        allowed: allowed_paths(&state.reviewed_subject(host.order), claimed_repair.held_files),
        size_limit: host.order.fixers.size_limit,
        checks: host.settings().checks.clone(),
        preview: false,
        without: claimed_repair.without.clone(),
    }
}

async fn land_patch(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    landing_key: &Key,
    claimed_repair: ClaimedRepair<'_>,
) -> Result<WorkResult, ParkedRun> {
    let settings = host.settings();
    let (task_key, finding_ids) = (claimed_repair.task_key, claimed_repair.finding_ids());
    match host.perform(landing_key.clone(), land_effect(host, state, &claimed_repair)).await? {
        LandOutcome::Landed(landed_change) => {
            let (hash, checks) = (landed_change.hash.clone(), landed_change.checks.clone());
            let files = changed_files(&host.order.subject, landed_change);
            let ClaimedRepair { mut fixed_claims, is_approved, .. } = claimed_repair;
            let hunks = files.iter().flat_map(|file| &file.hunks);
            let line_count = hunks.map(|hunk| hunk.new_len.max(hunk.old_len)).sum();
            host.note_own_event(ReviewEvent::PatchLanded {
                key: task_key.clone(),
                findings: finding_ids,
                lines: line_count,
            });
            // The confidence must count only text that checks have seen and found good.
            state.checked = is_checked(settings, &checks).then(|| hash.clone());
            state.fix_history.text = Some(hash);
            state.metrics.checkpoints += 1;
            state.add_new_files(&host.order.subject, &files);
            // The last pass was over another text, unless the landing changed nothing.
            state.last_pass.dry &= files.iter().all(|file| file.hunks.is_empty());
            apply_check_results(host, state, &CheckedChange { results: &checks, fixed_claims: &fixed_claims });
            if is_approved {
                reopen_untouched(host, state, &mut fixed_claims, &files);
            }
            accept_repairs(host, state, task_key, &fixed_claims);
            shift_findings(host, state, &files);
            Ok(WorkResult::Done)
        }
        LandOutcome::Previewed(_) => {
            // The host only looked at it, so nothing has landed.
            let why = PatchRefusal::Lost { detail: String::from("the patch was not applied") };
            handle_refusal(host, state, task_key, finding_ids, why).await?;
            Ok(WorkResult::Done)
        }
        LandOutcome::Refused { why } => {
            handle_refusal(host, state, task_key, finding_ids, why).await?;
            Ok(WorkResult::Done)
        }
        LandOutcome::Failed { fault } => {
            state.reopen_assigned(host, &finding_ids, TransitionCause::PatchRefused, &fault.detail);
            Ok(WorkResult::EnvironmentFailed(fault))
        }
    }
}

/// Reopens the findings of a refused patch. If a finding meets a conflicting change for the second time, the user is asked.
async fn handle_refusal(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    task_key: &Key,
    finding_ids: Vec<FindingId>,
    patch_refusal: PatchRefusal,
) -> Result<(), ParkedRun> {
    // Rules later look at the cause; the note is for users and for the next fixer.
    let (cause, note_text) = (refusal_cause(&patch_refusal), describe_refusal(&patch_refusal));
    let had_conflict = |state: &ReviewState, finding_id: FindingId| {
        state.find_finding(finding_id).is_some_and(|finding| {
            finding.history.iter().any(|history_step| history_step.cause == TransitionCause::PatchConflict)
        })
    };
    // This is read before the new refusal is added to the history.
    let conflicted_before: Vec<FindingId> =
        finding_ids.iter().copied().filter(|finding_id| had_conflict(state, *finding_id)).collect();
    host.note_own_event(ReviewEvent::PatchRefused {
        key: task_key.clone(),
        findings: finding_ids.clone(),
        why: patch_refusal.clone(),
    });
    if let PatchRefusal::Conflict { ours, theirs, .. } = &patch_refusal {
        for finding_id in conflicted_before {
            let note_text =
                format!("{note_text}, for the second time. Current text: {ours:?}; text of the fix: {theirs:?}");
            state.block_finding(host, task_key, finding_id, cause.clone(), &note_text).await?;
        }
    }
    state.reopen_assigned(host, &finding_ids, cause, &note_text);
    Ok(())
}

/// Returns why the findings of a refused patch are open again.
pub(super) fn refusal_cause(patch_refusal: &PatchRefusal) -> TransitionCause {
    match patch_refusal {
        PatchRefusal::Conflict { .. } => TransitionCause::PatchConflict,
        PatchRefusal::Outside { .. }
        | PatchRefusal::Check { .. }
        | PatchRefusal::Gutted { .. }
        | PatchRefusal::TooLarge { .. }
        | PatchRefusal::AddsSecret { .. }
        | PatchRefusal::RepairsNothing
        | PatchRefusal::Lost { .. } => TransitionCause::PatchRefused,
    }
}

pub(super) fn describe_refusal(patch_refusal: &PatchRefusal) -> String {
    match patch_refusal {
        PatchRefusal::Outside { files } => {
            format!("rejected: the fix also changed {} (only its own files may change)", files.join(", "))
        }
        PatchRefusal::Conflict { line, file, .. } if !file.is_empty() => {
            format!("rejected: the fix conflicts with another change at {file}:{line}")
        }
        PatchRefusal::Conflict { line, .. } => {
            format!("rejected: the fix conflicts with another change in line {line}")
        }
        PatchRefusal::Check { command, output } => {
            format!("rejected because `{command}` failed: {}", truncate_chars(output.trim(), 200))
        }
        PatchRefusal::Gutted { before, after } => {
            format!("rejected: the fix would leave only {after} of {before} lines")
        }
        PatchRefusal::TooLarge { file, bytes, max_bytes } => {
            format!("rejected: the fix makes {file} {bytes} bytes long; at most {max_bytes} are allowed")
        }
        PatchRefusal::AddsSecret { file, kinds } => {
            format!("rejected: the fix adds a secret to {file} ({})", kinds.join(", "))
        }
        PatchRefusal::RepairsNothing => String::from("rejected: the fix repairs none of its findings"),
        PatchRefusal::Lost { detail } => format!("rejected: {detail}"),
    }
}
