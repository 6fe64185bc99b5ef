//! Landing what a fixer made, and what the landed change bears out.
//!
//! A finding is fixed when its fixer claimed it, the patch landed through the verify commands, and the landed change is one
//! that concerns the finding. Where a person wants to see each patch first, it waits for their yes.

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

/// How near to a quote a change must be to concern it, in lines.
const NEAR: u32 = 1;
/// Lands a patch, or has a person look at it first.
pub(super) async fn land(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    patch: &Patch,
    fixed: &[Claim],
) -> Result<WorkResult, Parked> {
    if host.settings().tasks.writing.approve_each {
        show(host, court, by, patch, fixed).await?;
        return Ok(WorkResult::Done);
    }
    let held = &held(court, fixed);
    bring_in(host, court, &by.landing(), Repair { by, patch: &patch.hash, held, fixed }).await
}

/// Lands what people have said yes to.
pub(super) async fn land_approved(host: &dyn Host, court: &mut Court, root: &Key) -> Result<(), StageExit> {
    let approved: Vec<Pending> = court.pending.iter().filter(|pending| pending.approved).cloned().collect();
    for Pending { decision, by, patch, claims, .. } in approved {
        let key = root.child("approved").child(decision.as_str());
        // Nobody is at work now; what else was approved is in nobody's hands.
        let repair = Repair { by: &by, patch: &patch, held: &[], fixed: &claims };
        bring_in(host, court, &key, repair).await?.or_end()?;
        court.pending.retain(|pending| pending.decision != decision);
    }
    Ok(())
}

/// Asks a person about a patch.
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

/// Files that other fixers are at work on.
fn held(court: &Court, fixed: &[Claim]) -> Vec<String> {
    let own = |finding: &Finding| fixed.iter().any(|claim| claim.id == finding.id);
    let file = |finding: &Finding| finding.place.as_ref().map(|place| place.file.clone());
    let others = court.findings.iter().filter(|finding| finding.status == Status::Assigned && !own(finding));
    let is_own = |held: &String| court.findings.iter().any(|it| own(it) && file(it).as_ref() == Some(held));
    others.filter_map(file).filter(|held| !is_own(held)).collect()
}

/// What a fixer may change: the subject's files, but none that another fixer holds, and new ones beside those of a change.
fn allowed(subject: &Subject, held: &[String]) -> Vec<String> {
    let files = subject.files();
    if subject.change().is_none() {
        return files.into_iter().map(String::from).collect();
    }
    let folders: BTreeSet<String> = files
        .iter()
        .map(|path| {
            path.rsplit_once('/').map_or_else(|| String::from("./"), |(folder, _)| format!("{folder}/"))
        })
        .collect();
    let free = files.into_iter().filter(|path| !held.iter().any(|held| held == path)).map(String::from);
    free.chain(folders).collect()
}

/// A patch with what its fixer says that it repairs.
struct Repair<'r> {
    /// The task that made it.
    by: &'r Key,
    patch: &'r Hash,
    /// Files that other fixers are at work on.
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
            let files = match settings.subject.path() {
                Some(path) => vec![LandedFile { path: path.into(), hunks, text }],
                None => files,
            };
            let hunks = files.iter().flat_map(|file| &file.hunks);
            let lines = hunks.map(|hunk| hunk.new_len.max(hunk.old_len)).sum();
            host.note(Event::PatchLanded { key: by.clone(), findings, lines });
            court.checked = (!settings.verify.is_empty()).then(|| hash.clone());
            court.tries.text = Some(hash);
            court.metrics.checkpoints += 1;
            court.add_new_files(&settings.subject, &files);
            // What was reviewed is no longer what stands there.
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

/// What did not land goes to another fixer; who meets the same change of somebody else's twice asks a person.
async fn refuse(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    findings: Vec<FindingId>,
    why: Refusal,
) -> Result<(), Parked> {
    let (cause, note) = (refusal_cause(&why), refusal(&why));
    let conflicts = |court: &Court, id: FindingId| {
        court.finding(id).is_some_and(|f| f.history.iter().any(|step| step.cause == Cause::PatchConflict))
    };
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

/// Why the findings of a refused patch are open again.
pub(super) fn refusal_cause(why: &Refusal) -> Cause {
    match why {
        Refusal::Conflict { .. } => Cause::PatchConflict,
        Refusal::Outside { .. } | Refusal::Check { .. } | Refusal::Gutted { .. } | Refusal::Lost { .. } => {
            Cause::PatchRefused
        }
    }
}

/// After a landing: which claims does the change bear out?
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
    let gone = |finding: &&Finding| finding.status.is_open() && landing.is_gone(finding);
    court.tries.gone = court.findings.iter().filter(gone).map(|finding| finding.id).collect();
    for finding in &mut court.findings {
        if let Some(place) = &mut finding.place {
            place.shift(landing.hunks(place));
        }
    }
}

/// What a landing did, as far as findings are concerned.
struct Landing<'l> {
    files: &'l [LandedFile],
    /// The files as they are now.
    scene: Option<&'l Scene<'l>>,
    one_file: bool,
}

impl Landing<'_> {
    fn hunks(&self, place: &Place) -> &[Hunk] {
        let own = |file: &&LandedFile| self.one_file || file.path == place.file;
        self.files.iter().find(own).map_or(&[], |file| &file.hunks)
    }

    /// Whether the evidence no longer stands in a file that it changed. What a change had taken out must stand there again.
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

    /// Whether what was missing is there now. What is missing in a file of a change may be supplied beside it: a test, say.
    fn supplied(&self, heading: &str, terms: &[String]) -> bool {
        let Some(scene) = self.scene else { return false };
        scene.says(heading, terms) || (!self.one_file && scene.mentions(terms))
    }

    /// What a finding showed no longer stands there, or what it missed does. What never stood there cannot be gone.
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
            // A person's own: with words of the text they must be gone, without any change will have to do.
            let quoted = matches!(&finding.evidence, Evidence::Quote { text } if !text.is_empty());
            let changes = self.files.iter().any(|file| !file.hunks.is_empty());
            return changes && (self.took_away(finding) || !quoted);
        };
        let near = self.hunks(place).iter().any(|hunk| {
            let last = hunk.old_start + hunk.old_len.max(1) - 1;
            hunk.old_start <= place.end_line + NEAR && place.line <= last + NEAR
        });
        match &finding.evidence {
            Evidence::Quote { .. } => near || self.took_away(finding),
            // What was missing must be there now.
            Evidence::Absence { heading, terms } => self.supplied(heading, terms),
        }
    }
}

/// It shows what the change took out.
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
