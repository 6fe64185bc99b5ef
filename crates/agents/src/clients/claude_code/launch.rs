//! Builds the command line of the client. Every flag was tried with the real program; `docs/agents.md` says what each
//! one is for.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use tribunal_core::{
    client::{ClientSpec, Inherit, Job, Size},
    limits::Cost,
    settings::AgentSpec,
};

use super::{
    ID,
    personal::Personal,
    tools::{self, Offer},
};
use crate::{
    clients::shared::{STANDING, model},
    driver::order::{Launch, Order, Talk, Whereabouts},
    schema::{self, Form},
};

const FORM: &str =
    " Give your final answer with the StructuredOutput tool, once, when everything else is done.";

/// Enough for a short outage. Waiting for longer ones is done by us.
const RETRIES: &str = "2";
/// The client rejects a budget of zero. A budget that is used up is handled before a task starts.
const LEAST_BUDGET: Cost = Cost(10_000);
const SETTINGS_FILE: &str = "claude-settings.json";
/// The time until the first token of an answer.
const API_TIMEOUT_MS: &str = "300000";

pub(super) fn launch(agent: &AgentSpec, client: &ClientSpec, order: Order<'_>, at: &Whereabouts) -> Launch {
    let personal = match client.inherit {
        Inherit::Nothing => Personal::default(),
        Inherit::User | Inherit::Project => Personal::of(at.client_settings(ID)),
    };
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["-p", "--output-format", "stream-json", "--verbose"]);
    // A user who sets a model for one size wants the sizes to differ, so that the one model of the user's own
    // settings is not used.
    let chosen = personal.model().filter(|_| client.models.is_empty());
    let model = model(agent, client, &order).or(chosen).or_else(|| order.size.map(alias));
    if let Some(model) = model {
        add(&["--model", model]);
    }
    if let Some(budget) = order.budget {
        add(&["--max-budget-usd", &budget.max(LEAST_BUDGET).amount().to_string()]);
    }
    let Offer { tools, allowed } = tools::offer(client, order.job);
    add(&["--tools", &tools.join(","), "--permission-mode", mode(client, order.job)]);
    if !allowed.is_empty() {
        add(&["--allowedTools"]);
        add(&allowed.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // The user's permissions would also become a fixer's. With `inherit: project`, the project's settings are wanted
    // as a whole.
    let sources = if client.inherit == Inherit::Project { "user,project,local" } else { "" };
    let (settings, files) = settings(client, &personal, order.beside);
    add(&["--setting-sources", sources, "--settings", &settings]);
    // MCP servers from the user's own configuration are never started.
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
    // With `inherit: project`, the client reads its settings itself, including their variables.
    let mut env = personal.env;
    env.retain(|_, _| client.inherit == Inherit::User);
    env.extend(ours());
    Launch { args, env, input: plain(order.prompt), files, ..Launch::default() }
}

/// The value of `--settings` and the file it names, if any. Settings with credentials go into a file, because every
/// user of the machine can see arguments.
fn settings(client: &ClientSpec, personal: &Personal, beside: &Path) -> (String, Vec<(PathBuf, String)>) {
    let mut settings = Map::from_iter([("disableAllHooks".to_string(), json!(true))]);
    match client.inherit {
        Inherit::User if !personal.settings.is_empty() => {
            settings.extend(personal.settings.clone());
            let file = beside.join(SETTINGS_FILE);
            return (file.to_string_lossy().into_owned(), vec![(file, Value::from(settings).to_string())]);
        }
        Inherit::Nothing | Inherit::User => {}
        // Variables in settings override the environment, and the settings given here override all others.
        Inherit::Project => {
            let ours = ours().map(|(name, value)| (name, value.into())).collect::<Map<_, _>>();
            settings.insert("env".to_string(), ours.into());
        }
    }
    (Value::from(settings).to_string(), Vec::new())
}

/// The client's own names for its models, which follow new releases.
fn alias(size: Size) -> &'static str {
    match size {
        Size::Small => "haiku",
        Size::Medium => "sonnet",
        Size::Large => "opus",
    }
}

/// The permission mode. A reviewer is denied everything that is not allowed, because no user could be asked.
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

/// Variables that hold regardless of the user's own.
fn ours() -> impl Iterator<Item = (String, String)> {
    let pairs = [
        ("API_TIMEOUT_MS", API_TIMEOUT_MS),
        // A subject that contains `@/some/file` would have that file sent, past all permissions.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        // What one task noted would be given to the next one in the same directory.
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // A background agent would be left behind at the end of its turn.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", RETRIES),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_string()))
}

/// Escapes a prompt that begins with a slash, which the client would take for a command.
fn plain(prompt: String) -> String {
    if prompt.starts_with('/') { format!("\n{prompt}") } else { prompt }
}
