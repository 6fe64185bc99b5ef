//! One round: the panel reads a frozen copy, all seats in parallel; what it raises is grounded, merged and tracked.

use alloc::{format, string::String, vec::Vec};

use futures_util::future::try_join_all;

use crate::{
    brief::{Brief, Content, Raised, Task, Workplace},
    client::Job,
    confidence::Party,
    counts::Counts,
    event::Event,
    fault::{Fault, FaultKind},
    finding::{Cause, Deferral, Dismissal, Finding, Raiser, Severity, Status, Transition},
    ground::Scene,
    host::{Host, Parked},
    ids::{AgentName, FindingId, Key},
    level::{Goal, Role, level_for, other_panel, panel},
    limits::{Spent, Tried, Usage, budget},
    merge::{Merged, headline, merge},
    plan::Plan,
    reason::{Ending, Reason},
    review::{
        Court, Pass,
        challenge::{self, Bench, Challenged},
        consult::{AgentTry, Answered, Consulted, LimitedAgent, WaitedFor, consult},
        frozen::freeze,
        next::trigger_of_round,
        people,
        signs::{self, Sheet},
        stage::StageExit,
        strays,
    },
    seating,
    settings::Settings,
    text,
};

/// One reviewer of the panel with its answer.
struct Seat {
    role: Role,
    agent: AgentName,
    came: Consulted,
    raised: Option<Vec<Raised>>,
}

/// Runs one review round.
pub(super) async fn review_round(host: &dyn Host, court: &mut Court, round: u32) -> Result<(), StageExit> {
    let settings = host.settings();
    let root = Key::round(round);
    let roles = seats(host, court, round);
    let of = settings.limits.rounds.saturating_mul(court.spent.shares());
    host.note(Event::RoundStarted { round, of, why: Some(trigger_of_round(court)) });
    people::look(host, court, &root).await?;

    let frozen = freeze(host, court, root.freeze()).await?;
    court.last_pass.text = Some(frozen.hash.clone());
    court.tries.text = Some(frozen.hash.clone());
    let scene = frozen.scene(settings)?;
    if frozen.text.is_empty() && settings.subject.path().is_none() {
        return nothing_is_left(host, court, round).await;
    }
    // The remarks are about what agents cannot see; they do not change from round to round.
    if round == 1 {
        frozen.remarks.iter().for_each(|remark| host.note(Event::Warned { text: remark.clone() }));
    }

    let mut sheet = Sheet { all_fixed_before: court.is_all_fixed(), ..Sheet::default() };
    // All seats are asked in parallel; each future handles its own retries.
    let turn = turn(settings, round);
    let asked = roles.iter().enumerate().map(|(index, role)| {
        let agent = seating::seat(settings, Job::Review, index, turn);
        let agent = seating::stand_in(settings, Job::Review, &agent, &court.spent.failing);
        let mut task = task(court, settings, round, *role, agent);
        fill(&mut task.brief, host, court, &frozen.text);
        seat(host, root.clone(), task, &court.spent)
    });
    let seats = try_join_all(asked).await?;
    for seat in &seats {
        strays::report(host, court, &root.child(seat.role.as_str()), &seat.came).await?;
    }
    // From here on the round counts; a round without any answer is repeated or ends the review.
    let Some(answers) = count(host, court, &seats, round) else {
        nobody_answered(host, court, &seats)?;
        return Ok(());
    };
    court.round = round;
    court.iteration = 0;
    court.metrics.review_rounds = round;
    let new = judge(host, court, answers, &scene);
    let whole = frozen.whole(settings);
    let mut due = challenge::due(host, court, &new.raised, &new.overlapping);
    // A refuted finding that is raised again is challenged again, even if several reviewers agree on it.
    due.extend(new.again.iter().copied());
    due.sort_unstable();
    let bench = Bench { root: &root, frozen: &frozen.key, scene: whole.as_ref().unwrap_or(&scene) };
    let challenged = challenge::challenge(host, court, bench, due).await?;
    defer_beside_the_goal(host, court, &new.raised);
    // Counted after the challenge, so that refuted claims are known.
    court.findings.iter().for_each(|finding| sheet.count(finding, round));
    let all = new.fresh(court).count() as u32;
    court.take_stock(&new, &seats, matches!(challenged, Challenged::All));
    let counts = Counts::of(&court.findings);
    host.note(Event::RoundEnded { round, new: all, dry: court.last_pass.dry, counts });
    court.calculate_confidence(host, &answered(&seats, round), agreement(&seats));
    court.publish(host, &root).await?;
    let worth_listening_to = weigh(host, court, sheet);
    if let Challenged::Halted(ending) = challenged {
        return Err(ending.into());
    }
    Ok(worth_listening_to?)
}

/// Ends a round in which nothing of the change is left to read: a repair or an outside edit has reverted it.
async fn nothing_is_left(host: &dyn Host, court: &mut Court, round: u32) -> Result<(), StageExit> {
    if round == 1 {
        let detail = String::from("nothing is changed there any more");
        return Err(Ending::new(Reason::Environment, detail).into());
    }
    let text = String::from("nothing of the change is left, so there is nothing to review again");
    host.note(Event::Warned { text });
    court.round = round;
    court.iteration = 0;
    court.metrics.review_rounds = round;
    let text = court.last_pass.text.take();
    court.last_pass = Pass { dry: true, sound: true, text, ..Pass::default() };
    let counts = Counts::of(&court.findings);
    host.note(Event::RoundEnded { round, new: 0, dry: true, counts });
    court.publish(host, &Key::round(round)).await?;
    Ok(())
}

/// Repeats the round if other agents can be asked; otherwise ends the review.
fn nobody_answered(host: &dyn Host, court: &Court, seats: &[Seat]) -> Result<(), Ending> {
    let settings = host.settings();
    // A used-up budget explains the silence better than the last fault.
    if let Some(ending) = budget(&settings.limits, &court.spent) {
        return Err(ending);
    }
    let fault = seats.iter().find_map(|seat| seat.came.fault.clone());
    let hopeless = fault.as_ref().is_some_and(Fault::is_environment);
    let detail = fault.map_or_else(String::new, |fault| fault.detail);
    if !hopeless && seating::has_others(settings, Job::Review) {
        host.note(Event::Warned { text: format!("no reviewer answered: {detail}; the round is held again") });
        return Ok(());
    }
    Err(Ending::new(Reason::Environment, format!("no reviewer answered: {detail}")))
}

/// Whether a pass is conclusive: most of the panel answered, and most of what each of them raised is believed.
fn telling(court: &Court, seats: &[Seat], round: u32) -> bool {
    let sound = seats.iter().filter(|seat| {
        let raiser = Raiser { round, role: seat.role, agent: seat.agent.clone() };
        let raised = || court.findings.iter().filter(|finding| finding.raisers.contains(&raiser));
        let wrong = raised().filter(|finding| finding.status.is_refuted()).count();
        seat.raised.is_some() && wrong * 2 <= raised().count()
    });
    sound.count() * 2 > seats.len()
}

/// Ends the review if the panel was degraded before and still is; the first time it only warns.
fn weigh(host: &dyn Host, court: &mut Court, sheet: Sheet) -> Result<(), Ending> {
    let sign = signs::sign(court.sheets.last(), &sheet);
    court.sheets.push(sheet);
    // A dry pass has enough sound answers: what the remaining reviewers made up does not matter.
    let Some(sign) = sign.filter(|_| !court.last_pass.dry) else { return Ok(()) };
    court.degraded += 1;
    if court.degraded > 1 {
        return Err(Ending::new(Reason::PanelDegraded, sign));
    }
    host.note(Event::Warned {
        text: format!("the panel may be degraded: {sign}; one more round, with another panel"),
    });
    Ok(())
}

/// Returns by how many places the agents rotate: one each round, so that another agent reads the same text.
fn turn(settings: &Settings, round: u32) -> usize {
    if settings.agents.len() < 2 { 0 } else { round as usize - 1 }
}

fn seats(host: &dyn Host, court: &Court, round: u32) -> Vec<Role> {
    let settings = host.settings();
    let level = settings.level.unwrap_or_else(|| level_for(settings.tier, None));
    let roles = match court.degraded {
        0 => panel(&settings.subject, level, settings.tier),
        _ => other_panel(&settings.subject, level, settings.tier),
    };
    if round == 1 {
        let why = match settings.level {
            Some(_) => String::from("chosen by a person"),
            None if settings.tier.number() >= 2 => {
                format!("tier {}, no confidence signal yet", settings.tier)
            }
            None => format!("tier {}", settings.tier),
        };
        host.note(Event::LevelChosen { level, why, panel: roles.clone() });
    }
    roles
}

fn task(court: &Court, settings: &Settings, round: u32, role: Role, agent: AgentName) -> Task {
    let known = court
        .findings
        .iter()
        .map(|finding| format!("{} [{}]", headline(finding), crate::tracker::status(&finding.status)));
    let brief = Brief {
        required: if round == 1 { settings.tasks.required_issues } else { 0 },
        known: known.collect(),
        said: court.remarks(),
        ..Brief::new(role, court.subject(settings), round)
    };
    let timeout_ms = match role {
        Role::Party => settings.tasks.party_timeout_ms,
        Role::Elicitation => {
            settings.tasks.elicitation_timeout_ms.unwrap_or(settings.tasks.reviewer_timeout_ms)
        }
        _ => settings.tasks.reviewer_timeout_ms,
    };
    let by = Key::round(round).freeze();
    Task::new(agent, brief, Workplace::Frozen { by }, timeout_ms)
}

/// Adds what a reviewer should know besides the text: recent fixes, Tribunal's own files, and its plan.
fn fill(brief: &mut Brief, host: &dyn Host, court: &Court, text: &str) {
    let plans = &host.settings().tasks.plans;
    brief.plan = match brief.role {
        Role::Party => Plan::party(text, &plans.roster, plans.min_agents as usize, plans.max_rounds),
        Role::Elicitation => Plan::elicitation(text, plans.min_methods as usize),
        _ => Plan::Plain,
    };
    brief.fixed = court.fixed_since_the_last_look();
    brief.surroundings = court.surroundings(host.settings());
}

async fn seat(host: &dyn Host, root: Key, task: Task, spent: &Spent) -> Result<Seat, Parked> {
    let (round, role, agent) = (task.brief.round, task.brief.role, task.agent.clone());
    let required = task.brief.required;
    let key = root.reviewer(role);
    let came = consult(host, &key, task, spent, |content| too_thin(content, required)).await?;
    let mut raised: Option<Vec<Raised>> = None;
    for Answered { reply, .. } in &came.replies {
        if let Content::Findings { raised: more } = &reply.content {
            let mut more = more.clone();
            reply.minutes.raise(&mut more);
            let all = raised.get_or_insert_default();
            // Reviewers that are asked once more tend to repeat their first findings.
            let fresh = more.iter().filter(|one| !all.iter().any(|known| known.evidence == one.evidence));
            let fresh: Vec<Raised> = fresh.cloned().collect();
            all.extend(if all.is_empty() { more } else { fresh });
        }
        for remark in &reply.remarks {
            host.note(Event::Warned { text: format!("answer of {role}: {remark}") });
        }
    }
    let agent = came.by().cloned().unwrap_or(agent);
    match (&raised, &came.fault) {
        (Some(raised), _) => {
            let usage = came.usages.iter().copied().fold(Usage::default(), Usage::plus);
            let raised = raised.len() as u32;
            host.note(Event::SeatAnswered { round, role, agent: agent.clone(), raised, usage });
        }
        (None, fault) => {
            let fault = fault.clone().unwrap_or_else(|| {
                Fault::new(FaultKind::Malformed, format!("{agent} did not answer with findings"))
            });
            host.note(Event::SeatIncomplete { round, role, agent: agent.clone(), fault });
        }
    }
    Ok(Seat { role, agent, came, raised })
}

fn too_thin(content: &Content, required: u32) -> Option<String> {
    match content {
        Content::Findings { raised } if (raised.len() as u32) < required => Some(format!(
            "you raised {}; look once more for what was missed, {required} are expected in a first round",
            text::count(raised.len() as u32, "finding")
        )),
        Content::Findings { .. } => None,
        Content::Unreadable { message } => Some(message.clone()),
        Content::Fixes { .. } | Content::Rulings { .. } => {
            Some(String::from("findings were asked for, not fixes or verdicts"))
        }
    }
}

/// Records what the seats used and returns their answers; `None` if no seat answered.
fn count(
    host: &dyn Host,
    court: &mut Court,
    seats: &[Seat],
    round: u32,
) -> Option<Vec<(Raiser, Vec<Raised>)>> {
    let mut answers = Vec::new();
    for seat in seats {
        court.book(host, Job::Review, &seat.came, seat.raised.is_some());
        if let Some(raised) = &seat.raised {
            let raiser = Raiser { round, role: seat.role, agent: seat.agent.clone() };
            answers.push((raiser, raised.clone()));
        }
    }
    (!answers.is_empty()).then_some(answers)
}

/// Returns the agreement from the party's minutes, if a party was held.
fn agreement(seats: &[Seat]) -> Option<Party> {
    let party = seats.iter().find(|seat| seat.role == Role::Party)?;
    let held = party.came.replies.iter().rev().find(|answered| !answered.reply.minutes.is_empty())?;
    Party::of(&held.reply.minutes)
}

fn answered(seats: &[Seat], round: u32) -> Vec<Raiser> {
    let answered = seats.iter().filter(|seat| seat.raised.is_some());
    answered.map(|seat| Raiser { round, role: seat.role, agent: seat.agent.clone() }).collect()
}

/// The findings that one round raised or changed.
struct New {
    /// Findings that were not known before, believed or not.
    raised: Vec<FindingId>,
    /// Known findings that turned out to be critical.
    grown: Vec<FindingId>,
    /// Refuted findings that an independent reviewer has raised again.
    again: Vec<FindingId>,
    /// Findings that several reviewers support with the same words.
    overlapping: Vec<FindingId>,
}

impl New {
    /// Returns the findings that are believed and not settled.
    fn fresh<'c>(&'c self, court: &'c Court) -> impl Iterator<Item = &'c Finding> {
        let due = |finding: &&Finding| {
            let beside = Status::Deferred { why: Deferral::Goal };
            finding.status.is_open()
                || finding.status == beside
                || matches!(finding.status, Status::Blocked { .. })
        };
        self.raised
            .iter()
            .chain(&self.grown)
            .chain(&self.again)
            .filter_map(|id| court.finding(*id))
            .filter(due)
    }
}

fn judge(host: &dyn Host, court: &mut Court, answers: Vec<(Raiser, Vec<Raised>)>, scene: &Scene<'_>) -> New {
    let merged = merge(&mut court.findings, answers, scene, host.now());
    let mut new = New { raised: Vec::new(), grown: Vec::new(), again: Vec::new(), overlapping: Vec::new() };
    for merged in merged {
        match merged {
            Merged::Joined { finding, severity, raiser, overlaps } => {
                if overlaps {
                    new.overlapping.push(finding);
                }
                let anew = is_raised_anew(host.settings(), court, finding, &raiser);
                host.note(Event::FindingJoined { finding, severity, raiser });
                if anew && !new.again.contains(&finding) {
                    let note = "refuted before, but raised again by another reviewer";
                    court.move_to(host, finding, Transition::new(Status::Open, Cause::RaisedAgain, note));
                    new.again.push(finding);
                }
                let beside = Status::Deferred { why: Deferral::Goal };
                // With the goal `critical-only` a deferred finding comes back once it is critical.
                if severity == Severity::Critical
                    && court.finding(finding).is_some_and(|f| f.status == beside)
                {
                    let note = "raised again, now as critical";
                    court.move_to(host, finding, Transition::new(Status::Open, Cause::RaisedAgain, note));
                    new.grown.push(finding);
                }
            }
            Merged::New(id) => {
                let Some(finding) = court.finding(id).cloned() else { continue };
                host.note(Event::FindingRaised { finding });
                new.raised.push(id);
            }
        }
    }
    new
}

/// Whether a refuted finding needs a new challenge: a reviewer of another provider or method raised it, for the first time.
fn is_raised_anew(settings: &Settings, court: &Court, id: FindingId, by: &Raiser) -> bool {
    let Some(finding) = court.finding(id) else { return false };
    let invalid = Status::Dismissed { why: Dismissal::Invalid };
    let refuted = finding.history.iter().filter(|step| step.status == invalid).count();
    let other = |raiser: &Raiser| {
        raiser == by
            || raiser.role != by.role
            || settings.provider(&raiser.agent) != settings.provider(&by.agent)
    };
    finding.status == invalid && refuted == 1 && finding.raisers.iter().all(other)
}

fn defer_beside_the_goal(host: &dyn Host, court: &mut Court, raised: &[FindingId]) {
    if host.settings().goal != Goal::CriticalOnly {
        return;
    }
    for id in raised {
        if court.finding(*id).is_some_and(|f| f.status == Status::Open && f.severity != Severity::Critical) {
            let to = Status::Deferred { why: Deferral::Goal };
            let note = "the goal asks for critical findings only";
            court.move_to(host, *id, Transition::new(to, Cause::OutsideGoal, note));
        }
    }
}

impl Court {
    /// Records what this pass over the text shows.
    fn take_stock(&mut self, new: &New, seats: &[Seat], whole: bool) {
        let weighty: Vec<FindingId> =
            new.fresh(self).filter(|finding| finding.severity.weighs()).map(|finding| finding.id).collect();
        self.held_for_confidence = false;
        self.last_pass.changed = false;
        self.last_pass.unheard = seats.iter().filter(|seat| seat.raised.is_none()).count() as u32;
        self.last_pass.sound = telling(self, seats, self.round) && whole;
        self.last_pass.dry = self.last_pass.sound && weighty.is_empty();
        self.last_pass.raised = weighty;
    }

    /// Whether something was fixed and nothing is open or blocked.
    fn is_all_fixed(&self) -> bool {
        let counts = Counts::of(&self.findings);
        counts.fixed > 0 && counts.open + counts.blocked == 0
    }

    /// Records what a consultation used and which agents failed in it.
    pub(super) fn use_up(&mut self, host: &dyn Host, job: Job, came: &Consulted) {
        self.metrics.subagent_invocations += came.calls();
        self.metrics.total_backoff_seconds += came.paused_ms / 1000;
        self.metrics.recoveries += u32::from(came.recovered);
        for usage in &came.usages {
            self.spent.add(usage);
        }
        for LimitedAgent { agent, until_ms } in &came.limited {
            self.spent.limited.insert(agent.clone(), *until_ms);
        }
        for WaitedFor { from_ms, to_ms } in &came.waited {
            self.spent.waited.add(*from_ms, *to_ms);
        }
        for AgentTry { agent, tried } in &came.tried {
            // Compared before and after, so that the warning appears once, when the stand-in takes over.
            let worked = seating::stand_in(host.settings(), job, agent, &self.spent.failing) == *agent;
            self.spent.tried(agent, *tried);
            let other = seating::stand_in(host.settings(), job, agent, &self.spent.failing);
            if worked && other != *agent {
                let what = match tried {
                    Tried::CannotWork => "cannot work here",
                    _ => "has failed twice in a row",
                };
                let text = format!("{agent} {what}; {other} stands in for it");
                host.note(Event::Warned { text });
            }
        }
    }

    /// Records a consultation: calls, tokens, failures in a row.
    pub(super) fn book(&mut self, host: &dyn Host, job: Job, came: &Consulted, answered: bool) {
        self.use_up(host, job, came);
        let outside = came.fault.as_ref().is_some_and(Fault::is_environment);
        if answered {
            self.spent.failures_in_a_row = 0;
        } else if !outside {
            // A failure of the environment does not count as a failed attempt.
            self.spent.failures_in_a_row += 1;
            self.metrics.failures += 1;
        }
    }
}
