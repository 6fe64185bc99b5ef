//! What an agent printed, and what a driver reads in it: while it works ([`AgentEvent`]) and after it has ended
//! ([`DecodedOutput`]).

use tribunal_engine::{fault::Fault, limits::AgentUsage};
use tribunal_workflows::tasks::brief::AgentSession;

use super::launch_request::SessionMode;

/// What a process left behind when it ended.
#[derive(Clone, Copy, Debug)]
pub struct FinishedProcess<'a> {
    /// The exit code; `None` if the process was killed, by us or by a signal.
    pub exit_code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub clock: &'a LocalClock,
    pub session_mode: SessionMode<'a>,
}

/// The current time with its time zone: messages say "5pm".
#[derive(Clone, Debug)]
pub struct LocalClock {
    /// Milliseconds since 1970, UTC.
    pub now_ms: u64,
    pub time_zone: jiff::tz::TimeZone,
}

/// What the output of an agent contains. Each of these is a fact of its own, and none follows from the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedOutput {
    /// The final answer in the agent's own words.
    pub answer_text: String,
    /// The usage of this task alone.
    pub usage: AgentUsage,
    /// The session, with everything it has used so far.
    pub session: Option<AgentSession>,
    /// What the client says went wrong. The output may still contain an answer.
    pub fault: Option<Fault>,
    /// Whether its final line was printed, so that its end afterwards cut nothing off.
    pub is_finished: bool,
    /// Whether it had begun to work: the model answered at least in part.
    pub did_work: bool,
    /// What the user should know besides the answer: denied tools, servers that did not start.
    pub remarks: Vec<String>,
    /// The uses of tools that the client denied, each once: the tool and what it was used on.
    pub denied: Vec<String>,
}

/// Something that an agent reports while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    Text {
        text: String,
    },
    ToolUsed {
        tool_name: String,
        target: String,
    },
    FileChanged {
        file_path: String,
    },
    ToolDenied {
        tool_name: String,
    },
    /// The client will try again by itself.
    Retrying {
        reason: String,
    },
    Failed {
        reason: String,
    },
}

impl AgentEvent {
    /// The event as one line for the user; `None` if it is not worth a line.
    pub fn progress_line(&self) -> Option<String> {
        match self {
            AgentEvent::Text { text } => {
                // A message can have many lines; its first one with content has to do.
                let first_line = text.lines().map(str::trim).find(|text_line| !text_line.is_empty())?;
                // An answer in its final form is not progress.
                (!first_line.starts_with(['{', '[', '`'])).then(|| first_line.into())
            }
            AgentEvent::ToolUsed { tool_name, target } if target.is_empty() => Some(tool_name.clone()),
            AgentEvent::ToolUsed { tool_name, target } => Some(format!("{tool_name} {target}")),
            AgentEvent::FileChanged { file_path } => Some(format!("changed {file_path}")),
            AgentEvent::ToolDenied { tool_name: denied_tool } => Some(format!("permission denied: {denied_tool}")),
            AgentEvent::Retrying { reason } => Some(format!("retrying: {reason}")),
            AgentEvent::Failed { reason } => Some(reason.clone()),
        }
    }
}
