//! Findings in the hands of a session that a person has open. It works in the person's own files, so there is no copy and no
//! patch: what it changed is looked at when the run goes on, judged by the verify commands and by whether it concerns the
//! findings, exactly as a landed patch is, and then reviewed again.

use alloc::{format, string::String, vec, vec::Vec};

use crate::{
    brief::Claim,
    decision::{About, Answer, Decision},
    effect::{Effect, FrozenFile, LandedFile, Reply},
    event::Event,
    finding::Status,
    host::{Host, Parked},
    ids::{FindingId, Key},
    reason::{Ending, Reason},
    review::{
        Court,
        fix::reopen,
        frozen::freeze,
        land::{refusal, verify},
        next::trigger_of_fixes,
        people,
    },
    text::count,
};

/// `Some`: the environment failed.
pub(super) async fn hand_over(
    host: &dyn Host,
    court: &mut Court,
    iteration: u32,
) -> Result<Option<Ending>, Parked> {
    let root = Key::new(format!("round-{}/fix-{iteration}", court.round));
    people::look(host, court, &root).await?;
    let open: Vec<FindingId> =
        court.findings.iter().filter(|finding| finding.status.is_open()).map(|finding| finding.id).collect();
    if open.is_empty() {
        return Ok(None);
    }
    let before = match freeze(host, court, root.child("before")).await? {
        Ok(frozen) => match host.settings().subject.path() {
            Some(path) => vec![FrozenFile { path: path.into(), text: frozen.text }],
            None => frozen.files,
        },
        Err(ending) => return Ok(Some(ending)),
    };
    deal(host, court, iteration, &open);
    ask(host, court, &root, &open).await?;
    court.publish(host, &root).await?;
    let ending = Ending::new(Reason::InSession, format!("{} to repair", count(open.len() as u32, "finding")));
    if let Reply::Requests { requests } = host.perform(root.child("session"), Effect::Wait { ending }).await?
    {
        people::apply(host, court, requests);
    }
    withdraw(host, court);
    if court.session_over || court.accepted {
        reopen(host, court, &open, "the session is no longer waited for");
        return Ok(None);
    }
    match take_in(host, court, &root, before).await? {
        Came::Failed(ending) => return Ok(Some(ending)),
        Came::Judged => {
            court.iteration = iteration;
            court.metrics.fix_iterations += 1;
        }
        // Who only looks in has not tried.
        Came::Untouched => {}
    }
    court.publish(host, &root.child("after")).await?;
    Ok(None)
}

/// What the session came back with.
enum Came {
    Judged,
    /// It has changed nothing under review.
    Untouched,
    Failed(Ending),
}

fn deal(host: &dyn Host, court: &mut Court, iteration: u32, open: &[FindingId]) {
    let (round, why) = (court.round, Some(trigger_of_fixes(court)));
    host.note(Event::FixersDealt { round, iteration, wave: 1, hands: vec![open.to_vec()], why });
    for id in open {
        court.move_to(host, *id, Status::Assigned, "given to the session");
    }
}

/// The question waits beside the session: whatever becomes of it, the run can go on.
async fn ask(host: &dyn Host, court: &mut Court, root: &Key, open: &[FindingId]) -> Result<(), Parked> {
    let names: Vec<String> = open.iter().map(|id| format!("{id}")).collect();
    let question = format!(
        "{} {} in the hands of a session. If it does not come back: who repairs what is open?",
        names.join(", "),
        if open.len() == 1 { "is" } else { "are" }
    );
    let id = court.decision_id(court.decisions.len() as u32 + 1);
    let decision = Decision::session(id, open.to_vec(), question);
    people::post(host, court, &root.child("ask"), decision).await
}

/// The session came back, or nobody waits for it any more.
fn withdraw(host: &dyn Host, court: &mut Court) {
    let asked = |decision: &&mut Decision| {
        decision.answer.is_none() && matches!(decision.about, About::Session { .. })
    };
    for decision in court.decisions.iter_mut().filter(asked) {
        let answer = Answer { choice: "withdrawn".into(), note: "the session came back".into() };
        decision.answer = Some(answer.clone());
        host.note(Event::DecisionAnswered { decision: decision.id.clone(), answer });
    }
}

/// What it changed, judged like a patch.
async fn take_in(
    host: &dyn Host,
    court: &mut Court,
    root: &Key,
    before: Vec<FrozenFile>,
) -> Result<Came, Parked> {
    let settings = host.settings();
    let by = root.child("session");
    let held: Vec<FindingId> = court
        .findings
        .iter()
        .filter(|finding| finding.status == Status::Assigned)
        .map(|finding| finding.id)
        .collect();
    let effect = Effect::TakeIn { before, verify: settings.verify.clone() };
    match host.perform(root.child("take-in"), effect).await? {
        Reply::Landed { hash, files, .. } if files.iter().any(|file| !file.hunks.is_empty()) => {
            let lines = lines(&files);
            host.note(Event::PatchLanded { key: by.clone(), findings: held.clone(), lines });
            court.checked = (!settings.verify.is_empty()).then(|| hash.clone());
            court.tries.text = Some(hash);
            court.last_pass.dry = false;
            let claim = |id: &FindingId| Claim::fixed(*id, "changed in the session");
            verify(host, court, &by, &held.iter().map(claim).collect::<Vec<Claim>>(), &files);
        }
        Reply::Landed { .. } => {
            reopen(host, court, &held, "the session has changed nothing under review");
            return Ok(Came::Untouched);
        }
        Reply::NotLanded { why } => {
            let note = refusal(&why);
            host.note(Event::PatchRefused { key: by, findings: held.clone(), why });
            reopen(host, court, &held, &note);
        }
        Reply::Failed { fault, .. } => {
            reopen(host, court, &held, &fault.detail);
            return Ok(Came::Failed(Ending::new(Reason::Environment, fault.detail)));
        }
        other => reopen(host, court, &held, &format!("it was answered with {other:?}")),
    }
    Ok(Came::Judged)
}

fn lines(files: &[LandedFile]) -> u32 {
    files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.new_len.max(hunk.old_len)).sum()
}
