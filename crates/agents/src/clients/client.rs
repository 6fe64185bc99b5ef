//! What the registry says about a client.
//!
//! A [`CodingClient`] has up to three sides: it can work for Tribunal as an agent ([`AgentFacts`], [`AgentDriver`]),
//! the user's own sessions of it can call Tribunal ([`ClientHooks`], in [`super::hooks`]), and its raw output can be
//! analysed ([`OutputFormat`]). A side that is missing is `None`, and the commands that need it skip the client.

use std::fmt;

use serde_json::Value;
use tribunal_workflows::{runs::settings::AgentSpec, tasks::client::ClientSpec};

use super::{
    client_status::{ClientVersion, SignInOutput, SignInStatus},
    hooks::ClientHooks,
};
use crate::{
    analysis::agent_response::AgentResponse,
    driver::{
        launch_request::{AgentLaunch, LaunchEnv, LaunchRequest},
        process_output::{AgentEvent, DecodedOutput, FinishedProcess},
    },
};

/// One coding client: a row of [`super::CLIENTS`].
#[derive(Debug)]
pub struct CodingClient {
    /// The id that settings, flags and journals use.
    pub id: &'static str,
    pub name: &'static str,
    /// Other names that users have for it.
    pub aliases: &'static [&'static str],
    /// The program to look up on the path, unless settings say otherwise.
    pub program: &'static str,
    pub variables: ClientVariables,
    pub project_files: ClientProjectFiles,
    /// How it works as an agent; `None` if it has no driver yet.
    pub agent_facts: Option<AgentFacts>,
    /// How its sessions call our hooks; `None` if no way is known.
    pub session_hooks: Option<&'static dyn ClientHooks>,
    /// The form of its output; `None` if it prints nothing that is understood.
    pub output_format: Option<&'static OutputFormat>,
}

impl PartialEq for CodingClient {
    fn eq(&self, other: &CodingClient) -> bool {
        self.id == other.id
    }
}

impl Eq for CodingClient {}

/// Environment variables that concern a client.
#[derive(Debug)]
pub struct ClientVariables {
    /// Variables that tell a command which session of the client it runs in. The first one that is set counts.
    pub session_ids: &'static [&'static str],
    /// The variable that tells a hook the project's directory.
    pub project_dir: Option<&'static str>,
    /// Variables through which a session that started us would affect the clients that we start.
    pub leaking: &'static [&'static str],
    /// Variables that sign in to its vendor. No other client gets them.
    pub vendor_credentials: &'static [&'static str],
    /// Variables that are set to 1 while the client is only asked about itself, so that it neither updates itself nor
    /// calls home.
    pub set_while_probing: &'static [&'static str],
}

impl ClientVariables {
    pub const NONE: ClientVariables = ClientVariables {
        session_ids: &[],
        project_dir: None,
        leaking: &[],
        vendor_credentials: &[],
        set_while_probing: &[],
    };
}

/// Files of a project that concern a client, as paths from the project's root.
#[derive(Debug)]
pub struct ClientProjectFiles {
    /// Files that the client reads before it works. Users often keep them out of git.
    pub instruction_paths: &'static [&'static str],
    /// Files that define what its sessions may do. A session that works for Tribunal must not change them. A
    /// directory ends in `/`.
    pub guarded_paths: &'static [&'static str],
}

/// What makes a client an agent.
#[derive(Debug)]
pub struct AgentFacts {
    /// The oldest version that is accepted: the flags that the driver needs are reported to be in it.
    pub minimum_version: ClientVersion,
    /// The vendor whose model it asks if nothing else is set.
    pub vendor: &'static str,
    pub version_args: &'static [&'static str],
    /// The arguments with which it tells who is signed in.
    pub sign_in_args: &'static [&'static str],
    /// What the user can do if it is not installed.
    pub install_hint: &'static str,
    /// What the user can do if it is not signed in.
    pub sign_in_hint: &'static str,
    /// Variables that sign it in by themselves.
    pub key_variables: &'static [KeyVariable],
    pub client_files: ClientFiles,
    /// What its driver can have it do.
    pub abilities: &'static [ClientAbility],
    pub denial_remedy: DenialRemedy,
    /// Whether models for single seats, such as `tasks.fixer_model`, apply to it.
    pub uses_seat_models: bool,
    pub driver: &'static dyn AgentDriver,
}

/// A variable that signs a client in.
#[derive(Debug)]
pub struct KeyVariable {
    pub name: &'static str,
    /// Whether a plan pays, rather than each token.
    pub is_subscription: bool,
}

/// Where a client keeps its own files.
#[derive(Debug)]
pub struct ClientFiles {
    /// The variable that names the directory.
    pub dir_variable: &'static str,
    /// The directory below the user's home, if the variable is not set.
    pub default_dir: &'static str,
    /// The file that has content while the user is signed in.
    pub credentials_file: &'static str,
    /// The file with the user's own settings. A launch and [`AgentDriver::own_provider`] get its text.
    pub settings_file: &'static str,
    /// What it writes while it works for us, below its directory: sessions, logs, credentials. A directory ends in `/`;
    /// `{workspace}` stands for the name that it makes of the working directory. What defines its later sessions (settings,
    /// hooks, rules, servers) is not among them.
    pub working_files: &'static [&'static str],
    pub sandbox_dir: SandboxDir,
    /// Directories in which its sessions keep plans and memory. Every session may write there.
    pub session_writable_dirs: &'static [&'static str],
}

/// The private directory that a client works with in our sandbox, instead of the user's own one: it creates files beside its
/// settings, and some of them would be used by the user's other sessions.
#[derive(Debug)]
pub struct SandboxDir {
    /// Everything in the user's directory is linked, except entries with these names. A `*` at the end stands for any rest.
    pub unlinked_names: &'static [&'static str],
    /// A file of the home directory that the client looks for in its directory if a variable names that. It is copied.
    pub home_file: Option<&'static str>,
}

/// Something that a driver can have its client do, and by which means.
#[derive(Debug)]
pub struct ClientAbility {
    pub label: &'static str,
    pub explanation: &'static str,
}

/// What the user can set for a client that was denied something it needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialRemedy {
    /// Its tools are allowed by name: `agents.NAME.allow`.
    AllowTools,
    /// It has no list of tools, only checks that can be bypassed: `agents.NAME.bypass`.
    Bypass,
}

/// How a client is launched and how its output is decoded.
pub trait AgentDriver: fmt::Debug + Sync {
    /// Builds everything but the program and the withheld variables, which [`crate::driver`] adds.
    fn build_launch(
        &self,
        agent_spec: &AgentSpec,
        client_spec: &ClientSpec,
        launch_request: LaunchRequest<'_>,
        launch_env: &LaunchEnv,
    ) -> AgentLaunch;

    /// Decodes what the client printed.
    fn decode_output(&self, client_spec: &ClientSpec, finished_process: &FinishedProcess<'_>) -> DecodedOutput;

    /// The events that a line of its output reports.
    fn read_events(&self, output_line: &str) -> Vec<AgentEvent>;

    /// Reads what it printed when it was asked who is signed in.
    fn read_sign_in(&self, status_output: SignInOutput<'_>) -> SignInStatus;

    /// Tools that settings allow and the client does not have. The client itself would ignore them silently.
    fn unknown_tools(&self, client_spec: &ClientSpec) -> Vec<String>;

    /// Describes where the user's own settings name another provider, if they do: the client is then signed in by other
    /// means and does not report that.
    fn describe_custom_provider(&self, _settings: &str) -> Option<String> {
        None
    }

    /// Finds where the client sends its requests, if that was configured; `None` for the default of its vendor. `settings` is
    /// the text of the user's own settings file, and `find_variable` looks up the environment that the client inherits.
    fn find_endpoint(&self, settings: &str, find_variable: &dyn Fn(&str) -> Option<String>) -> Option<String>;
}

/// The JSON lines that a client prints, for the analysis of free text.
#[derive(Debug)]
pub struct OutputFormat {
    /// The name that users and documents use.
    pub name: &'static str,
    /// Types of lines that no other client prints.
    pub unique_types: &'static [&'static str],
    /// Whether lines look like this format. It is only asked if no line has a type that is unique to any client.
    pub looks_alike: fn(&[Value]) -> bool,
    /// Reads the agent's words out of a line.
    pub read_line: fn(&mut AgentResponse, &Value),
}

impl PartialEq for OutputFormat {
    fn eq(&self, other: &OutputFormat) -> bool {
        self.name == other.name
    }
}

impl Eq for OutputFormat {}
