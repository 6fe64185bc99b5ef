//! One fix iteration: every open finding is offered once, in waves; each fixer's patch lands by itself or not at all.
//!
//! What a fixer says is a claim. A finding is fixed when its fixer claimed it, the patch landed through the verify
//! commands, and the landed change is one that concerns the finding.

use alloc::{format, string::String, vec::Vec};

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{
    brief::{Assigned, Brief, Claim, Content, Patch, Said, Task, Workplace},
    decision::Decision,
    effect::{Effect, Hunk, Refusal, Reply},
    event::Event,
    finding::{Evidence, Finding, Status},
    ground::Ground,
    host::{Host, Parked},
    ids::{AgentName, DecisionId, FindingId, Key},
    level::Role,
    limits::{Spent, guard},
    reason::{Ending, Fault, Reason},
    review::{
        Court, Fix,
        consult::{Consulted, consult},
        people,
    },
    seating,
    text::cut,
    waves::deal,
};

/// How near to a quote a change must be to concern it, in lines.
const NEAR: u32 = 1;

/// `Some`: a limit was reached between two waves, or the environment failed.
pub(super) async fn fix_iteration(
    host: &dyn Host,
    court: &mut Court,
    iteration: u32,
) -> Result<Option<Ending>, Parked> {
    let settings = host.settings();
    let root = Key::new(format!("round-{}/fix-{iteration}", court.round));
    people::look(host, court, &root).await?;
    let open: Vec<Finding> = court.findings.iter().filter(|f| f.status.is_open()).cloned().collect();
    let mut number = 0;
    for (index, wave) in deal(&open, &settings.tasks).into_iter().enumerate() {
        let mut wave = wave;
        if index > 0 {
            if let Some(ending) = guard(&settings.limits, &court.spent, host.now().awake_ms, court.valid()) {
                return Ok(Some(ending));
            }
            if host.patched("inbox-between-waves") {
                people::look(host, court, &root.child(&format!("wave-{}", index + 1))).await?;
                // What a person has settled meanwhile needs no fixer.
                wave = still_open(court, wave);
            }
        }
        host.note(Event::FixersDealt {
            round: court.round,
            iteration,
            wave: index as u32 + 1,
            hands: wave.clone(),
        });
        let mut working = FuturesUnordered::new();
        for hand in wave {
            let agent = seating::seat(settings, number, 0);
            number += 1;
            let key = root.child("fix").child(&format!("{number}"));
            for id in &hand {
                court.move_to(host, *id, Status::Assigned, &format!("given to fixer {number}"));
            }
            let task = task(court, settings.tasks.fixer_timeout_ms, &hand, agent, host);
            working.push(fixer(host, key, task, hand, court.spent.clone()));
        }
        let mut fault = None;
        while let Some(worked) = working.next().await {
            let outside = settle(host, court, worked?).await?;
            fault = fault.or(outside);
        }
        // Something outside has to change first; another try would only be paid for. The iteration does not count.
        if let Some(fault) = fault {
            return Ok(Some(Ending::new(Reason::Environment, fault.detail)));
        }
    }
    court.iteration = iteration;
    court.metrics.fix_iterations += 1;
    court.publish(host, &root).await?;
    Ok(None)
}

/// What one fixer came back with.
struct Worked {
    key: Key,
    agent: AgentName,
    hand: Vec<FindingId>,
    came: Consulted,
}

fn still_open(court: &Court, wave: Vec<Vec<FindingId>>) -> Vec<Vec<FindingId>> {
    let open = |id: &FindingId| court.finding(*id).is_some_and(|finding| finding.status.is_open());
    let hands = wave.into_iter().map(|hand| hand.into_iter().filter(open).collect());
    hands.filter(|hand: &Vec<FindingId>| !hand.is_empty()).collect()
}

async fn fixer(
    host: &dyn Host,
    key: Key,
    task: Task,
    hand: Vec<FindingId>,
    spent: Spent,
) -> Result<Worked, Parked> {
    let agent = task.agent.clone();
    let came = consult(host, &key, task, &spent, |content| match content {
        Content::Fixes { .. } => None,
        Content::Unreadable { message } => Some(message.clone()),
        Content::Findings { .. } | Content::Rulings { .. } => {
            Some(String::from("fixes were asked for, not findings or verdicts"))
        }
    })
    .await?;
    Ok(Worked { key, agent, hand, came })
}

fn task(court: &Court, timeout_ms: u64, hand: &[FindingId], agent: AgentName, host: &dyn Host) -> Task {
    let assigned = hand.iter().filter_map(|id| court.finding(*id)).map(|finding| Assigned {
        id: finding.id,
        severity: finding.severity,
        description: finding.description.clone(),
        evidence: finding.evidence.clone(),
        place: finding.place.as_ref().map(|place| format!("{place}")).unwrap_or_default(),
        suggested_fix: finding.suggested_fix.clone(),
        last_try: last_try(finding),
    });
    let brief = Brief {
        assigned: assigned.collect(),
        said: court.said.clone(),
        ..Brief::new(Role::Fixer, host.settings().subject.clone(), court.round)
    };
    Task { agent, brief, place: Workplace::Private, timeout_ms, recent: Vec::new() }
}

/// Why the finding is open again, if it has been in a fixer's hands before.
fn last_try(finding: &Finding) -> String {
    let steps = finding.history.iter().rev();
    let back =
        steps.skip_while(|step| step.status == Status::Assigned).take_while(|s| s.status == Status::Open);
    let tried = finding.history.iter().filter(|step| step.status == Status::Assigned).count() > 1;
    back.map(|step| step.note.clone()).next().filter(|_| tried).unwrap_or_default()
}

/// What the fixer's answer comes to. `Some`: a fault of the environment.
async fn settle(host: &dyn Host, court: &mut Court, worked: Worked) -> Result<Option<Fault>, Parked> {
    let Worked { key, agent, hand, came } = worked;
    let readable = came.replies.iter().rev().find_map(|(by, reply)| match &reply.content {
        Content::Fixes { claims } => Some((by.clone(), claims.clone(), reply.patch.clone())),
        _ => None,
    });
    court.book(&came, readable.is_some());
    let Some((by, claims, patch)) = readable else {
        let note = came.fault.as_ref().map_or("the fixer did not answer", |fault| fault.detail.as_str());
        reopen(host, court, &hand, &cut(note, 300));
        if let Some(fault) = came.fault.clone() {
            host.note(Event::FixerFailed { key, agent, fault });
        }
        return Ok(came.fault.filter(Fault::is_environment));
    };
    let (blocked, fixed) = sort_claims(claims, &hand);
    for claim in &blocked {
        block(host, court, &key, claim).await?;
    }
    let mut fault = None;
    match patch {
        Some(patch) if !fixed.is_empty() => fault = land(host, court, &by, &patch, &fixed).await?,
        _ => {
            let ids: Vec<FindingId> = fixed.iter().map(|claim| claim.id).collect();
            reopen(host, court, &ids, "said to be fixed, but nothing was changed");
        }
    }
    reopen(host, court, &hand, "the fixer said nothing about it");
    Ok(fault)
}

/// Claims about findings that the fixer holds, one each: who says both BLOCKED and FIXED is blocked.
fn sort_claims(claims: Vec<Claim>, hand: &[FindingId]) -> (Vec<Claim>, Vec<Claim>) {
    let mut blocked: Vec<Claim> = Vec::new();
    let mut fixed: Vec<Claim> = Vec::new();
    for claim in claims.into_iter().filter(|claim| hand.contains(&claim.id)) {
        let into = match claim.said {
            Said::Blocked => &mut blocked,
            Said::Fixed => &mut fixed,
        };
        if !into.iter().any(|known| known.id == claim.id) {
            into.push(claim);
        }
    }
    fixed.retain(|claim| !blocked.iter().any(|known| known.id == claim.id));
    (blocked, fixed)
}

/// Puts those that are still in the fixer's hands back to open.
fn reopen(host: &dyn Host, court: &mut Court, ids: &[FindingId], note: &str) {
    for id in ids {
        if court.finding(*id).is_some_and(|finding| finding.status == Status::Assigned) {
            court.move_to(host, *id, Status::Open, note);
        }
    }
}

async fn block(host: &dyn Host, court: &mut Court, key: &Key, claim: &Claim) -> Result<(), Parked> {
    let Some(finding) = court.finding(claim.id).filter(|f| f.status == Status::Assigned) else {
        return Ok(());
    };
    let question = format!("{}: {} ({})", claim.id, finding.description, claim.note);
    let number = court.decisions.len() as u32 + 1;
    let id = court.decision_id(number);
    let decision = Decision::blocked(id.clone(), claim.id, question);
    people::post(host, court, &key.child(&format!("ask-{}", claim.id)), decision).await?;
    court.move_to(host, claim.id, Status::Blocked { decision: id }, &claim.note);
    Ok(())
}

/// `Some`: a fault of the environment.
async fn land(
    host: &dyn Host,
    court: &mut Court,
    by: &Key,
    patch: &Patch,
    fixed: &[Claim],
) -> Result<Option<Fault>, Parked> {
    let settings = host.settings();
    let findings: Vec<FindingId> = fixed.iter().map(|claim| claim.id).collect();
    let effect = Effect::Land {
        by: by.clone(),
        patch: patch.hash.clone(),
        allowed: settings.subject.path().map(String::from).into_iter().collect(),
        verify: settings.verify.clone(),
    };
    match host.perform(by.child("land"), effect).await? {
        Reply::Landed { hunks, text, hash } => {
            let lines = hunks.iter().map(|hunk| hunk.new_len.max(hunk.old_len)).sum();
            host.note(Event::PatchLanded { key: by.clone(), findings, lines });
            court.checked = (!settings.verify.is_empty()).then_some(hash);
            // What was reviewed is no longer what stands there.
            court.last_pass.dry &= hunks.is_empty();
            verify(host, court, by, fixed, (&hunks, &text));
        }
        Reply::NotLanded { why } => {
            let note = refusal(&why);
            host.note(Event::PatchRefused { key: by.clone(), findings: findings.clone(), why });
            reopen(host, court, &findings, &note);
        }
        Reply::Failed { fault, .. } => {
            reopen(host, court, &findings, &fault.detail);
            return Ok(Some(fault));
        }
        other => reopen(host, court, &findings, &format!("landing was answered with {other:?}")),
    }
    Ok(None)
}

/// After a landing: which claims does the change bear out?
fn verify(host: &dyn Host, court: &mut Court, by: &Key, fixed: &[Claim], landed: (&[Hunk], &str)) {
    let (hunks, text) = landed;
    let subject = host.settings().subject.clone();
    let path = subject.path().unwrap_or_default();
    let ground = Ground::new(path, text, subject.section());
    for claim in fixed {
        let Some(finding) = court.finding(claim.id) else { continue };
        if concerns(finding, hunks, ground.as_ref()) {
            court.move_to(host, claim.id, Status::Fixed, &claim.note);
            let checked = if claim.verification.is_empty() { "" } else { "; checked: " };
            let note = format!("{}{checked}{}", claim.note, claim.verification);
            court.fixes.push(Fix { finding: claim.id, key: by.clone(), note });
        } else {
            court.move_to(host, claim.id, Status::Open, "said to be fixed, but nothing near it was changed");
        }
    }
    for finding in &mut court.findings {
        if let Some(place) = &mut finding.place {
            place.shift(hunks);
        }
    }
}

fn concerns(finding: &Finding, hunks: &[Hunk], ground: Option<&Ground<'_>>) -> bool {
    let Some(place) = &finding.place else { return false };
    let near = hunks.iter().any(|hunk| {
        let last = hunk.old_start + hunk.old_len.max(1) - 1;
        hunk.old_start <= place.end_line + NEAR && place.line <= last + NEAR
    });
    match &finding.evidence {
        Evidence::Quote { .. } => near || ground.is_some_and(|ground| !ground.holds(&finding.evidence)),
        // What was missing must be there now.
        Evidence::Absence { heading, terms } => ground.is_some_and(|ground| ground.says(heading, terms)),
    }
}

fn refusal(why: &Refusal) -> String {
    match why {
        Refusal::Outside { files } => {
            format!("not landed: it changed {}, which it may not", files.join(", "))
        }
        Refusal::Conflict { line } => format!("not landed: line {line} was changed by somebody else"),
        Refusal::Check { command, output } => {
            format!("not landed: `{command}` failed: {}", cut(output.trim(), 200))
        }
        Refusal::Gutted { before, after } => {
            format!("not landed: of {before} lines it would leave {after}")
        }
        Refusal::Lost { detail } => format!("not landed: {detail}"),
    }
}

impl Court {
    pub(super) fn decision_id(&self, number: u32) -> DecisionId {
        DecisionId::new(format!("D{number}"))
    }
}
