//! What `tribunal doctor` found, as programs read it. People see the same, drawn by [`super::show`].

use schemars::JsonSchema;
use serde::Serialize;

use crate::probe::State;

pub(super) const SCHEMA: &str = "tribunal.doctor/1";

/// `tribunal doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    pub schema: &'static str,
    /// Whether a review could run here now.
    pub ready: bool,
    /// What keeps it from that.
    pub faults: Vec<Trouble>,
    /// What does not, and should be known.
    pub warnings: Vec<Trouble>,
    pub notes: Vec<String>,
    /// Those that would take part, or stand by.
    pub agents: Vec<AgentRow>,
    pub clients: Vec<ClientRow>,
    /// Known clients that are installed and have no driver.
    pub others: Vec<Other>,
    /// Its version; null: it is not there.
    pub git: Option<String>,
    pub project: ProjectRow,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Trouble {
    pub what: String,
    /// What to do, in the order in which it may help.
    pub mend: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentRow {
    pub name: String,
    pub driver: &'static str,
    pub provider: String,
    /// review, fix.
    pub takes: Vec<&'static str>,
    /// review, fix.
    pub stands_by: Vec<&'static str>,
    /// The program or the script, as it is set.
    pub runs: String,
    #[schemars(with = "&'static str")]
    pub state: State,
    pub can_work: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClientRow {
    pub id: &'static str,
    pub name: &'static str,
    /// As it was looked for.
    pub program: String,
    /// Where it was found.
    pub path: Option<String>,
    pub version: Option<String>,
    pub minimum: String,
    /// ready, unsure, not installed, not trusted, does not work, too old or not signed in.
    #[schemars(with = "&'static str")]
    pub state: State,
    /// What it said, or did not say.
    pub why: Option<String>,
    pub signed_in: Option<SignedIn>,
    /// Agents that are this client.
    pub agents: Vec<String>,
    /// What to type; null: nothing is missing.
    pub mend: Option<String>,
    pub can: Vec<Can>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SignedIn {
    pub how: String,
    /// A plan pays: cost is what it would have been by the token.
    pub subscription: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Can {
    pub what: &'static str,
    pub how: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Other {
    pub id: &'static str,
    pub name: &'static str,
    pub path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProjectRow {
    pub root: String,
    /// Whether BMAD's settings are there.
    pub bmad: bool,
    /// The project's own personas for parties; 0: the built-in ones.
    pub personas: usize,
}
