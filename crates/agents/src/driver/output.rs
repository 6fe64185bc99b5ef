//! What an agent printed, and what a driver reads in it: while it works ([`AgentEvent`]) and when it has ended ([`Decoded`]).

use tribunal_core::{brief::Session, fault::Fault, limits::Usage};

use super::order::Talk;

/// What an ended process left behind.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// None: it was ended by somebody, or by a signal.
    pub code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub clock: &'a Clock,
    pub talk: Talk<'a>,
}

/// What time it is, and where: messages say “5pm”.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Since 1970, UTC.
    pub now_ms: u64,
    pub zone: jiff::tz::TimeZone,
}

/// What an agent's output came to. Each of these is a fact of its own; none follows from the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The final answer, as the agent worded it.
    pub text: String,
    /// Of this task alone.
    pub usage: Usage,
    /// The talk, with all it has used so far.
    pub session: Option<Session>,
    /// What the client says went wrong. Its output may still have an answer in it.
    pub fault: Option<Fault>,
    /// Its last word was there: whatever ended it afterwards did not cut it off.
    pub finished: bool,
    /// It had begun to work: there was an answer of the model, or a part of one.
    pub active: bool,
    /// What a person should know of it beside the answer: tools it was denied, servers that did not start.
    pub remarks: Vec<String>,
}

/// Something an agent tells while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    Text {
        text: String,
    },
    Tool {
        name: String,
        about: String,
    },
    Changed {
        path: String,
    },
    Denied {
        tool: String,
    },
    /// It will try again by itself.
    Retrying {
        why: String,
    },
    Failed {
        why: String,
    },
}

impl AgentEvent {
    /// As a person reads it in one line; none: nothing worth a line.
    pub fn shown(&self) -> Option<String> {
        match self {
            AgentEvent::Text { text } => {
                let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
                // An answer in its form is no news.
                (!first.starts_with(['{', '[', '`'])).then(|| first.into())
            }
            AgentEvent::Tool { name, about } if about.is_empty() => Some(name.clone()),
            AgentEvent::Tool { name, about } => Some(format!("{name} {about}")),
            AgentEvent::Changed { path } => Some(format!("changed {path}")),
            AgentEvent::Denied { tool } => Some(format!("was denied {tool}")),
            AgentEvent::Retrying { why } => Some(format!("tries again: {why}")),
            AgentEvent::Failed { why } => Some(why.clone()),
        }
    }
}
