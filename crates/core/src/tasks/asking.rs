//! Asks one agent, gives it one second chance, and asks other agents where it cannot continue.
//!
//! An unreadable or too short answer is requested once more with a correction, in the same session if the client kept it.
//! The [`FaultPolicy`] of a fault says what follows from it: one retry after a pause, a wait until a usage limit is reset,
//! another agent, or nothing. An agent that fails at once, twice in the same way, counts as a broken environment.

use alloc::{format, string::String, vec::Vec};

use crate::{
    engine::{
        effect::{AskAgent, AskOutcome, AwaitReset, FailedTask, Sleep},
        event::RunEvent,
        files::StrayEdit,
        host::{Host, ParkedRun},
        ids::{AgentName, Key},
        limits::{AgentUsage, AttemptOutcome, RunUsage, backoff_ms, check_budget, remaining_cost, task_timeout_ms},
        timestamp::Timestamp,
    },
    review::{finding::Severity, level::AgentRole},
    tasks::{
        brief::{AgentReply, AgentSession, AgentTask, AnswerContent, WorkspaceKind},
        client::{JobKind, ModelSize},
        fault::{Fault, FaultKind, FaultPolicy},
        selection, sizing,
    },
    text::truncate_chars,
};

/// The outcome of a consultation.
#[derive(Debug, Default)]
pub(crate) struct ConsultOutcome {
    /// Every readable reply.
    pub replies: Vec<KeyedReply>,
    /// The last fault.
    pub fault: Option<Fault>,
    pub usages: Vec<AgentUsage>,
    /// The agents that tried, with their outcomes.
    pub attempts: Vec<AgentTry>,
    /// Edits outside the agents' workspaces.
    pub strayed: Vec<StrayEdit>,
    /// A later attempt was answered after one had failed.
    pub has_recovered: bool,
    pub paused_ms: u64,
    pub limited_agents: Vec<LimitedAgent>,
    pub wait_intervals: Vec<WaitInterval>,
}

/// A readable reply with the key of its effect.
#[derive(Debug)]
pub(crate) struct KeyedReply {
    pub reply_key: Key,
    pub reply: AgentReply,
}

/// The outcome of one attempt.
#[derive(Debug)]
pub(crate) struct AgentTry {
    pub agent: AgentName,
    pub outcome: AttemptOutcome,
}

/// An agent that may not be asked before a wall time.
#[derive(Debug)]
pub(crate) struct LimitedAgent {
    pub agent: AgentName,
    pub until_ms: u64,
}

/// A wait until an agent could be asked again, in awake time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitInterval {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// What follows from an answer or a failure.
#[derive(Debug)]
enum NextAsk {
    /// The task is requested once more under this key.
    AskUnder(Key),
    /// The consultation is over.
    Done,
}

impl ConsultOutcome {
    /// Returns the agent of the last attempt.
    pub fn last_agent(&self) -> Option<&AgentName> {
        self.attempts.last().map(|last_attempt| &last_attempt.agent)
    }

    pub fn call_count(&self) -> u32 {
        self.usages.len() as u32
    }
}

/// Asks an agent to do a task. `find_problem` says what is wrong with an answer; `None` accepts it.
pub(crate) async fn consult_agent(
    host: &dyn Host,
    ask_key: &Key,
    agent_task: AgentTask,
    usage_so_far: &RunUsage,
    find_problem: impl Fn(&AnswerContent) -> Option<String>,
) -> Result<ConsultOutcome, ParkedRun> {
    let own_timeout_ms = agent_task.timeout_ms;
    let agent_task = AgentTask { size: Some(task_size(host, &agent_task, false)), ..agent_task };
    let mut state = ConsultState {
        host,
        task_key: ask_key,
        outcome: ConsultOutcome::default(),
        run_usage: usage_so_far.clone(),
        asked_again: false,
        asked_instead: Vec::new(),
        wait_count: 0,
        task: agent_task,
    };
    // An earlier task may have found that the agent is at its limit.
    let mut next_ask = state.check_known_limit(ask_key.clone()).await?;
    while let NextAsk::AskUnder(ask_key) = next_ask {
        // A further attempt needs budget like any other step; the first one was checked by the caller.
        let is_further_try = !state.outcome.usages.is_empty();
        let limits = &host.settings().limits;
        if is_further_try && check_budget(limits, &state.run_usage).is_some() {
            break;
        }
        // Time and budget are computed anew for each attempt: earlier ones have used some of both.
        state.task.timeout_ms =
            task_timeout_ms(own_timeout_ms, limits, &state.run_usage, host.last_timestamp().awake_ms);
        state.task.budget = Some(remaining_cost(limits, &state.run_usage));
        next_ask = match host.perform(ask_key.clone(), AskAgent { task: state.task.clone() }).await? {
            AskOutcome::Answered(reply) => state.handle_answer(ask_key, reply, &find_problem),
            AskOutcome::Failed(FailedTask { fault, usage, strayed, .. }) => {
                state.outcome.strayed.extend(strayed);
                state.outcome.usages.push(usage);
                state.run_usage.add_usage(&usage);
                state.handle_failure(fault).await?
            }
        };
    }
    Ok(state.outcome)
}

/// The most waits of one task for a usage limit.
const MAX_WAITS: u32 = 12;
/// A margin for clocks that differ from the provider's.
const CLOCK_MARGIN_MS: u64 = 2_000;
/// The wait if the provider gave no time: twice as long each time, from this to the maximum.
const MIN_WAIT_MS: u64 = 60_000;
const MAX_WAIT_MS: u64 = 3_600_000;

struct ConsultState<'a> {
    host: &'a dyn Host,
    task_key: &'a Key,
    outcome: ConsultOutcome,
    /// The usage of the run including that of this consultation.
    run_usage: RunUsage,
    asked_again: bool,
    /// The agents that were asked instead of others.
    asked_instead: Vec<AgentName>,
    wait_count: u32,
    task: AgentTask,
}

impl ConsultState<'_> {
    /// Records an answer and decides whether it is requested once more with a correction.
    fn handle_answer(
        &mut self,
        reply_key: Key,
        mut reply: AgentReply,
        find_problem: impl Fn(&AnswerContent) -> Option<String>,
    ) -> NextAsk {
        let agent_name = self.task.agent.clone();
        // Stray edits and usage count even if the answer itself is rejected.
        self.outcome.strayed.append(&mut reply.strayed);
        self.outcome.usages.push(reply.usage);
        self.run_usage.add_usage(&reply.usage);
        let is_readable = !matches!(reply.content, AnswerContent::Unreadable { .. });
        let attempt = if is_readable { AttemptOutcome::Answered } else { AttemptOutcome::Failed };
        self.outcome.attempts.push(AgentTry { agent: agent_name.clone(), outcome: attempt });
        let problem = find_problem(&reply.content);
        let kept_session = reply.session.clone();
        if let AnswerContent::Unreadable { message } = &reply.content {
            let detail = format!("could not read the answer of {agent_name}: {message}");
            self.outcome.fault = Some(Fault::new(FaultKind::Malformed, detail));
        } else {
            // A readable answer after a fault means that a later attempt helped.
            self.outcome.has_recovered = self.outcome.fault.take().is_some();
            self.outcome.replies.push(KeyedReply { reply_key, reply });
        }
        // Only one correction: the second answer counts as it is.
        let Some(problem) = problem.filter(|_| !self.asked_again) else { return NextAsk::Done };
        self.asked_again = true;
        self.task.brief.correction = problem;
        // In the same session the correction is enough; in a new one the prompt has everything.
        self.task.session = kept_session.filter(|kept_session| self.can_continue_session(kept_session));
        NextAsk::AskUnder(self.task_key.second_try())
    }

    /// Whether the session may be continued. A fixer gets a new workspace each time, in which its earlier changes are missing.
    fn can_continue_session(&self, kept_session: &AgentSession) -> bool {
        matches!(self.task.place, WorkspaceKind::Frozen { .. })
            && kept_session.is_fresh(self.host.last_timestamp().wall_ms)
    }

    /// Handles a failure: the same agent or another one may be asked next.
    async fn handle_failure(&mut self, fault: Fault) -> Result<NextAsk, ParkedRun> {
        if !fault.is_environment() && self.task.session.take().is_some() {
            // The client may have dropped the session, so the task is started anew with the complete prompt.
            self.outcome.fault = Some(fault);
            return Ok(NextAsk::AskUnder(self.task_key.new_session()));
        }
        let fault = self.detect_broken_agent(&fault).unwrap_or(fault);
        let agent_name = self.task.agent.clone();
        let attempt = match fault.policy() {
            FaultPolicy::Wait => AttemptOutcome::Limited,
            // This counts as two failures, so that other tasks do not ask this agent in vain.
            FaultPolicy::FallBack | FaultPolicy::Stop if fault.is_environment() => AttemptOutcome::CannotWork,
            _ => AttemptOutcome::Failed,
        };
        self.outcome.attempts.push(AgentTry { agent: agent_name.clone(), outcome: attempt });
        self.run_usage.record_attempt(&agent_name, attempt);
        self.outcome.fault = Some(fault.clone());
        match fault.policy() {
            FaultPolicy::Stop => Ok(NextAsk::Done),
            FaultPolicy::Wait => self.handle_usage_limit(&fault).await,
            // The one second attempt is shared with corrections.
            FaultPolicy::Retry | FaultPolicy::RetryThenFallBack if !self.asked_again => self.retry_after_pause().await,
            FaultPolicy::Retry => Ok(NextAsk::Done),
            FaultPolicy::RetryThenFallBack | FaultPolicy::FallBack => self.ask_other_or_wait(&fault).await,
        }
    }

    /// Detects an agent that failed at once, twice in the same way: it would fail again until something outside changes.
    fn detect_broken_agent(&self, fault: &Fault) -> Option<Fault> {
        let previous_fault = self.outcome.fault.as_ref()?;
        let is_same_agent = self.outcome.last_agent() == Some(&self.task.agent);
        let is_same_fault = fault.instant && previous_fault == fault && is_same_agent && !fault.is_environment();
        is_same_fault.then(|| {
            Fault::new(FaultKind::CannotStart, format!("{} (failed twice, each time immediately)", fault.detail))
        })
    }

    /// Retries after a pause, with the stand-in of an agent that keeps failing.
    async fn retry_after_pause(&mut self) -> Result<NextAsk, ParkedRun> {
        self.asked_again = true;
        // A failed task is worth a larger model.
        self.task.size = Some(task_size(self.host, &self.task, true));
        let (settings, job) = (self.host.settings(), JobKind::from_role(self.task.brief.role));
        let stand_in_agent = selection::stand_in(settings, job, &self.task.agent, &self.run_usage.failing);
        if stand_in_agent != self.task.agent {
            self.hand_over_to(stand_in_agent);
        }
        let sleep_ms = pause_ms(self.host, &self.run_usage);
        self.outcome.paused_ms += sleep_ms;
        self.host.perform(self.task_key.pause_key(), Sleep { ms: sleep_ms }).await?;
        Ok(NextAsk::AskUnder(self.task_key.second_try()))
    }

    fn hand_over_to(&mut self, new_agent: AgentName) {
        self.task.agent = new_agent;
        // A session belongs to one agent.
        self.task.session = None;
    }

    /// Hands the task to an agent that works and was not asked yet. Returns the key to ask it under; `None` if there is none.
    fn fall_back(&mut self, fault: &Fault) -> Option<Key> {
        let new_agent = self.next_free_agent()?;
        let failed_agent = &self.task.agent;
        let explanation = match (&fault.kind, self.run_usage.limited.get(failed_agent)) {
            (FaultKind::Limited { .. }, Some(until_ms)) => {
                let reset_time = Timestamp { wall_ms: *until_ms, awake_ms: 0 }.format_utc();
                format!("{failed_agent} is at its usage limit until {reset_time} UTC")
            }
            _ => truncate_chars(&fault.detail, 200),
        };
        let warning = format!("{explanation}; using {new_agent} instead of {failed_agent}");
        self.host.note_event(RunEvent::Warned { text: warning });
        self.asked_instead.push(new_agent.clone());
        self.hand_over_to(new_agent);
        Some(self.task_key.other_agent(self.asked_instead.len() as u32))
    }

    fn next_free_agent(&self) -> Option<AgentName> {
        let was_asked =
            |agent_name: &AgentName| self.outcome.attempts.iter().any(|attempt| attempt.agent == *agent_name);
        let wall_ms = self.host.last_timestamp().wall_ms;
        let is_free =
            |agent_name: &AgentName| self.run_usage.limited.get(agent_name).is_none_or(|reset_ms| *reset_ms <= wall_ms);
        let job_kind = JobKind::from_role(self.task.brief.role);
        let candidates =
            selection::working_others(self.host.settings(), job_kind, &self.task.agent, &self.run_usage.failing);
        candidates.into_iter().find(|agent_name| !was_asked(agent_name) && is_free(agent_name))
    }

    /// Avoids asking an agent that is known to be at its usage limit.
    async fn check_known_limit(&mut self, ask_key: Key) -> Result<NextAsk, ParkedRun> {
        let Timestamp { wall_ms: current_ms, .. } = self.host.last_timestamp();
        let known_reset_ms =
            self.run_usage.limited.get(&self.task.agent).copied().filter(|known_reset_ms| *known_reset_ms > current_ms);
        let Some(until_ms) = known_reset_ms else { return Ok(NextAsk::AskUnder(ask_key)) };
        let detail = format!("agent `{}` is at its usage limit", self.task.agent);
        let fault = Fault::new(FaultKind::Limited { until_ms: Some(until_ms) }, detail);
        self.outcome.fault = Some(fault.clone());
        self.handle_usage_limit(&fault).await
    }

    /// Handles a usage limit: another agent is asked now, or the run waits for this one.
    async fn handle_usage_limit(&mut self, fault: &Fault) -> Result<NextAsk, ParkedRun> {
        let FaultKind::Limited { until_ms } = fault.kind else { return Ok(NextAsk::Done) };
        let now_ms = self.host.last_timestamp().wall_ms;
        let guessed_wait_ms = (MIN_WAIT_MS << self.wait_count.min(10)).min(MAX_WAIT_MS);
        // A reset time in the past says nothing, so it is treated like a missing one.
        let until_ms = until_ms.filter(|reset_ms| *reset_ms > now_ms).unwrap_or(now_ms + guessed_wait_ms);
        let agent_name = self.task.agent.clone();
        self.outcome.limited_agents.push(LimitedAgent { agent: agent_name.clone(), until_ms });
        self.run_usage.limited.insert(agent_name.clone(), until_ms);
        if self.host.settings().limits.waits.first {
            return self.wait_for_agent(agent_name, until_ms, fault).await;
        }
        self.ask_other_or_wait(fault).await
    }

    /// Asks another agent, or waits for the one whose limit is reset first.
    async fn ask_other_or_wait(&mut self, fault: &Fault) -> Result<NextAsk, ParkedRun> {
        if let Some(ask_key) = self.fall_back(fault) {
            return Ok(NextAsk::AskUnder(ask_key));
        }
        // Only agents whose usage limit this consultation has met are waited for.
        let reset_times = self.outcome.limited_agents.iter().filter_map(|LimitedAgent { agent, .. }| {
            self.run_usage.limited.get(agent).map(|until_ms| (*until_ms, agent.clone()))
        });
        match reset_times.min() {
            Some((until_ms, agent)) => self.wait_for_agent(agent, until_ms, fault).await,
            None => Ok(NextAsk::Done),
        }
    }

    async fn wait_for_agent(
        &mut self,
        limited_agent: AgentName,
        until_ms: u64,
        fault: &Fault,
    ) -> Result<NextAsk, ParkedRun> {
        let start_time = self.host.last_timestamp();
        let needed_ms = until_ms.saturating_sub(start_time.wall_ms).saturating_add(CLOCK_MARGIN_MS);
        let allowed_ms = self.host.settings().limits.waits.at_most_ms.saturating_sub(self.run_usage.waited.ms);
        // Waiting would exceed the configured total or the number of waits, so the task fails with the time of the reset.
        if needed_ms > allowed_ms || self.wait_count >= MAX_WAITS {
            let reset_time = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
            let detail = format!("{}; {limited_agent} is available again at {reset_time} UTC", fault.detail);
            self.outcome.fault = Some(Fault::new(fault.kind.clone(), detail));
            return Ok(NextAsk::Done);
        }
        self.wait_count += 1;
        let until_ms = until_ms.saturating_add(CLOCK_MARGIN_MS);
        let await_reset = AwaitReset { agent: limited_agent.clone(), until_ms, why: fault.detail.clone() };
        self.host.perform(self.task_key.wait_for_reset(self.wait_count), await_reset).await?;
        let wait_interval = WaitInterval { from_ms: start_time.awake_ms, to_ms: self.host.last_timestamp().awake_ms };
        // Waiting does not use up the runtime limit.
        self.run_usage.waited.add_interval(wait_interval.from_ms, wait_interval.to_ms);
        self.outcome.wait_intervals.push(wait_interval);
        self.run_usage.limited.remove(&limited_agent);
        if limited_agent != self.task.agent {
            self.hand_over_to(limited_agent);
        }
        Ok(NextAsk::AskUnder(self.task_key.after_wait(self.wait_count)))
    }
}

/// Returns the model size for the task. A repair is easy if all its findings have low severity.
fn task_size(host: &dyn Host, agent_task: &AgentTask, is_escalated: bool) -> ModelSize {
    let task_brief = &agent_task.brief;
    let is_minor = task_brief.assigned.iter().all(|finding| finding.severity == Severity::Low);
    let is_easy = task_brief.role == AgentRole::Fixer && is_minor;
    sizing::model_size(host.settings().tier, task_brief.role, &task_brief.subject, is_escalated, is_easy)
}

/// Returns the pause before the second attempt: the configured one, or longer after failures in a row.
fn pause_ms(host: &dyn Host, run_usage: &RunUsage) -> u64 {
    let configured_ms = host.settings().tasks.retry_after_ms;
    let longer_ms = backoff_ms(run_usage.failures_in_a_row);
    // Zero switches pauses off, also the backoff.
    if configured_ms > 0 { configured_ms.max(longer_ms) } else { configured_ms }
}
