//! The settings a run is pinned to: resolved once, recorded in `run_started`, the same in every life of the run.
//!
//! Files, layers and did-you-means are the binary's business; here is what came out. The default of every setting that a run
//! is pinned to stands here and in [`crate::limits`], and nowhere else: [`Settings::new`] and the `Default` of its parts.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    client::{ClientSpec, Duty, Job},
    ids::AgentName,
    level::{Goal, Level, Tier},
    limits::Limits,
    plan::Persona,
    subject::Subject,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    pub subject: Subject,
    pub tier: Tier,
    /// Chosen by a person; else it follows from the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    pub goal: Goal,
    /// Review only, when false.
    pub fix: bool,
    pub limits: Limits,
    pub tasks: TaskSettings,
    /// Never empty; the seats of a panel take them in turn.
    pub agents: Vec<AgentSpec>,
    /// Commands that must pass before a patch lands.
    pub verify: Vec<String>,
    /// Folder of trackers and metrics, relative to the project's root.
    pub reviews: String,
    /// Agents that take part only as somebody's stronger one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserves: Vec<AgentSpec>,
    /// What confidence must come to before a review is called resolved; none: it is only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_confidence: Option<u32>,
}

impl Settings {
    /// The defaults for a review of `subject`. Agents and the folder of trackers have none: whoever starts a run names them.
    pub fn new(subject: Subject) -> Settings {
        Settings {
            subject,
            tier: Tier::default(),
            level: None,
            goal: Goal::default(),
            fix: true,
            limits: Limits::default(),
            tasks: TaskSettings::default(),
            agents: Vec::new(),
            verify: Vec::new(),
            reviews: String::new(),
            reserves: Vec::new(),
            target_confidence: None,
        }
    }

    pub fn agent(&self, name: &AgentName) -> Option<&AgentSpec> {
        self.agents.iter().chain(&self.reserves).find(|agent| agent.name == *name)
    }

    /// Whose model an agent asks.
    pub fn provider<'a>(&'a self, agent: &'a AgentName) -> &'a str {
        self.agent(agent).map_or(agent.as_str(), AgentSpec::provider)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSettings {
    /// What a reviewer should find at least in round 1.
    pub required_issues: u32,
    pub max_concurrent_fixers: u32,
    pub max_issues_per_agent: u32,
    pub reviewer_timeout_ms: u64,
    pub party_timeout_ms: u64,
    /// None: as for any other reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_timeout_ms: Option<u64>,
    pub fixer_timeout_ms: u64,
    pub check_timeout_ms: u64,
    /// How long an agent may say nothing at all.
    pub idle_timeout_ms: u64,
    /// Before a failed task is tried once more.
    pub retry_after_ms: u64,
    #[serde(default, skip_serializing_if = "PlanSettings::is_default")]
    pub plans: PlanSettings,
    #[serde(default, skip_serializing_if = "WritingSettings::is_default")]
    pub writing: WritingSettings,
}

/// Where agents write, and when it lands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WritingSettings {
    /// A person sees each patch before it lands.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approve_each: bool,
    /// A session that the person has open repairs, in the person's own files; no fixers do.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_session: bool,
    /// Ignored files and folders that agents and checks need, relative to the project's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
}

impl WritingSettings {
    fn is_default(&self) -> bool {
        *self == WritingSettings::default()
    }
}

/// How parties and elicitations go about their work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSettings {
    /// Personas in a party, at least.
    pub min_agents: u32,
    /// Rounds of cross-examination in a party, at most.
    pub max_rounds: u32,
    /// Methods of an elicitation, at least.
    pub min_methods: u32,
    /// The project's own personas; empty: ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<Persona>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        PlanSettings { min_agents: 3, max_rounds: 3, min_methods: 3, roster: Vec::new() }
    }
}

impl PlanSettings {
    fn is_default(&self) -> bool {
        *self == PlanSettings::default()
    }
}

impl Default for TaskSettings {
    fn default() -> Self {
        TaskSettings {
            required_issues: 3,
            max_concurrent_fixers: 3,
            max_issues_per_agent: 5,
            reviewer_timeout_ms: 15 * 60_000,
            party_timeout_ms: 20 * 60_000,
            elicitation_timeout_ms: None,
            fixer_timeout_ms: 15 * 60_000,
            check_timeout_ms: 10 * 60_000,
            idle_timeout_ms: 10 * 60_000,
            retry_after_ms: 5_000,
            plans: PlanSettings::default(),
            writing: WritingSettings::default(),
        }
    }
}

/// One agent the person named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    pub name: AgentName,
    #[serde(flatten)]
    pub driver: DriverSpec,
    /// Whose model it asks; agents of one provider are one voice. Empty: it is its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The agent that takes over when this one has failed twice in a row: one model up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stronger: Option<AgentName>,
    /// What it does of each job; a job that is not here it takes like everybody.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub duties: BTreeMap<Job, Duty>,
}

impl AgentSpec {
    pub fn new(name: impl Into<String>, driver: DriverSpec) -> AgentSpec {
        let (provider, stronger, duties) = Default::default();
        AgentSpec { name: AgentName::new(name), driver, provider, stronger, duties }
    }

    pub fn provider(&self) -> &str {
        if self.provider.is_empty() { self.name.as_str() } else { &self.provider }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "driver", rename_all = "snake_case")]
pub enum DriverSpec {
    /// Any command line; the prompt goes to its standard input, the answer is its standard output.
    Command { argv: Vec<String> },
    /// A script played in a real process.
    Replay {
        /// Relative to the project's root.
        script: String,
        /// Whether the script's waits are waited.
        paced: bool,
    },
    /// A coding client of a vendor, whichever it is.
    Client(ClientSpec),
}

impl DriverSpec {
    /// How a client of a vendor is set up; none: it is no such client.
    pub fn client(&self) -> Option<&ClientSpec> {
        match self {
            DriverSpec::Client(client) => Some(client),
            DriverSpec::Command { .. } | DriverSpec::Replay { .. } => None,
        }
    }

    /// The driver's name as settings write it: a client's is its id.
    pub fn name(&self) -> &str {
        match self {
            DriverSpec::Command { .. } => "command",
            DriverSpec::Replay { .. } => "replay",
            DriverSpec::Client(client) => client.client.as_str(),
        }
    }
}
