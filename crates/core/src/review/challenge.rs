//! Challenges what a round has newly raised; [`crate::challenge`] has the rules.
//!
//! Findings go out in batches to two challengers in parallel, and to a third where the two disagree. What a challenger quotes
//! against a finding is looked up like any other quote: a denial whose evidence is not in the subject only counts as doubt.

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};

use futures_util::future::try_join_all;

use crate::{
    brief::{BATCH, Brief, Content, Disputed, Holds, Ruling, Task, Workplace},
    challenge::{AT_ONCE, MOST, Ruled, Voice, doubt, down, is_due, is_settled, reason, rule},
    client::Job,
    decision::Decision,
    event::Event,
    fault::{Fault, FaultKind},
    finding::{Cause, Dismissal, Evidence, Finding, Severity, Status, Transition},
    ground::Scene,
    host::{Host, Parked},
    ids::{AgentName, FindingId, Key},
    level::Role,
    limits::{Spent, Usage, guard},
    reason::{Ending, Reason},
    review::{
        Court,
        consult::{Answered, Consulted, consult},
        people, strays,
    },
    seating,
};

/// The most challengers that work in parallel.
const SIDE_BY_SIDE: usize = 6;
/// The least number of letters and digits in counter-evidence: fewer could occur anywhere.
const SHORTEST_COUNTER: usize = 4;

type Voices = BTreeMap<FindingId, Vec<Voice>>;

/// What challengers work on: the frozen text and the key of the effect that froze it.
pub(super) struct Bench<'g> {
    pub root: &'g Key,
    pub frozen: &'g Key,
    pub scene: &'g Scene<'g>,
}

/// Selects the findings to challenge. `overlapping` has those that several reviewers support with the same words.
pub(super) fn due(
    host: &dyn Host,
    court: &Court,
    among: &[FindingId],
    overlapping: &[FindingId],
) -> Vec<FindingId> {
    let due = |id: &&FindingId| {
        court.finding(**id).is_some_and(|f| is_due(f, host.settings(), overlapping.contains(&f.id)))
    };
    among.iter().filter(due).copied().collect()
}

/// How far the challenge came.
pub(super) enum Challenged {
    /// Every due finding was challenged.
    All,
    /// A limit was reached, or the environment failed. The findings that were not challenged are remembered.
    Halted(Ending),
}

/// Challenges findings and applies the results.
pub(super) async fn challenge(
    host: &dyn Host,
    court: &mut Court,
    bench: Bench<'_>,
    due: Vec<FindingId>,
) -> Result<Challenged, Parked> {
    if due.is_empty() {
        return Ok(Challenged::All);
    }
    // Keys of challenges are below the round or the fix iteration that asks for them.
    let bench = Bench { root: &bench.root.child("challenge"), ..bench };
    let mut voices: Voices = due.iter().map(|id| (*id, vec![])).collect();
    let mut challenged = Challenged::All;
    // Two voices at once, then a third where they disagree, then a replacement for voices that failed.
    for asked in [0..AT_ONCE, AT_ONCE..MOST, MOST..MOST + 1] {
        let unsettled = |id: &&FindingId| !is_settled(&voices[*id]) && voices[*id].len() < MOST as usize;
        let open: Vec<FindingId> = due.iter().filter(unsettled).copied().collect();
        // If no agent works, a further voice would not be heard either.
        let in_vain =
            asked.start > 0 && !seating::has_working(host.settings(), Job::Review, &court.spent.failing);
        if open.is_empty() || in_vain {
            break;
        }
        let batches: Vec<Batch> =
            asked.flat_map(|voice| batches(court, host, &open, voice, &voices)).collect();
        challenged = hear(host, court, &bench, batches, &mut voices).await?;
        if matches!(challenged, Challenged::Halted(_)) {
            break;
        }
    }
    // After a halt only findings with two agreeing voices are settled; the others are challenged later.
    for (id, voices) in voices {
        if matches!(challenged, Challenged::Halted(_)) && !is_settled(&voices) {
            court.unheard.push(id);
        } else {
            court.unheard.retain(|known| *known != id);
            settle(host, court, bench.root, id, voices).await?;
        }
    }
    Ok(challenged)
}

/// Checks the limits that concern challenges. The number of findings is checked after the challenge, which dismisses some.
fn limit(host: &dyn Host, court: &Court) -> Option<Ending> {
    guard(&host.settings().limits, &court.spent, host.now().awake_ms, 0)
}

/// One challenger with its findings.
struct Batch {
    /// `1/2` is the second batch of the first voice.
    name: String,
    agent: AgentName,
    findings: Vec<FindingId>,
}

fn batches(court: &Court, host: &dyn Host, open: &[FindingId], voice: u32, voices: &Voices) -> Vec<Batch> {
    let mut by_agent: Vec<(AgentName, Vec<FindingId>)> = vec![];
    for finding in open.iter().filter_map(|id| court.finding(*id)) {
        let heard: Vec<AgentName> = voices[&finding.id].iter().map(|voice| voice.agent.clone()).collect();
        // The first voices are chosen together; later ones only avoid the agents that were heard already.
        let nth = if voice < AT_ONCE { voice } else { 0 };
        let agent = seating::challenger(host.settings(), finding, nth, &heard, &court.spent.failing);
        // A list keeps the order of the findings, so that keys of batches are the same in a replay.
        match by_agent.iter_mut().find(|(known, _)| *known == agent) {
            Some((_, findings)) => findings.push(finding.id),
            None => by_agent.push((agent, vec![finding.id])),
        }
    }
    let batches =
        by_agent.iter().flat_map(|(agent, findings)| findings.chunks(BATCH).map(move |some| (agent, some)));
    let named = batches.enumerate().map(|(index, (agent, findings))| Batch {
        name: format!("{}/{}", voice + 1, index + 1),
        agent: agent.clone(),
        findings: findings.to_vec(),
    });
    named.collect()
}

/// Asks batches in parallel and records the voices.
async fn hear(
    host: &dyn Host,
    court: &mut Court,
    bench: &Bench<'_>,
    batches: Vec<Batch>,
    voices: &mut Voices,
) -> Result<Challenged, Parked> {
    let (mut answered, mut failed) = (false, false);
    let mut outside: Option<Fault> = None;
    for some in batches.chunks(SIDE_BY_SIDE) {
        // Limits are checked between groups: a task that runs already is paid for anyway.
        if let Some(ending) = limit(host, court) {
            return Ok(Challenged::Halted(ending));
        }
        let asked = some.iter().map(|batch| {
            let task = task(court, host, bench, batch);
            ask(host, bench.root.child(&batch.name), task, &court.spent)
        });
        for (batch, Heard { came, rulings }) in some.iter().zip(try_join_all(asked).await?) {
            court.use_up(host, Job::Review, &came);
            strays::report(host, court, &bench.root.child(&batch.name), &came).await?;
            // One answer is enough to show that challengers work.
            answered |= rulings.is_some();
            failed |= rulings.is_none();
            outside = outside.or(came.fault.clone().filter(Fault::is_environment));
            let agent = came.by().unwrap_or(&batch.agent);
            // A ruling about a finding of another batch is ignored.
            for ruling in rulings.into_iter().flatten().filter(|ruling| batch.findings.contains(&ruling.id)) {
                if let Some(heard) = voices.get_mut(&ruling.id) {
                    heard.push(voice(agent, ruling, bench.scene));
                }
            }
        }
    }
    // All batches together count as one task for the limit on failures.
    if answered {
        court.spent.failures_in_a_row = 0;
    } else if let Some(fault) = outside {
        // A failure of the environment is not a failed attempt, and unchallenged findings are not repaired yet.
        let detail = format!("no challenger answered: {}", fault.detail);
        return Ok(Challenged::Halted(Ending::new(Reason::Environment, detail)));
    } else if failed {
        court.spent.failures_in_a_row += 1;
        court.metrics.failures += 1;
    }
    Ok(Challenged::All)
}

fn task(court: &Court, host: &dyn Host, bench: &Bench<'_>, batch: &Batch) -> Task {
    let settings = host.settings();
    let disputed = batch.findings.iter().filter_map(|id| court.finding(*id)).map(Disputed::of);
    let brief = Brief {
        disputed: disputed.collect(),
        said: court.remarks(),
        surroundings: court.surroundings(settings),
        ..Brief::new(Role::Challenger, court.subject(settings), court.round)
    };
    let place = Workplace::Frozen { by: bench.frozen.clone() };
    Task::new(batch.agent.clone(), brief, place, settings.tasks.reviewer_timeout_ms)
}

/// The answer of one challenger.
struct Heard {
    came: Consulted,
    /// `None` if it did not answer with verdicts.
    rulings: Option<Vec<Ruling>>,
}

async fn ask(host: &dyn Host, key: Key, task: Task, spent: &Spent) -> Result<Heard, Parked> {
    let agent = task.agent.clone();
    let findings = task.brief.disputed.len() as u32;
    let wanted: Vec<FindingId> = task.brief.disputed.iter().map(|disputed| disputed.id).collect();
    let came = consult(host, &key, task, spent, |content| lacking(content, &wanted)).await?;
    let mut rulings: Option<Vec<Ruling>> = None;
    for Answered { reply, .. } in &came.replies {
        if let Content::Rulings { rulings: more } = &reply.content {
            let all = rulings.get_or_insert_default();
            // If a challenger was asked once more, its later ruling on a finding counts.
            all.retain(|known: &Ruling| !more.iter().any(|ruling| ruling.id == known.id));
            all.extend(more.iter().cloned());
        }
        for remark in &reply.remarks {
            host.note(Event::Warned { text: format!("answer of the challenger {agent}: {remark}") });
        }
    }
    let agent = came.by().cloned().unwrap_or(agent);
    let heard = |id: &&FindingId| rulings.iter().flatten().any(|ruling: &Ruling| ruling.id == **id);
    let silent = wanted.iter().filter(|id| !heard(id)).copied().collect();
    let usage = came.usages.iter().copied().fold(Usage::default(), Usage::plus);
    let fault = match &rulings {
        Some(_) => None,
        None => Some(came.fault.clone().unwrap_or_else(|| {
            Fault::new(FaultKind::Malformed, format!("{agent} did not answer with verdicts"))
        })),
    };
    host.note(Event::ChallengerAnswered { key, agent, findings, usage, silent, fault });
    Ok(Heard { came, rulings })
}

fn lacking(content: &Content, wanted: &[FindingId]) -> Option<String> {
    match content {
        Content::Rulings { rulings } => {
            let silent = wanted.iter().filter(|id| !rulings.iter().any(|ruling| ruling.id == **id));
            let silent: Vec<String> = silent.map(|id| format!("{id}")).collect();
            (!silent.is_empty()).then(|| format!("a verdict is missing for {}", silent.join(", ")))
        }
        Content::Unreadable { message } => Some(message.clone()),
        Content::Findings { .. } | Content::Fixes { .. } => {
            Some(String::from("verdicts were asked for, not findings or fixes"))
        }
    }
}

/// Turns a ruling into a voice. A denial needs counter-evidence that occurs in the subject; otherwise it becomes doubt.
fn voice(agent: &AgentName, ruling: Ruling, scene: &Scene<'_>) -> Voice {
    let Ruling { mut holds, mut note, mut counter, .. } = ruling;
    // Punctuation says nothing, so only letters and digits count.
    let short = counter.chars().filter(|c| c.is_alphanumeric()).count() < SHORTEST_COUNTER;
    let lacking = match counter.as_str() {
        "" => Some("it quoted nothing for it"),
        _ if short => Some("what it quoted is too short to show anything"),
        _ if !scene.holds(&Evidence::Quote { text: counter.clone() }) => Some("what it quoted is not there"),
        _ => None,
    };
    if let (Holds::Invalid, Some(lacking)) = (holds, lacking) {
        holds = Holds::Ambiguous;
        note = format!("called invalid, but {lacking}: {note}");
        // A quote that was not found must not be shown as evidence.
        counter = String::new();
    }
    Voice { agent: agent.clone(), holds, note, counter }
}

/// Applies the result of the voices to one finding.
async fn settle(
    host: &dyn Host,
    court: &mut Court,
    root: &Key,
    id: FindingId,
    voices: Vec<Voice>,
) -> Result<(), Parked> {
    let ruled = rule(&voices);
    let why = doubt(&voices);
    let Some(finding) = court.finding_mut(id) else { return Ok(()) };
    let critical = finding.severity == Severity::Critical;
    // A doubtful critical finding is not lowered: the user decides about it below.
    if ruled == Ruled::Ambiguous && !critical {
        finding.severity = down(finding.severity);
    }
    let severity = finding.severity;
    let refuted = reason(&voices, Holds::Invalid);
    host.note(Event::FindingRuled { finding: id, ruled, severity, voices });
    match ruled {
        // The finding stays as it is: upheld, or not challenged at all.
        Ruled::Valid | Ruled::Unheard | Ruled::Person => {}
        Ruled::Invalid => {
            let to = Status::Dismissed { why: Dismissal::Invalid };
            court.move_to(host, id, Transition::new(to, Cause::Refuted, refuted));
        }
        Ruled::Ambiguous if critical => dispute(host, court, root, id, &why).await?,
        Ruled::Ambiguous => {
            let note = format!("in doubt, taken as {severity}; {why}");
            court.move_to(host, id, Transition::new(Status::Open, Cause::InDoubt, note));
        }
    }
    Ok(())
}

/// Asks the user about a critical finding on which challengers disagree.
async fn dispute(
    host: &dyn Host,
    court: &mut Court,
    root: &Key,
    id: FindingId,
    why: &str,
) -> Result<(), Parked> {
    let Some(finding) = court.finding(id) else { return Ok(()) };
    let question = format!("{id}: {} (challengers: {why})", describe(finding));
    let decision = court.next_decision_id();
    let asked = Decision::disputed(decision.clone(), id, question);
    people::post(host, court, &root.child(&format!("ask-{id}")), asked).await?;
    let note = format!("challengers do not agree on something critical: {why}");
    court.move_to(host, id, Transition::new(Status::Blocked { decision }, Cause::NoAgreement, note));
    Ok(())
}

fn describe(finding: &Finding) -> String {
    match &finding.place {
        Some(place) => format!("{} at {place}", finding.description),
        None => finding.description.clone(),
    }
}
