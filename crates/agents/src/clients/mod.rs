//! The registry of coding clients: one directory and one row for each.
//!
//! A client's directory holds everything about it: its names, how it is launched and decoded, how it signs in, where
//! it keeps its files, which hooks it has and how they are configured. [`CLIENTS`] lists the rows. Doctor, settings,
//! trust, schemas, hooks, `init`, `inspect` and the runner ask the registry and name no client themselves.
//! `CONTRIBUTING.md` says how to add one.
//!
//! Nothing here does I/O: the caller runs programs and reads files. Which client is used is decided elsewhere.

mod claude_code;
mod client;
mod codex;
mod copilot;
mod cursor;
mod gemini;
pub(crate) mod hooks;
mod opencode;
mod shared;
mod status;

use std::ops::Deref;

pub use client::{
    Ability, AgentDriver, AgentFacts, Client, ClientFiles, ClientVariables, KeyVariable, OutputFormat,
    ProjectFiles, WhenDenied,
};
pub use hooks::{ClientHooks, Home, ToolKind};
pub use status::{SignIn, StatusOutput, Version, read_version};

/// Every client, in the order of preference if nothing is set. A hook that names no client means the first one.
pub static CLIENTS: &[Client] =
    &[claude_code::CLIENT, codex::CLIENT, copilot::CLIENT, gemini::CLIENT, opencode::CLIENT, cursor::CLIENT];

/// How many clients can work as agents.
pub const AGENT_CLIENTS: usize = count_agents();
/// Their ids, in order.
pub const AGENT_CLIENT_IDS: [&str; AGENT_CLIENTS] = agent_ids();

const fn count_agents() -> usize {
    let (mut count, mut at) = (0, 0);
    while at < CLIENTS.len() {
        count += CLIENTS[at].agent.is_some() as usize;
        at += 1;
    }
    count
}

const fn agent_ids() -> [&'static str; AGENT_CLIENTS] {
    let mut ids = [""; AGENT_CLIENTS];
    let (mut count, mut at) = (0, 0);
    // A `const fn` cannot use iterators.
    while at < CLIENTS.len() {
        if CLIENTS[at].agent.is_some() {
            ids[count] = CLIENTS[at].id;
            count += 1;
        }
        at += 1;
    }
    ids
}

/// Finds a client by its id or by one of its other names.
pub fn named(word: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id == word || client.aliases.contains(&word))
}

/// The id of the client with this name; an unknown name stays as it is.
pub fn canonical(word: &str) -> &str {
    named(word).map_or(word, |client| client.id)
}

/// Variables that tell a command which session of a client it runs in.
pub fn session_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.variables.session).copied()
}

/// The names of the clients that tell a command which session it runs in.
pub fn with_sessions() -> Vec<&'static str> {
    CLIENTS.iter().filter(|client| !client.variables.session.is_empty()).map(|client| client.name).collect()
}

/// Variables that tell a hook the project's directory. Clients also set those of one another.
pub fn project_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().filter_map(|client| client.variables.project)
}

/// Files of a project that single clients read before they work, besides those that all clients share.
pub fn files_read() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.project.read).copied()
}

/// Files of a project that define what sessions of clients may do.
pub fn guarded_files() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.project.guarded).copied()
}

/// Variables that keep any client from updating itself or calling home while it is asked about itself.
pub fn quieting_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.variables.quieting).copied()
}

/// Variables that a client must not see: the marks of surrounding sessions, and the credentials for other vendors.
pub(crate) fn withheld_from(client: &Client) -> Vec<String> {
    // Even the client's own session marks are withheld: it would otherwise take itself for a child of that session.
    let leaking = CLIENTS.iter().flat_map(|other| other.variables.leaking);
    let secrets = CLIENTS.iter().filter(|other| *other != client).flat_map(|other| other.variables.secrets);
    leaking.chain(secrets).map(|name| (*name).to_string()).collect()
}

/// The error for a client that this build cannot drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no client `{id}` here, only {}", AGENT_CLIENT_IDS.join(", "))]
pub struct UnknownClient {
    pub id: String,
}

/// A client that can work as an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentClient {
    row: &'static Client,
    pub agent: &'static AgentFacts,
}

impl AgentClient {
    /// All of them, in the order of preference if nothing is set.
    pub fn all() -> impl Iterator<Item = AgentClient> {
        CLIENTS.iter().filter_map(AgentClient::of)
    }

    fn of(row: &'static Client) -> Option<AgentClient> {
        row.agent.as_ref().map(|agent| AgentClient { row, agent })
    }

    /// Finds a client by its id alone. Other names were resolved before they got into settings or journals.
    pub fn find(id: &str) -> Result<AgentClient, UnknownClient> {
        let found = AgentClient::all().find(|client| client.id == id);
        found.ok_or_else(|| UnknownClient { id: id.to_string() })
    }

    /// Whether the client is signed in. `set_variables` are the names of its key variables that are set and not
    /// empty.
    pub fn read_sign_in(self, said: StatusOutput<'_>, set: &[&str]) -> SignIn {
        // The status command of a client may ignore a variable that its actual work uses.
        match self.agent.keys.iter().find(|key| set.contains(&key.name)) {
            Some(key) => SignIn::In { how: key.name.to_string(), subscription: key.subscription },
            None => self.agent.driver.read_sign_in(said),
        }
    }
}

impl PartialEq for AgentClient {
    fn eq(&self, other: &AgentClient) -> bool {
        self.row == other.row
    }
}

impl Eq for AgentClient {}

impl Deref for AgentClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: &str) -> AgentClient {
        AgentClient::find(id).unwrap()
    }

    #[test]
    fn a_variable_signs_in_whatever_the_client_says() {
        let said = StatusOutput { stdout: "", stderr: "Not logged in" };
        let found = client("codex").read_sign_in(said, &["CODEX_API_KEY"]);
        assert_eq!(found, SignIn::In { how: "CODEX_API_KEY".into(), subscription: false });
        assert_eq!(client("codex").read_sign_in(said, &["ANTHROPIC_API_KEY"]), SignIn::Out);
        let found = client("claude-code").read_sign_in(StatusOutput::default(), &["CLAUDE_CODE_OAUTH_TOKEN"]);
        assert_eq!(found, SignIn::In { how: "CLAUDE_CODE_OAUTH_TOKEN".into(), subscription: true });
    }
}
