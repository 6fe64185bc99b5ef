//! Claude Code (`claude`): as an agent one process per task, and sessions whose hooks call us.
//!
//! [`launch`] builds its command line, [`user_settings`] selects from the user's own settings, [`stream`] decodes
//! what it prints, [`tools`] knows its tools by name, and [`sign_in`] reads who is signed in. As an agent it is never
//! asked to run anything in the background, and none of its hooks are relied on; [`hooks`] and [`transcript`] are for
//! sessions that users have open.

mod hooks;
mod launch;
mod output;
mod sign_in;
mod stream;
mod tools;
mod transcript;
mod user_settings;

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
use user_settings::ClaudeUserSettings;

const CLIENT_ID: &str = "claude-code";

pub(super) const CLIENT: CodingClient = CodingClient {
    id: CLIENT_ID,
    name: "Claude Code",
    aliases: &["claude"],
    program: "claude",
    variables: ClientVariables {
        session_ids: &["CLAUDE_CODE_SESSION_ID"],
        project_dir: Some("CLAUDE_PROJECT_DIR"),
        leaking: &[
            "CLAUDECODE",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_SIMPLE",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_EFFORT",
            "CLAUDE_ENV_FILE",
            "CLAUDE_PID",
            "CLAUDE_PROJECT_DIR",
            "MESSAGING_TOKEN",
        ],
        vendor_credentials: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        set_while_probing: &["DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"],
    },
    project_files: ClientProjectFiles {
        instruction_paths: &[".claude", "CLAUDE.md", "CLAUDE.local.md"],
        guarded_paths: &[".claude/settings.json", ".claude/settings.local.json"],
    },
    agent_facts: Some(AgentFacts {
        minimum_version: ClientVersion(2, 1, 118),
        vendor: "anthropic",
        version_args: &["--version"],
        sign_in_args: &["auth", "status"],
        install_hint: "npm install -g @anthropic-ai/claude-code",
        sign_in_hint: "claude auth login",
        key_variables: &[
            KeyVariable { name: "ANTHROPIC_API_KEY", is_subscription: false },
            KeyVariable { name: "ANTHROPIC_AUTH_TOKEN", is_subscription: false },
            KeyVariable { name: "CLAUDE_CODE_OAUTH_TOKEN", is_subscription: true },
        ],
        client_files: ClientFiles {
            dir_variable: "CLAUDE_CONFIG_DIR",
            default_dir: ".claude",
            credentials_file: ".credentials.json",
            settings_file: "settings.json",
            working_files: &["projects/{workspace}/", ".credentials.json"],
            sandbox_dir: SandboxDir {
                // Shell snapshots and environments are run by the sessions that they belong to.
                unlinked_names: &[
                    "shell-snapshots",
                    "session-env",
                    "sessions",
                    "file-history",
                    "history.jsonl",
                    "todos",
                    "plans",
                    "tasks",
                    "debug",
                    "statsig",
                    "telemetry",
                    "cache",
                    "paste-cache",
                    "backups",
                    "ide",
                    ".claude.json",
                ],
                home_file: Some(".claude.json"),
            },
            session_writable_dirs: &["plans", "projects", "todos"],
        },
        abilities: &[
            ClientAbility {
                label: "read-only reviewers",
                explanation: "only tools that read, and the MCP servers you configured",
            },
            ClientAbility { label: "fixers", explanation: "files in the workspace; no commands unless allowed" },
            ClientAbility { label: "structured answers", explanation: "--json-schema" },
            ClientAbility { label: "sessions", explanation: "--resume, --fork-session" },
            ClientAbility { label: "model sizes", explanation: "haiku, sonnet, opus" },
            ClientAbility { label: "tool permissions", explanation: "`allow`, with the client's own tool names" },
            ClientAbility { label: "MCP servers", explanation: "--mcp-config" },
            ClientAbility { label: "cost", explanation: "in dollars, at list price" },
        ],
        denial_remedy: DenialRemedy::AllowTools,
        uses_seat_models: true,
        driver: &ClaudeCodeDriver,
    }),
    session_hooks: Some(&hooks::ClaudeCodeHooks),
    output_format: Some(&output::FORMAT),
};

#[derive(Debug)]
struct ClaudeCodeDriver;

impl AgentDriver for ClaudeCodeDriver {
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

    fn find_endpoint(&self, settings: &str, find_variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let user_settings = ClaudeUserSettings::from_json(settings);
        // The client sets the variables of its settings for itself, over those that it inherits.
        let find_value = |variable_name: &str| {
            let value = user_settings.env.get(variable_name).cloned().or_else(|| find_variable(variable_name));
            value.filter(|value| !value.trim().is_empty())
        };
        let is_set = |variable_name| find_value(variable_name).is_some_and(|value| value != "0" && value != "false");
        for (switch, address_variable, provider_name) in [
            ("CLAUDE_CODE_USE_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL", "Amazon Bedrock"),
            ("CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_BASE_URL", "Google Vertex AI"),
        ] {
            if is_set(switch) {
                return Some(find_value(address_variable).unwrap_or_else(|| provider_name.to_string()));
            }
        }
        find_value("ANTHROPIC_BASE_URL")
    }

    fn unknown_tools(&self, client_spec: &ClientSpec) -> Vec<String> {
        tools::find_unknown_tools(client_spec)
    }
}
