//! Asking one agent, with the one second chance it gets.
//!
//! An answer that cannot be read or is too thin is asked for once more with what was wrong; a task that failed is tried
//! once more after a pause, unless something outside has to change first.

use alloc::{format, string::String, vec::Vec};

use crate::{
    brief::{AgentReply, Content, Task},
    client::Job,
    effect::{Effect, Reply, Stray},
    fault::{Fault, FaultKind},
    host::{Host, Parked},
    ids::{AgentName, Key},
    limits::{Spent, Tried, Usage, backoff_ms, budget, task_ms},
    seating,
};

/// What came of a consultation.
#[derive(Debug, Default)]
pub(super) struct Consulted {
    /// Every readable reply with the key it came under.
    pub replies: Vec<(Key, AgentReply)>,
    /// The last thing that went wrong.
    pub fault: Option<Fault>,
    pub usages: Vec<Usage>,
    /// Who tried, and what came of it.
    pub tried: Vec<(AgentName, Tried)>,
    /// What was written past their copies.
    pub strayed: Vec<Stray>,
    /// The second try helped.
    pub recovered: bool,
    pub paused_ms: u64,
}

impl Consulted {
    /// Who spoke last.
    pub fn by(&self) -> Option<&AgentName> {
        self.tried.last().map(|(agent, _)| agent)
    }

    pub fn calls(&self) -> u32 {
        self.usages.len() as u32
    }
}

/// Before the second try: the pause that is set, or longer after failures in a row; none where pauses are switched off.
fn pause_ms(host: &dyn Host, spent: &Spent) -> u64 {
    let own = host.settings().tasks.retry_after_ms;
    let backoff = backoff_ms(spent.failures_in_a_row);
    if own > 0 && backoff > own && host.patched("backoff") { backoff } else { own }
}

/// `judge` says what is wrong with an answer; None: it is good.
pub(super) async fn consult(
    host: &dyn Host,
    key: &Key,
    mut task: Task,
    spent: &Spent,
    judge: impl Fn(&Content) -> Option<String>,
) -> Result<Consulted, Parked> {
    let mut came = Consulted::default();
    let own_ms = task.timeout_ms;
    let job = Job::of(task.brief.role);
    let mut spent = spent.clone();
    for key in [key.clone(), key.child("again")] {
        let first = came.usages.is_empty();
        // A second try is a step like any other: what is used up is used up.
        if !first && budget(&host.settings().limits, &spent).is_some() && host.patched("limit-before-again") {
            break;
        }
        task.timeout_ms = task_ms(own_ms, &host.settings().limits, &spent, host.now().awake_ms);
        match host.perform(key.clone(), Effect::Ask { task: task.clone() }).await? {
            Reply::Agent(mut reply) => {
                came.strayed.append(&mut reply.strayed);
                came.usages.push(reply.usage);
                spent.add(&reply.usage);
                let readable = !matches!(reply.content, Content::Unreadable { .. });
                came.tried.push((task.agent.clone(), if readable { Tried::Answered } else { Tried::Failed }));
                let wrong = judge(&reply.content);
                if let Content::Unreadable { message } = &reply.content {
                    let detail = format!("{} answered in a form that cannot be read: {message}", task.agent);
                    came.fault = Some(Fault::new(FaultKind::Malformed, detail));
                } else {
                    came.recovered = came.fault.take().is_some();
                    came.replies.push((key, reply));
                }
                let Some(wrong) = wrong else { break };
                task.brief.correction = wrong;
            }
            Reply::Failed { fault, usage, strayed, .. } => {
                came.strayed.extend(strayed);
                came.usages.push(usage);
                spent.add(&usage);
                let hopeless = fault.is_environment();
                came.fault = Some(fault);
                let tried = if hopeless { Tried::CannotWork } else { Tried::Failed };
                came.tried.push((task.agent.clone(), tried));
                spent.tried(&task.agent, tried);
                if hopeless {
                    break;
                }
                if first {
                    let other = seating::stand_in(host.settings(), job, &task.agent, &spent.failing);
                    if other != task.agent && host.patched("stand-in") {
                        task.agent = other;
                    }
                    let ms = pause_ms(host, &spent);
                    came.paused_ms += ms;
                    host.perform(key.child("pause"), Effect::Sleep { ms }).await?;
                }
            }
            other => {
                let detail = format!("an agent task was answered with {other:?}");
                came.fault = Some(Fault::new(FaultKind::Malformed, detail));
                break;
            }
        }
    }
    Ok(came)
}
