//! Lands patches, and checks which claims a landed change confirms.
//!
//! A finding is fixed when its fixer claimed it, the patch landed through the verify commands, and the landed change
//! concerns the finding. If the user wants to see each patch first, the patch waits for approval.

use alloc::{collections::BTreeSet, format, string::String, vec, vec::Vec};

use crate::{
    brief::Claim,
    decision::Decision,
    effect::{Land, LandOutcome, Landed},
    event::Event,
    files::{Hunk, LandedFile, Patch, Refusal},
    finding::{Cause, Evidence, Finding, How, Place, Status, Transition},
    ground::Scene,
    host::{Host, Parked},
    ids::{FindingId, Hash, Key},
    review::{
        Court, Fix, Pending, people,
        stage::{StageExit, WorkResult},
    },
    subject::Subject,
    text::cut,
};

/// The most lines between a change and a quote that it concerns.
const NEAR: u32 = 1;
/// Lands a patch, or asks the user for approval first.
pub(super) async fn land(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    patch: &Patch,
    fixed: &[Claim],
) -> Result<WorkResult, Parked> {
    if host.settings().tasks.writing.approve_each {
        // The findings stay blocked until the user has answered.
        show(host, court, by, patch, fixed).await?;
        return Ok(WorkResult::Done);
    }
    let held = &held(court, fixed);
    bring_in(host, court, &by.landing(), Repair { by, patch: &patch.hash, held, fixed }).await
}

/// Lands the patches that the user has approved.
pub(super) async fn land_approved(host: &dyn Host, court: &mut Court, root: &Key) -> Result<(), StageExit> {
    let approved: Vec<Pending> = court.pending.iter().filter(|pending| pending.approved).cloned().collect();
    for Pending { decision, by, patch, claims, .. } in approved {
        let key = root.child("approved").child(decision.as_str());
        // No fixer is running at this point, so no file is held by another one.
        let repair = Repair { by: &by, patch: &patch, held: &[], fixed: &claims };
        bring_in(host, court, &key, repair).await?.or_end()?;
        court.pending.retain(|pending| pending.decision != decision);
    }
    Ok(())
}

/// Asks the user to approve a patch.
async fn show(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    patch: &Patch,
    fixed: &[Claim],
) -> Result<(), Parked> {
    let findings: Vec<FindingId> = fixed.iter().map(|claim| claim.id).collect();
    let names: Vec<String> = findings.iter().map(|id| format!("{id}")).collect();
    let said: Vec<String> = fixed.iter().map(|claim| format!("{}: {}", claim.id, claim.note)).collect();
    let question = format!(
        "may this land? It is to repair {} and changes {} ({})",
        names.join(", "),
        patch.files.join(", "),
        said.join("; ")
    );
    let id = court.next_decision_id();
    let decision = Decision::patch(id.clone(), by, patch, findings.clone(), question);
    people::post(host, court, &by.child("show"), decision).await?;
    for finding in findings {
        let to = Status::Blocked { decision: id.clone() };
        let note = "its patch waits for a person's yes";
        court.move_to(host, finding, Transition::new(to, Cause::AwaitsApproval, note));
    }
    // The claims are kept with the patch: they are checked when it lands.
    let claims = fixed.to_vec();
    court.pending.push(Pending {
        decision: id,
        by: by.clone(),
        patch: patch.hash.clone(),
        claims,
        approved: false,
    });
    Ok(())
}

/// Returns the files that other fixers work on.
fn held(court: &Court, fixed: &[Claim]) -> Vec<String> {
    let own = |finding: &Finding| fixed.iter().any(|claim| claim.id == finding.id);
    let file = |finding: &Finding| finding.place.as_ref().map(|place| place.file.clone());
    let others = court.findings.iter().filter(|finding| finding.status == Status::Assigned && !own(finding));
    let is_own = |held: &String| court.findings.iter().any(|it| own(it) && file(it).as_ref() == Some(held));
    // A file that this fixer's own findings are in stays allowed: the merge decides about conflicts.
    others.filter_map(file).filter(|held| !is_own(held)).collect()
}

/// Returns what a fixer may change: the subject's files without those of other fixers, and new files next to those of a
/// change.
fn allowed(subject: &Subject, held: &[String]) -> Vec<String> {
    let files = subject.files();
    // A document or a source file is repaired in that one file only.
    if subject.change().is_none() {
        return files.into_iter().map(String::from).collect();
    }
    // A directory with a trailing `/` allows new files in it, a test for instance.
    let folders: BTreeSet<String> = files
        .iter()
        .map(|path| {
            path.rsplit_once('/').map_or_else(|| String::from("./"), |(folder, _)| format!("{folder}/"))
        })
        .collect();
    let free = files.into_iter().filter(|path| !held.iter().any(|held| held == path)).map(String::from);
    free.chain(folders).collect()
}

/// A patch with the findings that its fixer claims to repair.
struct Repair<'r> {
    /// The key of the task that made the patch.
    by: &'r Key,
    patch: &'r Hash,
    /// The files that other fixers work on.
    held: &'r [String],
    fixed: &'r [Claim],
}

async fn bring_in(
    host: &dyn Host,
    court: &mut Court,
    key: &Key,
    repair: Repair<'_>,
) -> Result<WorkResult, Parked> {
    let settings = host.settings();
    let Repair { by, patch, held, fixed } = repair;
    let findings: Vec<FindingId> = fixed.iter().map(|claim| claim.id).collect();
    let effect = Land {
        by: by.clone(),
        patch: patch.clone(),
        allowed: allowed(&court.subject(settings), held),
        verify: settings.verify.clone(),
    };
    match host.perform(key.clone(), effect).await? {
        LandOutcome::Landed(Landed { hunks, text, hash, files }) => {
            // A single file is reported without its path; from here on both kinds look the same.
            let files = match settings.subject.path() {
                Some(path) => vec![LandedFile { path: path.into(), hunks, text }],
                None => files,
            };
            let hunks = files.iter().flat_map(|file| &file.hunks);
            let lines = hunks.map(|hunk| hunk.new_len.max(hunk.old_len)).sum();
            host.note(Event::PatchLanded { key: by.clone(), findings, lines });
            // Without verify commands nothing was checked, and the confidence must not count it.
            court.checked = (!settings.verify.is_empty()).then(|| hash.clone());
            court.tries.text = Some(hash);
            court.metrics.checkpoints += 1;
            court.add_new_files(&settings.subject, &files);
            // The last pass was over another text, unless the landing changed nothing.
            court.last_pass.dry &= files.iter().all(|file| file.hunks.is_empty());
            verify(host, court, by, fixed, &files);
            Ok(WorkResult::Done)
        }
        LandOutcome::Refused { why } => {
            refuse(host, court, by, findings, why).await?;
            Ok(WorkResult::Done)
        }
        LandOutcome::Failed { fault } => {
            court.reopen(host, &findings, Cause::PatchRefused, &fault.detail);
            Ok(WorkResult::EnvironmentFailed(fault))
        }
    }
}

/// Reopens the findings of a refused patch. If a finding meets a conflicting change for the second time, the user is asked.
async fn refuse(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    findings: Vec<FindingId>,
    why: Refusal,
) -> Result<(), Parked> {
    // Rules later look at the cause; the note is for users and for the next fixer.
    let (cause, note) = (refusal_cause(&why), refusal(&why));
    let conflicts = |court: &Court, id: FindingId| {
        court.finding(id).is_some_and(|f| f.history.iter().any(|step| step.cause == Cause::PatchConflict))
    };
    // Read before the new refusal is added to the history.
    let again: Vec<FindingId> = findings.iter().copied().filter(|id| conflicts(court, *id)).collect();
    host.note(Event::PatchRefused { key: by.clone(), findings: findings.clone(), why: why.clone() });
    if let Refusal::Conflict { ours, theirs, .. } = &why {
        for id in again {
            let note = format!(
                "{note}, for the second time. There stands: {ours:?}; the fixer would have: {theirs:?}"
            );
            court.block(host, by, id, cause, &note).await?;
        }
    }
    court.reopen(host, &findings, cause, &note);
    Ok(())
}

/// Returns why the findings of a refused patch are open again.
pub(super) fn refusal_cause(why: &Refusal) -> Cause {
    match why {
        Refusal::Conflict { .. } => Cause::PatchConflict,
        Refusal::Outside { .. } | Refusal::Check { .. } | Refusal::Gutted { .. } | Refusal::Lost { .. } => {
            Cause::PatchRefused
        }
    }
}

/// Checks after a landing which claims the change confirms.
pub(super) fn verify(host: &dyn Host, court: &mut Court, by: &Key, fixed: &[Claim], landed: &[LandedFile]) {
    let subject = host.settings().subject.clone();
    let scene = match (subject.path(), landed) {
        (Some(_), [file]) => Scene::of(&subject, &file.text, &[]),
        (Some(_), _) => None,
        (None, _) => {
            Some(Scene::of_files(landed.iter().map(|file| (file.path.as_str(), file.text.as_str()))))
        }
    };
    let landing = Landing { files: landed, scene: scene.as_ref(), one_file: subject.path().is_some() };
    for claim in fixed {
        let Some(finding) = court.finding(claim.id) else { continue };
        if landing.concerns(finding) {
            let repaired = Transition::new(Status::Fixed, Cause::Repaired, claim.note.as_str());
            court.move_to(host, claim.id, repaired);
            // The next fixer learns from what worked as well as from what did not.
            court.tries.context.worked(&format!("{}: {}", claim.id, claim.note));
            let checked = if claim.verification.is_empty() { "" } else { "; checked: " };
            let note = format!("{}{checked}{}", claim.note, claim.verification);
            court.fixes.push(Fix { finding: claim.id, key: by.clone(), note });
        } else {
            let note = "said to be fixed, but nothing near it was changed";
            court.move_to(host, claim.id, Transition::new(Status::Open, Cause::NotBorneOut, note));
            court.tries.context.failed(&format!("{}: {note}", claim.id));
        }
    }
    // The places still have the old line numbers here; they are shifted last.
    let gone = |finding: &&Finding| finding.status.is_open() && landing.is_gone(finding);
    court.tries.gone = court.findings.iter().filter(gone).map(|finding| finding.id).collect();
    for finding in &mut court.findings {
        if let Some(place) = &mut finding.place {
            place.shift(landing.hunks(place));
        }
    }
}

/// What a landing means for findings.
struct Landing<'l> {
    files: &'l [LandedFile],
    /// The files after the landing.
    scene: Option<&'l Scene<'l>>,
    one_file: bool,
}

impl Landing<'_> {
    fn hunks(&self, place: &Place) -> &[Hunk] {
        let own = |file: &&LandedFile| self.one_file || file.path == place.file;
        self.files.iter().find(own).map_or(&[], |file| &file.hunks)
    }

    /// Whether the landing removed the evidence from a file that it changed. Text that a change had removed must be back again.
    fn took_away(&self, finding: &Finding) -> bool {
        let Some(scene) = self.scene else { return false };
        if is_removed(finding) {
            return finding.place.as_ref().is_some_and(|place| scene.has(&place.file))
                && scene.holds_in(finding.place.as_ref(), &finding.evidence);
        }
        let place = finding.place.as_ref();
        let changed = place.is_none_or(|place| self.one_file || scene.has(&place.file));
        changed && !scene.holds_in(place, &finding.evidence)
    }

    /// Whether the missing text is there now. In a change it may be in another file: a test, for instance.
    fn supplied(&self, heading: &str, terms: &[String]) -> bool {
        let Some(scene) = self.scene else { return false };
        // Elsewhere counts only in a change: a document must say it under its heading.
        scene.says(heading, terms) || (!self.one_file && scene.mentions(terms))
    }

    /// Whether the quoted text is gone or the missing text was supplied. Evidence that was never found cannot be gone.
    fn is_gone(&self, finding: &Finding) -> bool {
        finding.place.is_some()
            && match &finding.evidence {
                Evidence::Quote { text } => !text.is_empty() && self.took_away(finding),
                Evidence::Absence { heading, terms } => {
                    self.scene.is_some_and(|scene| scene.says(heading, terms))
                }
            }
    }

    fn concerns(&self, finding: &Finding) -> bool {
        let Some(place) = &finding.place else {
            // A finding of the user has no place. Its quote must be gone; without a quote any change has to do.
            // An empty quote is not evidence.
            let quoted = matches!(&finding.evidence, Evidence::Quote { text } if !text.is_empty());
            let changes = self.files.iter().any(|file| !file.hunks.is_empty());
            return changes && (self.took_away(finding) || !quoted);
        };
        // A hunk without old lines is an insertion behind its start, so it counts as one line.
        let near = self.hunks(place).iter().any(|hunk| {
            let last = hunk.old_start + hunk.old_len.max(1) - 1;
            hunk.old_start <= place.end_line + NEAR && place.line <= last + NEAR
        });
        match &finding.evidence {
            Evidence::Quote { .. } => near || self.took_away(finding),
            // A change nearby is not enough: the missing text itself must be there.
            Evidence::Absence { heading, terms } => self.supplied(heading, terms),
        }
    }
}

/// Whether the finding quotes text that the change removed.
fn is_removed(finding: &Finding) -> bool {
    finding.found.is_some_and(|found| found.how == How::Removed)
}

pub(super) fn refusal(why: &Refusal) -> String {
    match why {
        Refusal::Outside { files } => {
            format!("not landed: it changed {}, which it may not", files.join(", "))
        }
        Refusal::Conflict { line, file, .. } if !file.is_empty() => {
            format!("not landed: {file}:{line} was changed by somebody else")
        }
        Refusal::Conflict { line, .. } => format!("not landed: line {line} was changed by somebody else"),
        Refusal::Check { command, output } => {
            format!("not landed: `{command}` failed: {}", cut(output.trim(), 200))
        }
        Refusal::Gutted { before, after } => {
            format!("not landed: of {before} lines it would leave {after}")
        }
        Refusal::Lost { detail } => format!("not landed: {detail}"),
    }
}
