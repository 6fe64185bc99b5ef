//! The outcome of asking an agent, and what a run records of it. [`crate::tasks::asking`] asks.

use alloc::{boxed::Box, collections::BTreeSet, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::workspace::WorkspaceState,
    runs::types::{RunEvent, RunHost},
    tasks::{
        brief::{AgentReply, AgentSession, AgentTask, AnswerContent},
        client::JobKind,
        selection,
    },
};
use tribunal_engine::{
    fault::Fault,
    files::StrayEdit,
    ids::{AgentName, Key},
    limits::{AgentUsage, AttemptOutcome, RunUsage},
};

/// The outcome of a consultation.
#[derive(Debug)]
pub struct ConsultOutcome {
    pub job: JobKind,
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
    /// The session of the last reply, if the client kept it. A later task can continue it.
    pub session: Option<KeptSession>,
    /// What the last agent left in its workspace for development, whether or not it answered.
    pub workspace: Option<Box<WorkspaceState>>,
}

impl ConsultOutcome {
    pub fn new(job: JobKind) -> ConsultOutcome {
        ConsultOutcome {
            job,
            replies: Vec::new(),
            fault: None,
            usages: Vec::new(),
            attempts: Vec::new(),
            strayed: Vec::new(),
            has_recovered: false,
            paused_ms: 0,
            limited_agents: Vec::new(),
            wait_intervals: Vec::new(),
            session: None,
            workspace: None,
        }
    }

    /// Returns the agent of the last attempt.
    pub fn last_agent(&self) -> Option<&AgentName> {
        self.attempts.last().map(|last_attempt| &last_attempt.agent)
    }

    /// Returns the last readable answer.
    pub fn last_content(&self) -> Option<&AnswerContent> {
        self.replies.last().map(|keyed_reply| &keyed_reply.reply.content)
    }

    /// Lists what the user should know about the replies, with the tools that the client denied.
    pub fn list_remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.replies.iter().flat_map(|keyed| keyed.reply.remarks.clone()).collect();
        if let Some(AnswerContent::Turn(report)) = self.last_content()
            && !report.denied.is_empty()
        {
            let tools: BTreeSet<&str> = report.denied.iter().map(String::as_str).collect();
            remarks.push(format!("the client denied its agent {}", Vec::from_iter(tools).join(", ")));
        }
        remarks
    }

    pub fn call_count(&self) -> u32 {
        self.usages.len() as u32
    }

    /// Whether the consultation counts as a failed task. A failure of the environment does not.
    pub fn is_failure(&self, is_answered: bool) -> bool {
        !is_answered && !self.fault.as_ref().is_some_and(Fault::is_environment)
    }

    /// Records what the consultation used, and which agents are limited or failing by now.
    pub fn record_usage(&self, host: &RunHost<'_>, run_usage: &mut RunUsage) {
        for usage in &self.usages {
            run_usage.add_usage(usage);
        }
        for LimitedAgent { agent, until_ms } in &self.limited_agents {
            run_usage.limited.insert(agent.clone(), *until_ms);
        }
        for WaitInterval { from_ms, to_ms } in &self.wait_intervals {
            run_usage.waited.add_interval(*from_ms, *to_ms);
        }
        for AgentTry { agent, outcome: attempt } in &self.attempts {
            // The stand-in is compared before and after, so that the warning appears once, when it takes over.
            let worked_before = selection::stand_in(host.settings(), self.job, agent, &run_usage.failing) == *agent;
            run_usage.record_attempt(agent, *attempt);
            let stand_in_agent = selection::stand_in(host.settings(), self.job, agent, &run_usage.failing);
            if worked_before && stand_in_agent != *agent {
                let problem = match attempt {
                    AttemptOutcome::CannotWork => "does not work here",
                    _ => "has failed twice in a row",
                };
                let warning = format!("{agent} {problem}; using {stand_in_agent} instead");
                host.note_event(RunEvent::Warned { text: warning });
            }
        }
    }

    /// Records the consultation as one task: what it used, and whether it is one more failure in a row.
    pub fn record_result(&self, host: &RunHost<'_>, run_usage: &mut RunUsage, is_answered: bool) {
        self.record_usage(host, run_usage);
        if is_answered {
            run_usage.failures_in_a_row = 0;
        } else if self.is_failure(is_answered) {
            run_usage.failures_in_a_row += 1;
        }
    }
}

/// A readable reply with the key of its effect.
#[derive(Debug)]
pub struct KeyedReply {
    pub reply_key: Key,
    pub reply: AgentReply,
}

/// The outcome of one attempt.
#[derive(Debug)]
pub struct AgentTry {
    pub agent: AgentName,
    pub outcome: AttemptOutcome,
}

/// An agent that may not be asked before a wall time.
#[derive(Debug)]
pub struct LimitedAgent {
    pub agent: AgentName,
    pub until_ms: u64,
}

/// A wait until an agent could be asked again, in awake time.
#[derive(Clone, Copy, Debug)]
pub struct WaitInterval {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// A session that a later task can continue, with the agent it belongs to. A workflow keeps it in its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeptSession {
    pub agent: AgentName,
    pub session: AgentSession,
}

impl KeptSession {
    /// Lets a task continue the session, if the session belongs to its agent.
    pub fn continue_in(&self, task: &mut AgentTask) {
        if self.agent == task.agent {
            task.session = Some(Box::new(self.session.clone()));
        }
    }
}
