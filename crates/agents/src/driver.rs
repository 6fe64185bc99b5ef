//! How each agent is launched and how its output is read. One driver, one arm; bigger ones get a module of their own.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use tribunal_core::{ids::Key, limits::Usage, settings::DriverSpec};

use crate::replay;

/// What `supervise` needs to start an agent; the prompt goes to its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<String, String>,
}

/// What an agent's output came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The final answer, as the agent worded it.
    pub text: String,
    pub usage: Usage,
}

/// Where things are on this machine; drivers never look for themselves.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    /// Our own program: it plays scripts.
    pub own_program: PathBuf,
    /// The project's root, for paths in settings.
    pub project: PathBuf,
}

/// Names the task to the process: scripts choose their part by it, and a later sweep knows its own by it.
pub const TASK_VARIABLE: &str = "TRIBUNAL_TASK";

pub fn launch(driver: &DriverSpec, task: &Key, at: &Whereabouts) -> Launch {
    let mut env = BTreeMap::from([(TASK_VARIABLE.to_string(), task.to_string())]);
    match driver {
        DriverSpec::Command { argv } => {
            let mut words = argv.iter().map(OsString::from);
            Launch { program: words.next().unwrap_or_default(), args: words.collect(), env }
        }
        DriverSpec::Replay { script, paced } => {
            env.insert(replay::PACED_VARIABLE.to_string(), u8::from(*paced).to_string());
            let args = vec![replay::COMMAND.into(), at.project.join(script).into_os_string()];
            Launch { program: at.own_program.clone().into_os_string(), args, env }
        }
    }
}

/// Reads an agent's standard output.
pub fn decode(driver: &DriverSpec, stdout: &str) -> Decoded {
    match driver {
        DriverSpec::Command { .. } => Decoded { text: stdout.to_string(), usage: Usage::default() },
        DriverSpec::Replay { .. } => replay::decode(stdout),
    }
}

/// Whether the agent's output has lines of progress in it.
pub fn shows_progress(driver: &DriverSpec) -> bool {
    matches!(driver, DriverSpec::Replay { .. })
}

/// What an agent says it is doing, if this line of output says so.
pub fn progress(driver: &DriverSpec, line: &str) -> Option<String> {
    match driver {
        DriverSpec::Command { .. } => None,
        DriverSpec::Replay { .. } => match serde_json::from_str(line) {
            Ok(replay::Line::Progress { text }) => Some(text),
            _ => None,
        },
    }
}
