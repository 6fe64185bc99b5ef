//! How the client is started. Every flag here was tried with the real program; `docs/agents.md` says what each is for.

use std::{collections::BTreeMap, ffi::OsString};

use serde_json::json;
use tribunal_core::{
    client::{ClientSpec, Inherit, Job, Size},
    settings::AgentSpec,
};

use super::tools::{self, Offer};
use crate::{
    driver::{
        Launch, Order, Talk,
        shared::{LEAKS, STANDING, model},
    },
    schema::{self, Form},
};

const FORM: &str =
    " Give your final answer with the StructuredOutput tool, once, when everything else is done.";

/// Enough for a hiccup; what lasts longer is ours to wait for.
const RETRIES: &str = "2";
/// Until the first word of an answer.
const API_TIMEOUT_MS: &str = "300000";

pub(in crate::driver) fn launch(agent: &AgentSpec, client: &ClientSpec, order: Order<'_>) -> Launch {
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["-p", "--output-format", "stream-json", "--verbose"]);
    let model = model(agent, client, &order).or_else(|| order.size.map(alias));
    if let Some(model) = model {
        add(&["--model", model]);
    }
    let Offer { tools, allowed } = tools::offer(client, order.job);
    add(&["--tools", &tools.join(","), "--permission-mode", mode(client, order.job)]);
    if !allowed.is_empty() {
        add(&["--allowedTools"]);
        add(&allowed.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let sources = match client.inherit {
        Inherit::Nothing => "",
        Inherit::User => "user",
        Inherit::Project => "user,project,local",
    };
    add(&["--setting-sources", sources, "--settings", &json!({"disableAllHooks": true}).to_string()]);
    // Servers of the person's own are none of ours.
    add(&["--strict-mcp-config"]);
    if !client.servers.is_empty() {
        add(&["--mcp-config", &servers(client)]);
    }
    add(&["--json-schema", &schema::of(order.wanted, Form::Loose).to_string()]);
    add(&["--append-system-prompt", &format!("{STANDING}{FORM}")]);
    match order.talk {
        Talk::GoOn(session) => add(&["--resume", &session.id]),
        Talk::Branch(session) => add(&["--resume", &session.id, "--fork-session"]),
        Talk::New => {}
    }
    if client.fresh {
        add(&["--no-session-persistence"]);
    }
    Launch {
        program: client.program.clone().unwrap_or_else(|| "claude".into()).into(),
        args,
        env: env(),
        without: LEAKS.iter().map(|name| (*name).to_string()).collect(),
        input: plain(order.prompt),
        files: Vec::new(),
    }
}

/// The client's own names for its models go with the times.
fn alias(size: Size) -> &'static str {
    match size {
        Size::Small => "haiku",
        Size::Medium => "sonnet",
        Size::Large => "opus",
    }
}

fn mode(client: &ClientSpec, job: Job) -> &'static str {
    match job {
        Job::Review => "dontAsk",
        Job::Fix if client.bypass => "bypassPermissions",
        Job::Fix => "acceptEdits",
    }
}

fn servers(client: &ClientSpec) -> String {
    let servers = client.servers.iter().map(|server| {
        let command = server.argv.first().map(String::as_str).unwrap_or_default();
        let args = server.argv.get(1..).unwrap_or_default();
        (server.name.clone(), json!({"command": command, "args": args}))
    });
    json!({"mcpServers": servers.collect::<serde_json::Map<_, _>>()}).to_string()
}

fn env() -> BTreeMap<String, String> {
    let pairs = [
        ("API_TIMEOUT_MS", API_TIMEOUT_MS),
        // A subject that says `@/some/file` would have that file sent, whatever the permissions say.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        // What one task noted would be told to the next in the same folder.
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // An agent in the background would be left behind by the end of its turn.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", RETRIES),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// A prompt that begins like a command would be taken for one.
fn plain(prompt: String) -> String {
    if prompt.starts_with('/') { format!("\n{prompt}") } else { prompt }
}
