//! The settings that a run is pinned to: resolved once, recorded in `run_started`, and the same whenever it is resumed, unless
//! the user reloads them.
//!
//! The binary reads files, merges layers and suggests corrections; this module has the result. The default of every setting
//! that a run is pinned to is defined here or in [`crate::engine::limits`], and nowhere else: in [`Settings::new`] and in the
//! `Default` implementations of its parts.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    engine::{ids::AgentName, limits::RunLimits},
    review::{
        level::{ReviewGoal, ReviewLevel, ReviewTier},
        seat_plan::Persona,
        subject::Subject,
    },
    tasks::client::{ClientSpec, JobDuty, JobKind},
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    pub subject: Subject,
    pub tier: ReviewTier,
    /// The level that the user chose; `None` derives it from the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<ReviewLevel>,
    pub goal: ReviewGoal,
    /// Whether findings are fixed; if false, the run only reviews.
    pub fix: bool,
    pub limits: RunLimits,
    pub tasks: TaskSettings,
    /// The agents, never empty; the seats of a panel use them in turn.
    pub agents: Vec<AgentSpec>,
    /// Commands that must pass before a patch lands.
    pub verify: Vec<String>,
    /// The directory of trackers and metrics, relative to the project's root.
    pub reviews: String,
    /// Agents that are used only as the stronger replacement of another agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserves: Vec<AgentSpec>,
    /// The confidence that a review needs to count as resolved; `None` if it is only displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_confidence: Option<u32>,
}

impl Settings {
    /// Returns the defaults for a review of `subject`. Agents and the tracker directory have no default: the caller sets them.
    pub fn new(subject: Subject) -> Settings {
        Settings {
            subject,
            // These values apply wherever no layer of the settings says otherwise.
            tier: ReviewTier::default(),
            level: None,
            goal: ReviewGoal::default(),
            fix: true,
            limits: RunLimits::default(),
            tasks: TaskSettings::default(),
            agents: Vec::new(),
            verify: Vec::new(),
            reviews: String::new(),
            reserves: Vec::new(),
            target_confidence: None,
        }
    }

    pub fn find_agent(&self, agent_name: &AgentName) -> Option<&AgentSpec> {
        // Reserves are looked up as well: a stronger agent is named by agents but not listed among them.
        self.agents.iter().chain(&self.reserves).find(|agent_spec| agent_spec.name == *agent_name)
    }

    /// Returns the provider of the model that an agent uses.
    pub fn agent_provider<'a>(&'a self, agent_name: &'a AgentName) -> &'a str {
        // An agent that is no longer configured counts as its own provider.
        self.find_agent(agent_name).map_or(agent_name.as_str(), AgentSpec::provider_name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSettings {
    /// The least number of findings that a reviewer should raise in round 1.
    pub required_issues: u32,
    pub max_concurrent_fixers: u32,
    pub max_issues_per_agent: u32,
    pub reviewer_timeout_ms: u64,
    pub party_timeout_ms: u64,
    /// `None` uses the timeout of the other reviewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_timeout_ms: Option<u64>,
    pub fixer_timeout_ms: u64,
    pub check_timeout_ms: u64,
    /// How long an agent may produce no output at all.
    pub idle_timeout_ms: u64,
    /// The pause before a failed task is retried.
    pub retry_after_ms: u64,
    #[serde(default, skip_serializing_if = "PlanSettings::is_default")]
    pub plans: PlanSettings,
    #[serde(default, skip_serializing_if = "WritingSettings::is_default")]
    pub writing: WritingSettings,
}

/// Where agents write, and when their changes land.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WritingSettings {
    /// The user approves each patch before it lands.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub approve_each: bool,
    /// The user's open session repairs the findings directly in the user's files; no fixers are started.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_session: bool,
    /// Ignored files and directories that agents and checks need, relative to the project's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
}

impl WritingSettings {
    fn is_default(&self) -> bool {
        *self == WritingSettings::default()
    }
}

/// How parties and elicitations work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSettings {
    /// The least number of personas in a party.
    pub min_agents: u32,
    /// The most rounds of cross-examination in a party.
    pub max_rounds: u32,
    /// The least number of methods in an elicitation.
    pub min_methods: u32,
    /// The personas of the project; empty uses the built-in ones.
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
            // Agents read and think for minutes; a party also discusses, so it gets more time.
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

/// One agent that the user configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// How the agent takes part in each kind of job; a job that is not listed is taken like any other.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub duties: BTreeMap<JobKind, JobDuty>,
}

impl AgentSpec {
    pub fn new(agent_name: impl Into<String>, driver: DriverSpec) -> AgentSpec {
        // The rest is optional and set by the code that reads the settings.
        let (provider, stronger, duties) = Default::default();
        AgentSpec { name: AgentName::new(agent_name), driver, provider, stronger, duties }
    }

    pub fn provider_name(&self) -> &str {
        // Without a configured provider the agent counts as independent of all others.
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
