//! Claude Code (`claude`): as an agent one process per task, and sessions whose hooks call us.
//!
//! [`launch`] builds its command line, [`user_settings`] selects from the user's own settings, [`stream`] decodes
//! what it prints, [`tools`] knows its tools by name, and [`sign_in`] reads who is signed in. As an agent it is never
//! asked to run anything in the background, and none of its hooks are relied on; [`hooks`] and [`transcript`] are for
//! sessions that users have open.

mod hooks;
mod launch;
mod output;
mod personal;
mod sign_in;
mod stream;
mod tools;
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

const ID: &str = "claude-code";

pub(super) const CLIENT: Client = Client {
    id: ID,
    name: "Claude Code",
    aliases: &["claude"],
    program: "claude",
    variables: ClientVariables {
        session: &["CLAUDE_CODE_SESSION_ID"],
        project: Some("CLAUDE_PROJECT_DIR"),
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
        secrets: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        quieting: &["DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"],
    },
    project: ProjectFiles {
        read: &[".claude", "CLAUDE.md", "CLAUDE.local.md"],
        guarded: &[".claude/settings.json", ".claude/settings.local.json"],
    },
    agent: Some(AgentFacts {
        minimum: Version(2, 1, 118),
        vendor: "anthropic",
        version_args: &["--version"],
        sign_in_args: &["auth", "status"],
        install: "npm install -g @anthropic-ai/claude-code",
        sign_in: "claude auth login",
        keys: &[
            KeyVariable { name: "ANTHROPIC_API_KEY", subscription: false },
            KeyVariable { name: "ANTHROPIC_AUTH_TOKEN", subscription: false },
            KeyVariable { name: "CLAUDE_CODE_OAUTH_TOKEN", subscription: true },
        ],
        files: ClientFiles {
            variable: "CLAUDE_CONFIG_DIR",
            below_home: ".claude",
            credentials: ".credentials.json",
            settings: "settings.json",
            scratch: &["plans", "projects", "todos"],
        },
        abilities: &[
            Ability {
                what: "reviewers read only",
                how: "no tool that writes or runs anything is offered, beside MCP servers you set",
            },
            Ability { what: "fixers write", how: "files in the private copy; no commands unless allowed" },
            Ability { what: "answer form", how: "--json-schema" },
            Ability { what: "sessions", how: "--resume, --fork-session" },
            Ability { what: "sizes", how: "haiku, sonnet, opus" },
            Ability { what: "tools", how: "allow, in its own words" },
            Ability { what: "servers", how: "--mcp-config" },
            Ability { what: "cost", how: "in dollars, by list price" },
        ],
        when_denied: WhenDenied::AllowTools,
        uses_fixer_model: true,
        driver: &ClaudeCode,
    }),
    hooks: Some(&hooks::Hooks),
    output: Some(&output::FORMAT),
};

#[derive(Debug)]
struct ClaudeCode;

impl AgentDriver for ClaudeCode {
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

    fn unknown_tools(&self, client: &ClientSpec) -> Vec<String> {
        tools::unknown(client)
    }
}
