//! Builds the command line of the client. Every flag was tried with the real program; `docs/agents.md` says what each
//! one is for.

use std::ffi::OsString;

use serde_json::{Value, json};
use tribunal_workflows::{
    runs::settings::AgentSpec,
    tasks::{
        client::{ClientSpec, McpServer, SettingsInheritance},
        purpose::AgentAccess,
    },
};

use super::{CLIENT_ID, mcp_servers};
use crate::{
    answer::AnswerKind,
    clients::driver_support::{choose_model, standing_instructions},
    driver::launch_request::{AgentLaunch, LaunchEnv, LaunchRequest, SessionMode},
    schema::{self, SchemaForm},
};

const SCHEMA_FILE: &str = "answer-schema.json";

pub(super) fn build_launch(
    agent_spec: &AgentSpec,
    client_spec: &ClientSpec,
    launch_request: LaunchRequest<'_>,
    launch_env: &LaunchEnv,
) -> AgentLaunch {
    let schema_path = launch_request.scratch_dir.join(SCHEMA_FILE);
    let mut codex_args = CodexArgs::default();
    codex_args.add(&["exec"]);
    // Resuming and forking are subcommands of `exec`, so they come before all flags.
    match launch_request.session_mode {
        SessionMode::New => {}
        SessionMode::Resume(_) => codex_args.add(&["resume"]),
        SessionMode::Fork(_) => codex_args.add(&["fork"]),
    }
    codex_args.add(&["--json", "--skip-git-repo-check"]);
    if client_spec.fresh {
        codex_args.add(&["--ephemeral"]);
    }
    if let Some(model_name) = choose_model(agent_spec, client_spec, &launch_request) {
        codex_args.add(&["--model", model_name]);
    }
    // A free answer has no schema: it is the client's last message.
    let schema_text = AnswerKind::from_expected(launch_request.expects)
        .map(|answer_kind| schema::answer_schema(answer_kind, SchemaForm::Strict).to_string());
    if schema_text.is_some() {
        codex_args.0.extend(["--output-schema".into(), schema_path.clone().into_os_string()]);
    }
    add_sandbox_args(&mut codex_args, client_spec, &launch_request);
    add_shell_policy(&mut codex_args, &launch_request);
    add_inheritance_args(&mut codex_args, client_spec.inherit);
    codex_args.set_config("developer_instructions", &json!(standing_instructions(&launch_request)));
    codex_args.set_config("check_for_update_on_startup", &json!(false));
    codex_args.set_config("analytics.enabled", &json!(false));
    codex_args.set_config("web_search", &json!("disabled"));
    // Without a connection the client would retry forever. It works as one agent, and services that are connected to
    // the user's account are no part of a task.
    for feature_name in ["unbounded_connection_retries", "multi_agent", "apps", "plugins"] {
        codex_args.set_config(&format!("features.{feature_name}"), &json!(false));
    }
    // This comes before our own servers, because it sets the whole table at once.
    if client_spec.inherit != SettingsInheritance::Nothing {
        disable_user_servers(
            &mut codex_args,
            client_spec,
            &mcp_servers::find_server_names(launch_env.client_settings(CLIENT_ID)),
        );
    }
    client_spec.servers.iter().for_each(|mcp_server| add_server(&mut codex_args, mcp_server));
    // The session id is a positional argument and comes after all flags.
    if let Some(session) = launch_request.session_mode.session() {
        codex_args.add(&[&session.id]);
    }
    // `-` makes it read the prompt from standard input.
    codex_args.add(&["-"]);
    AgentLaunch {
        args: codex_args.0,
        stdin_text: launch_request.prompt,
        input_files: schema_text.map(|schema_text| (schema_path, schema_text)).into_iter().collect(),
        ..AgentLaunch::default()
    }
}

/// The arguments of a launch.
#[derive(Default)]
struct CodexArgs(Vec<OsString>);

impl CodexArgs {
    fn add(&mut self, new_args: &[&str]) {
        self.0.extend(new_args.iter().map(OsString::from));
    }

    /// Overrides a setting for this run. Texts, numbers and lists of them are written the same in JSON and in TOML.
    fn set_config(&mut self, setting_name: &str, setting_value: &Value) {
        self.add(&["-c", &format!("{setting_name}={setting_value}")]);
    }
}

/// Adds the sandbox as settings: `resume` and `fork` have no flag for it.
fn add_sandbox_args(codex_args: &mut CodexArgs, client_spec: &ClientSpec, launch_request: &LaunchRequest<'_>) {
    let access = launch_request.access;
    if client_spec.bypass && access >= AgentAccess::Write {
        codex_args.add(&["--dangerously-bypass-approvals-and-sandbox"]);
        return;
    }
    codex_args.set_config("approval_policy", &json!("never"));
    // It sets up mounts for its own sandbox, which is not possible inside of another one: every command would fail.
    if launch_request.is_sandboxed {
        codex_args.set_config("sandbox_mode", &json!("danger-full-access"));
        return;
    }
    if access == AgentAccess::Read {
        codex_args.set_config("sandbox_mode", &json!("read-only"));
        return;
    }
    codex_args.set_config("sandbox_mode", &json!("workspace-write"));
    // These override what the user's own settings let the client write or reach.
    codex_args.set_config("sandbox_workspace_write.writable_roots", &json!([]));
    codex_args.set_config("sandbox_workspace_write.network_access", &json!(false));
    // Tests need a place for temporary files; a fixer, who runs none, can do without.
    let excludes_temporary = access < AgentAccess::Develop;
    codex_args.set_config("sandbox_workspace_write.exclude_slash_tmp", &json!(excludes_temporary));
    codex_args.set_config("sandbox_workspace_write.exclude_tmpdir_env_var", &json!(excludes_temporary));
}

/// Adds what commands of the client see of its environment. A reviewer's commands need `PATH`, `HOME` and the like, a
/// fixer's also build and test, and neither needs a variable with KEY, SECRET or TOKEN in its name or a secret in its value.
fn add_shell_policy(codex_args: &mut CodexArgs, launch_request: &LaunchRequest<'_>) {
    let inherited_env = if launch_request.access >= AgentAccess::Write { "all" } else { "core" };
    // What is developed may need its database.
    if launch_request.access == AgentAccess::Write && !launch_request.secret_variables.is_empty() {
        codex_args.set_config("shell_environment_policy.exclude", &json!(launch_request.secret_variables));
    }
    codex_args.set_config("shell_environment_policy.inherit", &json!(inherited_env));
    codex_args.set_config("shell_environment_policy.ignore_default_excludes", &json!(false));
}

/// Adds what is inherited from the user's and the project's configuration.
fn add_inheritance_args(codex_args: &mut CodexArgs, inherit_mode: SettingsInheritance) {
    // A rule that allows a command would have it run outside of the sandbox.
    codex_args.add(&["--ignore-rules"]);
    if inherit_mode == SettingsInheritance::Nothing {
        codex_args.add(&["--ignore-user-config"]);
    }
    // The project's instructions for agents are only read if they are wanted.
    if inherit_mode != SettingsInheritance::Project {
        codex_args.set_config("project_doc_max_bytes", &json!(0));
    }
    // `notify` is a program that the client runs at certain moments, like a hook.
    codex_args.set_config("notify", &json!([]));
    codex_args.set_config("features.hooks", &json!(false));
}

/// Disables the user's own servers, unless a configured one has the same name. To name a server that does not exist
/// would be an error.
fn disable_user_servers(codex_args: &mut CodexArgs, client_spec: &ClientSpec, user_servers: &[String]) {
    let is_own_server = |server_name: &String| {
        client_spec.servers.iter().any(|mcp_server| normalize_server_name(&mcp_server.name) == *server_name)
    };
    let disabled_entries: Vec<String> = user_servers
        .iter()
        .filter(|server_name| !is_own_server(server_name))
        .map(|server_name| format!("{}={{enabled=false}}", json!(server_name)))
        .collect();
    if !disabled_entries.is_empty() {
        // All servers are set in one value, because the flag takes every dot in a name for a separator.
        codex_args.add(&["-c", &format!("mcp_servers={{{}}}", disabled_entries.join(","))]);
    }
}

/// A server's name as it can occur in the name of a setting.
fn normalize_server_name(server_name: &str) -> String {
    server_name
        .chars()
        .map(
            |character| {
                if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') { character } else { '_' }
            },
        )
        .collect()
}

fn add_server(codex_args: &mut CodexArgs, mcp_server: &McpServer) {
    let server_key = normalize_server_name(&mcp_server.name);
    let server_command = mcp_server.argv.first().map(String::as_str).unwrap_or_default();
    codex_args.set_config(&format!("mcp_servers.{server_key}.command"), &json!(server_command));
    codex_args
        .set_config(&format!("mcp_servers.{server_key}.args"), &json!(mcp_server.argv.get(1..).unwrap_or_default()));
    // No user can be asked for approval, and a configured server is meant to be used.
    codex_args.set_config(&format!("mcp_servers.{server_key}.default_tools_approval_mode"), &json!("approve"));
}
