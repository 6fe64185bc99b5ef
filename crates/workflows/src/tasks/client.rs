//! The configuration of a coding client: which program, which models, what it may use and what it does.
//!
//! This module only has what was configured. `agents` knows which clients exist and which flags they understand.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::agent_role::AgentRole;
use tribunal_engine::{ids::ClientId, text::word_table::words};

/// Which coding client to run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClientSpec {
    /// The id may name a client that this build does not have; the code that starts it looks it up.
    pub client: ClientId,
    /// A program to run instead of the client's own name on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The model for every task, regardless of its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "ModelsBySize::is_empty")]
    pub models: ModelsBySize,
    #[serde(default, skip_serializing_if = "SettingsInheritance::is_default")]
    pub inherit: SettingsInheritance,
    /// Agents that write run without the client's own permission checks.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub bypass: bool,
    /// Every task runs in a new session.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub fresh: bool,
    /// Tools that it may use beyond those that a task needs, in the client's notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<McpServer>,
}

impl ClientSpec {
    /// Makes the configuration of a client for which nothing was set.
    pub fn new(client_name: impl Into<String>) -> ClientSpec {
        ClientSpec {
            client: ClientId::new(client_name),
            program: None,
            model: None,
            models: ModelsBySize::default(),
            inherit: SettingsInheritance::default(),
            bypass: false,
            fresh: false,
            allow: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// A model for each size of task; `None` leaves the choice to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelsBySize {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<String>,
}

impl ModelsBySize {
    pub fn is_empty(&self) -> bool {
        *self == ModelsBySize::default()
    }

    pub fn for_size(&self, size: ModelSize) -> Option<&str> {
        match size {
            // No fallback to another size: the client's own default is better than a wrong size.
            ModelSize::Small => self.small.as_deref(),
            ModelSize::Medium => self.medium.as_deref(),
            ModelSize::Large => self.large.as_deref(),
        }
    }
}

/// Which of the user's settings a client sees. Hooks run in none of these modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingsInheritance {
    /// None of them; the client still finds the credentials with which it signs in.
    Nothing,
    /// The user's own settings, without those that came with the project.
    #[default]
    User,
    /// The settings of the project as well.
    Project,
}

words!(SettingsInheritance { Nothing = "nothing", User = "user", Project = "project" });

impl SettingsInheritance {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
    fn is_default(&self) -> bool {
        *self == SettingsInheritance::default()
    }
}

/// An MCP server that agents may use, started by the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct McpServer {
    pub name: String,
    pub argv: Vec<String>,
    /// The reviewers that are told to use it; empty if all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<AgentRole>,
}

impl McpServer {
    pub fn new(name: impl Into<String>, argv: Vec<String>) -> McpServer {
        McpServer { name: name.into(), argv, roles: Vec::new() }
    }

    /// Whether a reviewer in this role is told to use it.
    pub fn is_for_role(&self, role: AgentRole) -> bool {
        self.roles.is_empty() || self.roles.contains(&role)
    }
}

/// The size of the model that a task is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelSize {
    Small,
    Medium,
    Large,
}

words!(ModelSize { Small = "small", Medium = "medium", Large = "large" });

/// The kind of work that a task is. Users configure agents and models for `review` and `fix`, the groups of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// A reviewer of a panel.
    Review,
    /// A challenger of findings.
    Challenge,
    /// A fixer of findings.
    Fix,
    CreateStory,
    Develop,
    CodeReview,
    Retrospective,
    /// One step of a workflow of the project.
    Step,
    /// One pass of a loop that the user runs.
    Loop,
    /// One voice of a party.
    Voice,
    /// A judgement about what others did or said.
    Judge,
}

words!(JobKind {
    Review = "review",
    Challenge = "challenge",
    Fix = "fix",
    CreateStory = "create-story",
    Develop = "develop",
    CodeReview = "code-review",
    Retrospective = "retrospective",
    Step = "step",
    Loop = "loop",
    Voice = "voice",
    Judge = "judge",
});

impl JobKind {
    /// Returns the job whose settings also apply to this one: `Review` for jobs that read, `Fix` for jobs that write.
    pub fn duty_group(self) -> JobKind {
        match self {
            JobKind::Review | JobKind::Challenge | JobKind::CodeReview | JobKind::Voice | JobKind::Judge => {
                JobKind::Review
            }
            JobKind::Fix
            | JobKind::CreateStory
            | JobKind::Develop
            | JobKind::Retrospective
            | JobKind::Step
            | JobKind::Loop => JobKind::Fix,
        }
    }
}

/// How an agent takes part in one kind of job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobDuty {
    #[serde(default)]
    pub part: JobPriority,
    /// A model to use instead of the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models for single seats of a panel, unless there is one for the job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seat_models: BTreeMap<AgentRole, String>,
}

impl JobDuty {
    /// Returns the model for the job, else that for the seat of a panel.
    pub fn model_for_role(&self, role: Option<AgentRole>) -> Option<&str> {
        let seat_model = || self.seat_models.get(&role?);
        self.model.as_ref().or_else(seat_model).map(String::as_str)
    }
}

/// When an agent is asked to do a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobPriority {
    #[default]
    Takes,
    /// Only when the agents that take the job cannot.
    StandsBy,
    /// Only when the agents that stand by cannot either.
    LastResort,
    Never,
}
