//! How each agent is launched and how its output is read. One driver, one module.
//!
//! To add one: a variant in `core`'s `DriverSpec`, a module here, an arm in each function below. A driver starts nothing
//! and looks for nothing: what it needs to know comes in, what is to be done goes out as data. It says what an agent's
//! output *says*; what follows from that is `core`'s business.

mod claude;
mod codex;
mod command;
mod shared;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tribunal_core::{
    brief::Session,
    client::{Job, Size},
    fault::Fault,
    ids::Key,
    limits::{Cost, Usage},
    settings::{AgentSpec, DriverSpec},
};

use crate::{answer::Wanted, replay};

pub use codex::servers_in as codex_servers_in;

/// What an agent is to do, as far as its driver needs to know.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub key: &'a Key,
    pub prompt: String,
    pub wanted: Wanted,
    pub job: Job,
    pub size: Option<Size>,
    /// What it may cost.
    pub budget: Option<Cost>,
    /// A folder of ours outside of it, for files that a client is pointed at.
    pub beside: &'a Path,
    pub talk: Talk<'a>,
}

/// Which talk a task is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk<'a> {
    New,
    GoOn(&'a Session),
    /// Goes on from it and leaves it as it is: somebody may have gone on with it unseen.
    Branch(&'a Session),
}

impl<'a> Talk<'a> {
    pub fn session(self) -> Option<&'a Session> {
        match self {
            Talk::New => None,
            Talk::GoOn(session) | Talk::Branch(session) => Some(session),
        }
    }
}

/// What `supervise` needs to start an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<String, String>,
    /// Variables of ours that it must not see.
    pub without: Vec<String>,
    /// For its standard input.
    pub input: String,
    /// To be written before it starts.
    pub files: Vec<(PathBuf, String)>,
}

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
    Session {
        id: String,
    },
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
    Answered,
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
            AgentEvent::Session { .. } | AgentEvent::Answered => None,
        }
    }
}

/// Where things are on this machine; drivers never look for themselves.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    /// Our own program: it plays scripts.
    pub own_program: PathBuf,
    /// The project's root, for paths in settings.
    pub project: PathBuf,
    /// MCP servers in the person's own settings of Codex, by name: it has no flag that leaves them all out.
    pub codex_servers: Vec<String>,
    /// The text of the person's own settings of Claude Code: only a part of it is taken. Empty: there are none.
    pub claude_settings: String,
}

/// Names the task to the process: scripts choose their part by it, and a later sweep knows its own by it.
pub const TASK_VARIABLE: &str = "TRIBUNAL_TASK";

pub fn launch(agent: &AgentSpec, order: Order<'_>, at: &Whereabouts) -> Launch {
    let task = order.key.to_string();
    let mut launch = match &agent.driver {
        DriverSpec::Command { argv } => command::launch(argv, order),
        DriverSpec::Replay { script, paced } => replay::launch(script, *paced, order, at),
        DriverSpec::ClaudeCode(client) => claude::launch(agent, client, order, at),
        DriverSpec::Codex(client) => codex::launch(agent, client, order, at),
    };
    // Its folder is a copy: a program that is named by a path is the project's.
    if let Some(program) = agent.driver.client().and_then(|client| client.program.as_ref())
        && program.contains('/')
    {
        launch.program = at.project.join(program).into_os_string();
    }
    launch.env.insert(TASK_VARIABLE.to_string(), task);
    launch
}

/// Reads what an agent printed.
pub fn decode(agent: &AgentSpec, finished: &Finished<'_>) -> Decoded {
    match &agent.driver {
        DriverSpec::Command { .. } => command::decode(finished),
        DriverSpec::Replay { .. } => replay::decode(finished.stdout),
        DriverSpec::ClaudeCode(client) => claude::decode(client, finished),
        DriverSpec::Codex(client) => codex::decode(client, finished),
    }
}

/// Whether the agent's output has lines of progress in it.
pub fn shows_progress(driver: &DriverSpec) -> bool {
    !matches!(driver, DriverSpec::Command { .. })
}

/// What an agent says it is doing in this line of its output.
pub fn events(driver: &DriverSpec, line: &str) -> Vec<AgentEvent> {
    match driver {
        DriverSpec::Command { .. } => Vec::new(),
        DriverSpec::Replay { .. } => match serde_json::from_str(line) {
            Ok(replay::Line::Progress { text }) => vec![AgentEvent::Text { text }],
            _ => Vec::new(),
        },
        DriverSpec::ClaudeCode(_) => claude::events(line),
        DriverSpec::Codex(_) => codex::events(line),
    }
}

/// Whose model a driver asks where nothing else is set; empty: nobody knows.
pub fn vendor(driver: &DriverSpec) -> &'static str {
    match driver {
        DriverSpec::Command { .. } | DriverSpec::Replay { .. } => "",
        DriverSpec::ClaudeCode(_) => "anthropic",
        DriverSpec::Codex(_) => "openai",
    }
}

/// Tools that settings allow and the client does not have: it would overlook them without a word.
pub fn unknown_tools(driver: &DriverSpec) -> Vec<String> {
    match driver {
        DriverSpec::Command { .. } | DriverSpec::Replay { .. } => Vec::new(),
        DriverSpec::ClaudeCode(client) => claude::unknown(client),
        // It has a sandbox and no list of tools.
        DriverSpec::Codex(client) => client.allow.clone(),
    }
}
