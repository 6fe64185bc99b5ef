//! Builds the command line of the client. Every flag was tried with the real program; `docs/agents.md` says what each
//! one is for.

use std::ffi::OsString;

use serde_json::{Value, json};
use tribunal_core::{
    client::{ClientSpec, Inherit, Job, Server},
    settings::AgentSpec,
};

use super::{ID, servers};
use crate::{
    clients::shared::{STANDING, model},
    driver::order::{Launch, Order, Talk, Whereabouts},
    schema::{self, Form},
};

const SCHEMA_FILE: &str = "answer-schema.json";

pub(super) fn launch(agent: &AgentSpec, client: &ClientSpec, order: Order<'_>, at: &Whereabouts) -> Launch {
    let schema = order.beside.join(SCHEMA_FILE);
    let mut args = Args::default();
    args.add(&["exec"]);
    // Resuming and forking are subcommands of `exec`, so that they come before all flags.
    match order.talk {
        Talk::New => {}
        Talk::GoOn(_) => args.add(&["resume"]),
        Talk::Branch(_) => args.add(&["fork"]),
    }
    args.add(&["--json", "--skip-git-repo-check"]);
    if client.fresh {
        args.add(&["--ephemeral"]);
    }
    if let Some(model) = model(agent, client, &order) {
        args.add(&["--model", model]);
    }
    args.0.extend(["--output-schema".into(), schema.clone().into_os_string()]);
    sandbox(&mut args, client, order.job);
    shell(&mut args, order.job);
    inherited(&mut args, client.inherit);
    args.set("developer_instructions", &json!(STANDING));
    args.set("check_for_update_on_startup", &json!(false));
    args.set("analytics.enabled", &json!(false));
    args.set("web_search", &json!("disabled"));
    // Without a connection the client would retry forever, agents of its own would outlive their turn, and services
    // that are connected to the user's account are no part of a task.
    for feature in ["unbounded_connection_retries", "multi_agent", "apps", "plugins"] {
        args.set(&format!("features.{feature}"), &json!(false));
    }
    // This comes before our own servers, because it sets the whole table at once.
    if client.inherit != Inherit::Nothing {
        leave_out(&mut args, client, &servers::servers_in(at.client_settings(ID)));
    }
    client.servers.iter().for_each(|server| add_server(&mut args, server));
    // The session id is a positional argument and has to come behind all flags.
    if let Some(session) = order.talk.session() {
        args.add(&[&session.id]);
    }
    // `-` makes it read the prompt from standard input.
    args.add(&["-"]);
    let form = schema::of(order.wanted, Form::Strict).to_string();
    Launch { args: args.0, input: order.prompt, files: vec![(schema, form)], ..Launch::default() }
}

/// The arguments of a launch.
#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// Overrides a setting for this run. Texts, numbers and lists of them are written the same in JSON and in TOML.
    fn set(&mut self, name: &str, value: &Value) {
        self.add(&["-c", &format!("{name}={value}")]);
    }
}

/// Adds the sandbox as settings: `resume` and `fork` have no flag for it.
fn sandbox(args: &mut Args, client: &ClientSpec, job: Job) {
    if client.bypass && job == Job::Fix {
        args.add(&["--dangerously-bypass-approvals-and-sandbox"]);
        return;
    }
    args.set("approval_policy", &json!("never"));
    match job {
        Job::Review => args.set("sandbox_mode", &json!("read-only")),
        Job::Fix => {
            args.set("sandbox_mode", &json!("workspace-write"));
            // These override everything else that the user lets the client write.
            args.set("sandbox_workspace_write.writable_roots", &json!([]));
            args.set("sandbox_workspace_write.network_access", &json!(false));
            args.set("sandbox_workspace_write.exclude_slash_tmp", &json!(true));
            args.set("sandbox_workspace_write.exclude_tmpdir_env_var", &json!(true));
        }
    }
}

/// Adds what commands of the client see of its environment. A reviewer's commands only need to be found, a fixer's
/// build and test, and neither needs a variable with KEY, SECRET or TOKEN in its name.
fn shell(args: &mut Args, job: Job) {
    let inherit = match job {
        Job::Review => "core",
        Job::Fix => "all",
    };
    args.set("shell_environment_policy.inherit", &json!(inherit));
    args.set("shell_environment_policy.ignore_default_excludes", &json!(false));
}

/// Adds what is inherited from the user's and the project's configuration.
fn inherited(args: &mut Args, inherit: Inherit) {
    // A rule that allows a command would have it run outside of the sandbox.
    args.add(&["--ignore-rules"]);
    if inherit == Inherit::Nothing {
        args.add(&["--ignore-user-config"]);
    }
    // The project's instructions for agents are only read if they are wanted.
    if inherit != Inherit::Project {
        args.set("project_doc_max_bytes", &json!(0));
    }
    // This switches off hooks of both kinds.
    args.set("notify", &json!([]));
    args.set("features.hooks", &json!(false));
}

/// Disables the user's own servers, unless a configured one has the same name. To name a server that does not exist
/// would be an error.
fn leave_out(args: &mut Args, client: &ClientSpec, theirs: &[String]) {
    let ours = |name: &String| client.servers.iter().any(|server| plain(&server.name) == *name);
    let off: Vec<String> = theirs
        .iter()
        .filter(|name| !ours(name))
        .map(|name| format!("{}={{enabled=false}}", json!(name)))
        .collect();
    if !off.is_empty() {
        // All servers are set in one value, because the flag takes every dot in a name for a separator.
        args.add(&["-c", &format!("mcp_servers={{{}}}", off.join(","))]);
    }
}

/// A server's name as it can occur in the name of a setting.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn add_server(args: &mut Args, server: &Server) {
    let name = plain(&server.name);
    let command = server.argv.first().map(String::as_str).unwrap_or_default();
    args.set(&format!("mcp_servers.{name}.command"), &json!(command));
    args.set(&format!("mcp_servers.{name}.args"), &json!(server.argv.get(1..).unwrap_or_default()));
    // No user can be asked for approval, and a configured server is meant to be used.
    args.set(&format!("mcp_servers.{name}.default_tools_approval_mode"), &json!("approve"));
}
