//! Launches agents and decodes their output, independent of which agent it is.
//!
//! An agent is any command line ([`command_line`]), a script ([`crate::replay`]) or a coding client, which is defined
//! in its own directory under [`crate::clients`]. A driver starts nothing and looks nothing up: everything it needs
//! comes in, and what is to be done goes out as data. It reports what an agent's output *says*; what follows from
//! that is decided in `core`.

mod command;
pub(crate) mod order;
pub(crate) mod output;

use tribunal_core::{
    client::ClientSpec,
    settings::{AgentSpec, DriverSpec},
};

use crate::{
    clients::{self, AgentClient, UnknownClient},
    replay,
};

pub use order::{Launch, Order, Talk, Whereabouts};
pub use output::{AgentEvent, Clock, Decoded, Finished};

/// The drivers by the names that settings use: first those that are not clients, then every client that has one.
pub const DRIVER_NAMES: [&str; 2 + clients::AGENT_CLIENTS] = driver_names();

const fn driver_names() -> [&'static str; 2 + clients::AGENT_CLIENTS] {
    let mut names = ["command"; 2 + clients::AGENT_CLIENTS];
    names[1] = "replay";
    let ids = clients::AGENT_CLIENT_IDS;
    // A `const fn` cannot use iterators.
    let mut at = 0;
    while at < ids.len() {
        names[2 + at] = ids[at];
        at += 1;
    }
    names
}

/// Tells the process which task it works on. Scripts choose their part by it, and a later sweep recognizes its own
/// processes by it.
pub const TASK_VARIABLE: &str = "TRIBUNAL_TASK";

/// An agent whose driver this build has.
#[derive(Clone, Debug)]
pub struct DrivenAgent {
    pub spec: AgentSpec,
    driver: Driver,
}

/// How an agent is driven, with its settings resolved.
#[derive(Clone, Debug)]
enum Driver {
    Command { argv: Vec<String> },
    Replay { script: String, paced: bool },
    Client { client: AgentClient, spec: ClientSpec },
}

impl DrivenAgent {
    /// Fails for a client that this build does not have: a journal of another version may name one.
    pub fn new(spec: AgentSpec) -> Result<DrivenAgent, UnknownClient> {
        let driver = match &spec.driver {
            DriverSpec::Command { argv } => Driver::Command { argv: argv.clone() },
            DriverSpec::Replay { script, paced } => Driver::Replay { script: script.clone(), paced: *paced },
            DriverSpec::Client(client) => {
                Driver::Client { client: AgentClient::find(client.client.as_str())?, spec: client.clone() }
            }
        };
        Ok(DrivenAgent { spec, driver })
    }

    /// The client that does the work; `None` for a command or a script.
    pub fn client(&self) -> Option<AgentClient> {
        match &self.driver {
            Driver::Client { client, .. } => Some(*client),
            Driver::Command { .. } | Driver::Replay { .. } => None,
        }
    }

    /// Builds the launch for a task.
    pub fn launch(&self, order: Order<'_>, at: &Whereabouts) -> Launch {
        // The request is consumed by the driver, and the key is needed afterwards.
        let task = order.key.to_string();
        let mut launch = match &self.driver {
            Driver::Command { argv } => command::launch(argv, order),
            Driver::Replay { script, paced } => replay::launch(script, *paced, order, at),
            Driver::Client { client, spec } => {
                let mut launch = client.agent.driver.launch(&self.spec, spec, order, at);
                launch.program = match &spec.program {
                    // The agent works in a copy of the project. A program that is given by a path belongs to the
                    // project itself.
                    Some(program) if program.contains('/') => at.project.join(program).into_os_string(),
                    Some(program) => program.into(),
                    None => client.program.into(),
                };
                // This comes last, so that no variable that a driver took from the user's settings can leak either.
                launch.without = clients::withheld_from(client);
                launch.env.retain(|name, _| !launch.without.contains(name));
                launch
            }
        };
        launch.env.insert(TASK_VARIABLE.to_string(), task);
        launch
    }

    /// Decodes what an agent printed.
    pub fn decode(&self, finished: &Finished<'_>) -> Decoded {
        match &self.driver {
            Driver::Command { .. } => command::decode(finished),
            Driver::Replay { .. } => replay::decode(finished.stdout),
            Driver::Client { client, spec } => client.agent.driver.decode(spec, finished),
        }
    }

    /// Whether the agent's output contains lines of progress.
    pub fn shows_progress(&self) -> bool {
        !matches!(self.driver, Driver::Command { .. })
    }

    /// The events that a line of the agent's output reports.
    pub fn events(&self, line: &str) -> Vec<AgentEvent> {
        match &self.driver {
            Driver::Command { .. } => Vec::new(),
            Driver::Replay { .. } => match serde_json::from_str(line) {
                Ok(replay::Line::Progress { text }) => vec![AgentEvent::Text { text }],
                _ => Vec::new(),
            },
            Driver::Client { client, .. } => client.agent.driver.events(line),
        }
    }
}
