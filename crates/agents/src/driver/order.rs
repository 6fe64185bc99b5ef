//! What an agent is to do, and the process that does it: what goes into a driver's launch and what comes out of it.

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

/// Where things are on this machine; drivers never look for themselves.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    /// Our own program: it plays scripts.
    pub own_program: PathBuf,
    /// The project's root, for paths in settings.
    pub project: PathBuf,
    /// The text of the person's own settings file of each client, by the client's id. Missing: there is no such file.
    pub client_settings: BTreeMap<&'static str, String>,
}

impl Whereabouts {
    /// The text of the person's own settings of a client; empty where there is none.
    pub fn client_settings(&self, id: &str) -> &str {
        self.client_settings.get(id).map_or("", String::as_str)
    }
}
