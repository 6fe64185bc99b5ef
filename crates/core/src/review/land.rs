//! Lands patches, and checks which claims a landed change confirms.
//!
//! A finding is fixed when its fixer claimed it, no check blocked the patch, and the landed change
//! concerns the finding. If the user wants to see each patch first, the patch waits for approval.

use alloc::{collections::BTreeSet, format, string::String, vec, vec::Vec};

use crate::{
    decisions::decision::Decision,
    development::check_scripts::{ChangedScript, describe_changed_scripts, find_changed_scripts},
    engine::{
        effect::{Land, LandOutcome, LandedChange},
        files::{Hunk, LandedFile, Patch, PatchRefusal},
        host::ParkedRun,
        ids::{FindingId, Hash, Key},
    },
    review::{
        FixLogEntry, PendingPatch, ReviewState,
        checks::{CheckedChange, apply_check_results, is_checked},
        event::ReviewEvent,
        finding::{Evidence, Finding, FindingPlace, FindingStatus, QuoteMatchKind, StatusTransition, TransitionCause},
        ground::EvidenceScope,
        review_host::ReviewHost,
        run_stage::{StageExit, WorkResult},
        subject::Subject,
    },
    tasks::claims::FixClaim,
    text::truncate_chars,
};

/// How far a change may be from a quote that it concerns, in lines: the line next to the quote still counts.
const NEAR_LINES: u32 = 1;
/// Lands a patch, or asks the user for approval first.
pub(super) async fn land_or_ask(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    task_key: &Key,
    patch: &Patch,
    fixed_claims: &[FixClaim],
) -> Result<WorkResult, ParkedRun> {
    // A patch that changes what a check runs could make every check pass.
    if host.order.fixers.approve_each || !changed_check_scripts(host, patch).is_empty() {
        // The findings stay blocked until the user has answered.
        ask_for_approval(host, state, task_key, patch, fixed_claims).await?;
        return Ok(WorkResult::Done);
    }
    let held_files = &files_of_other_fixers(state, fixed_claims);
    land_patch(
        host,
        state,
        &task_key.landing_key(),
        ClaimedRepair { task_key, patch_hash: &patch.hash, held_files, fixed_claims },
    )
    .await
}

/// Lands the patches that the user has approved.
pub(super) async fn land_approved(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    iteration_key: &Key,
) -> Result<(), StageExit> {
    let approved_patches: Vec<PendingPatch> =
        state.pending.iter().filter(|pending_patch| pending_patch.approved).cloned().collect();
    for PendingPatch { decision, by, patch, claims, .. } in approved_patches {
        let landing_key = iteration_key.child_key("approved").child_key(decision.as_str());
        // No fixer is running at this point, so no file is held by another one.
        let claimed_repair =
            ClaimedRepair { task_key: &by, patch_hash: &patch, held_files: &[], fixed_claims: &claims };
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
    let rejected_in = state.dialog.decisions.iter().rev().find(|decision| decision.has_rejected_patch(&patch.hash));
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
    let decision = Decision::for_patch(decision_id.clone(), task_key, patch, finding_ids.clone(), question)
        .mark_rejected_before(rejected_in);
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
    fixed_claims: &'r [FixClaim],
}

async fn land_patch(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    landing_key: &Key,
    claimed_repair: ClaimedRepair<'_>,
) -> Result<WorkResult, ParkedRun> {
    let settings = host.settings();
    let ClaimedRepair { task_key, patch_hash, held_files, fixed_claims } = claimed_repair;
    let finding_ids: Vec<FindingId> = fixed_claims.iter().map(|claim| claim.id).collect();
    let land_effect = Land {
        by: task_key.clone(),
        patch: patch_hash.clone(),
        allowed: allowed_paths(&state.reviewed_subject(host.order), held_files),
        size_limit: host.order.fixers.size_limit,
        checks: settings.checks.clone(),
    };
    match host.perform(landing_key.clone(), land_effect).await? {
        LandOutcome::Landed(LandedChange { hunks, text, hash, files, checks }) => {
            // A single file is reported without its path; from here on both kinds look the same.
            let files = match host.order.subject.file_path() {
                Some(path) => vec![LandedFile { path: path.into(), hunks, text }],
                None => files,
            };
            let hunks = files.iter().flat_map(|file| &file.hunks);
            let line_count = hunks.map(|hunk| hunk.new_len.max(hunk.old_len)).sum();
            host.note_review(ReviewEvent::PatchLanded {
                key: task_key.clone(),
                findings: finding_ids,
                lines: line_count,
            });
            // The confidence must count only text that checks have seen and found good.
            state.checked = is_checked(settings, &checks).then(|| hash.clone());
            state.tries.text = Some(hash);
            state.metrics.checkpoints += 1;
            state.add_new_files(&host.order.subject, &files);
            // The last pass was over another text, unless the landing changed nothing.
            state.last_pass.dry &= files.iter().all(|file| file.hunks.is_empty());
            apply_check_results(host, state, &CheckedChange { results: &checks, fixed_claims });
            verify_claims(host, state, task_key, fixed_claims, &files);
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
    host.note_review(ReviewEvent::PatchRefused {
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
        | PatchRefusal::Lost { .. } => TransitionCause::PatchRefused,
    }
}

/// Checks after a landing which claims the change confirms.
pub(super) fn verify_claims(
    host: &ReviewHost<'_>,
    state: &mut ReviewState,
    task_key: &Key,
    fixed_claims: &[FixClaim],
    landed_files: &[LandedFile],
) {
    let subject = host.order.subject.clone();
    let scope = match (subject.file_path(), landed_files) {
        (Some(_), [file]) => EvidenceScope::from_subject(&subject, &file.text, &[]),
        (Some(_), _) => None,
        (None, _) => {
            Some(EvidenceScope::from_files(landed_files.iter().map(|file| (file.path.as_str(), file.text.as_str()))))
        }
    };
    let impact = LandingImpact { landed_files, scope: scope.as_ref(), is_one_file: subject.file_path().is_some() };
    for claim in fixed_claims {
        let Some(finding) = state.find_finding(claim.id) else { continue };
        if finding.check_command().is_some() {
            // The check has decided already. A check that did not run, because it was removed from the settings, decides nothing.
            state.reopen_assigned(host, &[claim.id], TransitionCause::NotBorneOut, "its check was not run");
            continue;
        }
        if impact.concerns_finding(finding) {
            let repaired_transition =
                StatusTransition::new(FindingStatus::Fixed, TransitionCause::Repaired, claim.note.as_str());
            state.transition_finding(host, claim.id, repaired_transition);
            // The next fixer learns from what worked as well as from what did not.
            state.tries.context.add_success(&format!("{}: {}", claim.id, claim.note));
            let separator = if claim.verification.is_empty() { "" } else { "; checked: " };
            let memory_note = if claim.memory_saved { "; lesson saved to memory" } else { "" };
            let note_text = format!("{}{separator}{}{memory_note}", claim.note, claim.verification);
            state.fixes.push(FixLogEntry { finding: claim.id, key: task_key.clone(), note: note_text });
        } else {
            let note_text = "claimed as fixed, but nothing near it was changed";
            state.transition_finding(
                host,
                claim.id,
                StatusTransition::new(FindingStatus::Open, TransitionCause::NotBorneOut, note_text),
            );
            state.tries.context.add_error(&format!("{}: {note_text}", claim.id));
        }
    }
    // The places still have the old line numbers here; they are shifted last.
    let is_resolved = |finding: &&Finding| finding.status.is_open() && impact.resolves_evidence(finding);
    state.tries.gone = state.findings.iter().filter(is_resolved).map(|finding| finding.id).collect();
    for finding in &mut state.findings {
        if let Some(place) = &mut finding.place {
            place.shift_lines(impact.hunks_at(place));
        }
    }
}

/// What a landing means for findings.
struct LandingImpact<'l> {
    landed_files: &'l [LandedFile],
    /// The files after the landing.
    scope: Option<&'l EvidenceScope<'l>>,
    is_one_file: bool,
}

impl LandingImpact<'_> {
    fn hunks_at(&self, finding_place: &FindingPlace) -> &[Hunk] {
        let is_own_file = |file: &&LandedFile| self.is_one_file || file.path == finding_place.file;
        self.landed_files.iter().find(is_own_file).map_or(&[], |file| &file.hunks)
    }

    /// Whether the landing removed the evidence from a file that it changed. Text that a change had removed must be back again.
    fn removed_evidence(&self, finding: &Finding) -> bool {
        let Some(scope) = self.scope else { return false };
        if quotes_removed_text(finding) {
            return finding.place.as_ref().is_some_and(|finding_place| scope.has_file(&finding_place.file))
                && scope.has_evidence_in(finding.place.as_ref(), &finding.evidence);
        }
        let finding_place = finding.place.as_ref();
        let is_changed_file =
            finding_place.is_none_or(|finding_place| self.is_one_file || scope.has_file(&finding_place.file));
        is_changed_file && !scope.has_evidence_in(finding_place, &finding.evidence)
    }

    /// Whether the missing text is there now. In a change it may be in another file: a test, for instance.
    fn supplies_missing(&self, heading: &str, terms: &[String]) -> bool {
        let Some(scope) = self.scope else { return false };
        // Elsewhere counts only in a change: a document must say it under its heading.
        scope.has_term_under(heading, terms) || (!self.is_one_file && scope.has_term(terms))
    }

    /// Whether the quoted text is gone or the missing text was supplied. Evidence that was never found cannot be gone.
    fn resolves_evidence(&self, finding: &Finding) -> bool {
        finding.place.is_some()
            && match &finding.evidence {
                Evidence::Quote { text } => !text.is_empty() && self.removed_evidence(finding),
                Evidence::Absence { heading, terms } => {
                    self.scope.is_some_and(|scope| scope.has_term_under(heading, terms))
                }
                Evidence::Check { .. } => false,
            }
    }

    fn concerns_finding(&self, finding: &Finding) -> bool {
        let Some(finding_place) = &finding.place else {
            // A finding of the user has no place. Its quote must be gone; without a quote any change is enough.
            let has_quote = matches!(&finding.evidence, Evidence::Quote { text } if !text.is_empty());
            let has_changes = self.landed_files.iter().any(|file| !file.hunks.is_empty());
            return has_changes && (self.removed_evidence(finding) || !has_quote);
        };
        // A hunk without old lines is an insertion before its start; it counts as one line.
        let is_near = self.hunks_at(finding_place).iter().any(|hunk| {
            let last_line = hunk.old_start + hunk.old_len.max(1) - 1;
            hunk.old_start <= finding_place.end_line + NEAR_LINES && finding_place.line <= last_line + NEAR_LINES
        });
        match &finding.evidence {
            Evidence::Quote { .. } => is_near || self.removed_evidence(finding),
            // A change nearby is not enough: the missing text itself must be there.
            Evidence::Absence { heading, terms } => self.supplies_missing(heading, terms),
            Evidence::Check { .. } => false,
        }
    }
}

/// Whether the finding quotes text that the change removed.
fn quotes_removed_text(finding: &Finding) -> bool {
    finding.found.is_some_and(|found| found.how == QuoteMatchKind::Removed)
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
        PatchRefusal::Lost { detail } => format!("rejected: {detail}"),
    }
}
