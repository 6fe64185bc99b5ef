//! How each agent is launched and how its output is read.
//!
//! An agent is any command line ([`command`]), a script ([`crate::replay`]) or a coding client; what is to be known of a
//! client stands in its own folder under [`crate::clients`]. A driver starts nothing and looks for nothing: what it needs to
//! know comes in, what is to be done goes out as data. It says what an agent's output *says*; what follows from that is
//! `core`'s business.

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

/// The drivers by the names that settings use: those that are no client, then every client that has one.
pub const DRIVER_NAMES: [&str; 2 + clients::AGENT_CLIENTS] = driver_names();

const fn driver_names() -> [&'static str; 2 + clients::AGENT_CLIENTS] {
    let mut names = ["command"; 2 + clients::AGENT_CLIENTS];
    names[1] = "replay";
    let ids = clients::AGENT_CLIENT_IDS;
    let mut at = 0;
    while at < ids.len() {
        names[2 + at] = ids[at];
        at += 1;
    }
    names
}

/// Names the task to the process: scripts choose their part by it, and a later sweep knows its own by it.
pub const TASK_VARIABLE: &str = "TRIBUNAL_TASK";

/// An agent whose driver this build has.
#[derive(Clone, Debug)]
pub struct DrivenAgent {
    pub spec: AgentSpec,
    driver: Driver,
}

#[derive(Clone, Debug)]
enum Driver {
    Command { argv: Vec<String> },
    Replay { script: String, paced: bool },
    Client { client: AgentClient, spec: ClientSpec },
}

impl DrivenAgent {
    /// Fails for a client that this build does not have: a journal may name one.
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

    /// The client that does the work; none: a command or a script does.
    pub fn client(&self) -> Option<AgentClient> {
        match &self.driver {
            Driver::Client { client, .. } => Some(*client),
            Driver::Command { .. } | Driver::Replay { .. } => None,
        }
    }

    pub fn launch(&self, order: Order<'_>, at: &Whereabouts) -> Launch {
        let task = order.key.to_string();
        let mut launch = match &self.driver {
            Driver::Command { argv } => command::launch(argv, order),
            Driver::Replay { script, paced } => replay::launch(script, *paced, order, at),
            Driver::Client { client, spec } => {
                let mut launch = client.agent.driver.launch(&self.spec, spec, order, at);
                launch.program = match &spec.program {
                    // Its folder is a copy: a program that is named by a path is the project's.
                    Some(program) if program.contains('/') => at.project.join(program).into_os_string(),
                    Some(program) => program.into(),
                    None => client.program.into(),
                };
                launch.without = clients::withheld_from(client);
                launch.env.retain(|name, _| !launch.without.contains(name));
                launch
            }
        };
        launch.env.insert(TASK_VARIABLE.to_string(), task);
        launch
    }

    /// Reads what an agent printed.
    pub fn decode(&self, finished: &Finished<'_>) -> Decoded {
        match &self.driver {
            Driver::Command { .. } => command::decode(finished),
            Driver::Replay { .. } => replay::decode(finished.stdout),
            Driver::Client { client, spec } => client.agent.driver.decode(spec, finished),
        }
    }

    /// Whether the agent's output has lines of progress in it.
    pub fn shows_progress(&self) -> bool {
        !matches!(self.driver, Driver::Command { .. })
    }

    /// What an agent says it is doing in this line of its output.
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
