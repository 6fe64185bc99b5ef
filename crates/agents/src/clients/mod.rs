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
mod client_status;
mod codex;
mod copilot;
mod cursor;
mod driver_support;
mod gemini;
pub(crate) mod hooks;
mod opencode;

use std::ops::Deref;

pub use client::{
    AgentDriver, AgentFacts, ClientAbility, ClientFiles, ClientProjectFiles, ClientVariables, CodingClient,
    DenialRemedy, KeyVariable, OutputFormat, SandboxDir,
};
pub use client_status::{ClientVersion, SignInOutput, SignInStatus, find_version};
pub use hooks::{ClientHooks, HookFile, ToolKind};

/// Every client, in the order of preference if nothing is set. A hook that names no client means the first one.
pub static CLIENTS: &[CodingClient] =
    &[claude_code::CLIENT, codex::CLIENT, copilot::CLIENT, gemini::CLIENT, opencode::CLIENT, cursor::CLIENT];

/// How many clients can work as agents.
pub const AGENT_CLIENT_COUNT: usize = count_agents();
/// Their ids, in order.
pub const AGENT_CLIENT_IDS: [&str; AGENT_CLIENT_COUNT] = agent_ids();

const fn count_agents() -> usize {
    let (mut agent_count, mut client_index) = (0, 0);
    while client_index < CLIENTS.len() {
        agent_count += CLIENTS[client_index].agent_facts.is_some() as usize;
        client_index += 1;
    }
    agent_count
}

const fn agent_ids() -> [&'static str; AGENT_CLIENT_COUNT] {
    let mut client_ids = [""; AGENT_CLIENT_COUNT];
    let (mut agent_count, mut client_index) = (0, 0);
    // A `const fn` cannot use iterators.
    while client_index < CLIENTS.len() {
        if CLIENTS[client_index].agent_facts.is_some() {
            client_ids[agent_count] = CLIENTS[client_index].id;
            agent_count += 1;
        }
        client_index += 1;
    }
    client_ids
}

/// Finds a client by its id or by one of its other names.
pub fn find_client(client_name: &str) -> Option<&'static CodingClient> {
    CLIENTS.iter().find(|known_client| known_client.id == client_name || known_client.aliases.contains(&client_name))
}

/// The id of the client with this name; an unknown name stays as it is.
pub fn canonical_id(client_name: &str) -> &str {
    find_client(client_name).map_or(client_name, |known_client| known_client.id)
}

/// Variables that tell a command which session of a client it runs in.
pub fn session_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|known_client| known_client.variables.session_ids).copied()
}

/// The names of the clients that tell a command which session it runs in.
pub fn clients_with_sessions() -> Vec<&'static str> {
    CLIENTS
        .iter()
        .filter(|known_client| !known_client.variables.session_ids.is_empty())
        .map(|known_client| known_client.name)
        .collect()
}

/// Variables that tell a hook the project's directory, of all clients.
pub fn project_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().filter_map(|known_client| known_client.variables.project_dir)
}

/// Files of a project that single clients read before they work, besides those that all clients share.
pub fn instruction_files() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|known_client| known_client.project_files.instruction_paths).copied()
}

/// Files of a project that define what sessions of clients may do.
pub fn guarded_files() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|known_client| known_client.project_files.guarded_paths).copied()
}

/// Variables that keep any client from updating itself or calling home while it is asked about itself.
pub fn probe_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|known_client| known_client.variables.set_while_probing).copied()
}

/// Variables that a client must not see: the marks of surrounding sessions, and the credentials for other vendors.
pub(crate) fn withheld_variables(launched_client: &CodingClient) -> Vec<String> {
    // Even the client's own session marks are withheld: a session that started Tribunal would reach into it.
    let leaking_variables = CLIENTS.iter().flat_map(|other_client| other_client.variables.leaking);
    let secret_variables = CLIENTS
        .iter()
        .filter(|other_client| *other_client != launched_client)
        .flat_map(|other_client| other_client.variables.vendor_credentials);
    leaking_variables.chain(secret_variables).map(|variable_name| (*variable_name).to_string()).collect()
}

/// The error for a client that this build cannot drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown client `{id}` (known: {})", AGENT_CLIENT_IDS.join(", "))]
pub struct UnknownClient {
    pub id: String,
}

/// A client that can work as an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentClient {
    client: &'static CodingClient,
    pub facts: &'static AgentFacts,
}

impl AgentClient {
    /// All of them, in the order of preference if nothing is set.
    pub fn all() -> impl Iterator<Item = AgentClient> {
        CLIENTS.iter().filter_map(AgentClient::from_client)
    }

    fn from_client(client_row: &'static CodingClient) -> Option<AgentClient> {
        client_row.agent_facts.as_ref().map(|agent_facts| AgentClient { client: client_row, facts: agent_facts })
    }

    /// Finds a client by its id alone. Other names were resolved before they got into settings or journals.
    pub fn find(client_id: &str) -> Result<AgentClient, UnknownClient> {
        let found_client = AgentClient::all().find(|agent_client| agent_client.id == client_id);
        found_client.ok_or_else(|| UnknownClient { id: client_id.to_string() })
    }

    /// Whether the client is signed in. `set_variables` are the names of its key variables that are set and not
    /// empty.
    pub fn read_sign_in(self, status_output: SignInOutput<'_>, set_variables: &[&str]) -> SignInStatus {
        // The status command of a client may ignore a variable that its actual work uses.
        match self.facts.key_variables.iter().find(|key_variable| set_variables.contains(&key_variable.name)) {
            Some(key_variable) => SignInStatus::SignedIn {
                method: key_variable.name.to_string(),
                is_subscription: key_variable.is_subscription,
            },
            None => self.facts.driver.read_sign_in(status_output),
        }
    }
}

impl PartialEq for AgentClient {
    fn eq(&self, other_client: &AgentClient) -> bool {
        self.client == other_client.client
    }
}

impl Eq for AgentClient {}

impl Deref for AgentClient {
    type Target = CodingClient;

    fn deref(&self) -> &CodingClient {
        self.client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent_client(client_id: &str) -> AgentClient {
        AgentClient::find(client_id).unwrap()
    }

    #[test]
    fn a_key_variable_signs_in_regardless_of_what_the_client_reports() {
        let status_output = SignInOutput { stdout: "", stderr: "Not logged in" };
        let sign_in_status = agent_client("codex").read_sign_in(status_output, &["CODEX_API_KEY"]);
        assert_eq!(sign_in_status, SignInStatus::SignedIn { method: "CODEX_API_KEY".into(), is_subscription: false });
        assert_eq!(agent_client("codex").read_sign_in(status_output, &["ANTHROPIC_API_KEY"]), SignInStatus::SignedOut);
        let sign_in_status =
            agent_client("claude-code").read_sign_in(SignInOutput::default(), &["CLAUDE_CODE_OAUTH_TOKEN"]);
        assert_eq!(
            sign_in_status,
            SignInStatus::SignedIn { method: "CLAUDE_CODE_OAUTH_TOKEN".into(), is_subscription: true }
        );
    }
}
