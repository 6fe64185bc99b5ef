//! How the client is started. Every flag here was tried with the real program; `docs/agents.md` says what each is for.

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

/// Enough for a hiccup; what lasts longer is ours to wait for.
const RETRIES: &str = "2";
/// It takes no zero. What is used up is told before a task starts, not by the client.
const LEAST_BUDGET: Cost = Cost(10_000);
const SETTINGS_FILE: &str = "claude-settings.json";
/// Until the first word of an answer.
const API_TIMEOUT_MS: &str = "300000";

pub(super) fn launch(agent: &AgentSpec, client: &ClientSpec, order: Order<'_>, at: &Whereabouts) -> Launch {
    let personal = match client.inherit {
        Inherit::Nothing => Personal::default(),
        Inherit::User | Inherit::Project => Personal::of(at.client_settings(ID)),
    };
    let mut args: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    add(&["-p", "--output-format", "stream-json", "--verbose"]);
    // Who has set a model for one size wants the sizes told apart.
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
    // The person's permissions would be a fixer's, too; who wants the project's settings gets them all.
    let sources = if client.inherit == Inherit::Project { "user,project,local" } else { "" };
    let (settings, files) = settings(client, &personal, order.beside);
    add(&["--setting-sources", sources, "--settings", &settings]);
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
    let mut env = personal.env;
    env.retain(|_, _| client.inherit == Inherit::User);
    env.extend(ours());
    Launch { args, env, input: plain(order.prompt), files, ..Launch::default() }
}

/// What `--settings` says, and the file that it names. Arguments can be seen by everybody on the machine.
fn settings(client: &ClientSpec, personal: &Personal, beside: &Path) -> (String, Vec<(PathBuf, String)>) {
    let mut settings = Map::from_iter([("disableAllHooks".to_string(), json!(true))]);
    match client.inherit {
        Inherit::User if !personal.settings.is_empty() => {
            settings.extend(personal.settings.clone());
            let file = beside.join(SETTINGS_FILE);
            return (file.to_string_lossy().into_owned(), vec![(file, Value::from(settings).to_string())]);
        }
        Inherit::Nothing | Inherit::User => {}
        // What settings say of variables comes after the environment, and these come last.
        Inherit::Project => {
            let ours = ours().map(|(name, value)| (name, value.into())).collect::<Map<_, _>>();
            settings.insert("env".to_string(), ours.into());
        }
    }
    (Value::from(settings).to_string(), Vec::new())
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

/// Variables that hold whatever the person's say.
fn ours() -> impl Iterator<Item = (String, String)> {
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
    pairs.into_iter().map(|(name, value)| (name.to_string(), value.to_string()))
}

/// A prompt that begins like a command would be taken for one.
fn plain(prompt: String) -> String {
    if prompt.starts_with('/') { format!("\n{prompt}") } else { prompt }
}
