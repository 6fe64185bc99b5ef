//! The settings that a run is pinned to: resolved once, recorded in `run_started`, and the same whenever it is resumed, unless
//! the user reloads them.
//!
//! The binary reads files, merges layers and suggests corrections; this module has the result. The default of every setting
//! that every run is pinned to is defined here or in [`tribunal_engine::limits`], and nowhere else: in the `Default`
//! implementations of [`Settings`] and its parts. Those of one kind of run are with its order.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    development::{
        checks::{CheckSpec, CommandLine},
        workspace::WorkspaceSettings,
    },
    tasks::client::{ClientSpec, JobDuty, JobKind},
};
use tribunal_engine::{
    ids::AgentName, limits::RunLimits, own_folders::OwnFolders, sandbox::SandboxSettings, tier::ProcessTier,
};

/// The settings of every kind of run. What only one kind needs is in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Settings {
    pub tier: ProcessTier,
    pub limits: RunLimits,
    pub tasks: TaskSettings,
    /// The agents, never empty; the seats of a panel use them in turn.
    pub agents: Vec<AgentSpec>,
    /// Agents that are used only as the stronger replacement of another agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserves: Vec<AgentSpec>,
    /// Commands of the user that say whether work is good, such as tests and linters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckSpec>,
    /// A command that is run when something waits for the user or a run has ended; the text is its last argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<CommandLine>,
    #[serde(default)]
    pub workspace: WorkspaceSettings,
    #[serde(default)]
    pub sandbox: SandboxSettings,
    /// Ignored files and directories that agents and checks need in their workspaces, relative to the project's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
    /// The directory of the files that Tribunal writes for users, relative to the project's root.
    pub reviews: String,
}

impl Settings {
    pub fn find_agent(&self, agent_name: &AgentName) -> Option<&AgentSpec> {
        // Reserves are looked up as well: a stronger agent is named by agents but not listed among them.
        self.agents.iter().chain(&self.reserves).find(|agent_spec| agent_spec.name == *agent_name)
    }

    /// Returns the provider of the model that an agent uses.
    pub fn agent_provider<'a>(&'a self, agent_name: &'a AgentName) -> &'a str {
        // An agent that is no longer configured counts as its own provider.
        self.find_agent(agent_name).map_or(agent_name.as_str(), AgentSpec::provider_name)
    }

    pub fn own_folders(&self) -> OwnFolders {
        OwnFolders::beside_reviews(&self.reviews)
    }
}

/// How tasks and checks are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskSettings {
    pub check_timeout_ms: u64,
    /// How long an agent may produce no output at all.
    pub idle_timeout_ms: u64,
    /// The pause before a failed task is retried.
    pub retry_after_ms: u64,
    /// The longest text that an agent may answer with; one that goes on is ended.
    #[serde(default = "default_answer_megabytes", skip_serializing_if = "is_default_answer_size")]
    pub max_answer_megabytes: u32,
}

fn default_answer_megabytes() -> u32 {
    1
}

fn is_default_answer_size(megabytes: &u32) -> bool {
    *megabytes == default_answer_megabytes()
}

impl TaskSettings {
    pub fn max_answer_bytes(&self) -> usize {
        (self.max_answer_megabytes as usize) << 20
    }
}

impl Default for TaskSettings {
    fn default() -> Self {
        TaskSettings {
            check_timeout_ms: 10 * 60_000,
            idle_timeout_ms: 10 * 60_000,
            retry_after_ms: 5_000,
            max_answer_megabytes: default_answer_megabytes(),
        }
    }
}

/// One agent that the user configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentSpec {
    pub name: AgentName,
    #[serde(flatten)]
    pub driver: DriverSpec,
    /// The provider of its model. Agents of one provider count as one voice. Empty: the agent is its own provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The agent with a stronger model that takes over when this one has failed twice in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stronger: Option<AgentName>,
    /// How the agent takes part in each kind of job; [`AgentSpec::find_duty`] says which entry applies to a job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub duties: BTreeMap<JobKind, JobDuty>,
}

impl AgentSpec {
    pub fn new(agent_name: impl Into<String>, driver: DriverSpec) -> AgentSpec {
        // The rest is optional and set by the code that reads the settings.
        let (provider, stronger, duties) = Default::default();
        AgentSpec { name: AgentName::new(agent_name), driver, provider, stronger, duties }
    }

    /// Returns how the agent takes part in a job: its own duty for the job, else that for the group of the job. Without
    /// either it takes the job.
    pub fn find_duty(&self, job: JobKind) -> Option<&JobDuty> {
        self.duties.get(&job).or_else(|| self.duties.get(&job.duty_group()))
    }

    pub fn provider_name(&self) -> &str {
        // Without a configured provider the agent counts as independent of all others.
        if self.provider.is_empty() { self.name.as_str() } else { &self.provider }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "driver", rename_all = "snake_case")]
pub enum DriverSpec {
    /// Any command line; the prompt goes to its standard input, the answer is its standard output.
    Command { argv: Vec<String> },
    /// A script played in a real process.
    Replay {
        /// Relative to the project's root.
        script: String,
        /// Whether the script's pauses are really waited for.
        paced: bool,
    },
    /// A coding client of a vendor.
    Client(ClientSpec),
}

impl DriverSpec {
    /// Returns the settings of a vendor's client; `None` if the driver is of another kind.
    pub fn client_spec(&self) -> Option<&ClientSpec> {
        match self {
            DriverSpec::Client(spec) => Some(spec),
            DriverSpec::Command { .. } | DriverSpec::Replay { .. } => None,
        }
    }

    /// Returns the driver's name as settings write it; for a client this is its id.
    pub fn driver_name(&self) -> &str {
        match self {
            DriverSpec::Command { .. } => "command",
            DriverSpec::Replay { .. } => "replay",
            // Settings write `driver: codex`, not `driver: client`.
            DriverSpec::Client(vendor_client) => vendor_client.client.as_str(),
        }
    }
}
