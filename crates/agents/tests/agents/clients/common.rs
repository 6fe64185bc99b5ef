//! Short ways to build launch requests and process endings.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use jiff::tz::TimeZone;
use tribunal_agents::{
    answer::Wanted,
    clients::AgentClient,
    driver::{AgentEvent, Clock, Decoded, DrivenAgent, Finished, Launch, Order, Talk, Whereabouts},
};
use tribunal_core::{
    brief::Session,
    client::{ClientSpec, Job},
    ids::Key,
    limits::{Cost, Usage},
    settings::{AgentSpec, DriverSpec},
};

/// A Sunday noon in November, shortly before the limits in the fixtures reset.
pub const NOW_MS: u64 = 1_794_744_000_000;

pub fn clock() -> Clock {
    Clock { now_ms: NOW_MS, zone: TimeZone::UTC }
}

pub fn fixture(client: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{client}/{name}.jsonl"));
    fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}

pub struct Ending<'a> {
    pub code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
    pub talk: Talk<'a>,
}

impl Default for Ending<'_> {
    fn default() -> Self {
        Ending { code: Some(0), stdout: "", stderr: "", talk: Talk::New }
    }
}

pub fn decode(driver: DriverSpec, ending: &Ending<'_>) -> Decoded {
    let clock = clock();
    let &Ending { code, stdout, stderr, talk } = ending;
    driven(&AgentSpec::new("a", driver)).decode(&Finished { code, stdout, stderr, clock: &clock, talk })
}

fn driven(agent: &AgentSpec) -> DrivenAgent {
    DrivenAgent::new(agent.clone()).unwrap()
}

pub fn events(driver: &DriverSpec, line: &str) -> Vec<AgentEvent> {
    driven(&AgentSpec::new("a", driver.clone())).events(line)
}

pub fn unknown_tools(driver: &DriverSpec) -> Vec<String> {
    let spec = driver.client().unwrap();
    AgentClient::find(spec.client.as_str()).unwrap().agent.driver.unknown_tools(spec)
}

pub fn session(input_tokens: u64, output_tokens: u64, cached_tokens: u64, cost: Option<f64>) -> Session {
    let cost = cost.map(Cost::of);
    let total = Usage { input_tokens, output_tokens, cached_tokens, cost, ..Usage::default() };
    Session { id: "00000000-0000-4000-8000-000000000001".into(), total, at_ms: 0 }
}

static KEY: LazyLock<Key> = LazyLock::new(|| Key::new("round-1/ask"));

pub fn launch<'a>(agent: &AgentSpec, job: Job, change: impl FnOnce(&mut Order<'a>)) -> Launch {
    let mut order = order(job);
    change(&mut order);
    launch_at(agent, order, "")
}

fn order<'a>(job: Job) -> Order<'a> {
    Order {
        key: &KEY,
        prompt: "Look at it.".into(),
        wanted: if job == Job::Fix { Wanted::Fixes } else { Wanted::Findings },
        job,
        size: None,
        budget: None,
        beside: Path::new("/beside"),
        talk: Talk::New,
    }
}

/// Builds a launch for a user whose own settings of Claude Code are these.
pub fn launch_with<'a>(
    agent: &AgentSpec,
    claude_settings: &str,
    change: impl FnOnce(&mut Order<'a>),
) -> Launch {
    let mut order = order(Job::Fix);
    change(&mut order);
    launch_at(agent, order, claude_settings)
}

fn launch_at(agent: &AgentSpec, order: Order<'_>, claude_settings: &str) -> Launch {
    let at = Whereabouts {
        own_program: "tribunal".into(),
        project: "/project".into(),
        client_settings: BTreeMap::from([
            ("claude-code", claude_settings.to_string()),
            ("codex", "[mcp_servers.mine]\n[mcp_servers.\"my.docs\"]\n".to_string()),
        ]),
    };
    driven(agent).launch(order, &at)
}

pub fn args(launch: &Launch) -> Vec<String> {
    launch.args.iter().map(|arg| arg.to_str().unwrap().to_string()).collect()
}

/// The argument after a flag; `None` if the flag is missing.
pub fn after<'a>(args: &'a [String], flag: &str) -> Option<&'a str> {
    args.iter().position(|arg| arg == flag).map(|at| args[at + 1].as_str())
}

pub fn spec(client: &str, change: impl FnOnce(&mut ClientSpec)) -> ClientSpec {
    let mut client = ClientSpec::new(client);
    change(&mut client);
    client
}
