//! Resolves how each agent is driven and checks its keys against its driver.
//!
//! An agent that is named like a client needs no definition. [`super::agents`] decides which agents take part, and
//! [`super::selection`] which of them do what.

use tribunal_agents::clients::{self, AGENT_CLIENT_IDS, AgentClient};
use tribunal_engine::ids::ClientId;
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    runs::settings::DriverSpec,
    tasks::client::{ClientSpec, McpServer, ModelsBySize, SettingsInheritance},
};

use super::{
    kind::SettingValue,
    layers::{EffectiveSettings, describe_origin, list_setting, text_setting},
};
use crate::messages::user_errors::UserError;

/// Keys that only clients have.
const CLIENT_ONLY_KEYS: [&str; 9] =
    ["program", "model", "models.small", "models.medium", "models.large", "inherit", "bypass", "allow", "fresh"];

/// The client that an agent is named after, if any; it is its driver.
pub(super) fn find_agent_client_id(agent_name: &str) -> Option<&'static str> {
    clients::find_client(agent_name).filter(|client| client.agent_facts.is_some()).map(|client| client.id)
}

/// Finds how an agent of the settings is driven. `None` if there is no such agent.
pub(crate) fn find_driver(agent_name: &str, effective: &EffectiveSettings) -> Option<Result<DriverSpec, UserError>> {
    let agent_prefix = format!("agents.{agent_name}.");
    let is_defined = effective.values.keys().any(|setting_path| setting_path.starts_with(&agent_prefix));
    (is_defined || find_agent_client_id(agent_name).is_some()).then(|| resolve_driver(agent_name, effective, false))
}

/// Resolves the driver of an agent from its settings.
pub(super) fn resolve_driver(
    agent_name: &str,
    effective: &EffectiveSettings,
    is_replay_paced: bool,
) -> Result<DriverSpec, UserError> {
    let section = AgentSection { agent_name, effective };
    let driver_name = section.find_driver_name()?;
    section.refuse_foreign_keys(driver_name)?;
    match driver_name {
        "command" => match list_setting(effective, &section.setting_path("argv")) {
            arguments if arguments.is_empty() => {
                Err(section.explain_key_problem("a `command` agent requires `argv`".into(), "driver"))
            }
            arguments => Ok(DriverSpec::Command { argv: arguments }),
        },
        "replay" => match text_setting(effective, &section.setting_path("script")) {
            None => Err(section.explain_key_problem("a `replay` agent requires `script`".into(), "driver")),
            Some(script_path) => Ok(DriverSpec::Replay { script: script_path.to_string(), paced: is_replay_paced }),
        },
        client_id => section.resolve_client(client_id),
    }
}

/// The settings of one agent: those under `agents.NAME`.
#[derive(Clone, Copy)]
struct AgentSection<'a> {
    agent_name: &'a str,
    effective: &'a EffectiveSettings,
}

impl<'a> AgentSection<'a> {
    /// The full path of one of the agent's keys: `agents.NAME.KEY`.
    fn setting_path(self, setting_key: &str) -> String {
        format!("agents.{}.{setting_key}", self.agent_name)
    }

    /// Returns whether some layer sets the key.
    fn is_set(self, setting_key: &str) -> bool {
        self.effective.origin_of(&self.setting_path(setting_key)).is_some()
    }

    /// Builds the error about a key of this agent, with the place where it is set.
    fn explain_key_problem(self, message: String, setting_key: &str) -> UserError {
        UserError::usage(format!("agent `{}`: {message}", self.agent_name))
            .with_reason(format!(
                "It is set in {}. Nothing was started.",
                describe_origin(self.effective, &self.setting_path(setting_key))
            ))
            .with_step("list all settings: `tribunal inspect settings` or `tribunal schema settings`")
    }

    /// Finds the name of the driver: as it is set, or else the client that the agent is named after.
    fn find_driver_name(self) -> Result<&'a str, UserError> {
        let driver_name = text_setting(self.effective, &self.setting_path("driver"));
        driver_name.or_else(|| find_agent_client_id(self.agent_name)).ok_or_else(|| {
            // The error points at any key of the agent, because there is no line for the missing one.
            let other_keys = ["script", "argv", "provider", "stronger"];
            let setting_key = other_keys
                .iter()
                .chain(&CLIENT_ONLY_KEYS)
                .find(|setting_key| self.is_set(setting_key))
                .copied()
                .unwrap_or("driver");
            let message = format!("missing `driver` (one of {}, command, replay)", AGENT_CLIENT_IDS.join(", "));
            self.explain_key_problem(message, setting_key)
        })
    }

    /// Refuses keys that belong to another driver.
    fn refuse_foreign_keys(self, driver_name: &str) -> Result<(), UserError> {
        let (own_keys, keys_text): (&[&str], &str) = match driver_name {
            "command" => (&["argv"], "takes `argv`"),
            "replay" => (&["script"], "takes `script`"),
            _ => (&CLIENT_ONLY_KEYS, "is a client and takes `program` and `model`"),
        };
        // A key of another driver is refused and not ignored: the user expects it to have an effect.
        let mut foreign_keys = ["argv", "script"].into_iter().chain(CLIENT_ONLY_KEYS);
        match foreign_keys.find(|setting_key| self.is_set(setting_key) && !own_keys.contains(setting_key)) {
            Some(setting_key) => {
                let message = format!("`{setting_key}` is not allowed for driver `{driver_name}`, which {keys_text}");
                Err(self.explain_key_problem(message, setting_key))
            }
            None => Ok(()),
        }
    }

    /// Resolves an agent that is driven through a client.
    fn resolve_client(self, client_id: &str) -> Result<DriverSpec, UserError> {
        let known_client = AgentClient::find(client_id)
            .map_err(|unknown_client| self.explain_key_problem(unknown_client.to_string(), "driver"))?;
        let client_spec = self.make_client_spec(known_client);
        // A misspelt tool would silently not be allowed, so the names are checked.
        match known_client.facts.driver.unknown_tools(&client_spec).first() {
            Some(unknown_tool) => {
                let message = format!("`{unknown_tool}` in `allow` is not a known tool of {client_id}");
                Err(self.explain_key_problem(message, "allow"))
            }
            None => Ok(DriverSpec::Client(client_spec)),
        }
    }

    /// Builds the settings of a client.
    fn make_client_spec(self, agent_client: AgentClient) -> ClientSpec {
        let effective = self.effective;
        let text_of = |setting_key: &str| text_setting(effective, &self.setting_path(setting_key)).map(str::to_string);
        let is_enabled =
            |setting_key: &str| effective.value_at(&self.setting_path(setting_key)) == Some(&SettingValue::Flag(true));
        ClientSpec {
            client: ClientId::new(agent_client.id),
            program: text_of("program"),
            model: text_of("model"),
            models: ModelsBySize {
                small: text_of("models.small"),
                medium: text_of("models.medium"),
                large: text_of("models.large"),
            },
            inherit: match text_setting(effective, &self.setting_path("inherit")) {
                Some("nothing") => SettingsInheritance::Nothing,
                Some("project") => SettingsInheritance::Project,
                _ => SettingsInheritance::User,
            },
            bypass: is_enabled("bypass"),
            fresh: is_enabled("fresh"),
            allow: list_setting(effective, &self.setting_path("allow")),
            servers: mcp_servers(effective),
        }
    }
}

/// The MCP servers for every client, sorted by name.
fn mcp_servers(effective: &EffectiveSettings) -> Vec<McpServer> {
    let named_servers = effective.values.keys().filter_map(|setting_path| {
        let server_name = setting_path.strip_prefix("mcp.")?.strip_suffix(".argv")?;
        let role_names = list_setting(effective, &format!("mcp.{server_name}.roles"));
        let is_named = |role: &AgentRole| role_names.iter().any(|role_name| role_name == role.as_str());
        let roles = AgentRole::ALL.into_iter().filter(is_named).collect();
        Some(McpServer { roles, ..McpServer::new(server_name, list_setting(effective, setting_path)) })
    });
    named_servers.collect()
}
