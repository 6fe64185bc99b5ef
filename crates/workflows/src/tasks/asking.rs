//! Asks one agent, gives it one second chance, and asks other agents where it cannot continue: the service for all kinds of
//! runs.
//!
//! An unreadable or too short answer is requested once more with a correction, in the same session if the client kept it.
//! The [`FaultPolicy`] of a fault says what follows from it: one retry after a pause, a wait until a usage limit is reset,
//! another agent, or nothing. If a provider is overloaded and there is no other agent, the task waits longer and longer, as
//! long as the run may wait. An agent that fails at once, twice in the same way, counts as a broken environment. A task may
//! continue a session; one that has expired or that the client has lost is replaced by a new one with the complete prompt.
//!
//! The caller chooses the agent ([`crate::tasks::selection`]), and records the outcome ([`crate::tasks::consult_outcome`]).

use alloc::{format, string::String, vec::Vec};

use crate::{
    runs::{
        effect::{AskAgent, AskOutcome, CallBooking, FailedTask, PostponedCall},
        types::{RunEvent, RunHost},
    },
    tasks::{
        brief::{AgentReply, AgentSession, AgentTask, AnswerContent, WorkspaceKind},
        client::ModelSize,
        consult_outcome::{AgentTry, ConsultOutcome, KeptSession, KeyedReply, LimitedAgent, WaitInterval},
        selection,
    },
};
use tribunal_engine::{
    effect::{AwaitReset, Sleep, WaitCause},
    fault::{Fault, FaultKind, FaultPolicy},
    host::ParkedRun,
    ids::{AgentName, Key},
    limits::{
        AttemptOutcome, Cost, RunUsage, backoff_ms, check_budget, remaining_cost, remaining_tokens, task_timeout_ms,
    },
    text::truncate_chars,
    timestamp::Timestamp,
};

/// What follows from an answer or a failure.
#[derive(Debug)]
enum NextAsk {
    /// The task is requested once more under this key.
    AskUnder(Key),
    /// The consultation is over.
    Done,
}

/// A task to ask an agent to do, and what the service has to know about the run.
#[derive(Debug)]
pub struct AgentConsultation<'a> {
    /// The key of the task. Further attempts have keys below it.
    pub task_key: &'a Key,
    pub task: AgentTask,
    /// What the run has used so far.
    pub run_usage: &'a RunUsage,
    /// How many tasks run side by side, with this one. They share what is left of the budget.
    pub parallel_tasks: usize,
    /// The model size for a task that has failed; `None` keeps that of the task.
    pub escalated_size: Option<ModelSize>,
    /// Whether an agent that broke off is not asked again: the caller looks first at what it left. What the environment breaks is
    /// repeated as ever, by this agent or by another one.
    pub is_single_try: bool,
}

/// Finds what is wrong with an answer to a task whose caller has no demands of its own; `None` accepts it.
pub fn find_unreadable(content: &AnswerContent) -> Option<String> {
    match content {
        AnswerContent::Unreadable { message } => Some(message.clone()),
        _ => None,
    }
}

/// Asks an agent to do a task. `find_problem` says what is wrong with an answer; `None` accepts it.
pub async fn consult_agent(
    host: &RunHost<'_>,
    consultation: AgentConsultation<'_>,
    find_problem: impl Fn(&AnswerContent) -> Option<String>,
) -> Result<ConsultOutcome, ParkedRun> {
    let AgentConsultation { task_key, task, run_usage, parallel_tasks, escalated_size, is_single_try } = consultation;
    let own_timeout_ms = task.timeout_ms;
    let limits = &host.settings().limits;
    let cost_at_start = remaining_cost(limits, run_usage);
    let share_of_tokens = remaining_tokens(limits, run_usage) / parallel_tasks.max(1) as u64;
    let tokens_at_start = run_usage.uncosted_tokens;
    let mut state = ConsultState {
        host,
        task_key,
        outcome: ConsultOutcome::new(task.job),
        run_usage: run_usage.clone(),
        second_try: if is_single_try { SecondTry::AfterOutage } else { SecondTry::Free },
        asked_instead: Vec::new(),
        wait_count: 0,
        overload_waits: 0,
        has_lost_session: false,
        booking: None,
        escalated_size,
        task,
    };
    // An earlier task may have found that the agent is at its limit.
    let mut next_ask = state.check_known_limit(task_key.clone()).await?;
    while let NextAsk::AskUnder(ask_key) = next_ask {
        // Each attempt takes from the same share, because the tasks side by side do not know what the others have used.
        let spent = cost_at_start.0.saturating_sub(remaining_cost(limits, &state.run_usage).0);
        let budget = Cost((cost_at_start.0 / parallel_tasks.max(1) as u64).saturating_sub(spent));
        // A further attempt needs budget like any other step; the first one was checked by the caller.
        let is_further_try = !state.outcome.usages.is_empty();
        let used_tokens = state.run_usage.uncosted_tokens.saturating_sub(tokens_at_start);
        let left_tokens = share_of_tokens.saturating_sub(used_tokens);
        if is_further_try && (budget.is_zero() || left_tokens == 0 || check_budget(limits, &state.run_usage).is_some())
        {
            break;
        }
        // Time and budget are computed anew for each attempt: earlier ones have used some of both.
        state.task.timeout_ms =
            task_timeout_ms(own_timeout_ms, limits, &state.run_usage, host.last_timestamp().awake_ms);
        state.task.budget = Some(budget);
        state.task.max_tokens = Some(left_tokens.min(limits.task_tokens).max(1));
        state.drop_expired_session();
        let ask_agent = AskAgent { task: state.task.clone(), booking: state.booking.take() };
        next_ask = match host.perform(ask_key.clone(), ask_agent).await? {
            AskOutcome::Answered(reply) => state.handle_answer(ask_key, reply, &find_problem),
            AskOutcome::Failed(FailedTask { fault, usage, strayed, workspace, .. }) => {
                state.outcome.strayed.extend(strayed);
                state.outcome.workspace = workspace.or(state.outcome.workspace.take());
                state.outcome.usages.push(usage);
                state.run_usage.add_usage(&usage);
                state.handle_failure(&ask_key, fault).await?
            }
            AskOutcome::Postponed(postponed_call) => state.wait_for_booking(postponed_call).await?,
        };
    }
    Ok(state.outcome)
}

/// The most waits of one task for a usage limit or a free call.
const MAX_WAITS: u32 = 12;
/// A margin for clocks that differ from the provider's.
const CLOCK_MARGIN_MS: u64 = 2_000;
/// The wait if the provider gave no time: twice as long each time, from this to the maximum.
const MIN_WAIT_MS: u64 = 60_000;
const MAX_WAIT_MS: u64 = 3_600_000;

/// The waits for an overloaded provider.
const MIN_OVERLOAD_WAIT_MS: u64 = 1_000;
const MAX_OVERLOAD_WAIT_MS: u64 = 300_000;

/// Returns a number below a limit that differs between tasks, so that they do not all come back at the same moment. It is the
/// same in a replay.
fn scatter(task_key: &Key, wait_number: u32, limit: u64) -> u64 {
    let seed = task_key
        .as_str()
        .bytes()
        .fold(u64::from(wait_number), |sum, byte| sum.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte)));
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % limit.max(1)
}

/// Whether the agent may be asked a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecondTry {
    Free,
    /// Only if the environment failed, not if the agent broke off.
    AfterOutage,
    Made,
}

struct ConsultState<'a> {
    host: &'a RunHost<'a>,
    task_key: &'a Key,
    outcome: ConsultOutcome,
    /// The usage of the run including that of this consultation.
    run_usage: RunUsage,
    second_try: SecondTry,
    /// The agents that were asked instead of others.
    asked_instead: Vec<AgentName>,
    wait_count: u32,
    /// How many of the waits were for an overloaded provider.
    overload_waits: u32,
    has_lost_session: bool,
    /// The call that the next attempt has booked.
    booking: Option<CallBooking>,
    escalated_size: Option<ModelSize>,
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
        self.outcome.workspace = reply.workspace.take().or(self.outcome.workspace.take());
        self.outcome.usages.push(reply.usage);
        self.run_usage.add_usage(&reply.usage);
        let is_readable = !matches!(reply.content, AnswerContent::Unreadable { .. });
        let attempt = if is_readable { AttemptOutcome::Answered } else { AttemptOutcome::Failed };
        self.outcome.attempts.push(AgentTry { agent: agent_name.clone(), outcome: attempt });
        let problem = find_problem(&reply.content);
        let kept_session = reply.session.clone();
        self.outcome.session =
            kept_session.clone().map(|session| KeptSession { agent: agent_name.clone(), session: *session });
        if let AnswerContent::Unreadable { message } = &reply.content {
            let detail = format!("could not read the answer of {agent_name}: {message}");
            self.outcome.fault = Some(Fault::new(FaultKind::Malformed, detail));
        } else {
            // A readable answer after a fault means that a later attempt helped.
            self.outcome.has_recovered = self.outcome.fault.take().is_some();
            self.outcome.replies.push(KeyedReply { reply_key, reply });
        }
        // Only one correction: the second answer counts as it is.
        let Some(problem) = problem.filter(|_| self.second_try != SecondTry::Made) else { return NextAsk::Done };
        self.second_try = SecondTry::Made;
        self.task.brief.set_correction(problem);
        // In the same session the correction is enough; in a new one the prompt has everything.
        self.task.session = kept_session.filter(|kept_session| self.can_continue_session(kept_session));
        NextAsk::AskUnder(self.task_key.second_try())
    }

    /// Whether a correction may continue the session. An agent that writes gets a new workspace each time, in which its earlier
    /// changes are missing.
    fn can_continue_session(&self, kept_session: &AgentSession) -> bool {
        let is_same_workspace = match self.task.place {
            WorkspaceKind::Frozen { .. } | WorkspaceKind::Development { .. } => true,
            WorkspaceKind::Private => false,
        };
        is_same_workspace && kept_session.is_fresh(self.host.last_timestamp().wall_ms)
    }

    /// Drops a session that is too old to be continued: it may have expired while the run waited.
    fn drop_expired_session(&mut self) {
        let wall_ms = self.host.last_timestamp().wall_ms;
        self.task.session.take_if(|session| !session.is_fresh(wall_ms));
    }

    /// Handles a failure: the same agent or another one may be asked next.
    async fn handle_failure(&mut self, ask_key: &Key, fault: Fault) -> Result<NextAsk, ParkedRun> {
        if !fault.is_environment() && self.task.session.take().is_some() {
            // The client may have dropped the session, so the task is started anew with the complete prompt.
            self.outcome.fault = Some(fault);
            // The session of the task and then that of its correction can be lost, so the second key is below its attempt.
            let parent_key = if self.has_lost_session { ask_key } else { self.task_key };
            self.has_lost_session = true;
            return Ok(NextAsk::AskUnder(parent_key.new_session()));
        }
        let fault = self.detect_broken_agent(&fault).unwrap_or(fault);
        let agent_name = self.task.agent.clone();
        let attempt = match fault.policy() {
            FaultPolicy::Wait => AttemptOutcome::Limited,
            // An outage passes; the agent itself works.
            _ if fault.kind == FaultKind::Overloaded && self.second_try == SecondTry::Made => AttemptOutcome::Limited,
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
            FaultPolicy::Retry if self.second_try == SecondTry::AfterOutage => Ok(NextAsk::Done),
            // The one second attempt is shared with corrections.
            FaultPolicy::Retry | FaultPolicy::RetryThenFallBack if self.second_try != SecondTry::Made => {
                self.retry_after_pause().await
            }
            FaultPolicy::Retry => Ok(NextAsk::Done),
            FaultPolicy::RetryThenFallBack | FaultPolicy::FallBack => self.ask_other_or_wait(&fault).await,
        }
    }

    /// Detects an agent that failed at once, twice in the same way: it would fail again until something outside changes.
    fn detect_broken_agent(&self, fault: &Fault) -> Option<Fault> {
        let previous_fault = self.outcome.fault.as_ref()?;
        let is_same_agent = self.outcome.last_agent() == Some(&self.task.agent);
        let is_same_fault = fault.instant && previous_fault == fault && is_same_agent && !fault.is_environment();
        // An outage ends by itself.
        let is_same_fault = is_same_fault && fault.kind != FaultKind::Overloaded;
        is_same_fault.then(|| {
            Fault::new(FaultKind::CannotStart, format!("{} (failed twice, each time immediately)", fault.detail))
        })
    }

    /// Retries after a pause, with the stand-in of an agent that keeps failing.
    async fn retry_after_pause(&mut self) -> Result<NextAsk, ParkedRun> {
        self.second_try = SecondTry::Made;
        // A failed task is worth a larger model.
        self.task.size = self.escalated_size.or(self.task.size);
        let stand_in_agent =
            selection::stand_in(self.host.settings(), self.task.job, &self.task.agent, &self.run_usage.failing);
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
        let candidates =
            selection::working_others(self.host.settings(), self.task.job, &self.task.agent, &self.run_usage.failing);
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
            None if fault.kind == FaultKind::Overloaded => self.wait_out_overload(fault).await,
            None => Ok(NextAsk::Done),
        }
    }

    /// Waits until the provider may work again: twice as long each time, at most five minutes.
    async fn wait_out_overload(&mut self, fault: &Fault) -> Result<NextAsk, ParkedRun> {
        let longest_ms = (MIN_OVERLOAD_WAIT_MS << self.overload_waits.min(20)).min(MAX_OVERLOAD_WAIT_MS);
        let wait_ms = longest_ms - scatter(self.task_key, self.overload_waits, longest_ms / 4);
        let until_ms = self.host.last_timestamp().wall_ms.saturating_add(wait_ms);
        if !self.has_wait_time(until_ms) {
            return Ok(NextAsk::Done);
        }
        self.overload_waits += 1;
        let wait = AwaitReset {
            agent: self.task.agent.clone(),
            until_ms,
            why: truncate_chars(&fault.detail, 200),
            cause: WaitCause::Overload,
        };
        self.perform_wait(wait).await.map(NextAsk::AskUnder)
    }

    async fn wait_for_agent(
        &mut self,
        limited_agent: AgentName,
        until_ms: u64,
        fault: &Fault,
    ) -> Result<NextAsk, ParkedRun> {
        let wait = AwaitReset {
            agent: limited_agent.clone(),
            until_ms: until_ms.saturating_add(CLOCK_MARGIN_MS),
            why: fault.detail.clone(),
            cause: WaitCause::UsageLimit,
        };
        if !self.may_wait_until(wait.until_ms) {
            let reset_time = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
            let detail = format!("{}; {limited_agent} is available again at {reset_time} UTC", fault.detail);
            self.outcome.fault = Some(Fault::new(fault.kind.clone(), detail));
            return Ok(NextAsk::Done);
        }
        let ask_key = self.perform_wait(wait).await?;
        self.run_usage.limited.remove(&limited_agent);
        if limited_agent != self.task.agent {
            self.hand_over_to(limited_agent);
        }
        Ok(NextAsk::AskUnder(ask_key))
    }

    /// Waits for the call that was booked because all calls of this hour are used up. No other agent is asked: the calls of all
    /// agents are counted together.
    async fn wait_for_booking(&mut self, postponed_call: PostponedCall) -> Result<NextAsk, ParkedRun> {
        let PostponedCall { booking, why } = postponed_call;
        if !self.may_wait_until(booking.start_ms) {
            let start_time = Timestamp { wall_ms: booking.start_ms, awake_ms: 0 }.format_utc();
            let kind = FaultKind::Limited { until_ms: Some(booking.start_ms) };
            self.outcome.fault = Some(Fault::new(kind, format!("{why}; the next call is free at {start_time} UTC")));
            return Ok(NextAsk::Done);
        }
        let wait = AwaitReset {
            agent: self.task.agent.clone(),
            until_ms: booking.start_ms,
            why,
            cause: WaitCause::CallsPerHour,
        };
        let ask_key = self.perform_wait(wait).await?;
        self.booking = Some(booking);
        Ok(NextAsk::AskUnder(ask_key))
    }

    /// Whether the run may wait: neither the configured total nor the number of waits is exceeded by it.
    fn may_wait_until(&self, until_ms: u64) -> bool {
        self.has_wait_time(until_ms) && self.wait_count - self.overload_waits < MAX_WAITS
    }

    fn has_wait_time(&self, until_ms: u64) -> bool {
        let needed_ms = until_ms.saturating_sub(self.host.last_timestamp().wall_ms);
        let allowed_ms = self.host.settings().limits.waits.at_most_ms.saturating_sub(self.run_usage.waited.ms);
        needed_ms <= allowed_ms
    }

    /// Waits, and returns the key under which the task is asked after that.
    async fn perform_wait(&mut self, wait: AwaitReset) -> Result<Key, ParkedRun> {
        let from_ms = self.host.last_timestamp().awake_ms;
        self.wait_count += 1;
        self.host.perform(self.task_key.wait_for_reset(self.wait_count), wait).await?;
        let wait_interval = WaitInterval { from_ms, to_ms: self.host.last_timestamp().awake_ms };
        // Waiting does not use up the runtime limit.
        self.run_usage.waited.add_interval(wait_interval.from_ms, wait_interval.to_ms);
        self.outcome.wait_intervals.push(wait_interval);
        Ok(self.task_key.after_wait(self.wait_count))
    }
}

/// Returns the pause before the second attempt: the configured one, or longer after failures in a row.
fn pause_ms(host: &RunHost<'_>, run_usage: &RunUsage) -> u64 {
    let configured_ms = host.settings().tasks.retry_after_ms;
    let longer_ms = backoff_ms(run_usage.failures_in_a_row);
    // Zero switches pauses off, also the backoff.
    if configured_ms > 0 { configured_ms.max(longer_ms) } else { configured_ms }
}
