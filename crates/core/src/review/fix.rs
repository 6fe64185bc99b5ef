//! One fix iteration: every open finding is offered once, in waves; the patch of each fixer lands as a whole or not at all.
//!
//! What a fixer says is a claim. A finding is fixed when its fixer claimed it, the patch landed through the verify
//! commands, and the landed change concerns the finding ([`super::land`]).

use alloc::{format, string::String, vec::Vec};

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::{
    brief::{Assigned, Brief, Claim, Content, Said, Task, Workplace},
    client::Job,
    event::Event,
    finding::{Cause, Finding, Status, Transition},
    host::{Host, Parked},
    ids::{AgentName, FindingId, Hash, Key},
    level::Role,
    limits::{Spent, guard},
    review::{
        Court, Fix,
        challenge::{self, Bench, Challenged},
        consult::{Consulted, consult},
        frozen::freeze,
        land::{land, land_approved},
        next::trigger_of_fixes,
        people,
        stage::{StageExit, WorkResult},
        strays,
        tries::is_repeated,
    },
    seating,
    text::cut,
    waves::deal,
};

/// The correction for the one changed attempt after a repetition.
const CIRCLE: &str = "it said what was said before, and nothing had changed since; find another way, or say BLOCKED and what \
                      a person would have to decide";

/// Offers every open finding to a fixer once.
pub(super) async fn fix_iteration(
    host: &dyn Host,
    court: &mut Court,
    iteration: u32,
) -> Result<(), StageExit> {
    let settings = host.settings();
    let root = Key::fix_iteration(court.round, iteration);
    people::look(host, court, &root).await?;
    land_approved(host, court, &root).await?;
    // Approved patches and late challenges can settle findings, so both come before the waves are planned.
    hear_late(host, court, &root).await?;
    let open: Vec<Finding> = court.findings.iter().filter(|f| f.status.is_open()).cloned().collect();
    let why = trigger_of_fixes(court);
    // All waves compare with the state at the start of the iteration.
    let standing = court.tries.standing(&court.findings);
    let mut number = 0;
    for (index, wave) in deal(&open, &settings.tasks).into_iter().enumerate() {
        let mut wave = wave;
        if index > 0 {
            // The limits before the first wave were checked when the stage was chosen.
            if let Some(ending) = guard(&settings.limits, &court.spent, host.now().awake_ms, court.valid()) {
                return Err(ending.into());
            }
            people::look(host, court, &root.child(&format!("wave-{}", index + 1))).await?;
            // Findings that the user has settled meanwhile need no fixer.
            wave = still_open(court, wave);
        }
        // Noted before the fixers start, so that reports can show who works on what.
        host.note(Event::FixersDealt {
            round: court.round,
            iteration,
            wave: index as u32 + 1,
            hands: wave.clone(),
            why: Some(why),
        });
        let mut working = FuturesUnordered::new();
        for hand in wave {
            let agent = agent_for(host, court, &hand, number);
            number += 1;
            let key = root.fixer(number as u32);
            for id in &hand {
                let note = format!("given to fixer {number}");
                court.move_to(host, *id, Transition::new(Status::Assigned, Cause::Assigned, note));
            }
            let mut task = task(court, settings.tasks.fixer_timeout_ms, &hand, agent, host);
            // The host compares the new output with these and reports how much is repeated.
            task.recent = court.tries.outputs_at(&standing, &hand);
            fill(&mut task, host, court, iteration);
            working.push(fixer(host, key, task, hand, court.spent.clone()));
        }
        let mut wave_result = WorkResult::Done;
        // Patches land in the order in which fixers finish; a slow fixer does not hold up the others.
        while let Some(worked) = working.next().await {
            let result = settle(host, court, worked?, &standing).await?;
            wave_result = wave_result.and(result);
        }
        // An iteration in which the environment failed does not count.
        wave_result.or_end()?;
    }
    court.iteration = iteration;
    court.metrics.fix_iterations += 1;
    court.publish(host, &root).await?;
    Ok(())
}

/// Challenges the findings that a limit had left unchallenged, before they are repaired.
async fn hear_late(host: &dyn Host, court: &mut Court, root: &Key) -> Result<(), StageExit> {
    let due = challenge::due(host, court, &court.unheard, &[]);
    if due.is_empty() {
        court.unheard.clear();
        return Ok(());
    }
    let frozen = freeze(host, court, root.freeze()).await?;
    let Some(scene) = frozen.whole(host.settings()) else { return Ok(()) };
    // Findings that remain unchallenged again are added anew.
    court.unheard.clear();
    let bench = Bench { root, frozen: &frozen.key, scene: &scene };
    match challenge::challenge(host, court, bench, due).await? {
        Challenged::All => Ok(()),
        Challenged::Halted(ending) => Err(ending.into()),
    }
}

/// The result of one fixer.
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
        said: court.remarks(),
        ..Brief::new(Role::Fixer, court.subject(host.settings()), court.round)
    };
    Task::new(agent, brief, Workplace::Private, timeout_ms)
}

/// Adds what a fixer should know about the run: its progress, earlier attempts, and whether it repeats itself.
fn fill(task: &mut Task, host: &dyn Host, court: &Court, iteration: u32) {
    let settings = host.settings();
    let limits = &settings.limits;
    let mut stable = format!(
        "Round {} of at most {}, fix iteration {iteration} of at most {}; the goal is {}.",
        court.round,
        limits.rounds.saturating_mul(court.spent.shares()),
        limits.fix_iterations,
        settings.goal,
    );
    if !settings.verify.is_empty() {
        stable.push_str(&format!(" Before a change lands, these must pass: {}.", settings.verify.join("; ")));
    }
    let mut surroundings = court.surroundings(settings);
    surroundings.context = court.tries.context.clone();
    surroundings.context.stable = stable;
    task.brief.surroundings = surroundings;
    if task.brief.assigned.iter().any(|assigned| court.tries.circling.contains(&assigned.id)) {
        task.brief.correction = String::from(CIRCLE);
    }
}

/// Chooses the fixer: the next in turn, another agent than the last one if that one made no progress, and none that keeps
/// failing.
fn agent_for(host: &dyn Host, court: &Court, hand: &[FindingId], number: usize) -> AgentName {
    let settings = host.settings();
    let failing = &court.spent.failing;
    let agent = seating::seat(settings, Job::Fix, number, 0);
    let circling = hand.iter().any(|id| court.tries.circling.contains(id));
    match court.tries.last_agent(hand).filter(|_| circling) {
        Some(last) => seating::another(settings, Job::Fix, last, failing),
        None => seating::stand_in(settings, Job::Fix, &agent, failing),
    }
}

/// Returns why the finding is open again, if a fixer had it before.
fn last_try(finding: &Finding) -> String {
    let steps = finding.history.iter().rev();
    let back =
        steps.skip_while(|step| step.status == Status::Assigned).take_while(|s| s.status == Status::Open);
    // One assignment is the current one; only a second means that a fixer had it before.
    let tried = finding.history.iter().filter(|step| step.status == Status::Assigned).count() > 1;
    // The newest note before the current assignment says why the last attempt failed.
    back.map(|step| step.note.clone()).next().filter(|_| tried).unwrap_or_default()
}

/// Applies the answer of a fixer.
async fn settle(
    host: &dyn Host,
    court: &mut Court,
    worked: Worked,
    standing: &Hash,
) -> Result<WorkResult, Parked> {
    let Worked { key, agent, hand, came } = worked;
    // The last readable reply counts: an earlier one was the reason for asking again.
    let readable = came.replies.iter().rev().find_map(|answered| match &answered.reply.content {
        Content::Fixes { claims } => Some((&answered.key, claims.clone(), answered.reply.patch.clone())),
        _ => None,
    });
    court.book(host, Job::Fix, &came, readable.is_some());
    strays::report(host, court, &key, &came).await?;
    // Read before the new outputs are remembered, which would otherwise count as their own repetition.
    let before = court.tries.answered_before(standing, &hand);
    let agent = came.by().cloned().unwrap_or(agent);
    for answered in &came.replies {
        court.tries.remember(answered.reply.output.clone(), standing.clone(), agent.clone(), hand.clone());
    }
    let Some((by, claims, patch)) = readable else {
        let note = came.fault.as_ref().map_or("the fixer did not answer", |fault| fault.detail.as_str());
        court.reopen(host, &hand, Cause::NotAnswered, &cut(note, 300));
        let Some(fault) = came.fault else { return Ok(WorkResult::Done) };
        host.note(Event::FixerFailed { key, agent, fault: fault.clone() });
        return Ok(match fault.is_environment() {
            true => WorkResult::EnvironmentFailed(fault),
            false => WorkResult::Done,
        });
    };
    court.tries.context.answered(&summed_up(&claims));
    let sorted = sort_claims(claims, &hand);
    for claim in &sorted.blocked {
        // The user decides about blocked findings even if the rest of the patch lands.
        court.block(host, &key, claim.id, Cause::FixerBlocked, &claim.note).await?;
    }
    let mut result = WorkResult::Done;
    match patch {
        // A patch without any claim lands nowhere: it would change the text without a reason.
        Some(patch) if !sorted.fixed.is_empty() => {
            result = land(host, court, by, &patch, &sorted.fixed).await?;
        }
        _ => {
            fixed_along(host, court, by, &sorted.fixed);
            let ids: Vec<FindingId> = sorted.fixed.iter().map(|claim| claim.id).collect();
            court.reopen(host, &ids, Cause::NotBorneOut, "said to be fixed, but nothing was changed");
        }
    }
    // Only findings that are still assigned are reopened, so this covers exactly the unmentioned ones.
    court.reopen(host, &hand, Cause::NotAnswered, "the fixer said nothing about it");
    let repeated = came.replies.iter().any(|answered| is_repeated(&answered.reply));
    let done = matches!(result, WorkResult::Done);
    // Repeating an answer is only a problem if nothing has changed through it.
    if repeated && done && court.tries.standing(&court.findings) == *standing {
        circle(host, court, &key, &before).await?;
    }
    Ok(result)
}

/// Accepts claims about findings whose evidence another repair has removed: nothing is left to change for them.
fn fixed_along(host: &dyn Host, court: &mut Court, by: &Key, fixed: &[Claim]) {
    for claim in fixed {
        if !court.tries.gone.contains(&claim.id) {
            continue;
        }
        let note = format!("{} (what it showed was gone with another repair)", claim.note);
        court.move_to(host, claim.id, Transition::new(Status::Fixed, Cause::RepairedAlong, note.clone()));
        court.fixes.push(Fix { finding: claim.id, key: by.clone(), note });
    }
}

fn summed_up(claims: &[Claim]) -> String {
    let said = claims.iter().map(|claim| {
        let word = if claim.said == Said::Fixed { "FIXED" } else { "BLOCKED" };
        format!("{} {word}: {}", claim.id, claim.note)
    });
    said.collect::<Vec<String>>().join("; ")
}

/// Handles a fixer that repeated an earlier answer without progress. Its findings get one changed attempt; after the second
/// time the user is asked.
async fn circle(host: &dyn Host, court: &mut Court, key: &Key, hand: &[FindingId]) -> Result<(), Parked> {
    court.metrics.loops_detected += 1;
    let open = |id: &&FindingId| court.finding(**id).is_some_and(|finding| finding.status == Status::Open);
    // In the last iteration there is no further attempt to announce.
    let last = court.iteration + 1 >= host.settings().limits.fix_iterations;
    let (again, first): (Vec<FindingId>, Vec<FindingId>) =
        hand.iter().filter(open).partition(|id| last || court.tries.circling.contains(id));
    if !first.is_empty() {
        let names: Vec<String> = first.iter().map(|id| format!("{id}")).collect();
        let text = format!(
            "fixers go in circles about {}: the same was said before and nothing has moved; one more try, another way",
            names.join(", ")
        );
        host.note(Event::Warned { text });
        court.tries.circling.extend(first);
    }
    for id in again {
        let mut note =
            String::from("fixers go in circles about it: the same is said again and nothing moves");
        let mut steps = court.finding(id).into_iter().flat_map(|finding| finding.history.iter().rev());
        if let Some(step) = steps.find(|step| step.cause.is_refusal()) {
            note.push_str(&format!("; {}", step.note));
        }
        court.block(host, key, id, Cause::NoProgress, &note).await?;
    }
    Ok(())
}

/// The claims of a fixer, by status.
struct SortedClaims {
    blocked: Vec<Claim>,
    fixed: Vec<Claim>,
}

/// Sorts the claims about assigned findings, one each. A finding that is claimed as both is blocked.
fn sort_claims(claims: Vec<Claim>, hand: &[FindingId]) -> SortedClaims {
    let mut blocked: Vec<Claim> = Vec::new();
    let mut fixed: Vec<Claim> = Vec::new();
    for claim in claims.into_iter().filter(|claim| hand.contains(&claim.id)) {
        let into = match claim.said {
            Said::Blocked => &mut blocked,
            Said::Fixed => &mut fixed,
        };
        // Of several claims about one finding the first counts.
        if !into.iter().any(|known| known.id == claim.id) {
            into.push(claim);
        }
    }
    fixed.retain(|claim| !blocked.iter().any(|known| known.id == claim.id));
    SortedClaims { blocked, fixed }
}
