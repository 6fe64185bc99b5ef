//! What an agent printed, and what a driver reads in it: while it works ([`AgentEvent`]) and after it has ended
//! ([`DecodedOutput`]).

use tribunal_core::{brief::Session, fault::Fault, limits::Usage};

use super::order::Talk;

/// What a process left behind when it ended.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'a> {
    /// The exit code; `None` if the process was killed, by us or by a signal.
    pub code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub clock: &'a Clock,
    pub talk: Talk<'a>,
}

/// The current time with its time zone: messages say "5pm".
#[derive(Clone, Debug)]
pub struct Clock {
    /// Milliseconds since 1970, UTC.
    pub now_ms: u64,
    pub zone: jiff::tz::TimeZone,
}

/// What the output of an agent contains. Each of these is a fact of its own, and none follows from the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The final answer in the agent's own words.
    pub text: String,
    /// The usage of this task alone.
    pub usage: Usage,
    /// The session, with everything it has used so far.
    pub session: Option<Session>,
    /// What the client says went wrong. The output may still contain an answer.
    pub fault: Option<Fault>,
    /// Whether its final line was printed, so that its end afterwards cut nothing off.
    pub finished: bool,
    /// Whether it had begun to work: the model answered at least in part.
    pub active: bool,
    /// What the user should know besides the answer: denied tools, servers that did not start.
    pub remarks: Vec<String>,
}

/// Something that an agent reports while it works.
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
    /// The client will try again by itself.
    Retrying {
        why: String,
    },
    Failed {
        why: String,
    },
}

impl AgentEvent {
    /// The event as one line for the user; `None` if it is not worth a line.
    pub fn shown(&self) -> Option<String> {
        match self {
            AgentEvent::Text { text } => {
                // A message can have many lines; its first one with content has to do.
                let first = text.lines().map(str::trim).find(|line| !line.is_empty())?;
                // An answer in its final form is not progress.
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
