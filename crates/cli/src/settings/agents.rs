//! Chooses which agents take part. [`super::drivers`] resolves how each is driven, [`super::selection`] which of them does
//! what, and [`super::trust_items`] what of it would run something.

use std::path::Path;

use tribunal_agents::clients::{AGENT_CLIENT_IDS, AgentClient};
use tribunal_engine::ids::AgentName;
use tribunal_workflows::runs::settings::{AgentSpec, DriverSpec};

use super::{
    drivers::{find_agent_client_id, find_driver, resolve_driver},
    file_reader::{self, SettingProblem},
    inputs::RunInputs,
    layers::{EffectiveSettings, describe_origin, list_setting, text_setting},
    nearest_name,
    selection::{self, AgentSelection},
    typed::{AgentChoice, TypedSettings},
};
use crate::{
    clients::installed_clients::InstalledClient,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
};

/// The names under `agents:`, sorted.
fn defined_agents(effective: &EffectiveSettings) -> Vec<&str> {
    let mut agent_names: Vec<&str> = Vec::new();
    for setting_path in effective.values.keys() {
        if let Some((agent_name, _)) =
            setting_path.strip_prefix("agents.").and_then(|agent_path| agent_path.split_once('.'))
            && !agent_names.contains(&agent_name)
        {
            agent_names.push(agent_name);
        }
    }
    agent_names.sort_unstable();
    agent_names
}

/// The agents that take part, and their reserves.
#[derive(Debug, Default)]
pub(super) struct ChosenAgents {
    pub agents: Vec<AgentSpec>,
    pub reserves: Vec<AgentSpec>,
    /// Settings that are not used in the way that was perhaps meant.
    pub warnings: Vec<String>,
    /// Says which agent was chosen, if the user named none.
    pub choice_note: Option<String>,
}

/// Chooses the agents of a run.
pub(super) fn choose_agents(
    effective: &EffectiveSettings,
    typed_settings: &TypedSettings,
    inputs: &RunInputs,
    project_root: &Path,
) -> Result<ChosenAgents, UserError> {
    // Unknown names are reported together, before any single agent is built.
    if let Some(user_error) = file_reader::problems_to_error(&find_agent_problems(effective, &typed_settings.agents)) {
        return Err(user_error);
    }
    let selection = AgentSelection::from_settings(effective, typed_settings);
    let listed_names = list_used_agents(effective, &selection, &typed_settings.agents);
    let UsedAgents { agent_names: used_names, choice_note } = match listed_names.is_empty() {
        true => default_agents(effective, &selection, inputs, project_root)?,
        false => UsedAgents { agent_names: listed_names, choice_note: None },
    };
    let make_agent = |agent_name: &str| make_agent_spec(agent_name, effective, inputs.is_paced, project_root);
    // Agents that `agentConfig` names take part even if `agents.use` does not list them.
    let mut agent_names = used_names.clone();
    for agent_name in [selection.primary_names(), selection.fallback_names()].concat() {
        if !agent_names.contains(&agent_name) {
            agent_names.push(agent_name);
        }
    }
    let mut agents = agent_names.iter().map(|agent_name| make_agent(agent_name)).collect::<Result<Vec<_>, _>>()?;
    let (problems, warnings) = selection.assign_duties(&mut agents, &used_names, effective);
    if let Some(user_error) = file_reader::problems_to_error(&problems) {
        return Err(user_error);
    }
    // A chain of stronger agents is followed to its end; each of them is in reserve once.
    let mut reserves: Vec<AgentSpec> = Vec::new();
    for agent_spec in &agents {
        let mut stronger_name = agent_spec.stronger.clone();
        while let Some(agent_name) = stronger_name {
            if agents.iter().chain(&reserves).any(|known_agent| known_agent.name == agent_name) {
                break;
            }
            let reserve = make_agent(agent_name.as_str())?;
            stronger_name = reserve.stronger.clone();
            reserves.push(reserve);
        }
    }
    // Fresh sessions for all agents override the agent's own choice.
    if !typed_settings.agents.continue_sessions {
        for agent_spec in agents.iter_mut().chain(&mut reserves) {
            if let DriverSpec::Client(client_spec) = &mut agent_spec.driver {
                client_spec.fresh = true;
            }
        }
    }
    Ok(ChosenAgents { agents, reserves, warnings, choice_note })
}

/// The agents under `agents.use`. A run that goes on keeps its agents if neither this nor `agentConfig` names others.
fn list_used_agents(
    effective: &EffectiveSettings,
    selection: &AgentSelection,
    agent_choice: &AgentChoice,
) -> Vec<String> {
    if let Some(used_names) = &agent_choice.used {
        return used_names.clone();
    }
    if !selection.primary_names().is_empty() || !selection.fallback_names().is_empty() {
        return Vec::new();
    }
    let is_known = |agent_name: &&String| find_driver(agent_name, effective).is_some();
    agent_choice.kept.iter().filter(is_known).cloned().collect()
}

/// The names of the agents that take part.
struct UsedAgents {
    agent_names: Vec<String>,
    choice_note: Option<String>,
}

/// The agents that take part if `agents.use` names none: the only one that is defined, or those that `agentConfig` names, or
/// the first client that is installed and signed in.
fn default_agents(
    effective: &EffectiveSettings,
    selection: &AgentSelection,
    inputs: &RunInputs,
    project_root: &Path,
) -> Result<UsedAgents, UserError> {
    let without_note = |agent_names| Ok(UsedAgents { agent_names, choice_note: None });
    let defined_names = defined_agents(effective);
    let settings_file = project_root.join(effective.project_file_name());
    match (defined_names.as_slice(), selection.primary_names()) {
        ([single_name], _) => without_note(vec![single_name.to_string()]),
        (_, primary_names) if !primary_names.is_empty() => without_note(primary_names),
        ([], _) => {
            let mut clients = inputs.clients.clone();
            // A sign-in by keychain shows nowhere, so the clients are asked. This takes seconds and is done only if it is
            // needed.
            if let Some(ask_clients) = inputs.ask_sign_ins.filter(|_| !clients.iter().any(InstalledClient::is_ready)) {
                ask_clients(&mut clients);
            }
            let ready_clients = clients.iter().filter(|installed| installed.is_ready());
            let mut ready_clients =
                ready_clients.filter_map(|installed| Some((installed.client, installed.sign_in.as_ref()?)));
            let (first_client, sign_in_means) =
                ready_clients.next().ok_or_else(|| no_usable_agent_error(&settings_file, &clients))?;
            let choice_note = format!(
                "no agent is set; using {}, the first client that is installed and signed in ({sign_in_means}); \
                 to use another one, pass `--agent NAME`",
                first_client.id
            );
            Ok(UsedAgents { agent_names: vec![first_client.id.to_string()], choice_note: Some(choice_note) })
        }
        (several_names, _) => Err(unnamed_agents_error(&settings_file, several_names)),
    }
}

/// Finds names that lead nowhere: under `use`, in `agentConfig`, and from an agent to a stronger one.
pub(super) fn find_agent_problems(effective: &EffectiveSettings, agent_choice: &AgentChoice) -> Vec<SettingProblem> {
    let defined_names = defined_agents(effective);
    let is_known = |agent_name: &str| defined_names.contains(&agent_name) || find_agent_client_id(agent_name).is_some();
    let mut problems = Vec::new();
    for agent_name in agent_choice.used.iter().flatten().filter(|agent_name| !is_known(agent_name)) {
        let message = format!("unknown agent `{agent_name}`");
        let fix_hint = hint_for_undefined(agent_name, &defined_names, effective.project_file_name());
        problems.push(SettingProblem::from_origin(effective.origin_of("agents.use"), message, Some(fix_hint)));
    }
    for (setting_path, agent_name) in
        selection::configured_agent_names(effective).into_iter().filter(|(_, agent_name)| !is_known(agent_name))
    {
        let message = format!("`{setting_path}` names an unknown agent, `{agent_name}`");
        problems.push(SettingProblem::from_origin(
            effective.origin_of(setting_path),
            message,
            Some(hint_for_undefined(agent_name, &defined_names, effective.project_file_name())),
        ));
    }
    for agent_name in &defined_names {
        let setting_path = format!("agents.{agent_name}.stronger");
        let Some(stronger_name) = text_setting(effective, &setting_path) else { continue };
        let other_names: Vec<&str> =
            defined_names.iter().copied().filter(|other_name| other_name != agent_name).collect();
        let (message, fix_hint) = if stronger_name == *agent_name {
            ("names the agent itself".to_string(), "name another agent, or remove the line".to_string())
        } else if !is_known(stronger_name) {
            (format!("names an unknown agent, `{stronger_name}`"), hint_for_known(stronger_name, &other_names))
        } else if let Some(circle_names) = find_circle(effective, agent_name) {
            let circle_names = circle_names.join("` -> `");
            let fix_hint = "remove `stronger` from the strongest of them".to_string();
            (format!("leads back to the agent itself: `{circle_names}` -> `{agent_name}`"), fix_hint)
        } else {
            continue;
        };
        problems.push(SettingProblem::from_origin(
            effective.origin_of(&setting_path),
            format!("`{setting_path}` {message}"),
            Some(fix_hint),
        ));
    }
    problems.extend(find_server_problems(effective));
    problems
}

/// Finds MCP servers that cannot be started because they have no command.
fn find_server_problems(effective: &EffectiveSettings) -> Vec<SettingProblem> {
    let mut problems = Vec::new();
    for (setting_path, _) in effective.values.iter().filter(|(setting_path, _)| setting_path.starts_with("mcp.")) {
        let argv_path = setting_path.strip_suffix(".roles").map(|server_path| format!("{server_path}.argv"));
        let message = match &argv_path {
            _ if list_setting(effective, setting_path).is_empty() => format!("`{setting_path}` is empty"),
            Some(argv_path) if effective.origin_of(argv_path).is_none() => {
                format!("`{setting_path}` is set, but the server has no `argv`")
            }
            _ => continue,
        };
        let fix_hint = Some("add the program and its arguments, or remove the server".into());
        problems.push(SettingProblem::from_origin(effective.origin_of(setting_path), message, fix_hint));
    }
    problems
}

/// The hint for an agent that is not defined.
fn hint_for_undefined(agent_name: &str, defined_names: &[&str], settings_file: &str) -> String {
    // Without any definition the name is probably a misspelt client.
    match (defined_names, nearest_name(agent_name, &AGENT_CLIENT_IDS)) {
        ([], Some(near_name)) => format!("did you mean `{near_name}`?"),
        ([], None) => format!(
            "use {}, or define it in {settings_file}: `agents: {{{agent_name}: {{driver: command, argv: […]}}}}`",
            AGENT_CLIENT_IDS.join(" or ")
        ),
        (known_names, _) => hint_for_known(agent_name, known_names),
    }
}

/// The hint that names the nearest known agent.
fn hint_for_known(agent_name: &str, known_names: &[&str]) -> String {
    match (nearest_name(agent_name, known_names), known_names) {
        (Some(near_name), _) => format!("did you mean `{near_name}`?"),
        (None, []) => "define it under `agents:`; no other agent is defined".to_string(),
        (None, known_names) => format!("define it under `agents:`, or use one of {}", known_names.join(", ")),
    }
}

/// The agents on the way from this one back to itself. A circle is reported once, by the first of its names.
fn find_circle<'a>(effective: &'a EffectiveSettings, start_name: &'a str) -> Option<Vec<&'a str>> {
    let mut visited = vec![start_name];
    let mut current_name = start_name;
    while let Some(stronger_name) = text_setting(effective, &format!("agents.{current_name}.stronger")) {
        if stronger_name == start_name {
            return visited.iter().all(|visited_name| start_name <= *visited_name).then_some(visited);
        }
        // This agent only leads into a circle of others, which they report.
        if visited.contains(&stronger_name) {
            return None;
        }
        visited.push(stronger_name);
        current_name = stronger_name;
    }
    None
}

/// The error for several defined agents of which none is chosen.
fn unnamed_agents_error(settings_file: &Path, defined_names: &[&str]) -> UserError {
    UserError::usage(format!("several agents are defined, and none of them is selected: {}", defined_names.join(", ")))
        .with_reason("Nothing was started.")
        .with_step(format!("add `use: [NAME]` under `agents:` in {}, or pass `--agent NAME`", settings_file.display()))
}

/// The error if no agent is named and no client can be used.
fn no_usable_agent_error(settings_file: &Path, clients: &[InstalledClient]) -> UserError {
    let mut reason_text = "A review needs an agent. Nothing was started.".to_string();
    for installed in clients {
        let (client_id, program_name) = (installed.client.id, installed.client.program);
        reason_text.push_str(&match &installed.program_path {
            None => format!("\n  {client_id}: `{program_name}` not found in PATH"),
            Some(program_path) => {
                format!("\n  {client_id}: {} is installed but not signed in", program_path.display())
            }
        });
    }
    let mut user_error =
        UserError::new(EXIT_ENVIRONMENT, "no agent is set, and no client is ready to use").with_reason(reason_text);
    // Signing in is the shorter way if a client is already installed.
    if let Some(installed) = clients.iter().find(|installed| installed.program_path.is_some()) {
        user_error = user_error.with_step(format!("sign in: `{}`", installed.client.facts.sign_in_hint));
    } else if let Some(installed) = clients.first() {
        user_error =
            user_error.with_step(format!("install a client, for example: `{}`", installed.client.facts.install_hint));
    }
    user_error
        .with_step(format!(
            "or use a command of your own; add to {}: `agents: {{mine: {{driver: command, argv: [my-agent]}}}}`",
            settings_file.display()
        ))
        .with_doctor_step()
        .with_step("or try Tribunal without an agent: `tribunal demo`")
}

/// Builds an agent from its settings.
fn make_agent_spec(
    agent_name: &str,
    effective: &EffectiveSettings,
    is_paced: bool,
    project_root: &Path,
) -> Result<AgentSpec, UserError> {
    let driver_spec = resolve_driver(agent_name, effective, is_paced)?;
    if let DriverSpec::Replay { script: script_path, .. } = &driver_spec
        && !project_root.join(script_path).is_file()
    {
        let script_origin = describe_origin(effective, &format!("agents.{agent_name}.script"));
        return Err(UserError::usage(format!("script of agent `{agent_name}` not found: {script_path}"))
            .with_reason("Nothing was started.")
            .with_step(format!("correct `script` in {script_origin}")));
    }
    let provider_name = text_setting(effective, &format!("agents.{agent_name}.provider"))
        .unwrap_or_else(|| client_vendor(&driver_spec));
    let stronger_name = text_setting(effective, &format!("agents.{agent_name}.stronger"));
    Ok(AgentSpec {
        name: AgentName::new(agent_name),
        driver: driver_spec,
        // Two spellings of one provider count as one voice.
        provider: provider_name.trim().to_lowercase(),
        stronger: stronger_name.map(AgentName::new),
        duties: Default::default(),
    })
}

/// The vendor whose model a driver asks by default; empty if it is unknown.
fn client_vendor(driver_spec: &DriverSpec) -> &'static str {
    let known_client =
        driver_spec.client_spec().and_then(|client_spec| AgentClient::find(client_spec.client.as_str()).ok());
    known_client.map_or("", |known_client| known_client.facts.vendor)
}
