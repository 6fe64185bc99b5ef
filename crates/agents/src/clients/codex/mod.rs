//! Codex (`codex`): as an agent `codex exec`, one process per task, and sessions whose hooks call us.
//!
//! [`launch`] builds its command line, [`stream`] decodes what it prints, [`mcp_servers`] finds the servers that the
//! user configured, and [`sign_in`] reads who is signed in. What it may write as an agent is enforced by its own
//! sandbox; it has no list of tools. [`hooks`] and [`transcript`] are for sessions that users have open.

mod hooks;
mod launch;
mod output;
mod provider;
mod servers;
mod sign_in;
mod stream;
mod transcript;

use tribunal_core::{client::ClientSpec, settings::AgentSpec};

use super::{
    client::{
        Ability, AgentDriver, AgentFacts, Client, ClientFiles, ClientVariables, KeyVariable, ProjectFiles,
        WhenDenied,
    },
    status::{SignIn, StatusOutput, Version},
};
use crate::driver::{
    order::{Launch, Order, Whereabouts},
    output::{AgentEvent, Decoded, Finished},
};

const ID: &str = "codex";
const SETTINGS: &str = "config.toml";

pub(super) const CLIENT: Client = Client {
    id: ID,
    name: "Codex",
    aliases: &[],
    program: "codex",
    variables: ClientVariables {
        session: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        project: None,
        leaking: &[
            "CODEX_CI",
            "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_SESSION_ID",
            "CODEX_THREAD_ID",
            "CODEX_TOOL_CALL_ID",
        ],
        secrets: &["AZURE_OPENAI_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"],
        quieting: &[],
    },
    project: ProjectFiles { read: &[".codex"], guarded: &[".codex/hooks.json", ".codex/config.toml"] },
    agent: Some(AgentFacts {
        minimum: Version(0, 147, 0),
        vendor: "openai",
        version_args: &["--version"],
        sign_in_args: &["login", "status"],
        install: "npm install -g @openai/codex",
        sign_in: "codex login",
        keys: &[KeyVariable { name: "CODEX_API_KEY", subscription: false }],
        files: ClientFiles {
            variable: "CODEX_HOME",
            below_home: ".codex",
            credentials: "auth.json",
            settings: SETTINGS,
            scratch: &[],
        },
        abilities: &[
            Ability {
                what: "reviewers read only",
                how: "its sandbox, read-only, beside MCP servers you set",
            },
            Ability { what: "fixers write", how: "its sandbox, the private copy only, no network" },
            Ability { what: "answer form", how: "--output-schema" },
            Ability { what: "sessions", how: "exec resume, exec fork" },
            Ability { what: "servers", how: "-c mcp_servers" },
            Ability { what: "cost", how: "tokens only" },
        ],
        when_denied: WhenDenied::Bypass,
        uses_fixer_model: false,
        driver: &Codex,
    }),
    hooks: Some(&hooks::Hooks),
    output: Some(&output::FORMAT),
};

#[derive(Debug)]
struct Codex;

impl AgentDriver for Codex {
    fn launch(&self, agent: &AgentSpec, client: &ClientSpec, order: Order<'_>, at: &Whereabouts) -> Launch {
        launch::launch(agent, client, order, at)
    }

    fn decode(&self, client: &ClientSpec, finished: &Finished<'_>) -> Decoded {
        stream::decode(client, finished)
    }

    fn events(&self, line: &str) -> Vec<AgentEvent> {
        stream::events(line)
    }

    fn read_sign_in(&self, said: StatusOutput<'_>) -> SignIn {
        sign_in::read(said)
    }

    /// It has a sandbox and no list of tools, so that every allowed name is unknown.
    fn unknown_tools(&self, client: &ClientSpec) -> Vec<String> {
        client.allow.clone()
    }

    fn own_provider(&self, settings: &str) -> Option<String> {
        provider::named_in(settings).then(|| format!("model_provider in its {SETTINGS}"))
    }
}
