//! The data that goes into a driver's launch and the data that comes out of it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tribunal_engine::{ids::Key, limits::Cost};
use tribunal_workflows::tasks::{
    brief::AgentSession,
    client::{JobKind, ModelSize},
    purpose::{AgentAccess, ExpectedAnswer},
};

/// What an agent is to do, as far as its driver needs to know.
#[derive(Clone, Debug)]
pub struct LaunchRequest<'a> {
    pub task_key: &'a Key,
    pub prompt: String,
    /// Whether the prompt begins with a command of the client.
    pub is_command: bool,
    pub expects: ExpectedAnswer,
    /// The job, for which the settings may name a model.
    pub job: JobKind,
    /// What the agent may do in its workspace.
    pub access: AgentAccess,
    /// Whether the kernel keeps it in its workspace already. A client's own sandbox may not work inside of another one.
    pub is_sandboxed: bool,
    pub size: Option<ModelSize>,
    /// The most that the task may cost.
    pub budget: Option<Cost>,
    /// Variables that hold secrets. A client that can hide variables from the commands it runs hides these.
    pub secret_variables: &'a [String],
    /// A directory of ours outside of the agent's workspace, for files that a client is pointed at.
    pub scratch_dir: &'a Path,
    pub session_mode: SessionMode<'a>,
}

/// Which session a task is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode<'a> {
    /// Starts a session of its own.
    New,
    /// Continues a session.
    Resume(&'a AgentSession),
    /// Continues a session but leaves the original unchanged: an earlier process of the run may have continued it, and
    /// it is not known what was said in it last.
    Fork(&'a AgentSession),
}

impl<'a> SessionMode<'a> {
    pub fn session(self) -> Option<&'a AgentSession> {
        match self {
            SessionMode::New => None,
            SessionMode::Resume(session) | SessionMode::Fork(session) => Some(session),
        }
    }
}

/// Everything that `supervise` needs to start an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLaunch {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<String, String>,
    /// Variables of our own environment that the agent must not see.
    pub removed_variables: Vec<String>,
    /// The text for its standard input.
    pub stdin_text: String,
    /// Files to be written before it starts.
    pub input_files: Vec<(PathBuf, String)>,
}

/// Where things are on this machine. Drivers never look them up themselves.
#[derive(Clone, Debug, Default)]
pub struct LaunchEnv {
    /// Our own program, which plays scripts.
    pub own_program: PathBuf,
    /// The root of the project, for paths in settings.
    pub project_root: PathBuf,
    /// The text of the user's own settings file of each client, by the client's id. A client without such a file is
    /// missing.
    pub settings_by_client: BTreeMap<&'static str, String>,
    pub user_dirs: UserDirs,
}

/// Where the user's own files are.
#[derive(Clone, Debug, Default)]
pub struct UserDirs {
    pub home: Option<PathBuf>,
    /// The directory for caches, usually `~/.cache`.
    pub cache: Option<PathBuf>,
    /// Cargo's own directory, usually `~/.cargo`.
    pub cargo: Option<PathBuf>,
    /// The directory for temporary files.
    pub temporary: PathBuf,
    /// The directories in which programs are looked up.
    pub programs: Vec<PathBuf>,
    /// The directory of each client with its own files, by the client's id.
    pub by_client: BTreeMap<&'static str, PathBuf>,
}

impl LaunchEnv {
    /// The text of the user's own settings of a client; empty if there is none.
    pub fn client_settings(&self, client_id: &str) -> &str {
        self.settings_by_client.get(client_id).map_or("", String::as_str)
    }
}
