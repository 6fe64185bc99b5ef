//! What a row of the registry says of a client.
//!
//! A [`Client`] has up to three sides: it can work for Tribunal as an agent ([`AgentFacts`], [`AgentDriver`]), people's own
//! sessions of it can call Tribunal ([`ClientHooks`], in [`super::hooks`]), and its raw output can be weighed
//! ([`OutputFormat`]). A side that is missing is `None`, and whoever needs it leaves the client out.

use std::fmt;

use serde_json::Value;
use tribunal_core::{client::ClientSpec, settings::AgentSpec};

use super::{
    hooks::ClientHooks,
    status::{SignIn, StatusOutput, Version},
};
use crate::{
    analysis::spoken::Spoken,
    driver::{
        order::{Launch, Order, Whereabouts},
        output::{AgentEvent, Decoded, Finished},
    },
};

/// One coding client: a row of [`super::CLIENTS`].
#[derive(Debug)]
pub struct Client {
    /// As settings, flags and journals call it.
    pub id: &'static str,
    pub name: &'static str,
    /// Other words that people use for it.
    pub aliases: &'static [&'static str],
    /// Looked for on the path, unless settings say otherwise.
    pub program: &'static str,
    pub variables: ClientVariables,
    pub project: ProjectFiles,
    /// How it works as an agent; none: it has no driver yet.
    pub agent: Option<AgentFacts>,
    /// How its sessions call our hooks; none: they cannot, as far as is known.
    pub hooks: Option<&'static dyn ClientHooks>,
    /// The form of its output; none: it prints nothing that is known.
    pub output: Option<&'static OutputFormat>,
}

impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        self.id == other.id
    }
}

impl Eq for Client {}

/// Variables of the environment that have to do with a client.
#[derive(Debug)]
pub struct ClientVariables {
    /// Tell a command that the client runs which session it runs in; the surest first.
    pub session: &'static [&'static str],
    /// Tells a hook which folder is the project's.
    pub project: Option<&'static str>,
    /// By these, a session that started us would reach into the clients that we start.
    pub leaking: &'static [&'static str],
    /// Sign in to its vendor: no other client is given them.
    pub secrets: &'static [&'static str],
    /// Set to 1 where it is only asked what it is: it then neither updates itself nor calls home.
    pub quieting: &'static [&'static str],
}

impl ClientVariables {
    pub const NONE: ClientVariables =
        ClientVariables { session: &[], project: None, leaking: &[], secrets: &[], quieting: &[] };
}

/// Files of a project that have to do with a client, as paths from its root.
#[derive(Debug)]
pub struct ProjectFiles {
    /// The client reads them before it works, and people often keep them out of git.
    pub read: &'static [&'static str],
    /// Say what its sessions may do: a session that has taken something on does not change them. A folder ends in `/`.
    pub guarded: &'static [&'static str],
}

/// What makes a client an agent.
#[derive(Debug)]
pub struct AgentFacts {
    /// Below it, flags are missing that its driver cannot do without.
    pub minimum: Version,
    /// Whose model it asks where nothing else is set.
    pub vendor: &'static str,
    pub version_args: &'static [&'static str],
    /// Asks it whether somebody is signed in.
    pub sign_in_args: &'static [&'static str],
    /// What to do when it is not there.
    pub install: &'static str,
    /// What to do when nobody is signed in.
    pub sign_in: &'static str,
    /// Variables that sign it in by themselves.
    pub keys: &'static [KeyVariable],
    pub files: ClientFiles,
    /// What its driver makes of it.
    pub abilities: &'static [Ability],
    pub when_denied: WhenDenied,
    /// Whether `tasks.fixer_model` is about it.
    pub uses_fixer_model: bool,
    pub driver: &'static dyn AgentDriver,
}

/// A variable that signs a client in.
#[derive(Debug)]
pub struct KeyVariable {
    pub name: &'static str,
    /// A plan pays, not the token.
    pub subscription: bool,
}

/// Where a client keeps what is its own.
#[derive(Debug)]
pub struct ClientFiles {
    /// A variable that names the folder.
    pub variable: &'static str,
    /// The folder where that is not set, below the person's home.
    pub below_home: &'static str,
    /// The file in it that is filled while somebody is signed in.
    pub credentials: &'static str,
    /// The person's own settings in it: a launch and [`AgentDriver::own_provider`] get their text.
    pub settings: &'static str,
    /// Folders in it in which its sessions keep plans and memory: every session may write there.
    pub scratch: &'static [&'static str],
}

/// Something a driver can have its client do, and how.
#[derive(Debug)]
pub struct Ability {
    pub what: &'static str,
    pub how: &'static str,
}

/// What a person can set for a client that was denied something it needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenDenied {
    /// Its tools are allowed by name: `agents.NAME.allow`.
    AllowTools,
    /// It has no list of tools, only checks to work without: `agents.NAME.bypass`.
    Bypass,
}

/// How a client is launched and how its output is read.
pub trait AgentDriver: fmt::Debug + Sync {
    /// All but the program and the variables that it must not see: these follow from the registry.
    fn launch(&self, agent: &AgentSpec, client: &ClientSpec, order: Order<'_>, at: &Whereabouts) -> Launch;

    /// Reads what it printed.
    fn decode(&self, client: &ClientSpec, finished: &Finished<'_>) -> Decoded;

    /// What it says it is doing in this line of its output.
    fn events(&self, line: &str) -> Vec<AgentEvent>;

    /// What it printed when it was asked who is signed in.
    fn read_sign_in(&self, said: StatusOutput<'_>) -> SignIn;

    /// Tools that settings allow and the client does not have: it would overlook them without a word.
    fn unknown_tools(&self, client: &ClientSpec) -> Vec<String>;

    /// Where its own settings name a provider that it is signed in to by means which it does not tell: those words.
    fn own_provider(&self, _settings: &str) -> Option<String> {
        None
    }
}

/// The lines of JSON that a client prints, for whoever weighs free text.
#[derive(Debug)]
pub struct OutputFormat {
    /// As people and documents call it.
    pub name: &'static str,
    /// Types of lines that no other client prints.
    pub marks: &'static [&'static str],
    /// Whether these lines look like it, where no line has a mark of any client.
    pub resembles: fn(&[Value]) -> bool,
    /// Takes the agent's words out of a line.
    pub read: fn(&mut Spoken, &Value),
}

impl PartialEq for OutputFormat {
    fn eq(&self, other: &OutputFormat) -> bool {
        self.name == other.name
    }
}

impl Eq for OutputFormat {}
