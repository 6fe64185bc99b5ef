//! Codex (`codex`): as an agent `codex exec`, one process per task, and sessions whose hooks call us.
//!
//! [`launch`] builds its command line, [`stream`] decodes what it prints, [`mcp_servers`] finds the servers that the
//! user configured, and [`sign_in`] reads who is signed in. What it may write as an agent is enforced by its own
//! sandbox; it has no list of tools. [`hooks`] and [`transcript`] are for sessions that users have open.

mod custom_provider;
mod hooks;
mod launch;
mod mcp_servers;
mod output;
mod sign_in;
mod stream;
mod transcript;

use tribunal_workflows::{runs::settings::AgentSpec, tasks::client::ClientSpec};

use super::{
    client::{
        AgentDriver, AgentFacts, ClientAbility, ClientFiles, ClientProjectFiles, ClientVariables, CodingClient,
        DenialRemedy, KeyVariable, SandboxDir,
    },
    client_status::{ClientVersion, SignInOutput, SignInStatus},
};
use crate::driver::{
    launch_request::{AgentLaunch, LaunchEnv, LaunchRequest},
    process_output::{AgentEvent, DecodedOutput, FinishedProcess},
};

const CLIENT_ID: &str = "codex";
const SETTINGS_FILE: &str = "config.toml";

pub(super) const CLIENT: CodingClient = CodingClient {
    id: CLIENT_ID,
    name: "Codex",
    aliases: &[],
    program: "codex",
    variables: ClientVariables {
        session_ids: &["CODEX_SESSION_ID", "CODEX_THREAD_ID"],
        project_dir: None,
        leaking: &[
            "CODEX_CI",
            "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
            "CODEX_SANDBOX",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_SESSION_ID",
            "CODEX_THREAD_ID",
            "CODEX_TOOL_CALL_ID",
        ],
        vendor_credentials: &["AZURE_OPENAI_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"],
        set_while_probing: &[],
    },
    project_files: ClientProjectFiles {
        instruction_paths: &[".codex"],
        guarded_paths: &[".codex/hooks.json", ".codex/config.toml"],
    },
    agent_facts: Some(AgentFacts {
        minimum_version: ClientVersion(0, 147, 0),
        vendor: "openai",
        version_args: &["--version"],
        sign_in_args: &["login", "status"],
        install_hint: "npm install -g @openai/codex",
        sign_in_hint: "codex login",
        key_variables: &[KeyVariable { name: "CODEX_API_KEY", is_subscription: false }],
        client_files: ClientFiles {
            dir_variable: "CODEX_HOME",
            default_dir: ".codex",
            credentials_file: "auth.json",
            settings_file: SETTINGS_FILE,
            working_files: &["sessions/", "auth.json"],
            sandbox_dir: SandboxDir {
                unlinked_names: &[
                    "state_*",
                    "logs_*",
                    "log",
                    "tmp",
                    ".tmp",
                    "history.jsonl",
                    "shell_snapshots",
                    "session_index.jsonl",
                ],
                home_file: None,
            },
            session_writable_dirs: &[],
        },
        abilities: &[
            ClientAbility {
                label: "read-only reviewers",
                explanation: "its read-only sandbox, and the MCP servers you configured",
            },
            ClientAbility { label: "fixers", explanation: "its sandbox, the workspace only, no network" },
            ClientAbility { label: "structured answers", explanation: "--output-schema" },
            ClientAbility { label: "sessions", explanation: "exec resume, exec fork" },
            ClientAbility { label: "MCP servers", explanation: "-c mcp_servers" },
            ClientAbility { label: "cost", explanation: "tokens only" },
        ],
        denial_remedy: DenialRemedy::Bypass,
        uses_seat_models: false,
        driver: &CodexDriver,
    }),
    session_hooks: Some(&hooks::CodexHooks),
    output_format: Some(&output::FORMAT),
};

#[derive(Debug)]
struct CodexDriver;

impl AgentDriver for CodexDriver {
    fn build_launch(
        &self,
        agent_spec: &AgentSpec,
        client_spec: &ClientSpec,
        launch_request: LaunchRequest<'_>,
        launch_env: &LaunchEnv,
    ) -> AgentLaunch {
        launch::build_launch(agent_spec, client_spec, launch_request, launch_env)
    }

    fn decode_output(&self, client_spec: &ClientSpec, finished_process: &FinishedProcess<'_>) -> DecodedOutput {
        stream::decode_output(client_spec, finished_process)
    }

    fn read_events(&self, output_line: &str) -> Vec<AgentEvent> {
        stream::read_events(output_line)
    }

    fn read_sign_in(&self, status_output: SignInOutput<'_>) -> SignInStatus {
        sign_in::parse_sign_in(status_output)
    }

    /// It has a sandbox and no list of tools, so every allowed name is unknown.
    fn unknown_tools(&self, client_spec: &ClientSpec) -> Vec<String> {
        client_spec.allow.clone()
    }

    fn describe_custom_provider(&self, settings_toml: &str) -> Option<String> {
        custom_provider::names_custom_provider(settings_toml)
            .then(|| format!("`model_provider` in its {SETTINGS_FILE}"))
    }

    fn find_endpoint(&self, settings: &str, find_variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        custom_provider::find_base_url(settings).or_else(|| find_variable("OPENAI_BASE_URL"))
    }
}
