//! What is known of a coding client before it is started: which program, which models, what it may use and what it does.
//!
//! Here is only what was set. Which clients there are, and which flag says so to which of them, is `agents`' business.

use alloc::{string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ids::ClientId,
    level::{Role, words},
};

/// Which client of a vendor is to be run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientSpec {
    /// Text may name a client that this build does not have; whoever starts one looks it up.
    pub client: ClientId,
    /// Another program than the client's own name on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// For every task, whatever its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Models::is_empty")]
    pub models: Models,
    #[serde(default, skip_serializing_if = "Inherit::is_default")]
    pub inherit: Inherit,
    /// Writers work without the client's own permission checks.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub bypass: bool,
    /// Every task in a session of its own.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub fresh: bool,
    /// Tools it may use beyond those a task needs, in the client's own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Server>,
}

impl ClientSpec {
    /// The client as it is where nothing was set for it.
    pub fn new(client: impl Into<String>) -> ClientSpec {
        ClientSpec {
            client: ClientId::new(client),
            program: None,
            model: None,
            models: Models::default(),
            inherit: Inherit::default(),
            bypass: false,
            fresh: false,
            allow: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// A model for each size of task; none: the client's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<String>,
}

impl Models {
    pub fn is_empty(&self) -> bool {
        *self == Models::default()
    }

    pub fn of(&self, size: Size) -> Option<&str> {
        match size {
            Size::Small => self.small.as_deref(),
            Size::Medium => self.medium.as_deref(),
            Size::Large => self.large.as_deref(),
        }
    }
}

/// What of the person's own settings a client sees. Hooks run in none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inherit {
    /// Only how it signs in.
    Nothing,
    /// The person's own settings, not those that came with the project.
    #[default]
    User,
    /// The project's, too.
    Project,
}

words!(Inherit { Nothing = "nothing", User = "user", Project = "project" });

impl Inherit {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
    fn is_default(&self) -> bool {
        *self == Inherit::default()
    }
}

/// An MCP server that agents may use, started by the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    pub name: String,
    pub argv: Vec<String>,
}

/// How much model a task is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    Small,
    Medium,
    Large,
}

words!(Size { Small = "small", Medium = "medium", Large = "large" });

/// What kind of work a task is: people set agents and models by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Reviewers and challengers: they read.
    Review,
    /// Fixers: they write.
    Fix,
}

words!(Job { Review = "review", Fix = "fix" });

impl Job {
    pub fn of(role: Role) -> Job {
        if role == Role::Fixer { Job::Fix } else { Job::Review }
    }
}

/// What an agent does of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Duty {
    #[serde(default)]
    pub part: Part,
    /// Another model than the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// When an agent is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    #[default]
    Takes,
    /// Only when those who take it cannot.
    StandsBy,
    /// Only when those who stand by cannot either.
    StandsBehind,
    Never,
}
