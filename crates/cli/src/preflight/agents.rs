//! Whether the agents of a run can work, and whether enough of them can.

use std::path::Path;

use tribunal_agents::clients::AgentClient;
use tribunal_workflows::{
    runs::{
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec, Settings},
    },
    tasks::client::{JobKind, JobPriority},
};

use super::StartReport;
use crate::{
    clients::{
        client_probe::{ClientState, ProbedClient},
        programs::{EnvLookup, ProgramProblem, locate_program},
    },
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    settings::suggest_argv,
};

/// An agent, and whether it can work.
#[derive(Clone, Debug)]
pub(crate) struct AgentReadiness<'a> {
    pub agent: &'a AgentSpec,
    /// A reserve takes no jobs of its own; it stands by for all that it is not excluded from.
    pub is_reserve: bool,
    pub state: ClientState,
}

impl AgentReadiness<'_> {
    pub fn part_in_job(&self, job: JobKind) -> JobPriority {
        // An agent without an entry for a job takes it.
        self.agent.find_duty(job).map_or(JobPriority::Takes, |duty| duty.part)
    }
}

/// Reads the state of every agent and reserve of a run.
pub(crate) fn read_agent_states<'a>(
    settings: &'a Settings,
    project_root: &Path,
    env_variable: EnvLookup<'_>,
    probed_clients: &[ProbedClient],
) -> Vec<AgentReadiness<'a>> {
    let read_state = |agent: &'a AgentSpec, is_reserve: bool| AgentReadiness {
        agent,
        is_reserve,
        state: read_agent_state(agent, project_root, env_variable, probed_clients),
    };
    let active_agents = settings.agents.iter().map(|agent| read_state(agent, false));
    active_agents.chain(settings.reserves.iter().map(|agent| read_state(agent, true))).collect()
}

fn read_agent_state(
    agent: &AgentSpec,
    project_root: &Path,
    env_variable: EnvLookup<'_>,
    probed_clients: &[ProbedClient],
) -> ClientState {
    match &agent.driver {
        DriverSpec::Command { argv } => match locate_program(project_root, program_name(argv), env_variable) {
            Ok(_) => ClientState::Ready,
            Err(problem) => ClientState::Unstartable { problem },
        },
        // The script was looked for when the settings were resolved, and Tribunal itself plays it.
        DriverSpec::Replay { .. } => ClientState::Ready,
        DriverSpec::Client(_) => find_probe(agent, probed_clients).map_or(
            ClientState::Unstartable { problem: ProgramProblem::NotFound { similar_name: None } },
            |probed_client| probed_client.probed.state.clone(),
        ),
    }
}

fn program_name(argv: &[String]) -> &str {
    argv.first().map_or("", String::as_str)
}

/// Finds the client that an agent uses; it was probed under the agent's name.
fn find_probe<'a>(agent: &AgentSpec, probed_clients: &'a [ProbedClient]) -> Option<&'a ProbedClient> {
    probed_clients
        .iter()
        .find(|probed_client| probed_client.program.agent_names.iter().any(|name| name == agent.name.as_str()))
}

/// Examines the agents. One that cannot work is a fault only if it leaves a job without any agent.
pub(super) fn examine_agents(
    plan: &RunPlan,
    project_root: &Path,
    env_variable: EnvLookup<'_>,
    probed_clients: &[ProbedClient],
) -> StartReport {
    let mut report = StartReport::default();
    let all_states = read_agent_states(&plan.settings, project_root, env_variable, probed_clients);
    let jobs = plan.order.needed_jobs();
    let can_do = |readiness: &AgentReadiness<'_>, job: JobKind| readiness.part_in_job(job) != JobPriority::Never;
    let is_unstaffed =
        |job: &JobKind| !all_states.iter().any(|readiness| readiness.state.can_work() && can_do(readiness, *job));
    let unstaffed_jobs: Vec<JobKind> = jobs.iter().copied().filter(is_unstaffed).collect();
    for readiness in all_states.iter().filter(|readiness| !readiness.state.can_work()) {
        let is_needed = unstaffed_jobs.iter().any(|job| can_do(readiness, *job));
        // A journal may come from a build with other clients; none of ours may silently replace a missing one.
        let unknown_client = readiness
            .agent
            .driver
            .client_spec()
            .and_then(|client_spec| AgentClient::find(client_spec.client.as_str()).err());
        if let Some(unknown_client) = unknown_client {
            report.faults.push(
                UserError::usage(format!("agent `{}`: {unknown_client}", readiness.agent.name))
                    .with_reason("Nothing was started.")
                    .with_step(
                        "choose another agent in `agents.use`, then resume with the changed settings: \
                         `tribunal resume --reload`",
                    ),
            );
        // What is not trusted yet is asked for elsewhere.
        } else if readiness.state != ClientState::Untrusted {
            let explained = explain_unable_agent(readiness, find_probe(readiness.agent, probed_clients));
            if is_needed { report.faults.push(explained) } else { report.warnings.push(explained) }
        }
    }
    report
}

/// Explains why an agent cannot work, and what to do about it.
fn explain_unable_agent(readiness: &AgentReadiness<'_>, probed_client: Option<&ProbedClient>) -> UserError {
    let agent_name = &readiness.agent.name;
    let explain = |message: String| {
        UserError::new(EXIT_ENVIRONMENT, format!("agent `{agent_name}`: {message}")).with_reason("Nothing was started.")
    };
    match (&readiness.agent.driver, &readiness.state, probed_client) {
        (DriverSpec::Command { argv }, ClientState::Unstartable { problem }, _) => {
            let program = program_name(argv);
            let setting_path = format!("agents.{agent_name}.argv");
            // Such a name was probably meant as a program with its arguments.
            let is_command_line =
                matches!(problem, ProgramProblem::NotFound { .. }) && program.contains(char::is_whitespace);
            if is_command_line {
                return UserError::usage(format!("agent `{agent_name}`: {}", problem.describe(program)))
                    .with_reason("Nothing was started.")
                    .with_step(suggest_argv(program));
            }
            explain(problem.describe(program)).with_step(problem.suggest_fix(program, &setting_path))
        }
        (_, state, Some(probed_client)) => {
            let user_error = explain(describe_client_state(state, probed_client));
            match suggest_client_fix(probed_client, agent_name.as_str()) {
                Some(fix_step) => user_error.with_step(fix_step),
                None => user_error,
            }
        }
        (_, state, None) => explain(state.to_string()),
    }
}

fn describe_client_state(state: &ClientState, probed_client: &ProbedClient) -> String {
    let client = probed_client.program.client;
    let found_at = probed_client
        .program
        .located
        .as_ref()
        .map(|program_path| format!(" ({})", program_path.display()))
        .unwrap_or_default();
    match state {
        ClientState::Unstartable { problem } => problem.describe(&probed_client.program.program),
        ClientState::TooOld => {
            let version = probed_client.probed.version.map(|version| format!(" {version}")).unwrap_or_default();
            let minimum = client.facts.minimum_version;
            format!("{}{version} is too old; {minimum} or newer is required{found_at}", client.name)
        }
        ClientState::Broken { reason } => format!("{}{found_at} does not work: {reason}", client.name),
        ClientState::NotSignedIn => format!("{} is not signed in", client.name),
        other_state => format!("{} is {other_state}", client.name),
    }
}

/// Suggests the command that makes a client work; `None` if nothing is missing.
pub(super) fn suggest_client_fix(probed_client: &ProbedClient, agent_name: &str) -> Option<String> {
    let (program, facts) = (&probed_client.program.program, probed_client.program.client.facts);
    match &probed_client.probed.state {
        ClientState::Ready | ClientState::OtherProvider { .. } | ClientState::Untrusted => None,
        // The client was not named in the settings, so it is enough to install it.
        ClientState::Unstartable { problem: ProgramProblem::NotFound { .. } }
            if *program == probed_client.program.client.program =>
        {
            Some(format!("install it: `{}`", facts.install_hint))
        }
        ClientState::Unstartable { problem } => {
            Some(problem.suggest_fix(program, &format!("agents.{agent_name}.program")))
        }
        ClientState::Unsure { .. } | ClientState::NotSignedIn => Some(format!("sign in: `{}`", facts.sign_in_hint)),
        ClientState::TooOld => Some(format!("update it: `{}`", facts.install_hint)),
        // Reinstalling is the usual way out for a program that starts and fails.
        ClientState::Broken { .. } => Some(format!("reinstall it: `{}`", facts.install_hint)),
    }
}

/// Finds MCP servers whose program is missing. Agents work without them, so this is only a warning.
pub(super) fn find_missing_servers(
    settings: &Settings,
    project_root: &Path,
    env_variable: EnvLookup<'_>,
) -> Vec<UserError> {
    let mut checked_names: Vec<&str> = Vec::new();
    let mut problems = Vec::new();
    let client_specs = settings.agents.iter().filter_map(|agent| agent.driver.client_spec());
    for server in client_specs.flat_map(|client_spec| &client_spec.servers) {
        // The same server is listed for every client that gets it.
        let Some(program) = server.argv.first().filter(|_| !checked_names.contains(&server.name.as_str())) else {
            continue;
        };
        checked_names.push(&server.name);
        if let Err(problem) = locate_program(project_root, program, env_variable) {
            let message = format!("MCP server `{}`: {}", server.name, problem.describe(program));
            problems.push(
                UserError::new(EXIT_ENVIRONMENT, message)
                    .with_step(problem.suggest_fix(program, &format!("mcp.{}.argv", server.name))),
            );
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::tasks::client::ClientSpec;

    use super::*;

    #[test]
    fn a_client_of_another_build_is_an_error() {
        let mut plan = tribunal_testkit::samples::sample_plan().into_run();
        plan.settings.agents =
            vec![AgentSpec::new("theirs", DriverSpec::Client(ClientSpec::new("client-of-tomorrow")))];
        let pinned_json = serde_json::to_value(&plan.settings).unwrap();
        plan.settings = serde_json::from_value(pinned_json).unwrap();
        let report = examine_agents(&plan, Path::new("."), &|_| None, &[]);
        assert_eq!((report.faults.len(), report.faults[0].exit_code), (1, 2));
        assert!(report.faults[0].to_string().contains("agent `theirs`: unknown client `client-of-tomorrow`"));
    }

    #[test]
    fn a_command_line_as_a_program_name_is_a_mistake_in_the_settings() {
        let mut plan = tribunal_testkit::samples::sample_plan().into_run();
        let argv = vec!["my agent --print".to_string()];
        plan.settings.agents = vec![AgentSpec::new("mine", DriverSpec::Command { argv })];
        let report = examine_agents(&plan, Path::new("."), &|_| None, &[]);
        assert_eq!((report.faults.len(), report.faults[0].exit_code), (1, 2));
        assert!(report.faults[0].to_string().contains("`argv: [my, agent, --print]`"), "{}", report.faults[0]);
    }

    #[test]
    fn an_agent_that_is_not_needed_is_only_a_warning() {
        let mut plan = tribunal_testkit::samples::sample_plan().into_run();
        let missing_agent =
            |name: &str| AgentSpec::new(name, DriverSpec::Command { argv: vec![format!("/nowhere/{name}")] });
        plan.settings.agents = vec![missing_agent("one"), missing_agent("two")];
        let report = examine_agents(&plan, Path::new("."), &|_| None, &[]);
        assert_eq!((report.faults.len(), report.warnings.len()), (2, 0));
        let script = DriverSpec::Replay { script: "script.yaml".into(), paced: false };
        plan.settings.agents.push(AgentSpec::new("three", script));
        let report = examine_agents(&plan, Path::new("."), &|_| None, &[]);
        assert_eq!((report.faults.len(), report.warnings.len()), (0, 2));
    }
}
