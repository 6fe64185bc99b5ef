//! The data that goes into a driver's launch and the data that comes out of it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tribunal_core::{
    brief::Session,
    client::{Job, Size},
    ids::Key,
    limits::Cost,
};

use crate::answer::Wanted;

/// What an agent is to do, as far as its driver needs to know.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub key: &'a Key,
    pub prompt: String,
    pub wanted: Wanted,
    pub job: Job,
    pub size: Option<Size>,
    /// The most that the task may cost.
    pub budget: Option<Cost>,
    /// A directory of ours outside of the agent's workspace, for files that a client is pointed at.
    pub beside: &'a Path,
    pub talk: Talk<'a>,
}

/// Which session a task is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk<'a> {
    /// Starts a session of its own.
    New,
    /// Continues a session.
    GoOn(&'a Session),
    /// Continues a session but leaves the original unchanged, because another process may have continued it as well.
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

/// Everything that `supervise` needs to start an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<String, String>,
    /// Variables of our own environment that the agent must not see.
    pub without: Vec<String>,
    /// The text for its standard input.
    pub input: String,
    /// Files to be written before it starts.
    pub files: Vec<(PathBuf, String)>,
}

/// Where things are on this machine. Drivers never look them up themselves.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    /// Our own program, which plays scripts.
    pub own_program: PathBuf,
    /// The root of the project, for paths in settings.
    pub project: PathBuf,
    /// The text of the user's own settings file of each client, by the client's id. A client without such a file is
    /// missing.
    pub client_settings: BTreeMap<&'static str, String>,
}

impl Whereabouts {
    /// The text of the user's own settings of a client; empty if there is none.
    pub fn client_settings(&self, id: &str) -> &str {
        self.client_settings.get(id).map_or("", String::as_str)
    }
}
