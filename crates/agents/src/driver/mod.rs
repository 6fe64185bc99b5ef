//! Launches agents and decodes their output, independent of which agent it is.
//!
//! An agent is any command line ([`command_line`]), a script ([`crate::replay`]) or a coding client, which is defined
//! in its own directory under [`crate::clients`]. A driver starts nothing and looks nothing up: everything it needs
//! comes in, and what is to be done goes out as data. It reports what an agent's output *says*; what follows from
//! that is decided in `workflows`.

mod command_line;
pub(crate) mod launch_request;
pub(crate) mod process_output;

use tribunal_workflows::{
    runs::settings::{AgentSpec, DriverSpec},
    tasks::client::{ClientSpec, SettingsInheritance},
};

use crate::{
    clients::{self, AgentClient, UnknownClient},
    replay,
};

pub use launch_request::{AgentLaunch, LaunchEnv, LaunchRequest, SessionMode, UserDirs};
pub use process_output::{AgentEvent, DecodedOutput, FinishedProcess, LocalClock};

/// The drivers by the names that settings use: first those that are not clients, then every client that has one.
pub const DRIVER_NAMES: [&str; 2 + clients::AGENT_CLIENT_COUNT] = driver_names();

const fn driver_names() -> [&'static str; 2 + clients::AGENT_CLIENT_COUNT] {
    let mut all_names = ["command"; 2 + clients::AGENT_CLIENT_COUNT];
    all_names[1] = "replay";
    let client_ids = clients::AGENT_CLIENT_IDS;
    // A `const fn` cannot use iterators.
    let mut client_index = 0;
    while client_index < client_ids.len() {
        all_names[2 + client_index] = client_ids[client_index];
        client_index += 1;
    }
    all_names
}

/// The variable that tells the process which task it works on. Scripts choose their part by it.
pub const TASK_VARIABLE: &str = "TRIBUNAL_TASK";

/// An agent whose driver this build has.
#[derive(Clone, Debug)]
pub struct DrivenAgent {
    pub agent_spec: AgentSpec,
    driver: AgentDriverKind,
}

/// How an agent is driven, with its settings resolved.
#[derive(Clone, Debug)]
enum AgentDriverKind {
    Command { argv: Vec<String> },
    Replay { script: String, is_paced: bool },
    Client { client: AgentClient, client_spec: ClientSpec },
}

impl DrivenAgent {
    /// Fails for a client that this build does not have: a journal of another version may name one.
    pub fn new(agent_spec: AgentSpec) -> Result<DrivenAgent, UnknownClient> {
        let driver_kind = match &agent_spec.driver {
            DriverSpec::Command { argv } => AgentDriverKind::Command { argv: argv.clone() },
            DriverSpec::Replay { script, paced: is_paced } => {
                AgentDriverKind::Replay { script: script.clone(), is_paced: *is_paced }
            }
            DriverSpec::Client(client_spec) => AgentDriverKind::Client {
                client: AgentClient::find(client_spec.client.as_str())?,
                client_spec: client_spec.clone(),
            },
        };
        Ok(DrivenAgent { agent_spec, driver: driver_kind })
    }

    /// The client that does the work; `None` for a command or a script.
    pub fn client(&self) -> Option<AgentClient> {
        match &self.driver {
            AgentDriverKind::Client { client, .. } => Some(*client),
            AgentDriverKind::Command { .. } | AgentDriverKind::Replay { .. } => None,
        }
    }

    /// Finds where the agent sends its requests, without credentials; `None` for the default of its vendor, and for an agent
    /// that is no client.
    pub fn find_endpoint(
        &self,
        launch_env: &LaunchEnv,
        find_variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let AgentDriverKind::Client { client, client_spec } = &self.driver else { return None };
        let settings = match client_spec.inherit {
            SettingsInheritance::Nothing => "",
            SettingsInheritance::User | SettingsInheritance::Project => launch_env.client_settings(client.id),
        };
        client.facts.driver.find_endpoint(settings, find_variable).map(|endpoint| strip_credentials(&endpoint))
    }

    /// Builds the launch for a task.
    pub fn build_launch(&self, launch_request: LaunchRequest<'_>, launch_env: &LaunchEnv) -> AgentLaunch {
        // The request is consumed by the driver, and the key is needed afterwards.
        let task_key = launch_request.task_key.to_string();
        let mut agent_launch = match &self.driver {
            AgentDriverKind::Command { argv } => command_line::build_launch(argv, launch_request),
            AgentDriverKind::Replay { script, is_paced } => {
                replay::build_launch(script, *is_paced, launch_request, launch_env)
            }
            AgentDriverKind::Client { client, client_spec } => {
                let mut agent_launch =
                    client.facts.driver.build_launch(&self.agent_spec, client_spec, launch_request, launch_env);
                agent_launch.program = match &client_spec.program {
                    // The agent works in a copy of the project. A program that is given by a path belongs to the
                    // project itself.
                    Some(program) if program.contains('/') => launch_env.project_root.join(program).into_os_string(),
                    Some(program) => program.into(),
                    None => client.program.into(),
                };
                // The driver may have taken such a variable from the user's settings, so it is removed there, too.
                agent_launch.removed_variables = clients::withheld_variables(client);
                agent_launch.env.retain(|variable_name, _| !agent_launch.removed_variables.contains(variable_name));
                agent_launch
            }
        };
        agent_launch.env.insert(TASK_VARIABLE.to_string(), task_key);
        agent_launch
    }

    /// Decodes what an agent printed.
    pub fn decode_output(&self, finished_process: &FinishedProcess<'_>) -> DecodedOutput {
        match &self.driver {
            AgentDriverKind::Command { .. } => command_line::decode_output(finished_process),
            AgentDriverKind::Replay { .. } => replay::decode_output(finished_process.stdout),
            AgentDriverKind::Client { client, client_spec } => {
                client.facts.driver.decode_output(client_spec, finished_process)
            }
        }
    }

    /// Whether the agent's output contains lines of progress.
    pub fn shows_progress(&self) -> bool {
        !matches!(self.driver, AgentDriverKind::Command { .. })
    }

    /// The events that a line of the agent's output reports.
    pub fn read_events(&self, output_line: &str) -> Vec<AgentEvent> {
        match &self.driver {
            AgentDriverKind::Command { .. } => Vec::new(),
            AgentDriverKind::Replay { .. } => match serde_json::from_str(output_line) {
                Ok(replay::ReplayLine::Progress { text: progress_text }) => {
                    vec![AgentEvent::Text { text: progress_text }]
                }
                _ => Vec::new(),
            },
            AgentDriverKind::Client { client, .. } => client.facts.driver.read_events(output_line),
        }
    }
}
/// Leaves out of an address who signs in, and what follows its path.
fn strip_credentials(endpoint: &str) -> String {
    let endpoint = endpoint.trim().split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = endpoint.split_once("://") else { return endpoint.to_string() };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let host = host.rsplit('@').next().unwrap_or_default();
    match path.trim_end_matches('/') {
        "" => format!("{scheme}://{host}"),
        path => format!("{scheme}://{host}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_credentials() {
        for (endpoint, expected) in [
            ("https://user:key@host.example:8080/v1/?key=secret", "https://host.example:8080/v1"),
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("Amazon Bedrock", "Amazon Bedrock"),
        ] {
            assert_eq!(strip_credentials(endpoint), expected);
        }
    }
}
