//! Builds the command line of the client. Every flag was tried with the real program; `docs/agents.md` says what each
//! one is for.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use tribunal_engine::limits::Cost;
use tribunal_workflows::{
    runs::settings::AgentSpec,
    tasks::{
        client::{ClientSpec, ModelSize, SettingsInheritance},
        purpose::AgentAccess,
    },
};

use super::{
    CLIENT_ID,
    tools::{self, ToolOffer},
    user_settings::ClaudeUserSettings,
};
use crate::{
    answer::AnswerKind,
    clients::driver_support::{choose_model, standing_instructions},
    driver::launch_request::{AgentLaunch, LaunchEnv, LaunchRequest, SessionMode},
    schema::{self, SchemaForm},
};

const STRUCTURED_OUTPUT_INSTRUCTION: &str = " When everything else is done, give your final answer by calling the \
     StructuredOutput tool exactly once, instead of writing the block that the task describes.";

/// The client's own retries, enough for a short outage. Tribunal itself waits for longer ones.
const MAX_RETRIES: &str = "2";
/// The smallest budget that the client is given: one cent. A budget that is used up is handled before a task starts.
const MIN_BUDGET: Cost = Cost(10_000);
const SETTINGS_FILE: &str = "claude-settings.json";
/// The client's time limit for a request.
const API_TIMEOUT_MS: &str = "300000";

pub(super) fn build_launch(
    agent_spec: &AgentSpec,
    client_spec: &ClientSpec,
    launch_request: LaunchRequest<'_>,
    launch_env: &LaunchEnv,
) -> AgentLaunch {
    let user_settings = inherit_settings(client_spec, launch_env);
    let mut args: Vec<OsString> = Vec::new();
    let mut add_args = |new_args: &[&str]| args.extend(new_args.iter().map(OsString::from));
    add_args(&["-p", "--output-format", "stream-json", "--verbose"]);
    // A user who sets a model for one size wants the sizes to differ, so the one model of the user's own settings is
    // not used.
    let user_model = user_settings.model().filter(|_| client_spec.models.is_empty());
    let model_name = choose_model(agent_spec, client_spec, &launch_request)
        .or(user_model)
        .or_else(|| launch_request.size.map(model_alias));
    if let Some(model_name) = model_name {
        add_args(&["--model", model_name]);
    }
    if let Some(task_budget) = launch_request.budget {
        add_args(&["--max-budget-usd", &task_budget.max(MIN_BUDGET).amount().to_string()]);
    }
    let tool_args = build_tool_args(client_spec, launch_request.access);
    add_args(&tool_args.iter().map(String::as_str).collect::<Vec<_>>());
    // The user's permissions would also become a fixer's. With `inherit: project`, the project's settings are wanted
    // as a whole.
    let setting_sources = match client_spec.inherit {
        SettingsInheritance::Project => "user,project,local",
        // The client finds the project's commands and skills only together with its settings.
        _ if launch_request.is_command => "project",
        _ => "",
    };
    let (settings_argument, input_files) = render_settings(client_spec, &user_settings, launch_request.scratch_dir);
    add_args(&["--setting-sources", setting_sources, "--settings", &settings_argument]);
    // Only the servers of `--mcp-config` are started, none of the user's or the project's own.
    add_args(&["--strict-mcp-config"]);
    if !client_spec.servers.is_empty() {
        add_args(&["--mcp-config", &render_mcp_servers(client_spec)]);
    }
    let standing_instructions = standing_instructions(&launch_request);
    // A free answer has no schema: it is the client's last message.
    if let Some(answer_kind) = AnswerKind::from_expected(launch_request.expects) {
        add_args(&["--json-schema", &schema::answer_schema(answer_kind, SchemaForm::Loose).to_string()]);
        let with_schema = format!("{standing_instructions}{STRUCTURED_OUTPUT_INSTRUCTION}");
        add_args(&["--append-system-prompt", &with_schema]);
    } else {
        add_args(&["--append-system-prompt", &standing_instructions]);
    }
    match launch_request.session_mode {
        SessionMode::Resume(session) => add_args(&["--resume", &session.id]),
        SessionMode::Fork(session) => add_args(&["--resume", &session.id, "--fork-session"]),
        SessionMode::New => {}
    }
    if client_spec.fresh {
        add_args(&["--no-session-persistence"]);
    }
    // With `inherit: project`, the client reads its settings itself, including their variables.
    let mut environment = user_settings.env;
    environment.retain(|_, _| client_spec.inherit == SettingsInheritance::User);
    environment.extend(fixed_variables());
    AgentLaunch {
        args,
        env: environment,
        stdin_text: match launch_request.is_command {
            true => launch_request.prompt,
            false => escape_slash_command(launch_request.prompt),
        },
        input_files,
        ..AgentLaunch::default()
    }
}

/// The user's own settings, as far as the client may inherit them.
fn inherit_settings(client_spec: &ClientSpec, launch_env: &LaunchEnv) -> ClaudeUserSettings {
    match client_spec.inherit {
        SettingsInheritance::Nothing => ClaudeUserSettings::default(),
        SettingsInheritance::User | SettingsInheritance::Project => {
            ClaudeUserSettings::from_json(launch_env.client_settings(CLIENT_ID))
        }
    }
}

/// Builds the arguments that say which tools a task is offered and which of them it may use without a question.
fn build_tool_args(client_spec: &ClientSpec, access: AgentAccess) -> Vec<String> {
    let ToolOffer { tools: offered_tools, allowed: allowed_tools } = tools::build_tool_offer(client_spec, access);
    let mut tool_args = vec![
        "--tools".to_string(),
        offered_tools.join(","),
        "--permission-mode".to_string(),
        permission_mode(client_spec, access).to_string(),
    ];
    if !allowed_tools.is_empty() {
        tool_args.push("--allowedTools".to_string());
        tool_args.extend(allowed_tools);
    }
    tool_args
}

/// The value of `--settings` and the file it names, if any. Inherited settings may contain credentials and go into a
/// file, because every user of the machine can see arguments.
fn render_settings(
    client_spec: &ClientSpec,
    user_settings: &ClaudeUserSettings,
    scratch_dir: &Path,
) -> (String, Vec<(PathBuf, String)>) {
    let mut launch_settings = Map::from_iter([("disableAllHooks".to_string(), json!(true))]);
    match client_spec.inherit {
        SettingsInheritance::User if !user_settings.settings.is_empty() => {
            launch_settings.extend(user_settings.settings.clone());
            let settings_path = scratch_dir.join(SETTINGS_FILE);
            return (
                settings_path.to_string_lossy().into_owned(),
                vec![(settings_path, Value::from(launch_settings).to_string())],
            );
        }
        SettingsInheritance::Nothing | SettingsInheritance::User => {}
        // Variables in settings override the environment, and the settings given here override all others.
        SettingsInheritance::Project => {
            let fixed_env = fixed_variables()
                .map(|(variable_name, variable_value)| (variable_name, variable_value.into()))
                .collect::<Map<_, _>>();
            launch_settings.insert("env".to_string(), fixed_env.into());
        }
    }
    (Value::from(launch_settings).to_string(), Vec::new())
}

/// The client's own names for its models, which follow new releases.
fn model_alias(model_size: ModelSize) -> &'static str {
    match model_size {
        ModelSize::Small => "haiku",
        ModelSize::Medium => "sonnet",
        ModelSize::Large => "opus",
    }
}

/// The permission mode. A reviewer is denied everything that is not allowed, because no user could be asked.
fn permission_mode(client_spec: &ClientSpec, access: AgentAccess) -> &'static str {
    match (access, client_spec.bypass) {
        (AgentAccess::Read, _) => "dontAsk",
        (AgentAccess::Write | AgentAccess::Develop, true) => "bypassPermissions",
        (AgentAccess::Write | AgentAccess::Develop, false) => "acceptEdits",
    }
}

fn render_mcp_servers(client_spec: &ClientSpec) -> String {
    let server_entries = client_spec.servers.iter().map(|mcp_server| {
        let server_command = mcp_server.argv.first().map(String::as_str).unwrap_or_default();
        let server_args = mcp_server.argv.get(1..).unwrap_or_default();
        (mcp_server.name.clone(), json!({"command": server_command, "args": server_args}))
    });
    json!({"mcpServers": server_entries.collect::<serde_json::Map<_, _>>()}).to_string()
}

/// Variables that hold regardless of the user's own.
fn fixed_variables() -> impl Iterator<Item = (String, String)> {
    let variable_pairs = [
        ("API_TIMEOUT_MS", API_TIMEOUT_MS),
        // A subject that contains `@/some/file` would have that file sent, past all permissions.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
        // What one task noted would be given to the next one.
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // A background agent would be left behind at the end of its turn.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", MAX_RETRIES),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    variable_pairs
        .into_iter()
        .map(|(variable_name, variable_value)| (variable_name.to_string(), variable_value.to_string()))
}

/// Escapes a prompt that begins with a slash, which the client would take for a command.
fn escape_slash_command(prompt: String) -> String {
    if prompt.starts_with('/') { format!("\n{prompt}") } else { prompt }
}
