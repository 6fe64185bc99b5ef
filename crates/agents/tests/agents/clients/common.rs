//! Short ways to build launch requests and process endings.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use jiff::tz::TimeZone;
use tribunal_agents::{
    clients::AgentClient,
    driver::{
        AgentEvent, AgentLaunch, DecodedOutput, DrivenAgent, FinishedProcess, LaunchEnv, LaunchRequest, LocalClock,
        SessionMode,
    },
};
use tribunal_engine::{
    ids::Key,
    limits::{AgentUsage, Cost},
};
use tribunal_workflows::{
    runs::settings::{AgentSpec, DriverSpec},
    tasks::{
        brief::AgentSession,
        client::{ClientSpec, JobKind},
        purpose::{AgentAccess, ExpectedAnswer},
    },
};

/// A Sunday noon in November, shortly before the limits in the fixtures reset.
pub const NOW_MS: u64 = 1_794_744_000_000;

pub fn utc_clock() -> LocalClock {
    LocalClock { now_ms: NOW_MS, time_zone: TimeZone::UTC }
}

pub fn read_fixture(client_dir: &str, fixture_name: &str) -> String {
    let fixture_path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{client_dir}/{fixture_name}.jsonl"));
    fs::read_to_string(&fixture_path).unwrap_or_else(|io_error| panic!("{}: {io_error}", fixture_path.display()))
}

pub struct ProcessEnding<'a> {
    pub exit_code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub session_mode: SessionMode<'a>,
}

impl Default for ProcessEnding<'_> {
    fn default() -> Self {
        ProcessEnding { exit_code: Some(0), stdout: "", stderr: "", session_mode: SessionMode::New }
    }
}

pub fn decode_ending(driver_spec: DriverSpec, process_ending: &ProcessEnding<'_>) -> DecodedOutput {
    let local_clock = utc_clock();
    let &ProcessEnding { exit_code, stdout, stderr, session_mode } = process_ending;
    drive_agent(&AgentSpec::new("a", driver_spec)).decode_output(&FinishedProcess {
        exit_code,
        stdout,
        stderr,
        clock: &local_clock,
        session_mode,
    })
}

fn drive_agent(agent_spec: &AgentSpec) -> DrivenAgent {
    DrivenAgent::new(agent_spec.clone()).unwrap()
}

pub fn read_events(driver_spec: &DriverSpec, output_line: &str) -> Vec<AgentEvent> {
    drive_agent(&AgentSpec::new("a", driver_spec.clone())).read_events(output_line)
}

pub fn find_unknown_tools(driver_spec: &DriverSpec) -> Vec<String> {
    let client_spec = driver_spec.client_spec().unwrap();
    AgentClient::find(client_spec.client.as_str()).unwrap().facts.driver.unknown_tools(client_spec)
}

pub fn build_session(input_tokens: u64, output_tokens: u64, cached_tokens: u64, dollars: Option<f64>) -> AgentSession {
    let dollars = dollars.map(Cost::from_amount);
    let total = AgentUsage { input_tokens, output_tokens, cached_tokens, cost: dollars, ..AgentUsage::default() };
    AgentSession { id: "00000000-0000-4000-8000-000000000001".into(), total, at_ms: 0 }
}

static TASK_KEY: LazyLock<Key> = LazyLock::new(|| Key::new("round-1/ask"));

pub fn build_launch<'a>(
    agent_spec: &AgentSpec,
    job: JobKind,
    change_request: impl FnOnce(&mut LaunchRequest<'a>),
) -> AgentLaunch {
    let mut launch_request = build_request(job);
    change_request(&mut launch_request);
    build_launch_in(agent_spec, launch_request, "")
}

fn build_request<'a>(job: JobKind) -> LaunchRequest<'a> {
    LaunchRequest {
        task_key: &TASK_KEY,
        prompt: "Look at it.".into(),
        is_command: false,
        expects: if job == JobKind::Fix { ExpectedAnswer::Fixes } else { ExpectedAnswer::Findings },
        access: if job == JobKind::Fix { AgentAccess::Write } else { AgentAccess::Read },
        job,
        size: None,
        budget: None,
        is_sandboxed: false,
        secret_variables: &[],
        scratch_dir: Path::new("/beside"),
        session_mode: SessionMode::New,
    }
}

/// Builds a launch for a user whose own settings of Claude Code are these.
pub fn build_launch_with<'a>(
    agent_spec: &AgentSpec,
    claude_settings: &str,
    change_request: impl FnOnce(&mut LaunchRequest<'a>),
) -> AgentLaunch {
    let mut launch_request = build_request(JobKind::Fix);
    change_request(&mut launch_request);
    build_launch_in(agent_spec, launch_request, claude_settings)
}

fn build_launch_in(agent_spec: &AgentSpec, launch_request: LaunchRequest<'_>, claude_settings: &str) -> AgentLaunch {
    let launch_env = LaunchEnv {
        own_program: "tribunal".into(),
        project_root: "/project".into(),
        settings_by_client: BTreeMap::from([
            ("claude-code", claude_settings.to_string()),
            ("codex", "[mcp_servers.mine]\n[mcp_servers.\"my.docs\"]\n".to_string()),
        ]),
        user_dirs: Default::default(),
    };
    drive_agent(agent_spec).build_launch(launch_request, &launch_env)
}

pub fn launch_args(agent_launch: &AgentLaunch) -> Vec<String> {
    agent_launch.args.iter().map(|argument| argument.to_str().unwrap().to_string()).collect()
}

/// The argument after a flag; `None` if the flag is missing.
pub fn value_after<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    arguments.iter().position(|argument| argument == flag).map(|flag_index| arguments[flag_index + 1].as_str())
}

pub fn build_client_spec(client: &str, change_spec: impl FnOnce(&mut ClientSpec)) -> ClientSpec {
    let mut client = ClientSpec::new(client);
    change_spec(&mut client);
    client
}
