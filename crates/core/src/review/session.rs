//! Repairs by the user's open session. It works directly in the user's files, so there is no workspace and no patch: when
//! the run continues, its changes are checked by the verify commands and by whether they concern the findings, exactly as
//! a landed patch is, and then reviewed again.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    brief::Claim,
    decision::{About, Answer, Decision},
    effect::{LandOutcome, TakeIn, WaitForUser},
    event::Event,
    files::{FrozenFile, LandedFile},
    finding::{Cause, Status, Transition},
    host::{Host, Parked},
    ids::{FindingId, Key},
    reason::{Ending, Reason},
    review::{
        Court,
        frozen::freeze,
        land::{refusal, refusal_cause, verify},
        next::trigger_of_fixes,
        people,
        stage::StageExit,
    },
    text::count,
};

/// Hands the open findings to the session, waits for it, and checks what it changed.
pub(super) async fn hand_over(host: &dyn Host, court: &mut Court, iteration: u32) -> Result<(), StageExit> {
    let root = Key::fix_iteration(court.round, iteration);
    people::look(host, court, &root).await?;
    let open: Vec<FindingId> =
        court.findings.iter().filter(|finding| finding.status.is_open()).map(|finding| finding.id).collect();
    // The inbox may have settled the last open finding.
    if open.is_empty() {
        return Ok(());
    }
    // The files from before the session are needed to see later what it changed.
    let frozen = freeze(host, court, root.child("before")).await?;
    let before = match host.settings().subject.path() {
        Some(path) => vec![FrozenFile { path: path.into(), text: frozen.text }],
        None => frozen.files,
    };
    deal(host, court, iteration, &open);
    ask(host, court, &root, &open).await?;
    court.publish(host, &root).await?;
    let ending = Ending::new(Reason::InSession, format!("{} to repair", count(open.len() as u32, "finding")));
    let said = host.perform(root.session(), WaitForUser { ending }).await?;
    people::apply(host, court, said.requests);
    withdraw(host, court);
    // The user has decided against the session while it worked.
    if court.session_over || court.accepted {
        court.reopen(host, &open, Cause::SessionOver, "the session is no longer waited for");
        return Ok(());
    }
    // An iteration without any change does not count against the limit.
    if take_in(host, court, &root, before).await? == Came::Judged {
        court.iteration = iteration;
        court.metrics.fix_iterations += 1;
    }
    court.publish(host, &root.child("after")).await?;
    Ok(())
}

/// What the session did.
#[derive(PartialEq, Eq)]
enum Came {
    Judged,
    /// It has changed nothing under review: a session that only looks has not tried.
    Untouched,
}

fn deal(host: &dyn Host, court: &mut Court, iteration: u32, open: &[FindingId]) {
    let (round, why) = (court.round, Some(trigger_of_fixes(court)));
    host.note(Event::FixersDealt { round, iteration, wave: 1, hands: vec![open.to_vec()], why });
    for id in open {
        let given = Transition::new(Status::Assigned, Cause::Assigned, "given to the session");
        court.move_to(host, *id, given);
    }
}

/// Posts a question that stays open while the session works, so that the run can continue if it never comes back.
async fn ask(host: &dyn Host, court: &mut Court, root: &Key, open: &[FindingId]) -> Result<(), Parked> {
    let names: Vec<String> = open.iter().map(|id| format!("{id}")).collect();
    let question = format!(
        "{} {} in the hands of a session. If it does not come back: who repairs what is open?",
        names.join(", "),
        if open.len() == 1 { "is" } else { "are" }
    );
    let id = court.next_decision_id();
    let decision = Decision::session(id, open.to_vec(), question);
    people::post(host, court, &root.child("ask"), decision).await
}

/// Withdraws the question once the session came back or is no longer waited for.
fn withdraw(host: &dyn Host, court: &mut Court) {
    let asked = |decision: &&mut Decision| {
        decision.answer.is_none() && matches!(decision.about, About::Session { .. })
    };
    for decision in court.decisions.iter_mut().filter(asked) {
        let answer = Answer::withdrawn("the session came back");
        decision.answer = Some(answer.clone());
        host.note(Event::DecisionAnswered { decision: decision.id.clone(), answer });
    }
}

/// Collects the session's changes and checks them like a patch.
async fn take_in(
    host: &dyn Host,
    court: &mut Court,
    root: &Key,
    before: Vec<FrozenFile>,
) -> Result<Came, StageExit> {
    let settings = host.settings();
    let by = root.session();
    let held: Vec<FindingId> = court
        .findings
        .iter()
        .filter(|finding| finding.status == Status::Assigned)
        .map(|finding| finding.id)
        .collect();
    let effect = TakeIn { before, verify: settings.verify.clone() };
    match host.perform(root.child("take-in"), effect).await? {
        LandOutcome::Landed(landed) if landed.files.iter().any(|file| !file.hunks.is_empty()) => {
            let lines = lines(&landed.files);
            host.note(Event::PatchLanded { key: by.clone(), findings: held.clone(), lines });
            // Only checked text may count for the confidence.
            court.checked = (!settings.verify.is_empty()).then(|| landed.hash.clone());
            court.tries.text = Some(landed.hash);
            // The last pass was over another text.
            court.last_pass.dry = false;
            // A session makes no claims, so it is taken to claim every finding it was given.
            let claim = |id: &FindingId| Claim::fixed(*id, "changed in the session");
            verify(host, court, &by, &held.iter().map(claim).collect::<Vec<Claim>>(), &landed.files);
            Ok(Came::Judged)
        }
        LandOutcome::Landed(_) => {
            let note = "the session has changed nothing under review";
            court.reopen(host, &held, Cause::NotBorneOut, note);
            Ok(Came::Untouched)
        }
        LandOutcome::Refused { why } => {
            let (cause, note) = (refusal_cause(&why), refusal(&why));
            host.note(Event::PatchRefused { key: by, findings: held.clone(), why });
            court.reopen(host, &held, cause, &note);
            Ok(Came::Judged)
        }
        LandOutcome::Failed { fault } => {
            court.reopen(host, &held, Cause::PatchRefused, &fault.detail);
            Err(Ending::new(Reason::Environment, fault.detail).into())
        }
    }
}

fn lines(files: &[LandedFile]) -> u32 {
    files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.new_len.max(hunk.old_len)).sum()
}
