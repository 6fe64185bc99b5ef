//! Asks one agent, gives it one second chance, and asks other agents where it cannot continue.
//!
//! An unreadable or too short answer is requested once more with a correction, in the same session if the client kept it.
//! The [`FaultPolicy`] of a fault says what follows from it: one retry after a pause, a wait until a usage limit is reset,
//! another agent, or nothing. An agent that fails at once, twice in the same way, counts as a broken environment.

use alloc::{format, string::String, vec::Vec};

use crate::{
    brief::{AgentReply, Content, Session, Task, Workplace},
    client::{Job, Size},
    effect::{AskAgent, AskOutcome, AwaitReset, FailedTask, Sleep},
    event::Event,
    fault::{Fault, FaultKind, Rule},
    files::Stray,
    finding::Severity,
    host::{Host, Parked},
    ids::{AgentName, Key},
    level::Role,
    limits::{Spent, Tried, Usage, backoff_ms, budget, cost_left, task_ms},
    seating, sizing,
    stamp::Stamp,
    text::cut,
};

/// The outcome of a consultation.
#[derive(Debug, Default)]
pub(super) struct Consulted {
    /// Every readable reply.
    pub replies: Vec<Answered>,
    /// The last fault.
    pub fault: Option<Fault>,
    pub usages: Vec<Usage>,
    /// The agents that tried, with their outcomes.
    pub tried: Vec<AgentTry>,
    /// Edits outside the agents' workspaces.
    pub strayed: Vec<Stray>,
    /// The second attempt helped.
    pub recovered: bool,
    pub paused_ms: u64,
    pub limited: Vec<LimitedAgent>,
    pub waited: Vec<WaitedFor>,
}

/// A readable reply with the key of its effect.
#[derive(Debug)]
pub(super) struct Answered {
    pub key: Key,
    pub reply: AgentReply,
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(super) struct AgentTry {
    pub agent: AgentName,
    pub tried: Tried,
}

/// An agent that may not be asked before a wall time.
#[derive(Debug)]
pub(super) struct LimitedAgent {
    pub agent: AgentName,
    pub until_ms: u64,
}

/// A wait until an agent could be asked again, in awake time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitedFor {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// What follows from an answer or a failure.
#[derive(Debug)]
enum NextAsk {
    /// The task is requested once more under this key.
    Ask(Key),
    /// The consultation is over.
    Done,
}

impl Consulted {
    /// Returns the agent of the last attempt.
    pub fn by(&self) -> Option<&AgentName> {
        self.tried.last().map(|last| &last.agent)
    }

    pub fn calls(&self) -> u32 {
        self.usages.len() as u32
    }
}

/// Asks an agent to do a task. `judge` says what is wrong with an answer; `None` accepts it.
pub(super) async fn consult(
    host: &dyn Host,
    key: &Key,
    task: Task,
    spent: &Spent,
    judge: impl Fn(&Content) -> Option<String>,
) -> Result<Consulted, Parked> {
    let own_ms = task.timeout_ms;
    let task = Task { size: Some(size(host, &task, false)), ..task };
    let mut asking = Asking {
        host,
        key,
        came: Consulted::default(),
        spent: spent.clone(),
        asked_again: false,
        others: Vec::new(),
        waits: 0,
        task,
    };
    // An earlier task may have found that the agent is at its limit.
    let mut next = asking.known_limit(key.clone()).await?;
    while let NextAsk::Ask(key) = next {
        // A further attempt needs budget like any other step; the first one was checked by the caller.
        let further = !asking.came.usages.is_empty();
        let limits = &host.settings().limits;
        if further && budget(limits, &asking.spent).is_some() {
            break;
        }
        // Time and budget are computed anew for each attempt: earlier ones have used some of both.
        asking.task.timeout_ms = task_ms(own_ms, limits, &asking.spent, host.now().awake_ms);
        asking.task.budget = Some(cost_left(limits, &asking.spent));
        next = match host.perform(key.clone(), AskAgent { task: asking.task.clone() }).await? {
            AskOutcome::Answered(reply) => asking.answered(key, reply, &judge),
            AskOutcome::Failed(FailedTask { fault, usage, strayed, .. }) => {
                asking.came.strayed.extend(strayed);
                asking.came.usages.push(usage);
                asking.spent.add(&usage);
                asking.failed(fault).await?
            }
        };
    }
    Ok(asking.came)
}

/// The most waits of one task for a usage limit.
const MOST_WAITS: u32 = 12;
/// A margin for clocks that differ from the provider's.
const MARGIN_MS: u64 = 2_000;
/// The wait if the provider gave no time: twice as long each time, from this to the maximum.
const SHORTEST_WAIT_MS: u64 = 60_000;
const LONGEST_WAIT_MS: u64 = 3_600_000;

struct Asking<'a> {
    host: &'a dyn Host,
    key: &'a Key,
    came: Consulted,
    /// The usage of the run including that of this consultation.
    spent: Spent,
    asked_again: bool,
    /// The agents that were asked instead of others.
    others: Vec<AgentName>,
    waits: u32,
    task: Task,
}

impl Asking<'_> {
    /// Handles an answer.
    fn answered(
        &mut self,
        key: Key,
        mut reply: AgentReply,
        judge: impl Fn(&Content) -> Option<String>,
    ) -> NextAsk {
        let agent = self.task.agent.clone();
        // Stray edits and usage count even if the answer itself is rejected.
        self.came.strayed.append(&mut reply.strayed);
        self.came.usages.push(reply.usage);
        self.spent.add(&reply.usage);
        let readable = !matches!(reply.content, Content::Unreadable { .. });
        let tried = if readable { Tried::Answered } else { Tried::Failed };
        self.came.tried.push(AgentTry { agent: agent.clone(), tried });
        let wrong = judge(&reply.content);
        let session = reply.session.clone();
        if let Content::Unreadable { message } = &reply.content {
            let detail = format!("{agent} answered in a form that cannot be read: {message}");
            self.came.fault = Some(Fault::new(FaultKind::Malformed, detail));
        } else {
            // A readable answer after a fault means that the second attempt helped.
            self.came.recovered = self.came.fault.take().is_some();
            self.came.replies.push(Answered { key, reply });
        }
        // Only one correction: an agent that fails twice to follow the format will not follow it.
        let Some(wrong) = wrong.filter(|_| !self.asked_again) else { return NextAsk::Done };
        self.asked_again = true;
        self.task.brief.correction = wrong;
        // In the same session the correction is enough; in a new one the prompt has everything.
        self.task.session = session.filter(|session| self.may_go_on(session));
        NextAsk::Ask(self.key.second_try())
    }

    /// Whether the session may be continued. A fixer gets a new workspace each time, in which its earlier changes are missing.
    fn may_go_on(&self, session: &Session) -> bool {
        matches!(self.task.place, Workplace::Frozen { .. }) && session.is_fresh(self.host.now().wall_ms)
    }

    /// Handles a failure: the same agent or another one may be asked next.
    async fn failed(&mut self, fault: Fault) -> Result<NextAsk, Parked> {
        if !fault.is_environment() && self.task.session.take().is_some() {
            // The client may have dropped the session, so the task is started anew with the complete prompt.
            self.came.fault = Some(fault);
            return Ok(NextAsk::Ask(self.key.new_session()));
        }
        let fault = self.broken(&fault).unwrap_or(fault);
        let agent = self.task.agent.clone();
        let tried = match fault.rule() {
            Rule::Wait => Tried::Limited,
            // Counts twice, so that other tasks do not ask this agent in vain.
            Rule::FallBack | Rule::Stop if fault.is_environment() => Tried::CannotWork,
            _ => Tried::Failed,
        };
        self.came.tried.push(AgentTry { agent: agent.clone(), tried });
        self.spent.tried(&agent, tried);
        self.came.fault = Some(fault.clone());
        match fault.rule() {
            Rule::Stop => Ok(NextAsk::Done),
            Rule::Wait => self.limited(&fault).await,
            // The one second attempt is shared with corrections: at most two answers of an agent are paid for.
            Rule::Retry | Rule::RetryThenFallBack if !self.asked_again => self.retry().await,
            Rule::Retry => Ok(NextAsk::Done),
            Rule::RetryThenFallBack | Rule::FallBack => self.go_on(&fault).await,
        }
    }

    /// Detects an agent that failed at once, twice in the same way: it would fail for ever until something outside changes.
    fn broken(&self, fault: &Fault) -> Option<Fault> {
        let before = self.came.fault.as_ref()?;
        let same_agent = self.came.by() == Some(&self.task.agent);
        let same = fault.instant && before == fault && same_agent && !fault.is_environment();
        same.then(|| {
            Fault::new(FaultKind::CannotStart, format!("{}; twice, and at once each time", fault.detail))
        })
    }

    /// Retries after a pause, with the stand-in of an agent that keeps failing.
    async fn retry(&mut self) -> Result<NextAsk, Parked> {
        self.asked_again = true;
        // A failed task is worth a larger model.
        self.task.size = Some(size(self.host, &self.task, true));
        let (settings, job) = (self.host.settings(), Job::of(self.task.brief.role));
        let other = seating::stand_in(settings, job, &self.task.agent, &self.spent.failing);
        if other != self.task.agent {
            self.hand_to(other);
        }
        let ms = pause_ms(self.host, &self.spent);
        self.came.paused_ms += ms;
        self.host.perform(self.key.pause(), Sleep { ms }).await?;
        Ok(NextAsk::Ask(self.key.second_try()))
    }

    fn hand_to(&mut self, other: AgentName) {
        self.task.agent = other;
        // A session belongs to one agent.
        self.task.session = None;
    }

    /// Hands the task to an agent that works and was not asked yet. Returns the key to ask it under; `None` if there is none.
    fn fall_back(&mut self, fault: &Fault) -> Option<Key> {
        let other = self.other()?;
        let agent = &self.task.agent;
        let what = match (&fault.kind, self.spent.limited.get(agent)) {
            (FaultKind::Limited { .. }, Some(until_ms)) => {
                let until = Stamp { wall_ms: *until_ms, awake_ms: 0 }.utc();
                format!("{agent} is at its usage limit until {until} UTC")
            }
            _ => cut(&fault.detail, 200),
        };
        let text = format!("{what}; {other} does it instead of {agent}");
        self.host.note(Event::Warned { text });
        self.others.push(other.clone());
        self.hand_to(other);
        Some(self.key.other_agent(self.others.len() as u32))
    }

    fn other(&self) -> Option<AgentName> {
        let asked = |name: &AgentName| self.came.tried.iter().any(|tried| tried.agent == *name);
        let now = self.host.now().wall_ms;
        let free = |name: &AgentName| self.spent.limited.get(name).is_none_or(|until| *until <= now);
        let job = Job::of(self.task.brief.role);
        let others = seating::others(self.host.settings(), job, &self.task.agent, &self.spent.failing);
        others.into_iter().find(|name| !asked(name) && free(name))
    }

    /// Avoids asking an agent that is known to be at its usage limit.
    async fn known_limit(&mut self, key: Key) -> Result<NextAsk, Parked> {
        let Stamp { wall_ms: now, .. } = self.host.now();
        let until = self.spent.limited.get(&self.task.agent).copied().filter(|until| *until > now);
        let Some(until_ms) = until else { return Ok(NextAsk::Ask(key)) };
        let detail = format!("agent `{}` is at its usage limit", self.task.agent);
        let fault = Fault::new(FaultKind::Limited { until_ms: Some(until_ms) }, detail);
        self.came.fault = Some(fault.clone());
        self.limited(&fault).await
    }

    /// Handles a usage limit: another agent is asked now, or the run waits for this one.
    async fn limited(&mut self, fault: &Fault) -> Result<NextAsk, Parked> {
        let FaultKind::Limited { until_ms } = fault.kind else { return Ok(NextAsk::Done) };
        let now_ms = self.host.now().wall_ms;
        let guess = (SHORTEST_WAIT_MS << self.waits.min(10)).min(LONGEST_WAIT_MS);
        // A reset time in the past says nothing, so it is treated like a missing one.
        let until_ms = until_ms.filter(|until| *until > now_ms).unwrap_or(now_ms + guess);
        let agent = self.task.agent.clone();
        self.came.limited.push(LimitedAgent { agent: agent.clone(), until_ms });
        self.spent.limited.insert(agent.clone(), until_ms);
        if self.host.settings().limits.waits.first {
            return self.wait_for(agent, until_ms, fault).await;
        }
        self.go_on(fault).await
    }

    /// Asks another agent, or waits for the one whose limit is reset first.
    async fn go_on(&mut self, fault: &Fault) -> Result<NextAsk, Parked> {
        if let Some(key) = self.fall_back(fault) {
            return Ok(NextAsk::Ask(key));
        }
        // Only agents that this consultation has already asked are waited for.
        let limited = self.came.limited.iter().filter_map(|LimitedAgent { agent, .. }| {
            self.spent.limited.get(agent).map(|until_ms| (*until_ms, agent.clone()))
        });
        match limited.min() {
            Some((until_ms, agent)) => self.wait_for(agent, until_ms, fault).await,
            None => Ok(NextAsk::Done),
        }
    }

    async fn wait_for(&mut self, agent: AgentName, until_ms: u64, fault: &Fault) -> Result<NextAsk, Parked> {
        let now = self.host.now();
        let needed = until_ms.saturating_sub(now.wall_ms).saturating_add(MARGIN_MS);
        let room = self.host.settings().limits.waits.at_most_ms.saturating_sub(self.spent.waited.ms);
        // Waiting would exceed the configured total, so the task fails with the time of the reset.
        if needed > room || self.waits >= MOST_WAITS {
            let until = Stamp { wall_ms: until_ms, awake_ms: 0 }.utc();
            let detail = format!("{}; {agent} may be asked again at {until} UTC", fault.detail);
            self.came.fault = Some(Fault::new(fault.kind.clone(), detail));
            return Ok(NextAsk::Done);
        }
        self.waits += 1;
        // The margin also avoids asking in the very second of the reset.
        let until_ms = until_ms.saturating_add(MARGIN_MS);
        let wait = AwaitReset { agent: agent.clone(), until_ms, why: fault.detail.clone() };
        self.host.perform(self.key.wait_for_reset(self.waits), wait).await?;
        let waited = WaitedFor { from_ms: now.awake_ms, to_ms: self.host.now().awake_ms };
        // Waiting does not use up the runtime limit.
        self.spent.waited.add(waited.from_ms, waited.to_ms);
        self.came.waited.push(waited);
        self.spent.limited.remove(&agent);
        if agent != self.task.agent {
            self.hand_to(agent);
        }
        Ok(NextAsk::Ask(self.key.after_wait(self.waits)))
    }
}

/// Returns the model size for the task. A repair is easy if all its findings have low severity.
fn size(host: &dyn Host, task: &Task, escalated: bool) -> Size {
    let brief = &task.brief;
    let minor = brief.assigned.iter().all(|assigned| assigned.severity == Severity::Low);
    let easy = brief.role == Role::Fixer && minor;
    sizing::size(host.settings().tier, brief.role, &brief.subject, escalated, easy)
}

/// Returns the pause before the second attempt: the configured one, or longer after failures in a row.
fn pause_ms(host: &dyn Host, spent: &Spent) -> u64 {
    let own = host.settings().tasks.retry_after_ms;
    let backoff = backoff_ms(spent.failures_in_a_row);
    // Zero switches pauses off, also the backoff.
    if own > 0 { own.max(backoff) } else { own }
}
