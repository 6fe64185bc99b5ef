//! What `tribunal doctor` found, as programs read it. Users see the same, rendered by [`super::render`].

use tribunal_json::{Serialize, schemars};

use crate::clients::client_probe::ClientState;

pub(super) const DOCTOR_SCHEMA: &str = "tribunal.doctor/1";

/// `tribunal doctor`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorReport {
    pub schema: &'static str,
    /// Whether a review could run here now.
    pub ready: bool,
    /// What keeps a review from running.
    pub faults: Vec<DoctorProblem>,
    /// What does not keep a review from running, and is worth knowing.
    pub warnings: Vec<DoctorProblem>,
    pub notes: Vec<String>,
    /// The agents that would take part or stand by.
    pub agents: Vec<DoctorAgentRow>,
    pub clients: Vec<DoctorClientRow>,
    /// Known clients that are installed and have no driver.
    pub others: Vec<OtherClient>,
    /// The version of git; null if it is missing.
    pub git: Option<String>,
    pub sandbox: DoctorSandboxRow,
    pub project: DoctorProjectRow,
    /// How workspaces for development could be set up; null if that is set, or if nothing is known.
    pub workspace: Option<DoctorWorkspaceAdvice>,
}

/// What keeps agents in their workspaces.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorSandboxRow {
    pub enforced: bool,
    pub description: String,
    /// What this kernel cannot prevent.
    pub gaps: Vec<&'static str>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorWorkspaceAdvice {
    /// Commands for `workspace.setup`.
    pub setup: Vec<DoctorSetupStep>,
    /// Files that git ignores and that a fresh clone lacks, for `workspace.seed`.
    pub seeds: Vec<DoctorSeedOption>,
    /// The lines to add to `tribunal.yaml`; empty if only files with secrets were found.
    pub settings: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorSetupStep {
    /// The file that the suggestion follows from.
    pub lock_file: String,
    pub command: String,
    pub note: Option<&'static str>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorSeedOption {
    pub path: String,
    /// Whether it is likely to hold secrets, which agents could then read.
    pub secret: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorProblem {
    pub what: String,
    /// The remedies, in the order in which they may help.
    pub mend: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorAgentRow {
    pub name: String,
    pub driver: &'static str,
    pub provider: String,
    /// The jobs that the agent takes: review, fix.
    pub takes: Vec<&'static str>,
    /// The jobs for which the agent stands by: review, fix.
    pub stands_by: Vec<&'static str>,
    /// The program or the script, as it is set.
    pub runs: String,
    #[schemars(with = "&'static str")]
    pub state: ClientState,
    pub can_work: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorClientRow {
    pub id: &'static str,
    pub name: &'static str,
    /// The name under which the program was searched.
    pub program: String,
    /// Where the program was found.
    pub path: Option<String>,
    pub version: Option<String>,
    pub minimum: String,
    /// ready, unsure, not installed, cannot be started, not trusted, does not work, too old or not signed in.
    #[schemars(with = "&'static str")]
    pub state: ClientState,
    /// What the client reported, or failed to report.
    pub why: Option<String>,
    pub signed_in: Option<DoctorSignIn>,
    /// The agents that use this client.
    pub agents: Vec<String>,
    /// The command that fixes it; null if nothing is missing.
    pub mend: Option<String>,
    pub can: Vec<DoctorAbility>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorSignIn {
    pub how: String,
    /// Whether a subscription pays; the cost is then what the same work would have cost by the token.
    pub subscription: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorAbility {
    pub what: &'static str,
    pub how: &'static str,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct OtherClient {
    pub id: &'static str,
    pub name: &'static str,
    pub path: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorProjectRow {
    pub root: String,
    /// Whether BMAD's settings are there.
    pub bmad: bool,
    /// The number of the project's own personas for parties; 0 if the built-in ones are used.
    pub personas: usize,
}
